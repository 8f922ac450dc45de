//! What is known without measuring, one line a fact: what `walprobe facts` is asked for.

use std::fmt::Write as _;

use serde_json::Value;
use walprobe_probes::report::{Fact, Target};

use super::Page;

/// Writes every fact; one that could not be read says why.
pub(super) fn write(page: &mut Page, target: &Target) {
    page.section("Facts");
    let width = target.facts.keys().map(String::len).max().unwrap_or(0);
    for (name, fact) in &target.facts {
        let _ = writeln!(page.out, " {name:width$}  {}", told(fact));
    }
}

fn told(fact: &Fact) -> String {
    match (&fact.value, &fact.why) {
        (Value::Null, Some(why)) => format!("- ({why})"),
        (Value::Null, None) => "-".to_owned(),
        (Value::String(text), _) => text.clone(),
        (other, _) => other.to_string(),
    }
}
