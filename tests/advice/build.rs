//! Small reports, built row by row: only what rules read is filled.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use walprobe_probes::report::{
    Cold, ColdProof, Durability, DurabilityVerdict, EndedBy, Fact, FaultRecord, Finding, Ground,
    Host, Margins, NotTested, Report, Row, RowStatus, SCHEMA, Target, Tool, Us, Verdict, Weight,
};

pub(crate) fn report(target: Target) -> Report {
    Report {
        schema: SCHEMA,
        run_id: "01JDW3K9ZQ4T".to_owned(),
        tool: Tool {
            name: "walprobe".to_owned(),
            version: "0.1.0".to_owned(),
            argv: vec!["walprobe".to_owned(), "all".to_owned(), "/mnt/t".to_owned()],
        },
        started_at: "2026-11-30T10:42:07.120Z".to_owned(),
        finished_at: Some("2026-11-30T10:43:22.004Z".to_owned()),
        ended_by: EndedBy::Done,
        seed: 7,
        profile: "normal".to_owned(),
        time_limit_s: 90.0,
        write_budget_bytes: 2 << 30,
        interval_level: 0.997,
        host: Host::default(),
        targets: vec![target],
        margins: Margins::default(),
    }
}

/// A target of this type, with its rows.
pub(crate) fn target(in_place: Option<&str>, rows: Vec<Row>) -> Target {
    let fact = Fact {
        value: in_place.map_or(Value::Null, |yes| json!(yes)),
        source: "filesystem type".to_owned(),
        why: None,
    };
    Target {
        dir: "/mnt/t".to_owned(),
        facts: BTreeMap::from([("fs.in_place".to_owned(), fact)]),
        durability: verdict(DurabilityVerdict::FlushesSeen),
        rows,
        ..Target::default()
    }
}

pub(crate) fn verdict(verdict: DurabilityVerdict) -> Durability {
    Durability {
        verdict,
        may_recommend: verdict.may_recommend(),
        text: format!("the text of {}", verdict.as_str()),
        grounds: vec![],
    }
}

pub(crate) fn ground(id: &str, weight: Weight) -> Ground {
    Ground {
        id: id.to_owned(),
        weight,
        value: Value::Null,
        unit: None,
        source: "test".to_owned(),
        evidence: None,
    }
}

/// A measured row; `span` is ratio, low, high. The verdict is the one the margins give.
pub(crate) fn row(id: &str, baseline: &str, span: (f64, f64, f64)) -> Row {
    let mut parts = id.split('/').map(str::to_owned);
    let mut part = || parts.next().unwrap_or_default();
    let (ratio, low, high) = span;
    let (probe, comparison, case) = (part(), part(), part());
    let verdict = if case == baseline {
        Verdict::Baseline
    } else if high < 1.0 && ratio < 1.0 / 1.03 {
        Verdict::Faster
    } else if low > 1.0 && ratio > 1.03 {
        Verdict::Slower
    } else if low > 1.0 / 1.05 && high < 1.05 {
        Verdict::Tie
    } else {
        Verdict::Inconclusive
    };
    Row {
        probe,
        comparison,
        case,
        baseline: Some(baseline.to_owned()),
        ops: 9_800,
        rounds: 24,
        p50_us: Some(Us((240_000.0 * ratio) as u64)),
        ratio: Some(ratio),
        ratio_low: Some(low),
        ratio_high: Some(high),
        verdict: Some(verdict),
        ..Row::default()
    }
}

pub(crate) trait With: Sized {
    fn p99(self, span: (f64, f64, f64)) -> Self;
    fn flushes(self, per_op: f64) -> Self;
    fn param(self, name: &str, value: u64) -> Self;
    fn total(self, span: (f64, f64, f64)) -> Self;
    fn seen(self, name: &str, value: Value) -> Self;
    fn cold(self, cold: Cold, hook: &str) -> Self;
}

impl With for Row {
    fn p99(mut self, (ratio, low, high): (f64, f64, f64)) -> Self {
        self.p99_ratio = Some(ratio);
        self.p99_ratio_low = Some(low);
        self.p99_ratio_high = Some(high);
        self
    }

    fn flushes(mut self, per_op: f64) -> Self {
        self.flushes_per_op = Some(per_op);
        self
    }

    fn param(mut self, name: &str, value: u64) -> Self {
        self.params.insert(name.to_owned(), json!(value));
        self
    }

    fn total(self, (ratio, low, high): (f64, f64, f64)) -> Self {
        self.seen("total_ratio", json!(ratio))
            .seen("total_ratio_low", json!(low))
            .seen("total_ratio_high", json!(high))
    }

    fn seen(mut self, name: &str, value: Value) -> Self {
        self.observations.insert(name.to_owned(), value);
        self
    }

    fn cold(mut self, cold: Cold, hook: &str) -> Self {
        self.cold = Some(cold);
        self.cold_proof = Some(ColdProof {
            hook: hook.to_owned(),
            ..ColdProof::default()
        });
        self
    }
}

