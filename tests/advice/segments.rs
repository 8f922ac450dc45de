//! wal-segments: both settings, both roles, in place and copy-on-write.

use serde_json::json;
use walprobe::advise::advise;
use walprobe_probes::report::{Cold, Report, Row, Us};

use super::build::{
    With, finding, life, lives, not_tested, of, prealloc, report, row, skipped, target,
};

const DEARER: (f64, f64, f64) = (1.55, 1.45, 1.70);
const SAME: (f64, f64, f64) = (1.0, 0.97, 1.03);
const CHEAPER: (f64, f64, f64) = (0.60, 0.55, 0.66);
const TINY: (f64, f64, f64) = (0.03, 0.025, 0.04);
const OPEN: (f64, f64, f64) = (0.95, 0.75, 1.20);

fn advised(in_place: Option<&str>, rows: Vec<Row>) -> Report {
    let mut report = report(target(in_place, rows));
    advise(&mut report);
    report
}

fn advised_again(mut report: Report) -> Report {
    advise(&mut report);
    report
}

/// What ext4 and XFS look like.
fn in_place() -> Vec<Row> {
    [prealloc(TINY, DEARER), lives(DEARER, DEARER)].concat()
}

/// A copy-on-write filesystem where cold old segments are dear.
fn copy_on_write() -> Vec<Row> {
    [
        prealloc(TINY, SAME),
        life("life", DEARER, SAME),
        life("life-8k", DEARER, SAME),
        life("life-cold", CHEAPER, CHEAPER),
        life("life-cold-8k", CHEAPER, CHEAPER),
    ]
    .concat()
}

fn full(zeroed: bool, old: bool) -> Vec<Row> {
    [
        ("enospc/full/zero-fill", zeroed),
        ("enospc/rewrite-old/old-segment", old),
    ]
    .map(|(id, reserved)| {
        Row {
            ratio: None,
            verdict: None,
            baseline: None,
            p50_us: None::<Us>,
            ..row(id, "", SAME)
        }
        .seen("reserved", json!(reserved))
    })
    .to_vec()
}

#[test]
fn a_pocket_is_named_as_what_it_is() {
    for (place, told) in [
        (
            "pocket",
            "measured on a small filesystem of the same kind, full",
        ),
        ("fill", "measured on a full filesystem"),
    ] {
        let full = full(false, false)
            .into_iter()
            .map(|row| row.seen("place", json!(place)))
            .collect();
        let report = advised(Some("no"), [copy_on_write(), full].concat());
        let change = finding(&report, "wal_recycle@primary");
        let words = format!("{} {} {}", change.seen, change.means, change.advice);
        assert!(words.contains(told), "{words}");
    }
}

#[test]
fn in_place_keeps_both() {
    let report = advised(Some("yes"), in_place());
    for (id, setting) in [
        ("wal_init_zero@primary", "wal_init_zero"),
        ("wal_recycle@primary", "wal_recycle"),
    ] {
        let keep = finding(&report, id);
        assert_eq!(
            (
                keep.action.as_str(),
                keep.value.as_deref(),
                keep.confidence.as_str()
            ),
            ("keep", Some("on"), "high"),
            "{id}"
        );
        assert_eq!(
            (keep.setting.as_str(), keep.role.as_str()),
            (setting, "primary")
        );
        assert_eq!(keep.since.as_deref(), Some("12"));
        let standby = not_tested(&report, &format!("{setting}@standby"));
        assert_eq!(standby.reason_code, "not-planned");
        assert!(
            standby.reason.contains("recycle/life-standby"),
            "{}",
            standby.reason
        );
        assert_eq!(
            standby.hint.as_deref(),
            Some("walprobe recycle /mnt/t --only 'recycle/life*'")
        );
    }
}

#[test]
fn in_place_never_turns_recycling_off() {
    let rows = [prealloc(TINY, DEARER), lives(CHEAPER, CHEAPER)].concat();
    let report = advised(Some("yes"), rows);
    let keep = finding(&report, "wal_recycle@primary");
    assert_eq!(
        (keep.action.as_str(), keep.confidence.as_str()),
        ("keep", "low")
    );
    assert!(keep.seen.contains("0.60"), "{}", keep.seen);
}

