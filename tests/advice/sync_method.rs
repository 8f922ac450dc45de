//! wal-sync-method: keep, change, or nothing.

use walprobe::advise::advise;
use walprobe_probes::report::{
    Doubt, DurabilityVerdict, EndedBy, Report, RowStatus, Verdict, Weight,
};

use super::build::{
    With, failed, finding, ground, not_tested, of, report, skipped, sync, target, verdict,
};

const SETTING: &str = "wal_sync_method";
const SLOWER: (f64, f64, f64) = (1.07, 1.05, 1.09);
const SAME: (f64, f64, f64) = (0.98, 0.96, 1.01);
const MUCH_FASTER: (f64, f64, f64) = (0.70, 0.66, 0.74);

fn commit_only(open_datasync: (f64, f64, f64)) -> Report {
    report(target(
        Some("yes"),
        sync("commit", [SLOWER, open_datasync, SLOWER]),
    ))
}

/// A report in which open_datasync should be set.
fn winning() -> Report {
    let rows = [
        sync("commit", [SLOWER, MUCH_FASTER, SLOWER]),
        sync("commit-64k", [SLOWER, SAME, SLOWER]),
        sync("bulk", [SLOWER, SAME, SLOWER]),
    ];
    report(target(Some("yes"), rows.concat()))
}

fn advised(mut report: Report) -> Report {
    advise(&mut report);
    report
}

#[test]
fn no_gain_keeps_the_default() {
    let report = advised(commit_only(SAME));
    let keep = finding(&report, SETTING);
    assert_eq!(
        (
            keep.action.as_str(),
            keep.value.as_deref(),
            keep.confidence.as_str()
        ),
        ("keep", Some("fdatasync"), "high")
    );
    let effect = keep.effect.as_ref().expect("an effect");
    assert_eq!((effect.ratio, effect.low, effect.high), SAME);
    assert!(
        report.targets[0]
            .not_tested
            .iter()
            .all(|n| n.setting != SETTING)
    );
}

#[test]
fn an_interval_that_excludes_the_gain_keeps_with_less_confidence() {
    let report = advised(commit_only((1.0, 0.93, 1.08)));
    assert_eq!(finding(&report, SETTING).confidence, "medium");
}

#[test]
fn a_gain_that_may_be_below_the_margin_keeps() {
    let report = advised(commit_only((0.90, 0.87, 0.93)));
    let keep = finding(&report, SETTING);
    assert_eq!(
        (keep.action.as_str(), keep.confidence.as_str()),
        ("keep", "medium")
    );
    assert!(
        keep.seen.contains("not surely by more than 10%"),
        "{}",
        keep.seen
    );
}

#[test]
fn a_hidden_gain_says_nothing_and_names_the_command() {
    let report = advised(commit_only((0.95, 0.80, 1.12)));
    let not = not_tested(&report, SETTING);
    assert_eq!(not.reason_code, "inconclusive");
    let hint = not.hint.as_deref().expect("a command");
    assert!(
        hint.starts_with("walprobe sync /mnt/t --only 'sync/{commit*,bulk}' --time "),
        "{hint}"
    );
}

#[test]
fn few_rounds_exclude_nothing() {
    let mut few = commit_only((1.0, 0.93, 1.08));
    of(&mut few, "sync/commit/open_datasync").rounds = 5;
    assert_eq!(
        not_tested(&advised(few), SETTING).reason_code,
        "inconclusive"
    );
}

#[test]
fn a_winner_without_its_further_legs_is_not_planned() {
    let report = advised(commit_only(MUCH_FASTER));
    let not = not_tested(&report, SETTING);
    assert_eq!(not.reason_code, "not-planned");
    // The command that would tell measures every leg.
    assert_eq!(
        not.hint.as_deref(),
        Some("walprobe sync /mnt/t --only 'sync/{commit*,bulk}'")
    );
    for word in ["open_datasync", "sync/commit-64k", "sync/bulk", "0.70"] {
        assert!(not.reason.contains(word), "{word}: {}", not.reason);
    }
}