/// A row that was planned and not measured.
pub(crate) fn skipped(id: &str, baseline: &str, code: &str, reason: &str) -> Row {
    Row {
        status: RowStatus::Skipped,
        reason_code: Some(code.to_owned()),
        reason: Some(reason.to_owned()),
        ops: 0,
        rounds: 0,
        p50_us: None,
        ratio: None,
        ratio_low: None,
        ratio_high: None,
        verdict: None,
        ..row(id, baseline, (1.0, 1.0, 1.0))
    }
}

/// A row whose call failed.
pub(crate) fn failed(id: &str, baseline: &str, call: &str, errno_name: &str) -> Row {
    Row {
        status: RowStatus::Fault,
        fault: Some(FaultRecord {
            call: call.to_owned(),
            errno: 5,
            errno_name: errno_name.to_owned(),
            operation: 3,
            file: "seg-1".to_owned(),
        }),
        ..skipped(
            id,
            baseline,
            "errno",
            &format!("{call}: {errno_name} at operation 3"),
        )
    }
}

const BASE: (f64, f64, f64) = (1.0, 1.0, 1.0);

/// One comparison of `sync`, in the order fdatasync, fsync, open_datasync, open_sync.
pub(crate) fn sync(comparison: &str, others: [(f64, f64, f64); 3]) -> Vec<Row> {
    let bytes = if comparison == "commit" { 512 } else { 65_536 };
    ["fdatasync", "fsync", "open_datasync", "open_sync"]
        .iter()
        .zip([BASE].into_iter().chain(others))
        .map(|(method, span)| {
            row(&format!("sync/{comparison}/{method}"), "fdatasync", span)
                .p99(span)
                .flushes(1.0)
                .param("commit_bytes", bytes)
        })
        .collect()
}

/// One life of `recycle`: recycle+zero, new+zero, new+sparse.
pub(crate) fn life(comparison: &str, zeroed: (f64, f64, f64), sparse: (f64, f64, f64)) -> Vec<Row> {
    let claims = comparison.contains("cold") || comparison == "life-standby";
    ["recycle+zero", "new+zero", "new+sparse"]
        .iter()
        .zip([BASE, zeroed, sparse])
        .map(|(case, span)| {
            let row = row(
                &format!("recycle/{comparison}/{case}"),
                "recycle+zero",
                span,
            )
            .total(span)
            .param("segment_bytes", 16 << 20)
            .param("walked_bytes", 4 << 20);
            if claims {
                row.cold(Cold::Proven, "fadvise")
            } else {
                row
            }
        })
        .collect()
}

/// The lives of a primary, all with the same figures.
pub(crate) fn lives(zeroed: (f64, f64, f64), sparse: (f64, f64, f64)) -> Vec<Row> {
    ["life", "life-8k", "life-cold", "life-cold-8k"]
        .iter()
        .flat_map(|comparison| life(comparison, zeroed, sparse))
        .collect()
}

/// Zero-filled and sparse segments: making them, and committing into them.
pub(crate) fn prealloc(create: (f64, f64, f64), first_pass: (f64, f64, f64)) -> Vec<Row> {
    [("create", create), ("first-pass", first_pass)]
        .iter()
        .flat_map(|(comparison, span)| {
            let id = |case| format!("prealloc/{comparison}/{case}");
            [
                row(&id("zero-fill"), "zero-fill", BASE),
                row(&id("sparse"), "zero-fill", *span),
            ]
        })
        .map(|row| row.param("commit_bytes", 8_192))
        .collect()
}

/// One number of clients in `commit`, with a leader that sleeps and without; `suffix` is `-think` or
/// nothing.
pub(crate) fn delay(clients: u64, suffix: &str, span: (f64, f64, f64)) -> Vec<Row> {
    let base = format!("fdatasync@{clients}");
    [
        (base.clone(), BASE, 4.0),
        (format!("{base}+delay"), span, 7.9),
    ]
    .into_iter()
    .map(|(case, span, group)| {
        row(
            &format!("commit/delay-{clients}{suffix}/{case}"),
            &base,
            span,
        )
        .p99(span)
        .param("clients", clients)
        .seen("group_size_mean", json!(group))
        .seen("delay_us", json!(4_000))
        .seen("delay_really_us", json!(4_060.5))
    })
    .collect()
}

/// The row with this id.
pub(crate) fn of<'r>(report: &'r mut Report, id: &str) -> &'r mut Row {
    report.targets[0]
        .rows
        .iter_mut()
        .find(|row| format!("{}/{}/{}", row.probe, row.comparison, row.case) == id)
        .expect("a row with this id")
}

pub(crate) fn finding<'r>(report: &'r Report, id: &str) -> &'r Finding {
    let target = &report.targets[0];
    target
        .findings
        .iter()
        .find(|finding| finding.id == id)
        .unwrap_or_else(|| panic!("no finding on {id}: {:#?}", target.not_tested))
}

pub(crate) fn not_tested<'r>(report: &'r Report, id: &str) -> &'r NotTested {
    let target = &report.targets[0];
    target
        .not_tested
        .iter()
        .find(|not| not.setting == id)
        .unwrap_or_else(|| panic!("{id} is not in not_tested: {:#?}", target.findings))
}
