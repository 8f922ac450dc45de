//! Whatever a report holds, the guards hold: reports in which everything would change, spoilt
//! at random, against a second telling of the rules.

use std::collections::BTreeMap;

use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};
use walprobe::advise::{RULES, advise, never::never};
use walprobe_probes::report::{
    Cold, DurabilityVerdict, Finding, Report, Row, RowStatus, Target, Verdict,
};

use super::build::{With, delay, life, prealloc, report, row, sync, target, verdict};

type Span = (f64, f64, f64);
const SAME: Span = (1.0, 0.97, 1.03);
const CHEAPER: Span = (0.60, 0.59, 0.61);
const TINY: Span = (0.03, 0.025, 0.04);
const BEYOND: f64 = 1.0 / 1.1;

/// One thing that is wrong with one row, or with the target.
#[derive(Clone, Debug)]
enum Spoil {
    Gone(usize),
    Status(usize, RowStatus),
    Span(usize, Span),
    Total(usize, Option<Span>),
    P99(usize, Option<Span>),
    Flushes(usize, Option<f64>),
    Ends(usize, Option<f64>, Option<f64>),
    Verdict(usize, Option<Verdict>),
    Rounds(usize, u64),
    Cold(usize, Option<Cold>),
    Reserved(usize, Value),
    InPlace(Value),
    MayRecommend(bool),
    Margins(f64, f64),
}

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![
        Just(SAME),
        Just(CHEAPER),
        Just((1.5, 1.4, 1.6)),
        Just((0.90, 0.87, 0.93)),
        Just((1.0, 0.93, 1.08)),
        Just((0.95, 0.75, 1.2)),
        (0.2..3.0_f64, 0.3..1.0_f64, 1.0..3.0_f64).prop_map(|(r, l, h)| (r, r * l, r * h)),
    ]
}

fn figure() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        Just(None),
        Just(Some(f64::NAN)),
        Just(Some(f64::INFINITY)),
        Just(Some(0.0)),
        Just(Some(-1.0)),
        (0.1..3.0_f64).prop_map(Some),
    ]
}

fn spoil() -> impl Strategy<Value = Spoil> {
    let at = || 0..64_usize;
    let status = prop_oneof![
        Just(RowStatus::Skipped),
        Just(RowStatus::Fault),
        Just(RowStatus::Unsupported)
    ];
    let verdict = prop_oneof![
        Just(None),
        Just(Some(Verdict::Inconclusive)),
        Just(Some(Verdict::Tie)),
        Just(Some(Verdict::Faster)),
        Just(Some(Verdict::Slower)),
    ];
    let cold = prop_oneof![
        Just(None),
        Just(Some(Cold::NotCold)),
        Just(Some(Cold::Unknown)),
        Just(Some(Cold::Proven)),
    ];
    let reserved = prop_oneof![Just(json!(true)), Just(json!(null)), Just(json!("no"))];
    let in_place = prop_oneof![
        Just(json!("yes")),
        Just(json!("no")),
        Just(json!(true)),
        Just(json!("it depends")),
        Just(Value::Null),
    ];
    prop_oneof![
        2 => at().prop_map(Spoil::Gone),
        2 => (at(), status).prop_map(|(at, s)| Spoil::Status(at, s)),
        6 => (at(), span()).prop_map(|(at, s)| Spoil::Span(at, s)),
        2 => (at(), prop::option::of(span())).prop_map(|(at, s)| Spoil::Total(at, s)),
        1 => (at(), prop::option::of(span())).prop_map(|(at, s)| Spoil::P99(at, s)),
        1 => (at(), prop_oneof![Just(None), (0.0..1.2_f64).prop_map(Some)])
            .prop_map(|(at, f)| Spoil::Flushes(at, f)),
        1 => (at(), figure(), figure()).prop_map(|(at, l, h)| Spoil::Ends(at, l, h)),
        2 => (at(), verdict).prop_map(|(at, v)| Spoil::Verdict(at, v)),
        1 => (at(), 0..24_u64).prop_map(|(at, n)| Spoil::Rounds(at, n)),
        2 => (at(), cold).prop_map(|(at, c)| Spoil::Cold(at, c)),
        1 => (at(), reserved).prop_map(|(at, r)| Spoil::Reserved(at, r)),
        1 => in_place.prop_map(Spoil::InPlace),
        1 => any::<bool>().prop_map(Spoil::MayRecommend),
        1 => (any::<f64>(), any::<f64>()).prop_map(|(a, t)| Spoil::Margins(a, t)),
    ]
}

