//! The words as people read them.

use std::fmt::Write as _;

use walprobe::advise::advise;
use walprobe_probes::report::{Cold, DurabilityVerdict, Report, Row};

use super::build::{With, failed, life, lives, prealloc, report, sync, target, verdict};

const SAME: (f64, f64, f64) = (0.98, 0.96, 1.01);
const DEARER: (f64, f64, f64) = (1.55, 1.45, 1.70);
const CHEAPER: (f64, f64, f64) = (0.60, 0.55, 0.66);
const TINY: (f64, f64, f64) = (0.03, 0.025, 0.04);

fn told(mut report: Report) -> String {
    advise(&mut report);
    let mut text = String::new();
    let target = &report.targets[0];
    for f in &target.findings {
        let value = f.value.as_deref().unwrap_or("-");
        let _ = writeln!(
            text,
            "{} {} = {value} ({}, {})",
            f.action, f.id, f.level, f.confidence
        );
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        for (name, words) in [
            ("seen", f.seen.clone()),
            ("means", f.means.clone()),
            ("advice", f.advice.clone()),
            ("cost", or_none(&f.cost)),
            ("applies when", f.applies_when.clone()),
            ("not when", f.not_when.clone()),
            ("undo", or_none(&f.undo)),
        ] {
            let _ = writeln!(text, "  {name}: {words}");
        }
    }
    for not in &target.not_tested {
        let hint = not.hint.as_deref().unwrap_or("-");
        let _ = writeln!(
            text,
            "nothing on {} ({}): {}",
            not.setting, not.reason_code, not.reason
        );
        let _ = writeln!(text, "  try: {hint}");
    }
    text
}

fn check(name: &str, report: Report) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, told(report)));
}

#[test]
fn in_place() {
    let rows = [
        sync("commit", [(1.07, 1.05, 1.09), SAME, (1.06, 1.03, 1.08)]),
        prealloc(TINY, DEARER),
        lives(DEARER, (2.1, 1.9, 2.3)),
    ];
    check("in-place", report(target(Some("yes"), rows.concat())));
}

#[test]
fn copy_on_write() {
    let rows = [
        sync("commit", [(1.07, 1.05, 1.09), CHEAPER, (1.06, 1.03, 1.08)]),
        sync("commit-64k", [DEARER, SAME, SAME]),
        sync("bulk", [DEARER, SAME, SAME]),
        prealloc(TINY, SAME),
        life("life", DEARER, SAME),
        life("life-8k", DEARER, (1.02, 0.93, 1.12)),
        life("life-cold", CHEAPER, CHEAPER),
        life("life-cold-8k", CHEAPER, (0.5, 0.45, 0.56)),
        life("life-standby", CHEAPER, CHEAPER),
    ];
    check("copy-on-write", report(target(Some("no"), rows.concat())));
}

#[test]
fn left_open() {
    let open = (0.95, 0.75, 1.20);
    let mut lives = lives(CHEAPER, CHEAPER);
    for row in &mut lives {
        if row.cold.is_some() {
            *row = row.clone().cold(Cold::NotCold, "none");
        }
    }
    let rows = [
        sync("commit", [SAME, open, CHEAPER]),
        prealloc(TINY, open),
        lives,
    ];
    check("left-open", report(target(Some("no"), rows.concat())));
}

#[test]
fn partly_measured() {
    let mut rows: Vec<Row> = sync("commit", [SAME, SAME, SAME]);
    rows[3] = failed("sync/commit/open_sync", "fdatasync", "pwrite", "EINVAL");
    rows.extend(life("life", DEARER, DEARER));
    let mut partly = report(target(Some("yes"), rows));
    partly.targets[0].durability = verdict(DurabilityVerdict::NotProvable);
    check("partly-measured", partly);
}

#[test]
fn not_durable() {
    let mut lost = report(target(Some("yes"), sync("commit", [SAME, SAME, SAME])));
    lost.targets[0].durability = verdict(DurabilityVerdict::NoFlushSeen);
    check("no-flush-seen", lost);
}