#[test]
fn in_place_keeps_from_warm_figures_and_says_so() {
    let mut rows = in_place();
    for row in &mut rows {
        if row.cold.is_some() {
            *row = row.clone().cold(Cold::NotCold, "none");
        }
    }
    let report = advised(Some("yes"), rows);
    let keep = finding(&report, "wal_recycle@primary");
    assert_eq!(
        (keep.action.as_str(), keep.confidence.as_str()),
        ("keep", "medium")
    );
    assert!(
        keep.seen.contains("not known: recycle/life-cold"),
        "{}",
        keep.seen
    );
    assert!(keep.evidence.iter().all(|e| {
        let at = e
            .pointer
            .split('/')
            .nth(4)
            .and_then(|n| n.parse::<usize>().ok());
        at.is_none_or(|at| !report.targets[0].rows[at].comparison.contains("cold"))
    }));
}

#[test]
fn in_place_without_any_life_says_nothing() {
    let report = advised(Some("yes"), prealloc(TINY, DEARER));
    let not = not_tested(&report, "wal_recycle@primary");
    assert_eq!(not.reason_code, "not-planned");
    assert_eq!(
        not.hint.as_deref(),
        Some("walprobe recycle /mnt/t --only 'recycle/life*'")
    );
}

#[test]
fn zeros_that_reserve_are_kept_though_commits_cost_no_more() {
    let rows = [prealloc(TINY, SAME), lives(DEARER, DEARER)].concat();
    let known = advised(Some("yes"), rows.clone());
    let keep = finding(&known, "wal_init_zero@primary");
    assert_eq!(
        (keep.action.as_str(), keep.confidence.as_str()),
        ("keep", "low")
    );
    assert!(keep.means.contains("not measured"), "{}", keep.means);
    let measured = advised(None, [rows, full(true, true)].concat());
    let keep = finding(&measured, "wal_init_zero@primary");
    assert_eq!(
        (keep.action.as_str(), keep.confidence.as_str()),
        ("keep", "high")
    );
}

#[test]
fn copy_on_write_turns_both_off() {
    let report = advised(Some("no"), copy_on_write());
    for id in ["wal_init_zero@primary", "wal_recycle@primary"] {
        let change = finding(&report, id);
        assert_eq!(
            (
                change.action.as_str(),
                change.value.as_deref(),
                change.confidence.as_str()
            ),
            ("change", Some("off"), "low"),
            "{id}"
        );
        assert!(
            change
                .means
                .contains("known from the filesystem's type, not measured")
        );
        assert!(change.undo.is_some() && change.cost.is_some());
    }
    let recycle = finding(&report, "wal_recycle@primary");
    assert!(
        recycle
            .cost
            .as_ref()
            .is_some_and(|c| c.contains("in cache, 8 KiB"))
    );
    assert!(
        recycle.advice.contains("wal_init_zero = off"),
        "{}",
        recycle.advice
    );
}

#[test]
fn measured_space_makes_sure() {
    let rows = [copy_on_write(), full(false, false)].concat();
    let report = advised(None, rows);
    assert_eq!(finding(&report, "wal_init_zero@primary").confidence, "high");
    assert_eq!(finding(&report, "wal_recycle@primary").confidence, "high");
    // What was measured has the last word over the type.
    let against = advised(Some("no"), [copy_on_write(), full(true, true)].concat());
    assert_eq!(finding(&against, "wal_init_zero@primary").action, "keep");
    assert_eq!(finding(&against, "wal_recycle@primary").action, "keep");
}

#[test]
fn a_price_that_outweighs_the_gain_takes_confidence() {
    let mut dear = report(target(None, [copy_on_write(), full(false, false)].concat()));
    for case in ["new+zero", "new+sparse"] {
        let id = format!("recycle/life-8k/{case}");
        *of(&mut dear, &id) = row(&id, "recycle+zero", (2.0, 1.9, 2.1)).total(SAME);
    }
    let report = advised_again(dear);
    let recycle = finding(&report, "wal_recycle@primary");
    assert_eq!(
        (recycle.action.as_str(), recycle.confidence.as_str()),
        ("change", "medium")
    );
    assert!(
        recycle.means.contains("lose more in cache"),
        "{}",
        recycle.means
    );
}