/// Everything that can change would.
fn everything() -> Report {
    let reserved = |id| {
        let mut row = row(id, "", SAME).seen("reserved", json!(false));
        (row.ratio, row.verdict, row.baseline) = (None, None, None);
        row
    };
    let rows = [
        sync("commit", [SAME, CHEAPER, SAME]),
        sync("commit-64k", [SAME, SAME, SAME]),
        sync("bulk", [SAME, SAME, SAME]),
        prealloc(TINY, SAME),
        life("life", SAME, SAME),
        life("life-8k", SAME, SAME),
        life("life-cold", CHEAPER, CHEAPER),
        life("life-cold-8k", CHEAPER, CHEAPER),
        life("life-standby", CHEAPER, CHEAPER),
        delay(8, "", CHEAPER),
        delay(16, "", CHEAPER),
        delay(8, "-think", SAME),
        delay(16, "-think", SAME),
        vec![
            reserved("enospc/full/zero-fill"),
            reserved("enospc/rewrite-old/old-segment"),
        ],
    ];
    report(target(Some("no"), rows.concat()))
}

fn apply(report: &mut Report, spoil: &Spoil) {
    let margins = &mut report.margins;
    let target = &mut report.targets[0];
    let rows = target.rows.len().max(1);
    let mut with = |at: &usize, change: &mut dyn FnMut(&mut Row)| {
        if let Some(row) = target.rows.get_mut(at % rows) {
            change(row);
        }
    };
    match spoil {
        Spoil::Gone(at) => {
            if !target.rows.is_empty() {
                target.rows.remove(at % rows);
            }
        }
        Spoil::Status(at, status) => with(at, &mut |row| {
            row.status = *status;
            row.reason_code = Some("time".to_owned());
            row.reason = Some("spoilt".to_owned());
        }),
        Spoil::Span(at, span) => with(at, &mut |row| {
            let id = format!("{}/{}/{}", row.probe, row.comparison, row.case);
            let base = row.baseline.clone().unwrap_or_default();
            let fresh = super::build::row(&id, &base, *span);
            (row.ratio, row.ratio_low, row.ratio_high) = (Some(span.0), Some(span.1), Some(span.2));
            row.verdict = fresh.verdict;
        }),
        Spoil::Total(at, span) => with(at, &mut |row| match span {
            Some(span) => *row = row.clone().total(*span),
            None => row.observations.clear(),
        }),
        Spoil::P99(at, span) => with(at, &mut |row| match span {
            Some(span) => *row = row.clone().p99(*span),
            None => row.p99_ratio_high = None,
        }),
        Spoil::Flushes(at, flushes) => with(at, &mut |row| row.flushes_per_op = *flushes),
        Spoil::Ends(at, low, high) => with(at, &mut |row| {
            (row.ratio_low, row.ratio_high) = (*low, *high);
        }),
        Spoil::Verdict(at, verdict) => with(at, &mut |row| row.verdict = *verdict),
        Spoil::Rounds(at, rounds) => with(at, &mut |row| row.rounds = *rounds),
        Spoil::Cold(at, cold) => with(at, &mut |row| row.cold = *cold),
        Spoil::Reserved(at, reserved) => with(at, &mut |row| {
            row.observations
                .insert("reserved".to_owned(), reserved.clone());
        }),
        Spoil::InPlace(value) => {
            if let Some(fact) = target.facts.get_mut("fs.in_place") {
                fact.value = value.clone();
            }
        }
        Spoil::MayRecommend(may) => target.durability.may_recommend = *may,
        Spoil::Margins(action, tie) => (margins.action, margins.tie) = (*action, *tie),
    }
}

fn reports() -> impl Strategy<Value = Report> {
    let verdicts = prop_oneof![
        4 => Just(DurabilityVerdict::FlushesSeen),
        1 => Just(DurabilityVerdict::NoFlushNeeded),
        1 => Just(DurabilityVerdict::NoFlushSeen),
        1 => Just(DurabilityVerdict::NotDurable),
        1 => Just(DurabilityVerdict::NotProvable),
        1 => Just(DurabilityVerdict::NotTested),
    ];
    (verdicts, prop::collection::vec(spoil(), 0..24)).prop_map(|(durability, spoils)| {
        let mut report = everything();
        report.targets[0].durability = verdict(durability);
        for spoil in &spoils {
            apply(&mut report, spoil);
        }
        report
    })
}

