//! What holds for every rule, tried with rules that break it.

use serde_json::{Value, json};
use walprobe::advise::{RULES, Rule, Saying, Version, View, advise, advise_by, draft, for_version};
use walprobe_probes::report::{
    Cold, DurabilityVerdict, Effect, Evidence, Finding, NotTested, Report, Verdict,
};

use super::build::{life, lives, of, prealloc, report, sync, target, verdict};

const SAME: (f64, f64, f64) = (1.0, 0.97, 1.03);
const CHEAPER: (f64, f64, f64) = (0.60, 0.55, 0.66);
const TINY: (f64, f64, f64) = (0.03, 0.025, 0.04);

/// Says what it is told to say.
struct Says(fn(&Says, &View<'_>) -> Vec<Saying>);

impl Rule for Says {
    fn id(&self) -> &'static str {
        "says"
    }

    fn settings(&self) -> &'static [&'static str] {
        &["fsync", "wal_recycle"]
    }

    fn page(&self) -> &'static str {
        ""
    }

    fn judge(&self, view: &View<'_>) -> Vec<Saying> {
        (self.0)(self, view)
    }
}

/// A sound change of `wal_recycle`, resting on row 7 (recycle/life-cold/new+zero).
fn sound(rule: &Says, view: &View<'_>) -> Finding {
    Finding {
        value: Some("off".to_owned()),
        action: "change".to_owned(),
        effect: Some(Effect {
            of: "life-cold".to_owned(),
            ratio: 0.6,
            low: 0.55,
            high: 0.66,
            p99_ratio: None,
        }),
        evidence: vec![view.cite("/targets/0/rows/7/ratio").expect("a figure")],
        ..draft::blank(rule, "wal_recycle", "any", "on")
    }
}

fn on(saying: Finding) -> Vec<Saying> {
    let fsync = NotTested {
        setting: "fsync".to_owned(),
        reason_code: "not-planned".to_owned(),
        reason: String::new(),
        hint: None,
    };
    vec![Saying::Finding(Box::new(saying)), Saying::NotTested(fsync)]
}

fn subject() -> Report {
    report(target(Some("no"), lives(CHEAPER, CHEAPER)))
}