#[test]
fn a_sparse_life_that_costs_more_keeps_the_zeros() {
    let mut dear = report(target(None, [copy_on_write(), full(false, false)].concat()));
    let id = "recycle/life-cold-8k/new+sparse";
    *of(&mut dear, id) = row(id, "recycle+zero", SAME)
        .total(SAME)
        .cold(Cold::Proven, "fadvise");
    let report = advised_again(dear);
    let keep = finding(&report, "wal_init_zero@primary");
    assert_eq!(keep.action, "keep");
    assert!(keep.seen.contains(id), "{}", keep.seen);
    // Recycling is then held against zeroed segments, which win everywhere.
    let recycle = finding(&report, "wal_recycle@primary");
    assert_eq!(recycle.action, "change");
    assert!(
        !recycle.advice.contains("wal_init_zero"),
        "{}",
        recycle.advice
    );
}

/// Each leg that is missing or open keeps `wal_recycle = off` from being said.
#[test]
fn off_needs_every_leg() {
    type Spoil = fn(&mut Report);
    let spoils: &[(&str, Spoil)] = &[
        ("not-proven-cold", |r| {
            let row = of(r, "recycle/life-cold/recycle+zero");
            *row = row.clone().cold(Cold::NotCold, "none");
        }),
        ("not-proven-cold", |r| {
            let row = of(r, "recycle/life-cold-8k/new+sparse");
            *row = row.clone().cold(Cold::Unknown, "fadvise");
        }),
        ("not-proven-cold", |r| {
            of(r, "recycle/life-cold-8k/recycle+zero").cold = None;
        }),
        ("inconclusive", |r| {
            let id = "recycle/life-cold-8k/new+sparse";
            *of(r, id) = row(id, "recycle+zero", OPEN)
                .total(OPEN)
                .cold(Cold::Proven, "fadvise");
        }),
        ("inconclusive", |r| {
            of(r, "recycle/life-cold/new+sparse")
                .observations
                .remove("total_ratio_high");
        }),
        ("inconclusive", |r| {
            let row = of(r, "recycle/life-cold/new+sparse");
            *row = row.clone().total((0.9, 0.8, 1.0));
        }),
        ("time", |r| {
            let id = "recycle/life-cold-8k/new+sparse";
            *of(r, id) = skipped(id, "recycle+zero", "time", "the time was spent");
        }),
        ("budget", |r| {
            let id = "recycle/life-8k/recycle+zero";
            *of(r, id) = skipped(id, "recycle+zero", "budget", "the budget was spent");
        }),
        ("not-planned", |r| {
            r.targets[0].facts.clear();
        }),
    ];
    for (at, (code, spoil)) in spoils.iter().enumerate() {
        let mut spoilt = report(target(Some("no"), copy_on_write()));
        spoil(&mut spoilt);
        let report = advised_again(spoilt);
        let not = not_tested(&report, "wal_recycle@primary");
        assert_eq!(not.reason_code, *code, "{at}: {}", not.reason);
    }
}

/// One leg that is lost is enough to keep recycling on, if it was proven cold.
#[test]
fn one_lost_leg_keeps() {
    let short = (0.90, 0.87, 0.93);
    let lost = [
        ("life-cold-8k", SAME, SAME, "high"),
        ("life-cold", CHEAPER, DEARER, "high"),
        ("life-cold", short, short, "medium"),
        ("life-cold", (1.0, 0.93, 1.08), SAME, "medium"),
    ];
    for (comparison, waited, total, confidence) in lost {
        let rows = [copy_on_write(), full(false, false)].concat();
        let mut spoilt = report(target(None, rows));
        for case in ["new+zero", "new+sparse"] {
            let id = format!("recycle/{comparison}/{case}");
            *of(&mut spoilt, &id) = row(&id, "recycle+zero", waited)
                .total(total)
                .cold(Cold::Proven, "fadvise");
        }
        let report = advised_again(spoilt);
        let keep = finding(&report, "wal_recycle@primary");
        assert_eq!(
            (keep.action.as_str(), keep.confidence.as_str()),
            ("keep", confidence),
            "{comparison} {waited:?} {total:?}: {}",
            keep.means
        );
    }
}

