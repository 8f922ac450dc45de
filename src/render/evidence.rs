//! Holds a report to its own evidence.
//!
//! A finding and a ground of the durability verdict name the figures they rest on by JSON
//! pointers from the document's root. Each must resolve, within its own target or the
//! host, to exactly the value that stands beside it.

use serde_json::Value;

/// What is wrong with the evidence of a report; empty when all is well.
#[must_use]
pub fn check_evidence(document: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for (i, target) in items(document, "/targets").enumerate() {
        for (j, ground) in items(target, "/durability/grounds").enumerate() {
            if let Some(pointer) = ground["evidence"].as_str() {
                let at = format!("/targets/{i}/durability/grounds/{j}");
                check(document, i, &at, pointer, &ground["value"], &mut wrong);
            }
        }
        for (j, finding) in items(target, "/findings").enumerate() {
            let at = format!("/targets/{i}/findings/{j}");
            let mut any = false;
            for evidence in items(finding, "/evidence") {
                any = true;
                match evidence["pointer"].as_str() {
                    Some(pointer) => {
                        check(document, i, &at, pointer, &evidence["value"], &mut wrong);
                    }
                    None => wrong.push(format!("{at}: evidence without a pointer")),
                }
            }
            if !any {
                wrong.push(format!("{at}: no evidence"));
            }
        }
    }
    wrong
}

fn items<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn check(
    document: &Value,
    target: usize,
    at: &str,
    pointer: &str,
    stated: &Value,
    wrong: &mut Vec<String>,
) {
    if !pointer.starts_with(&format!("/targets/{target}/")) && !pointer.starts_with("/host/") {
        wrong.push(format!(
            "{at}: {pointer} points outside its target and the host"
        ));
        return;
    }
    match document.pointer(pointer) {
        None => wrong.push(format!("{at}: {pointer} resolves to nothing")),
        Some(found) if !same(found, stated) => {
            wrong.push(format!("{at}: {pointer} is {found}, stated is {stated}"));
        }
        Some(_) => {}
    }
}

/// JSON does not tell 1 from 1.0, nor do we.
fn same(a: &Value, b: &Value) -> bool {
    a == b
        || match (a, b) {
            (Value::Number(x), Value::Number(y)) => {
                (x.is_f64() || y.is_f64()) && x.as_f64() == y.as_f64()
            }
            _ => false,
        }
}
