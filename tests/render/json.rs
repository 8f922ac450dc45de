//! JSON: complete, in order, finite, and true to its own evidence and words.

use super::*;

/// Whether everything of `part` is in `whole`; numbers by value.
fn within(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part
            .iter()
            .all(|(key, value)| whole.get(key).is_some_and(|other| within(value, other))),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(a, b)| within(a, b))
        }
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        _ => part == whole,
    }
}

#[test]
fn holds_all_of_the_example() {
    let ours: Value = serde_json::from_str(&render("json", &example(), None)).unwrap();
    let given: Value = serde_json::from_str(reports::EXAMPLE).unwrap();
    assert!(within(&given, &ours));
    assert_eq!(check_evidence(&given), Vec::<String>::new());
    assert_eq!(check_evidence(&ours), Vec::<String>::new());
    assert_eq!(vocabulary::check_vocabulary(&ours), Vec::<String>::new());
    assert_eq!(example(), serde_json::from_value(ours).unwrap());
}

#[test]
fn keys_stand_in_the_order_of_the_types() {
    let text = render("json", &example(), None);
    let top: Vec<&str> = text
        .lines()
        .filter_map(|l| l.strip_prefix("  \"")?.split_once('"'))
        .map(|(key, _)| key)
        .collect();
    assert_eq!(
        top,
        [
            "schema",
            "run_id",
            "tool",
            "started_at",
            "finished_at",
            "ended_by",
            "seed",
            "profile",
            "time_limit_s",
            "write_budget_bytes",
            "interval_level",
            "host",
            "targets",
            "margins"
        ]
    );
    let at = |key: &str| text.find(&format!("\"{key}\":")).unwrap();
    assert!(at("probe") < at("comparison"));
    assert!(at("mean_us") < at("stddev_us") && at("stddev_us") < at("p50_us"));
}

#[test]
fn fixtures_hold_to_their_evidence_and_vocabulary() {
    for (name, report) in fixtures() {
        let document: Value = serde_json::from_str(&render("json", &report, None)).unwrap();
        if name != "faults" {
            assert_eq!(check_evidence(&document), Vec::<String>::new(), "{name}");
        }
        assert_eq!(
            vocabulary::check_vocabulary(&document),
            Vec::<String>::new(),
            "{name}"
        );
    }
}

#[test]
fn evidence_that_does_not_hold_is_found() {
    let sound: Value = serde_json::from_str(reports::EXAMPLE).unwrap();
    for (at, value, complaint) in [
        (
            "/targets/0/findings/0/evidence/0/value",
            serde_json::json!(241.0),
            "stated is 241.0",
        ),
        (
            "/targets/0/findings/0/evidence/0/pointer",
            serde_json::json!("/targets/0/rows/99/p50_us"),
            "resolves to nothing",
        ),
        (
            "/targets/0/findings/0/evidence/0/pointer",
            serde_json::json!("/seed"),
            "outside its target",
        ),
        (
            "/targets/0/findings/0/evidence",
            serde_json::json!([]),
            "no evidence",
        ),
        (
            "/targets/0/rows/8/flushes_per_op",
            serde_json::json!(0.5),
            "grounds/0",
        ),
    ] {
        let mut document = sound.clone();
        *document.pointer_mut(at).unwrap() = value;
        let wrong = check_evidence(&document);
        assert!(
            wrong.len() == 1 && wrong[0].contains(complaint),
            "{at}: {wrong:?}"
        );
    }
}

#[test]
fn words_outside_the_closed_lists_are_found() {
    let mut report = reports::report(vec![reports::ext4()]);
    report.targets[0].rows[0].reason_code = Some("tired".to_owned());
    report.targets[0].durability.grounds[0].id = "hope".to_owned();
    report.targets[0].findings[0].level = "urgent".to_owned();
    let wrong = vocabulary::check_vocabulary(&serde_json::to_value(&report).unwrap());
    assert_eq!(wrong.len(), 3, "{wrong:?}");
}

#[test]
fn what_is_not_finite_is_null_or_refused() {
    let mut report = example();
    report.targets[0].rows[0].ratio = Some(f64::NAN);
    report.targets[0].rows[0].ops_per_sec = Some(f64::INFINITY);
    let document: Value = serde_json::from_str(&render("json", &report, None)).unwrap();
    assert!(document["targets"][0]["rows"][0]["ratio"].is_null());
    assert!(document["targets"][0]["rows"][0]["ops_per_sec"].is_null());
    report.targets[0].findings[0].effect.as_mut().unwrap().low = f64::NAN;
    for renderer in RENDERERS {
        let refused = renderer.render(&report, &Options::default());
        let message = format!("{:#}", refused.expect_err(renderer.name()));
        assert!(message.contains("not finite"), "{message}");
    }
}

/// White space outside strings taken away.
fn compacted(text: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    text.chars()
        .filter(|c| {
            let keep = in_string || !c.is_ascii_whitespace();
            if escaped {
                escaped = false;
            } else if in_string && *c == '\\' {
                escaped = true;
            } else if *c == '"' {
                in_string = !in_string;
            }
            keep
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn layout_moves_white_space_only(report in generated::report()) {
        let text = render("json", &report, None);
        prop_assert!(!text.chars().any(|c| c != '\n' && escape::is_unsafe(c)));
        let ours: Report = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&ours, &report);
        let plain = serde_json::to_string(&report).unwrap();
        if !plain.contains(escape::is_unsafe) {
            prop_assert_eq!(compacted(&text), plain);
        }
    }
}