fn at<'t>(target: &'t Target, probe: &str, comparison: &str, case: &str) -> Option<&'t Row> {
    target
        .rows
        .iter()
        .find(|r| r.probe == probe && r.comparison == comparison && r.case == case)
}

fn ok<'t>(target: &'t Target, probe: &str, comparison: &str, case: &str) -> &'t Row {
    let row = at(target, probe, comparison, case).expect("a row that a change rests on");
    assert_eq!(row.status, RowStatus::Ok, "{probe}/{comparison}/{case}");
    assert_ne!(
        row.verdict,
        Some(Verdict::Inconclusive),
        "{probe}/{comparison}/{case}"
    );
    row
}

fn below(value: Option<f64>, bound: f64) -> bool {
    value.is_some_and(|value| value > 0.0 && value < bound)
}

/// What must hold where a value changes, told a second time.
fn change_is_right(target: &Target, finding: &Finding) {
    assert!(target.durability.verdict.may_recommend() && target.durability.may_recommend);
    let total = |row: &Row| {
        row.observations
            .get("total_ratio_high")
            .and_then(Value::as_f64)
    };
    let reserved = |comparison, case| {
        let row = at(target, "enospc", comparison, case)?;
        (row.status == RowStatus::Ok)
            .then(|| row.observations.get("reserved")?.as_bool())
            .flatten()
    };
    let in_place = &target.facts["fs.in_place"].value;
    let needs_space = |measured: Option<bool>| match measured {
        Some(reserved) => !reserved,
        None => *in_place == json!("no"),
    };
    match finding.setting.as_str() {
        "wal_sync_method" => {
            let method = finding.value.as_deref().expect("a value");
            let commit = ok(target, "sync", "commit", method);
            assert_eq!(commit.verdict, Some(Verdict::Faster));
            assert!(below(commit.ratio_high, BEYOND) && below(commit.p99_ratio_high, 1.25));
            for comparison in ["commit-64k", "bulk"] {
                assert!(below(
                    ok(target, "sync", comparison, method).ratio_high,
                    1.05
                ));
            }
            let flushes = commit.flushes_per_op.is_some_and(|f| f >= 0.9);
            let needless = target.durability.verdict == DurabilityVerdict::NoFlushNeeded;
            assert!(flushes || needless);
        }
        "wal_recycle" => {
            assert!(needs_space(reserved("rewrite-old", "old-segment")));
            let sparse = finding.advice.contains("wal_init_zero = off");
            let case = if sparse { "new+sparse" } else { "new+zero" };
            let comparisons: &[&str] = match finding.role.as_str() {
                "primary" => &["life-cold", "life-cold-8k"],
                _ => &["life-standby"],
            };
            for comparison in comparisons {
                let base = at(target, "recycle", comparison, "recycle+zero").expect("a baseline");
                assert_eq!(
                    (base.status, base.cold),
                    (RowStatus::Ok, Some(Cold::Proven))
                );
                let new = ok(target, "recycle", comparison, case);
                assert!(matches!(new.cold, None | Some(Cold::Proven)));
                assert!(below(new.ratio_high, BEYOND) && below(total(new), BEYOND));
            }
            if finding.role == "primary" {
                for comparison in ["life", "life-8k"] {
                    let warm = at(target, "recycle", comparison, case).expect("the price");
                    assert!(warm.status == RowStatus::Ok && warm.ratio_high.is_some());
                }
            }
        }
        "wal_init_zero" => {
            assert!(needs_space(reserved("full", "zero-fill")));
            let commits = ok(target, "prealloc", "first-pass", "sparse");
            assert!(below(commits.ratio_high, 1.05));
            assert!(below(
                ok(target, "prealloc", "create", "sparse").ratio_high,
                BEYOND
            ));
        }
        "commit_delay" => {
            for clients in [8, 16] {
                let case = format!("fdatasync@{clients}+delay");
                let row = ok(target, "commit", &format!("delay-{clients}"), &case);
                assert_eq!(row.verdict, Some(Verdict::Faster));
                assert!(below(row.ratio_high, BEYOND) && below(row.p99_ratio_high, 1.25));
                assert_eq!(finding.value.as_deref(), Some("4000"));
            }
        }
        other => panic!("{other} changed"),
    }
}

