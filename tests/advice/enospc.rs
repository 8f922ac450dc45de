//! late-enospc and fake-prealloc: they speak where a full disk was told of late, or reserved
//! nothing, and are silent else.

use serde_json::json;
use walprobe::advise::advise;
use walprobe_probes::report::{DurabilityVerdict, Report, Row};

use super::build::{With, finding, report, row, skipped, target, verdict};

fn full(case: &str, fails_at: Option<&str>, lost: u64) -> Row {
    let mut row = row(&format!("enospc/full/{case}"), "", (1.0, 0.97, 1.03))
        .seen("reserved", json!(fails_at.is_none()))
        .seen("acked_commits", json!(32))
        .seen("acked_lost", json!(lost));
    (row.ratio, row.verdict, row.baseline) = (None, None, None);
    if let Some(call) = fails_at {
        row = row
            .seen("fails_at", json!(call))
            .seen("fails_errno", json!("EDQUOT"))
            .seen("fails_at_bytes", json!(524_288))
            .seen("prepared_bytes", json!(1_048_576));
    }
    row
}

fn advised(rows: Vec<Row>) -> Report {
    let mut report = report(target(Some("no"), rows));
    advise(&mut report);
    report
}

fn says(report: &Report, id: &str) -> bool {
    let target = &report.targets[0];
    target.findings.iter().any(|f| f.id == id) || target.not_tested.iter().any(|n| n.setting == id)
}

#[test]
fn a_write_that_fails_at_once_is_not_late() {
    let report = advised(vec![full("zero-fill", Some("pwrite"), 0)]);
    assert!(!says(&report, "max_wal_size"));
    assert!(!says(&report, "fallocate"));
}

#[test]
fn nothing_is_said_where_nothing_was_measured() {
    for rows in [
        Vec::new(),
        vec![skipped("enospc/full/fallocate", "", "need-root", "no root")],
    ] {
        let report = advised(rows);
        assert!(!says(&report, "max_wal_size") && !says(&report, "fallocate"));
    }
}

#[test]
fn an_error_at_the_sync_is_a_warning_and_a_lost_commit_is_critical() {
    for call in ["fdatasync", "fsync", "close"] {
        let report = advised(vec![full("zero-fill", Some(call), 0)]);
        let said = finding(&report, "max_wal_size");
        assert_eq!(
            (said.level.as_str(), said.value.as_ref()),
            ("warning", None)
        );
        assert!(said.seen.contains(call) && said.seen.contains("EDQUOT"));
    }
    for fails_at in [None, Some("fdatasync"), Some("pwrite")] {
        let report = advised(vec![full("sparse", fails_at, 3)]);
        let said = finding(&report, "max_wal_size");
        assert_eq!(said.level, "critical");
        assert!(said.seen.contains("3 of 32"), "{}", said.seen);
    }
}

#[test]
fn it_is_told_whatever_the_durability() {
    let mut report = report(target(Some("no"), vec![full("sparse", None, 3)]));
    report.targets[0].durability = verdict(DurabilityVerdict::NotDurable);
    advise(&mut report);
    assert_eq!(finding(&report, "max_wal_size").level, "critical");
}

#[test]
fn an_allocation_that_reserves_nothing_is_named() {
    let report = advised(vec![full("fallocate", Some("pwrite"), 0)]);
    let said = finding(&report, "fallocate");
    assert_eq!(
        (said.level.as_str(), said.action.as_str()),
        ("info", "inform")
    );
    assert!(said.seen.contains("512 KiB"), "{}", said.seen);
    let report = advised(vec![full("fallocate", None, 0)]);
    assert!(!says(&report, "fallocate"));
}
