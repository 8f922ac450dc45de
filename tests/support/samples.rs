//! A small report for the tests of what reads reports.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use walprobe_probes::report::{
    Cold, Device, Doubt, Durability, DurabilityVerdict, Effect, EndedBy, Evidence, Fact, Finding,
    Ground, Host, Margins, NotTested, Report, Row, RowStatus, SCHEMA, Target, TargetStatus, Tool,
    Us, Verdict, Weight,
};

/// One target, an ext4 on a loop device, with four rows.
pub(crate) fn json() -> Value {
    serde_json::to_value(report()).unwrap_or_default()
}

fn report() -> Report {
    Report {
        schema: SCHEMA,
        run_id: "01JDW3K9ZQ4T".into(),
        tool: Tool {
            name: "walprobe".into(),
            version: "0.1.0".into(),
            argv: vec!["walprobe".into(), "all".into(), "/mnt/t".into()],
        },
        started_at: "2026-11-30T10:42:07.120Z".into(),
        finished_at: Some("2026-11-30T10:43:22.004Z".into()),
        ended_by: EndedBy::Done,
        seed: 7,
        profile: "quick".into(),
        time_limit_s: 20.0,
        write_budget_bytes: 1 << 30,
        interval_level: 0.997,
        host: Host {
            name: Some("db1".into()),
            facts: BTreeMap::from([("host.kernel".into(), fact(json!("6.18.44")))]),
        },
        targets: vec![target()],
        margins: Margins::default(),
    }
}

fn fact(value: Value) -> Fact {
    Fact {
        value,
        source: "a file".into(),
        why: None,
    }
}

fn target() -> Target {
    Target {
        dir: "/mnt/t".into(),
        status: TargetStatus::Ok,
        bytes_written: 1_893_400,
        facts: BTreeMap::from([
            ("fs.type".into(), fact(json!("ext4"))),
            ("fs.in_place".into(), fact(json!("yes"))),
        ]),
        devices: vec![
            Device {
                name: "loop0".into(),
                kind: "loop".into(),
                ..Device::default()
            },
            Device {
                name: "vda".into(),
                above: Some("loop0".into()),
                kind: "disk".into(),
                leaf: true,
                ..Device::default()
            },
        ],
        durability: Durability {
            verdict: DurabilityVerdict::FlushesSeen,
            may_recommend: true,
            text: "each sync sent a flush".into(),
            grounds: vec![Ground {
                id: "device-flushes".into(),
                weight: Weight::For,
                value: json!(1.0),
                unit: Some("flushes_per_sync".into()),
                source: "/sys/block/loop0/stat".into(),
                evidence: Some("/targets/0/rows/0/flushes_per_op".into()),
            }],
        },
        rows: rows(),
        findings: vec![finding()],
        not_tested: [
            "wal_init_zero",
            "wal_recycle@primary",
            "commit_delay",
            "commit_siblings",
        ]
        .map(|setting| NotTested {
            setting: setting.into(),
            reason_code: "time".into(),
            reason: "recycle/life-cold was not reached".into(),
            hint: None,
        })
        .into(),
        ..Target::default()
    }
}

fn rows() -> Vec<Row> {
    let commit = Row {
        probe: "sync".into(),
        comparison: "commit".into(),
        case: "fdatasync".into(),
        baseline: Some("fdatasync".into()),
        status: RowStatus::Ok,
        ops: 1_000,
        rounds: 12,
        p50_us: Some(Us(240_500)),
        p99_us: Some(Us(610_001)),
        ratio: Some(1.0),
        ratio_low: Some(1.0),
        ratio_high: Some(1.0),
        verdict: Some(Verdict::Baseline),
        device_bytes_written: Some(8_192_000),
        flushes: Some(1_000),
        flushes_per_op: Some(1.0),
        ..Row::default()
    };
    vec![
        commit.clone(),
        Row {
            case: "fsync".into(),
            flushes_per_op: Some(2.0),
            ratio: Some(1.2),
            ratio_low: Some(1.1),
            ratio_high: Some(1.3),
            verdict: Some(Verdict::Slower),
            doubts: vec![Doubt {
                code: "foreign-flushes".into(),
                value: Some(3.0),
                unit: Some("pct".into()),
                text: "3% of the flushes were not ours".into(),
            }],
            ..commit.clone()
        },
        Row {
            case: "open_sync".into(),
            status: RowStatus::Skipped,
            reason_code: Some("time".into()),
            reason: Some("not reached".into()),
            ..Row {
                probe: commit.probe.clone(),
                comparison: commit.comparison.clone(),
                baseline: commit.baseline.clone(),
                ..Row::default()
            }
        },
        Row {
            probe: "recycle".into(),
            comparison: "life-cold".into(),
            case: "recycle+zero".into(),
            cold: Some(Cold::Proven),
            observations: BTreeMap::from([("read_per_wal_byte".into(), json!(0.0))]),
            ..Row::default()
        },
    ]
}

fn finding() -> Finding {
    Finding {
        id: "wal_sync_method".into(),
        rule: "wal-sync-method".into(),
        setting: "wal_sync_method".into(),
        role: "any".into(),
        value: Some("fdatasync".into()),
        default: Some("fdatasync".into()),
        action: "keep".into(),
        level: "info".into(),
        confidence: "high".into(),
        since: None,
        seen: "no method is faster".into(),
        means: "the default is right here".into(),
        advice: "keep fdatasync".into(),
        cost: None,
        applies_when: "always".into(),
        not_when: "never".into(),
        undo: None,
        effect: Some(Effect {
            of: "commit".into(),
            ratio: 1.2,
            low: 1.1,
            high: 1.3,
            p99_ratio: None,
        }),
        evidence: vec![Evidence {
            pointer: "/targets/0/rows/0/p50_us".into(),
            value: json!(240.5),
        }],
    }
}