#[test]
fn an_undecided_zero_leaves_the_zeroed_segment_to_compare_with() {
    let without: Vec<Row> = copy_on_write()
        .into_iter()
        .filter(|row| row.probe != "prealloc")
        .collect();
    let report = advised(Some("no"), without.clone());
    assert_eq!(
        not_tested(&report, "wal_init_zero@primary").reason_code,
        "not-planned"
    );
    let change = finding(&report, "wal_recycle@primary");
    assert_eq!(change.value.as_deref(), Some("off"));
    assert!(
        !change.advice.contains("wal_init_zero"),
        "{}",
        change.advice
    );

    // The zeroed one loses, the sparse one wins, and which it would be is open.
    let mut split = without;
    for row in &mut split {
        if row.case == "new+zero" && row.cold.is_some() {
            let id = format!("recycle/{}/new+zero", row.comparison);
            *row = super::build::row(&id, "recycle+zero", DEARER)
                .total(DEARER)
                .cold(Cold::Proven, "fadvise");
        }
    }
    let report = advised(Some("no"), split);
    let not = not_tested(&report, "wal_recycle@primary");
    assert!(not.reason.contains("wal_init_zero"), "{}", not.reason);
}

#[test]
fn a_new_row_without_a_claim_counts_by_its_baseline() {
    let mut rows = copy_on_write();
    for row in &mut rows {
        if row.case.starts_with("new") {
            row.cold = None;
            row.cold_proof = None;
        }
    }
    let report = advised(Some("no"), rows);
    assert_eq!(finding(&report, "wal_recycle@primary").action, "change");
}

#[test]
fn zeros_go_only_where_there_is_something_to_gain() {
    let cases = [
        (prealloc(SAME, SAME), "keep"),
        (prealloc(TINY, SAME), "change"),
        (prealloc(TINY, DEARER), "keep"),
        (prealloc(TINY, CHEAPER), "change"),
    ];
    for (at, (rows, action)) in cases.into_iter().enumerate() {
        let report = advised(Some("no"), rows);
        assert_eq!(
            finding(&report, "wal_init_zero@primary").action,
            action,
            "{at}"
        );
    }
    for rows in [
        prealloc(TINY, OPEN),
        prealloc(OPEN, SAME),
        prealloc(TINY, (1.04, 1.01, 1.06)),
    ] {
        let report = advised(Some("no"), rows.clone());
        if rows[3].verdict == Some(walprobe_probes::report::Verdict::Slower) {
            assert_eq!(finding(&report, "wal_init_zero@primary").action, "keep");
        } else {
            let not = not_tested(&report, "wal_init_zero@primary");
            assert_eq!(not.reason_code, "inconclusive");
        }
    }
    let unknown = advised(None, prealloc(TINY, SAME));
    assert_eq!(
        not_tested(&unknown, "wal_init_zero@primary").reason_code,
        "not-planned"
    );
}

#[test]
fn a_standby_is_judged_by_its_own_comparison() {
    let standby = life("life-standby", CHEAPER, CHEAPER);
    let rows = [copy_on_write(), standby, full(false, false)].concat();
    let report = advised(None, rows.clone());
    let change = finding(&report, "wal_recycle@standby");
    assert_eq!(
        (change.action.as_str(), change.role.as_str()),
        ("change", "standby")
    );
    assert!(
        change.seen.contains("walreceiver's pieces"),
        "{}",
        change.seen
    );

    // Its sparse segment may cost more than its zeroed one: not said.
    let not = not_tested(&report, "wal_init_zero@standby");
    assert_eq!(not.reason_code, "inconclusive");
    let narrow = life("life-standby", (0.60, 0.59, 0.61), (0.58, 0.57, 0.59));
    let report = advised(None, [copy_on_write(), narrow, full(false, false)].concat());
    assert_eq!(finding(&report, "wal_init_zero@standby").action, "change");

    let dearer = life("life-standby", (0.60, 0.58, 0.62), DEARER);
    let report = advised(None, [copy_on_write(), dearer, full(false, false)].concat());
    let keep = finding(&report, "wal_init_zero@standby");
    assert_eq!(keep.action, "keep");
    assert!(keep.seen.contains("life-standby"), "{}", keep.seen);
    assert_eq!(finding(&report, "wal_recycle@standby").action, "change");

    // The primary keeps what the standby turns off: two findings on one setting.
    let differ = [
        in_place(),
        life("life-standby", CHEAPER, CHEAPER),
        full(false, false),
    ]
    .concat();
    let report = advised(None, differ);
    assert_eq!(finding(&report, "wal_recycle@primary").action, "keep");
    assert_eq!(finding(&report, "wal_recycle@standby").action, "change");
}

