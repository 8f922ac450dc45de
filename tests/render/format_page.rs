//! `docs/format.md` explains every key, column and word.

use super::*;

const PAGE: &str = include_str!("../../docs/format.md");

/// Every word between backquotes, dotted ones also by their last part.
fn explained() -> BTreeSet<&'static str> {
    let mut words = BTreeSet::new();
    for line in PAGE.lines() {
        for word in line.split('`').skip(1).step_by(2) {
            words.insert(word);
            if let Some((_, last)) = word.rsplit_once('.') {
                words.insert(last);
            }
        }
    }
    words
}

fn keys(value: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                out.insert(key.clone());
                // Below these stand names of facts, parameters and phases.
                if matches!(key.as_str(), "facts" | "phases") {
                    value
                        .as_object()
                        .unwrap()
                        .values()
                        .for_each(|v| keys(v, out));
                } else if !matches!(key.as_str(), "params" | "observations") {
                    keys(value, out);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|v| keys(v, out)),
        _ => {}
    }
}

#[test]
fn explains_every_key_column_and_word() {
    use proptest::strategy::{Strategy as _, ValueTree as _};
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let full = (0..)
        .map(|_| generated::report().new_tree(&mut runner).unwrap().current())
        .find(|r| !r.targets.is_empty())
        .unwrap();
    let mut all = BTreeSet::new();
    keys(&serde_json::to_value(full).unwrap(), &mut all);
    assert!(all.contains("sumsq_us2") && all.contains("witness_bytes") && all.contains("why"));
    all.extend(csv::COLUMNS.iter().map(|c| (*c).to_owned()));
    let ids = |list: &[(&str, &str)]| -> Vec<String> {
        list.iter().map(|(id, _)| (*id).to_owned()).collect()
    };
    all.extend(ids(vocabulary::GROUNDS));
    all.extend(ids(vocabulary::DOUBTS));
    all.extend(ids(vocabulary::REASON_CODES));
    for list in [
        &vocabulary::facts(),
        vocabulary::ROLES,
        vocabulary::ACTIONS,
        vocabulary::LEVELS,
        vocabulary::CONFIDENCES,
        vocabulary::DEVICE_KINDS,
        vocabulary::DEVICE_ROLES,
        vocabulary::HOOKS,
        vocabulary::CACHE_STATES,
        vocabulary::RESIDENCY_BY,
        conf::SETTINGS,
    ] {
        all.extend(list.iter().map(|w| (*w).to_owned()));
    }
    all.extend(enum_words());
    let explained = explained();
    let missing: Vec<_> = all
        .iter()
        .filter(|w| !explained.contains(w.as_str()))
        .collect();
    assert!(missing.is_empty(), "docs/format.md lacks {missing:?}");
}

/// The words of every enumeration of the report.
fn enum_words() -> Vec<String> {
    use walprobe_probes::report::{Cold, RowStatus, Verdict, Weight};
    let words = |value: Value| value.as_str().unwrap().to_owned();
    macro_rules! all {
        ($($of:ident { $($variant:ident)* })*) => {{
            // The match fails to compile when a variant is missing here.
            $(let _ = |v: $of| match v { $($of::$variant => ()),* };)*
            vec![$($(words(serde_json::to_value($of::$variant).unwrap()),)*)*]
        }};
    }
    all! {
        EndedBy { Done Sigint Sigterm Sighup Budget Time Error }
        TargetStatus { Ok Fault Skipped }
        DurabilityVerdict {
            FlushesSeen NoFlushNeeded NoFlushSeen NotDurable NotProvable NotTested
        }
        Weight { For Against Limits }
        RowStatus { Ok Unsupported Fault Skipped }
        Verdict { Baseline Faster Slower Tie Inconclusive }
        Cold { Proven NotCold Unknown }
    }
}

#[test]
fn lists_the_columns_in_their_order() {
    let section = PAGE.split("\n## CSV\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let listed: Vec<&str> = section
        .lines()
        .filter_map(|l| l.strip_prefix("| `"))
        .flat_map(|l| l.split(" | ").next().unwrap().split(", "))
        .map(|w| w.trim_matches(['`', ' ']))
        .collect();
    assert_eq!(listed, csv::COLUMNS);
}