fn holds(mut report: Report) -> BTreeMap<String, u32> {
    advise(&mut report);
    let document = serde_json::to_value(&report).expect("a document");
    let target = &report.targets[0];
    let margin = report.margins.action;
    let beyond = 1.0
        / (1.0
            + if margin.is_nan() {
                0.1
            } else {
                margin.clamp(0.1, 1.0)
            });
    let mut counts = BTreeMap::new();
    for finding in &target.findings {
        *counts
            .entry(format!("{} {}", finding.id, finding.action))
            .or_insert(0) += 1;
        let value = finding
            .value
            .as_deref()
            .expect("these rules always name a value");
        assert!(!never(&finding.setting, value));
        assert!(!finding.evidence.is_empty());
        for evidence in &finding.evidence {
            assert!(!evidence.value.is_null(), "{}", evidence.pointer);
            assert_eq!(document.pointer(&evidence.pointer), Some(&evidence.value));
            let row = evidence.pointer.strip_prefix("/targets/0/rows/");
            let Some((at, key)) = row.and_then(|rest| rest.split_once('/')) else {
                continue;
            };
            let row = &target.rows[at.parse::<usize>().expect("an index")];
            let claims = row.comparison.contains("cold") || row.comparison == "life-standby";
            assert!(!claims || row.cold.is_none_or(|cold| cold == Cold::Proven));
            let compared = row.baseline.as_ref() != Some(&row.case);
            let vague = compared
                && row.verdict == Some(Verdict::Inconclusive)
                && row.status == RowStatus::Ok;
            assert!(!vague || finding.action == "keep", "{}", evidence.pointer);
            assert!(
                !vague
                    || row
                        .ratio_low
                        .is_some_and(|low| low >= beyond && row.rounds >= 12)
            );
            assert!(row.status == RowStatus::Ok || !key.contains("ratio"));
        }
        match finding.action.as_str() {
            "change" => change_is_right(target, finding),
            "keep" => {
                assert_eq!(finding.value, finding.default);
                let verdict = target.durability.verdict;
                let shown = verdict.may_recommend();
                assert!(shown || finding.confidence == "low");
                assert!(!matches!(
                    verdict,
                    DurabilityVerdict::NotDurable | DurabilityVerdict::NoFlushSeen
                ));
            }
            other => panic!("{other}"),
        }
        for words in [&finding.seen, &finding.means, &finding.advice] {
            assert!(
                !words.is_empty() && words.is_ascii() && !words.contains("NaN"),
                "{words}"
            );
        }
    }
    for not in &target.not_tested {
        *counts
            .entry(format!("{} nothing", not.setting))
            .or_insert(0) += 1;
        assert_ne!(
            not.reason_code, "internal",
            "a rule was stopped by a guard: {}",
            not.reason
        );
        assert!(!not.reason.is_empty());
        assert!(
            target.findings.iter().all(|f| f.id != not.setting),
            "{} twice",
            not.setting
        );
    }
    let judging = RULES.iter().filter(|rule| !rule.only_informs());
    for setting in judging.flat_map(|rule| rule.settings()) {
        let of = |id: &str| id.split('@').next() == Some(setting);
        let said = target.findings.iter().any(|f| of(&f.id))
            || target.not_tested.iter().any(|n| of(&n.setting));
        assert!(said, "nothing on {setting}");
    }
    counts
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn the_guards_hold(report in reports()) {
        holds(report);
    }
}

/// The reports above reach every answer; else they would prove little.
#[test]
fn the_random_reports_reach_every_answer() {
    let mut runner = TestRunner::deterministic();
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for _ in 0..400 {
        let tree = reports().new_tree(&mut runner).expect("a report");
        for (answer, count) in holds(tree.current()) {
            *counts.entry(answer).or_insert(0) += count;
        }
    }
    for setting in [
        "wal_sync_method",
        "wal_init_zero@primary",
        "wal_init_zero@standby",
        "wal_recycle@primary",
        "wal_recycle@standby",
        "commit_delay",
    ] {
        for answer in ["change", "keep", "nothing"] {
            let seen = counts.get(&format!("{setting} {answer}")).copied();
            assert!(
                seen.is_some_and(|n| n >= 3),
                "{setting} {answer}: {counts:#?}"
            );
        }
    }
}