/// What `walprobe recycle` tells of a standby: lives, and commits alone.
fn standby(waited: (f64, f64, f64), warm: (f64, f64, f64)) -> Vec<Row> {
    [
        life("life-standby", waited, waited),
        vec![
            row("recycle/standby/new", "new", SAME),
            row("recycle/standby/warm", "new", warm),
            row("recycle/standby/cold", "new", (4.0, 3.5, 4.5)).cold(Cold::Proven, "fadvise"),
        ],
    ]
    .concat()
}

#[test]
fn a_standby_in_place_keeps_both() {
    let rows = [in_place(), standby(DEARER, SAME)].concat();
    let report = advised(Some("yes"), rows);
    for setting in ["wal_init_zero", "wal_recycle"] {
        let keep = finding(&report, &format!("{setting}@standby"));
        assert_eq!(
            (keep.action.as_str(), keep.value.as_deref()),
            ("keep", Some("on")),
            "{setting}"
        );
    }
}

#[test]
fn the_price_of_a_standby_in_cache_stands_beside_its_change() {
    let measured = full(false, false);
    let told = |warm| {
        let rows = [copy_on_write(), standby(CHEAPER, warm), measured.clone()].concat();
        let report = advised(None, rows);
        let change = finding(&report, "wal_recycle@standby").clone();
        assert_eq!(change.action, "change");
        let at = report.targets[0]
            .rows
            .iter()
            .position(|r| r.comparison == "standby" && r.case == "warm")
            .unwrap();
        let cited = change
            .evidence
            .iter()
            .any(|e| e.pointer == format!("/targets/0/rows/{at}/ratio"));
        (change.cost.unwrap_or_default(), cited)
    };
    let (cost, cited) = told((0.70, 0.66, 0.74));
    assert!(cost.contains("0.70 (0.66 to 0.74)") && cited, "{cost}");
    // A price that is not settled is not told, and carries nothing.
    let (cost, cited) = told(OPEN);
    assert!(cost.contains("was not measured") && !cited, "{cost}");
}

/// Without a proof of cold nothing is changed for a standby, whatever its figures.
#[test]
fn a_standby_needs_its_proof() {
    for (cold, hook) in [(Cold::NotCold, "none"), (Cold::Unknown, "fadvise")] {
        let mut spoilt = report(target(
            Some("no"),
            [copy_on_write(), standby(CHEAPER, SAME)].concat(),
        ));
        let old = of(&mut spoilt, "recycle/life-standby/recycle+zero");
        *old = old.clone().cold(cold, hook);
        let report = advised_again(spoilt);
        for setting in ["wal_init_zero", "wal_recycle"] {
            let not = not_tested(&report, &format!("{setting}@standby"));
            assert_eq!(not.reason_code, "not-proven-cold", "{}", not.reason);
        }
        assert_eq!(finding(&report, "wal_recycle@primary").action, "change");
    }
}

#[test]
fn a_standby_keeps_its_zeros_where_only_the_zeroed_life_is_open() {
    let open = |rows: Vec<Row>, in_place| {
        let own = life("life-standby", OPEN, DEARER);
        advised(Some(in_place), [rows, own].concat())
    };
    let report = open(in_place(), "yes");
    let keep = finding(&report, "wal_init_zero@standby");
    assert_eq!(keep.action, "keep");
    let zeroed = report.targets[0]
        .rows
        .iter()
        .position(|r| r.comparison == "life-standby" && r.case == "new+zero")
        .unwrap();
    let rests = format!("/targets/0/rows/{zeroed}/");
    assert!(keep.evidence.iter().all(|e| !e.pointer.starts_with(&rests)));

    // Where zeros would go, it has to be known.
    let report = open(copy_on_write(), "no");
    let not = not_tested(&report, "wal_init_zero@standby");
    assert_eq!(not.reason_code, "inconclusive");
    assert!(not.reason.contains("new+zero"), "{}", not.reason);
}