fn try_rule(report: &mut Report, say: fn(&Says, &View<'_>) -> Vec<Saying>) -> Result<(), String> {
    advise_by(report, &[&Says(say)]);
    let target = &report.targets[0];
    let of = |not: &&NotTested| not.setting != "fsync" || not.reason_code == "internal";
    match (
        target.findings.as_slice(),
        target.not_tested.iter().find(of),
    ) {
        ([_], None) => Ok(()),
        ([], Some(not)) => Err(format!("{}: {}", not.reason_code, not.reason)),
        other => panic!("{other:#?}"),
    }
}

#[test]
fn a_sound_finding_passes() {
    assert_eq!(
        try_rule(&mut subject(), |rule, view| on(sound(rule, view))),
        Ok(())
    );
}

#[test]
fn unsound_findings_do_not() {
    type Say = fn(&Says, &View<'_>) -> Vec<Saying>;
    let cases: &[(&str, Say)] = &[
        ("never recommended", |rule, view| {
            let mut finding = sound(rule, view);
            finding.id = "fsync".to_owned();
            finding.setting = "fsync".to_owned();
            on(finding)
        }),
        ("no evidence", |rule, view| {
            let mut finding = sound(rule, view);
            finding.evidence.clear();
            on(finding)
        }),
        ("not in the report", |rule, view| {
            let mut finding = sound(rule, view);
            finding.evidence[0].value = json!(0.5);
            on(finding)
        }),
        ("not in the report", |rule, view| {
            let mut finding = sound(rule, view);
            finding.evidence.push(Evidence {
                pointer: "/targets/0/rows/99/ratio".to_owned(),
                value: Value::Null,
            });
            on(finding)
        }),
        ("contradicts itself", |rule, view| {
            let mut finding = sound(rule, view);
            finding.action = "keep".to_owned();
            on(finding)
        }),
        ("contradicts itself", |rule, view| {
            let mut finding = sound(rule, view);
            finding.action = "inform".to_owned();
            on(finding)
        }),
        ("contradicts itself", |rule, view| {
            let mut finding = sound(rule, view);
            finding.effect = None;
            on(finding)
        }),
        ("contradicts itself", |rule, view| {
            let mut finding = sound(rule, view);
            finding.setting = "wal_init_zero".to_owned();
            finding.id = "wal_init_zero".to_owned();
            on(finding)
        }),
        ("said nothing", |_, _| on_fsync_only()),
    ];
    for (word, say) in cases {
        let said = try_rule(&mut subject(), *say).expect_err(word);
        assert!(
            said.starts_with("internal: ") && said.contains(word),
            "{word}: {said}"
        );
    }
}

fn on_fsync_only() -> Vec<Saying> {
    vec![Saying::NotTested(NotTested {
        setting: "fsync".to_owned(),
        reason_code: "not-planned".to_owned(),
        reason: String::new(),
        hint: None,
    })]
}

#[test]
fn rows_that_cannot_carry_a_finding() {
    type Spoil = fn(&mut Report);
    let cases: &[(&str, Spoil)] = &[
        ("inconclusive", |r| {
            of(r, "recycle/life-cold/new+zero").verdict = Some(Verdict::Inconclusive);
        }),
        ("not proven cold", |r| {
            of(r, "recycle/life-cold/recycle+zero").cold = Some(Cold::Unknown);
        }),
        ("not proven cold", |r| {
            of(r, "recycle/life-cold/new+zero").cold = Some(Cold::NotCold);
        }),
        ("not proven cold", |r| {
            let row = of(r, "recycle/life-cold/new+zero");
            row.cold = None;
            row.baseline = None;
        }),
        ("not measured", |r| {
            of(r, "recycle/life-cold/new+zero").status = walprobe_probes::report::RowStatus::Fault;
        }),
    ];
    for (word, spoil) in cases {
        let mut spoilt = subject();
        spoil(&mut spoilt);
        let said = try_rule(&mut spoilt, |rule, view| on(sound(rule, view))).expect_err(word);
        assert!(
            said.starts_with("internal: ") && said.contains(word),
            "{word}: {said}"
        );
    }
}

#[test]
fn another_directorys_figures_carry_nothing() {
    let mut two = subject();
    two.targets.push(two.targets[0].clone());
    advise_by(&mut two, &[&Says(|rule, view| on(sound(rule, view)))]);
    assert_eq!(two.targets[0].findings.len(), 1);
    assert!(two.targets[1].findings.is_empty());
    assert!(
        two.targets[1].not_tested[0]
            .reason
            .contains("another directory")
    );
}

#[test]
fn rules_that_disagree_cancel_out() {
    let mut report = subject();
    let off = Says(|rule, view| on(sound(rule, view)));
    let on_again = Says(|rule, view| {
        let mut finding = sound(rule, view);
        finding.action = "keep".to_owned();
        finding.value = Some("on".to_owned());
        on(finding)
    });
    advise_by(&mut report, &[&off, &on_again]);
    let target = &report.targets[0];
    assert!(target.findings.is_empty());
    let not: Vec<_> = target
        .not_tested
        .iter()
        .map(|n| n.setting.as_str())
        .collect();
    assert_eq!(not, ["wal_recycle", "fsync"]);
    advise_by(&mut report, &[&off, &off]);
    assert_eq!(report.targets[0].findings.len(), 1);
}

/// A report that changes all three settings of a primary.
fn all_change() -> Report {
    let rows = [
        sync("commit", [SAME, CHEAPER, SAME]),
        sync("commit-64k", [SAME, SAME, SAME]),
        sync("bulk", [SAME, SAME, SAME]),
        prealloc(TINY, SAME),
        life("life", SAME, SAME),
        life("life-8k", SAME, SAME),
        life("life-cold", CHEAPER, CHEAPER),
        life("life-cold-8k", CHEAPER, CHEAPER),
    ];
    report(target(Some("no"), rows.concat()))
}

#[test]
fn the_durability_verdict_comes_first() {
    use DurabilityVerdict::*;
    let judging = RULES.iter().filter(|r| !r.only_informs());
    let settings: Vec<&str> = judging.flat_map(|r| r.settings()).copied().collect();
    for of in [
        FlushesSeen,
        NoFlushNeeded,
        NoFlushSeen,
        NotDurable,
        NotProvable,
        NotTested,
    ] {
        let mut report = all_change();
        report.targets[0].durability = verdict(of);
        advise(&mut report);
        let target = &report.targets[0];
        let changes = target
            .findings
            .iter()
            .filter(|f| f.action == "change")
            .count();
        match of {
            FlushesSeen | NoFlushNeeded => assert_eq!(changes, 3, "{of:?}"),
            NoFlushSeen | NotDurable => {
                assert!(target.findings.is_empty(), "{of:?}");
                let not: Vec<_> = target
                    .not_tested
                    .iter()
                    .map(|n| n.setting.as_str())
                    .collect();
                assert_eq!(not, settings);
                for not in &target.not_tested {
                    assert_eq!(not.reason_code, of.as_str());
                    assert!(not.reason.ends_with(&target.durability.text));
                }
            }
            NotProvable | NotTested => {
                assert!(target.findings.is_empty(), "{of:?}");
                let blocked = target
                    .not_tested
                    .iter()
                    .filter(|n| n.reason_code == of.as_str());
                assert_eq!(blocked.count(), 3, "{of:?}");
            }
        }
    }
}

#[test]
fn a_default_may_be_kept_where_durability_cannot_be_shown() {
    let mut report = report(target(Some("yes"), sync("commit", [SAME, SAME, SAME])));
    report.targets[0].durability = verdict(DurabilityVerdict::NotProvable);
    advise(&mut report);
    let [keep] = report.targets[0].findings.as_slice() else {
        panic!("{:#?}", report.targets[0]);
    };
    assert_eq!(
        (keep.action.as_str(), keep.confidence.as_str()),
        ("keep", "low")
    );
    assert!(keep.means.contains("cannot be shown"), "{}", keep.means);
}

#[test]
fn a_rule_that_is_too_sure_is_not_believed() {
    let mut report = subject();
    report.targets[0].durability = verdict(DurabilityVerdict::NotTested);
    let sure = Says(|rule, view| {
        let mut finding = sound(rule, view);
        finding.action = "keep".to_owned();
        finding.value = Some("on".to_owned());
        finding.confidence = "high".to_owned();
        on(finding)
    });
    advise_by(&mut report, &[&sure]);
    assert_eq!(report.targets[0].findings[0].confidence, "low");
}

#[test]
fn a_flag_that_contradicts_the_verdict_is_heeded() {
    let mut report = all_change();
    report.targets[0].durability.may_recommend = false;
    advise(&mut report);
    assert!(
        report.targets[0]
            .findings
            .iter()
            .all(|f| f.action == "keep")
    );
}

#[test]
fn loosened_margins_change_nothing() {
    let mut report = report(target(
        Some("yes"),
        [
            sync("commit", [SAME, (0.93, 0.925, 0.94), SAME]),
            sync("commit-64k", [SAME, SAME, SAME]),
            sync("bulk", [SAME, SAME, SAME]),
        ]
        .concat(),
    ));
    report.margins.action = 0.0;
    report.margins.tie = 3.0;
    advise(&mut report);
    assert_eq!(report.targets[0].findings[0].action, "keep");
}

#[test]
fn advising_again_says_the_same() {
    let mut once = all_change();
    advise(&mut once);
    let mut again = once.clone();
    advise(&mut again);
    assert_eq!(once, again);
    let text = serde_json::to_string(&once).expect("a document");
    let mut loaded: Report = serde_json::from_str(&text).expect("a report");
    advise(&mut loaded);
    assert_eq!(once, loaded);
}

#[test]
fn versions_without_a_setting_hear_nothing_of_it() {
    let mut report = all_change();
    advise(&mut report);
    let version: Version = "11.22".parse().expect("a version");
    for_version(&mut report, version);
    let target = &report.targets[0];
    assert_eq!(target.findings.len(), 1);
    assert_eq!(target.findings[0].setting, "wal_sync_method");
    // Every version has these; they are not part of this report.
    let left: Vec<&str> = target
        .not_tested
        .iter()
        .map(|n| n.setting.as_str())
        .collect();
    assert_eq!(left, ["commit_delay", "commit_siblings"]);
}