#[test]
fn a_winner_in_every_leg_is_set() {
    let report = advised(winning());
    let change = finding(&report, SETTING);
    assert_eq!(
        (
            change.action.as_str(),
            change.value.as_deref(),
            change.confidence.as_str()
        ),
        ("change", Some("open_datasync"), "high")
    );
    assert!(change.undo.is_some() && change.cost.is_some());
    for leg in [
        "/rows/2/ratio_high",
        "/rows/6/ratio_high",
        "/rows/10/ratio_high",
    ] {
        assert!(
            change.evidence.iter().any(|e| e.pointer.ends_with(leg)),
            "{leg}"
        );
    }
}

#[test]
fn the_fastest_of_two_winners_is_set() {
    let mut two = winning();
    for id in ["sync/commit-64k/open_sync", "sync/bulk/open_sync"] {
        *of(&mut two, id) = super::build::row(id, "fdatasync", SAME).flushes(1.0);
    }
    let id = "sync/commit/open_sync";
    *of(&mut two, id) = super::build::row(id, "fdatasync", (0.6, 0.55, 0.65))
        .p99(SAME)
        .flushes(1.0);
    assert_eq!(
        finding(&advised(two), SETTING).value.as_deref(),
        Some("open_sync")
    );
}

/// Each leg that is shown to fail keeps the default.
#[test]
fn a_leg_that_fails_keeps_the_default() {
    type Spoil = fn(&mut Report);
    let spoils: &[(&str, Spoil)] = &[
        ("flushes", |r| {
            of(r, "sync/commit/open_datasync").flushes_per_op = Some(0.5);
        }),
        ("99th percentile", |r| {
            let row = of(r, "sync/commit/open_datasync");
            *row = row.clone().p99((1.5, 1.3, 1.8));
        }),
        ("commit-64k", |r| {
            let id = "sync/commit-64k/open_datasync";
            *of(r, id) = super::build::row(id, "fdatasync", (1.2, 1.1, 1.3)).flushes(1.0);
        }),
        ("sync/bulk/open_datasync", |r| {
            let id = "sync/bulk/open_datasync";
            *of(r, id) = failed(id, "fdatasync", "pwrite", "EIO");
        }),
        ("flushes", |r| {
            of(r, "sync/bulk/open_datasync").flushes_per_op = Some(0.0);
        }),
    ];
    for (word, spoil) in spoils {
        let mut spoilt = winning();
        spoil(&mut spoilt);
        let report = advised(spoilt);
        let keep = finding(&report, SETTING);
        assert_eq!(keep.action, "keep", "{word}");
        assert!(keep.seen.contains(word), "{word}: {}", keep.seen);
    }
}

/// Each leg that is open leaves the setting open.
#[test]
fn a_leg_that_is_open_says_nothing() {
    type Spoil = fn(&mut Report);
    let spoils: &[(&str, Spoil)] = &[
        ("inconclusive", |r| {
            of(r, "sync/commit/open_datasync").p99_ratio_high = None;
        }),
        ("inconclusive", |r| {
            let row = of(r, "sync/commit/open_datasync");
            *row = row.clone().p99((1.1, 0.9, 1.4));
        }),
        ("inconclusive", |r| {
            of(r, "sync/commit/open_datasync").flushes_per_op = None;
        }),
        ("inconclusive", |r| {
            let id = "sync/bulk/open_datasync";
            *of(r, id) = super::build::row(id, "fdatasync", (1.0, 0.9, 1.1)).flushes(1.0);
        }),
        ("time", |r| {
            let id = "sync/bulk/open_datasync";
            *of(r, id) = skipped(id, "fdatasync", "time", "the time was spent");
        }),
        ("inconclusive", |r| {
            of(r, "sync/commit/open_datasync").verdict = Some(Verdict::Inconclusive);
        }),
        ("errno", |r| {
            let id = "sync/bulk/fdatasync";
            *of(r, id) = failed(id, "fdatasync", "fdatasync", "EIO");
        }),
    ];
    for (at, (code, spoil)) in spoils.iter().enumerate() {
        let mut spoilt = winning();
        spoil(&mut spoilt);
        assert_eq!(
            not_tested(&advised(spoilt), SETTING).reason_code,
            *code,
            "{at}"
        );
    }
}

#[test]
fn write_through_devices_need_no_flush() {
    let mut through = winning();
    for row in &mut through.targets[0].rows {
        row.flushes_per_op = Some(0.0);
    }
    assert_eq!(finding(&advised(through.clone()), SETTING).action, "keep");
    through.targets[0].durability = verdict(DurabilityVerdict::NoFlushNeeded);
    assert_eq!(finding(&advised(through), SETTING).action, "change");
}

#[test]
fn a_method_that_fails_is_out_and_named() {
    let mut one = commit_only(SAME);
    let id = "sync/commit/open_sync";
    *of(&mut one, id) = failed(id, "fdatasync", "pwrite", "EINVAL");
    let report = advised(one.clone());
    let keep = finding(&report, SETTING);
    assert_eq!(
        (keep.action.as_str(), keep.confidence.as_str()),
        ("keep", "medium")
    );
    assert!(keep.seen.contains("EINVAL"), "{}", keep.seen);
    of(&mut one, id).status = RowStatus::Unsupported;
    assert_eq!(finding(&advised(one), SETTING).confidence, "high");
}

#[test]
fn without_fdatasync_nothing_is_said() {
    let mut none = winning();
    let id = "sync/commit/fdatasync";
    *of(&mut none, id) = failed(id, "fdatasync", "fdatasync", "EIO");
    let report = advised(none);
    let not = not_tested(&report, SETTING);
    assert_eq!(not.reason_code, "errno");
    assert!(not.reason.contains("EIO"), "{}", not.reason);
}

#[test]
fn rows_that_are_not_there_are_not_planned() {
    let mut empty = commit_only(SAME);
    empty.targets[0].rows.clear();
    let report = advised(empty.clone());
    let not = not_tested(&report, SETTING);
    assert_eq!(not.reason_code, "not-planned");
    assert_eq!(
        not.hint.as_deref(),
        Some("walprobe sync /mnt/t --only 'sync/{commit*,bulk}'")
    );
    empty.ended_by = EndedBy::Sigint;
    assert_eq!(
        not_tested(&advised(empty), SETTING).reason_code,
        "interrupted"
    );
}

#[test]
fn doubts_and_grounds_take_confidence() {
    let mut doubtful = commit_only(SAME);
    of(&mut doubtful, "sync/commit/fsync").doubts.push(Doubt {
        code: "steal".to_owned(),
        value: None,
        unit: None,
        text: String::new(),
    });
    let one = advised(doubtful.clone());
    assert_eq!(finding(&one, SETTING).confidence, "medium");
    assert!(finding(&one, SETTING).means.contains("steal"));
    doubtful.targets[0]
        .durability
        .grounds
        .push(ground("faster-than-medium", Weight::Limits));
    assert_eq!(finding(&advised(doubtful), SETTING).confidence, "low");

    // A virtual disk limits what can be promised of a change, not a comparison of like with like.
    let mut limited = winning();
    let virt = ground("virtual-device", Weight::Limits);
    limited.targets[0].durability.grounds.push(virt.clone());
    assert_eq!(finding(&advised(limited), SETTING).confidence, "medium");
    let mut kept = commit_only(SAME);
    kept.targets[0].durability.grounds.push(virt);
    assert_eq!(finding(&advised(kept), SETTING).confidence, "high");
}

#[test]
fn an_altered_baseline_decides_nothing() {
    let mut altered = winning();
    of(&mut altered, "sync/commit/open_datasync").baseline = Some("open_sync".to_owned());
    assert_eq!(
        not_tested(&advised(altered), SETTING).reason_code,
        "internal"
    );
}
