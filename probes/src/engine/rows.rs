//! Turns what a group's cases yielded into the report's rows: one a comparison and case.

use serde_json::{Value, json};

use crate::{
    contract::{Case, Comparison, Counts, Group, Lab, Stop},
    engine::{
        case::{CaseRun, State},
        doubts::{self, Setting},
        knee,
        rounds::{GroupRun, Pairing},
        tally::SeriesTally,
    },
    report::{BlockFigures, Margins, PerSecond, PhaseFigures, Row, RowStatus, Us, Verdict},
    stats::{
        histogram::{Histogram, Sparse},
        paired::{Interval, Judged, LEVEL},
        quantile::quantile_ratio,
    },
};

/// Operations needed for the 99th percentile.
pub(super) const P99_OPS: u64 = 1_000;
/// Operations needed for the 99.9th.
const P999_OPS: u64 = 10_000;
/// Operations of each case needed for a ratio of medians.
const P50_OPS: u64 = 100;

/// Observation: the id of the row that tells of the same operations.
pub const SAME_OPERATIONS: &str = "same_operations_as";

/// The rows of a group. `last` says that no block will follow.
#[must_use]
pub fn rows(run: &GroupRun<'_>, lab: &Lab<'_>, margins: &Margins, last: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for (which, (comparison, pairs)) in run.group.compare.iter().zip(&run.pairs).enumerate() {
        let baseline = run.group.baseline(comparison);
        let members = run.group.members(comparison);
        let first = rows.len();
        for &(name, at) in &members {
            let (case, pairing) = (&run.cases[at], &pairs[at]);
            let role = Role {
                is_baseline: baseline == Some(at),
                base: baseline.map(|at| &run.cases[at]),
                pairing,
            };
            let mut row = skeleton(run.group.probe, comparison, name, &case.case);
            status(&mut row, case, run.ended_by);
            if let Some(series) = case.tally.get(comparison.series) {
                figures(&mut row, series);
                counters(&mut row, comparison, case, lab.counters.has_device());
                compare(&mut row, run, comparison, case, &role, margins, last, lab);
                let setting = Setting {
                    quiet: lab.quiet,
                    cpus: lab.facts.number("host.cpus").unwrap_or(1),
                    timer_ns: lab
                        .facts
                        .get("host.timer_ns")
                        .and_then(|f| f.value.as_f64())
                        .unwrap_or(0.0),
                    compared: comparison.judged || comparison.baseline.is_some(),
                    rounds: row.rounds,
                };
                row.doubts = doubts::doubts(case, series, &setting);
            }
            observations(&mut row, comparison, case, &role);
            if let Some(id) = told_before(run.group, which, at).filter(|_| row.ops > 0) {
                row.observations
                    .insert(SAME_OPERATIONS.to_owned(), json!(id));
            }
            let elsewhere = members.iter().all(|(_, at)| baseline != Some(*at));
            if let (true, Some(base)) = (elsewhere && row.ratio.is_some(), role.base) {
                baseline_figures(&mut row, base, comparison.series);
            }
            rows.push(row);
        }
        if let Some(number) = comparison.knee {
            knee::tell(&mut rows[first..], number);
        }
    }
    rows
}

/// The id of an earlier row of the group that tells of the same series of this case.
fn told_before(group: &Group, which: usize, case: usize) -> Option<String> {
    let series = group.compare[which].series;
    let mut earlier = group.compare[..which].iter().filter(|c| c.series == series);
    earlier.find_map(|c| {
        let members = group.members(c);
        let (name, _) = members.into_iter().find(|(_, at)| *at == case)?;
        Some(format!("{}/{}/{name}", group.probe, c.id))
    })
}

/// What a case is in a comparison.
struct Role<'r> {
    is_baseline: bool,
    base: Option<&'r CaseRun>,
    pairing: &'r Pairing,
}

/// A row of a planned case before anything is known of it.
#[must_use]
pub fn skeleton(probe: &str, comparison: &Comparison, name: &str, case: &Case) -> Row {
    Row {
        probe: probe.to_owned(),
        comparison: comparison.id.clone(),
        case: name.to_owned(),
        baseline: comparison.baseline.clone(),
        series: (!comparison.series.is_empty()).then(|| comparison.series.to_owned()),
        params: case
            .params
            .iter()
            .map(|(k, v)| ((*k).to_owned(), v.clone()))
            .collect(),
        ..Row::default()
    }
}

fn status(row: &mut Row, case: &CaseRun, ended_by: Option<&str>) {
    match &case.state {
        State::Ended(stop, operation) => ended(row, stop, *operation),
        State::Active(_) | State::Finished => {
            let nothing = case
                .tally
                .get(row.series.as_deref().unwrap_or_default())
                .is_none_or(|t| t.ops == 0);
            if nothing && matches!(case.state, State::Active(_)) {
                row.status = RowStatus::Skipped;
                let code = ended_by.unwrap_or("time");
                row.reason_code = Some(code.to_owned());
                row.reason = Some(match code {
                    "budget" => "the write budget was spent before it".to_owned(),
                    "interrupted" => "interrupted before it".to_owned(),
                    _ => "the time was spent before it".to_owned(),
                });
            }
        }
    }
}

fn ended(row: &mut Row, stop: &Stop, operation: u64) {
    let (status, code, reason) = match stop {
        Stop::Unsupported(fault) => {
            row.fault = Some(fault.record(operation));
            (
                RowStatus::Unsupported,
                "errno",
                at_operation(&fault.to_string(), operation),
            )
        }
        Stop::Fault(fault) => {
            row.fault = Some(fault.record(operation));
            (
                RowStatus::Fault,
                "errno",
                at_operation(&fault.to_string(), operation),
            )
        }
        Stop::Skip(code, reason) => (RowStatus::Skipped, *code, reason.clone()),
        Stop::Interrupted => (
            RowStatus::Skipped,
            "interrupted",
            "interrupted before it".to_owned(),
        ),
        Stop::Broken(reason) => (
            RowStatus::Fault,
            "internal",
            format!("walprobe failed: {reason}"),
        ),
    };
    row.status = status;
    row.reason_code = Some(code.to_owned());
    row.reason = Some(reason);
}

fn at_operation(text: &str, operation: u64) -> String {
    if operation == 0 {
        format!("{text}, while the files were prepared")
    } else {
        format!("{text}, at operation {operation}")
    }
}

fn figures(row: &mut Row, t: &SeriesTally) {
    row.ops = t.ops;
    row.rounds = t.blocks.len() as u64;
    if t.ops == 0 {
        return;
    }
    let mean_ns = t.sum_ns as f64 / t.ops as f64;
    let variance = (t.sumsq_ns2 / t.ops as f64 - mean_ns * mean_ns).max(0.0);
    row.ops_per_sec =
        (t.elapsed_ns > 0).then(|| round(t.ops as f64 * 1e9 / t.elapsed_ns as f64, 3));
    row.mean_us = Some(Us(mean_ns.round() as u64));
    row.stddev_us = (t.ops > 1).then(|| Us(variance.sqrt().round() as u64));
    row.p50_us = Some(Us(t.histogram.quantile_ns(0.50)));
    row.p95_us = Some(Us(t.histogram.quantile_ns(0.95)));
    row.p99_us = (t.ops >= P99_OPS).then(|| Us(t.histogram.quantile_ns(0.99)));
    row.p999_us = (t.ops >= P999_OPS).then(|| Us(t.histogram.quantile_ns(0.999)));
    row.max_us = Some(Us(t.histogram.max_ns()));
    row.histogram = Some(t.histogram.figures());
    for (phase, p) in &t.phases {
        let count = p.histogram.count();
        row.phases.insert(
            (*phase).to_owned(),
            PhaseFigures {
                mean_us: Us(p.sum_ns / count.max(1)),
                p50_us: Us(p.histogram.quantile_ns(0.5)),
                p99_us: (count >= P99_OPS).then(|| Us(p.histogram.quantile_ns(0.99))),
                max_us: Us(p.histogram.max_ns()),
            },
        );
    }
    row.blocks = Some(blocks(t));
    row.per_second = Some(per_second(t));
}

fn blocks(t: &SeriesTally) -> BlockFigures {
    let mut out = BlockFigures::default();
    for b in &t.blocks {
        out.round.push(b.round);
        out.order.push(b.order);
        out.at_ms.push(b.at_ns / 1_000_000);
        out.ops.push(b.ops);
        out.mean_us.push(Us(b.elapsed_ns / b.ops.max(1)));
    }
    out
}

fn per_second(t: &SeriesTally) -> PerSecond {
    let mut out = PerSecond::default();
    let first = t.blocks.first().map_or(0, |b| b.at_ns / 1_000_000_000);
    for s in &t.seconds {
        out.t.push(s.t.saturating_sub(first));
        out.ops.push(s.ops);
        out.min_us.push(Us(s.min_ns));
        out.max_us.push(Us(s.max_ns));
        out.sum_us.push(round(s.sum_us, 3));
        out.sumsq_us2.push(round(s.sumsq_us2, 3));
    }
    out
}

/// Sums the comparison's legs.
fn counters(row: &mut Row, comparison: &Comparison, case: &CaseRun, has_device: bool) {
    let own = [comparison.series];
    let legs = if comparison.legs.is_empty() {
        &own[..]
    } else {
        comparison.legs
    };
    let mut counts = Counts::default();
    let (mut wal, mut written, mut syncs) = (0, 0, 0);
    let (mut life_flushes, mut life_bytes) = (0.0, 0.0);
    for leg in legs.iter().filter_map(|l| case.tally.get(l)) {
        life_flushes += leg.counts.flushes as f64 * leg.weight;
        life_bytes += leg.counts.device_bytes_written as f64 * leg.weight;
        counts.add(&leg.counts);
        wal += leg.wal_bytes;
        written += leg.bytes_written;
        syncs += leg.syncs;
    }
    row.wal_bytes = Some(wal);
    row.bytes_written = Some(written);
    row.syncs = Some(syncs);
    row.own_bytes_read = Some(counts.own_bytes_read);
    if has_device {
        row.device_bytes_written = Some(counts.device_bytes_written);
        row.device_bytes_read = Some(counts.device_bytes_read);
        row.flushes = Some(counts.flushes);
        row.flushes_per_op =
            (row.ops > 0).then(|| round(counts.flushes as f64 / row.ops as f64, 4));
        // The counts are of what was walked, a life's times are of the whole segment.
        if comparison.series == "life" && row.ops > 0 {
            let each = |sum: f64| json!(round(sum / row.ops as f64, 1));
            let seen = &mut row.observations;
            seen.insert("flushes_per_segment".to_owned(), each(life_flushes));
            seen.insert("device_bytes_per_segment".to_owned(), each(life_bytes));
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "one call, each a separate thing")]
fn compare(
    row: &mut Row,
    run: &GroupRun<'_>,
    comparison: &Comparison,
    case: &CaseRun,
    role: &Role<'_>,
    margins: &Margins,
    last: bool,
    lab: &Lab<'_>,
) {
    if !comparison.judged || row.ops == 0 {
        return;
    }
    let Some(base_case) = role.base else { return };
    let Some(base) = base_case.tally.get(comparison.series).filter(|t| t.ops > 0) else {
        return;
    };
    if role.is_baseline {
        row.verdict = Some(Verdict::Baseline);
        let one = Some(1.0);
        (row.ratio, row.ratio_low, row.ratio_high) = (one, one, one);
        if row.ops >= P50_OPS {
            (row.p50_ratio, row.p50_ratio_low, row.p50_ratio_high) = (one, one, one);
        }
        if row.ops >= P99_OPS {
            (row.p99_ratio, row.p99_ratio_low, row.p99_ratio_high) = (one, one, one);
        }
        return;
    }
    let judged = role.pairing.ratio.end(margins);
    row.verdict = Some(judged.verdict);
    set(
        judged.ratio,
        &mut row.ratio,
        &mut row.ratio_low,
        &mut row.ratio_high,
    );
    if judged.verdict == Verdict::Inconclusive {
        if let (true, Some(code @ ("time" | "budget"))) = (last, run.ended_by) {
            row.observations
                .insert("stopped_by".to_owned(), json!(code));
        }
        let more = role
            .pairing
            .ratio
            .rounds_to_settle(margins)
            .map(|all| all.saturating_sub(run.rounds).max(1));
        if let Some(more) = more {
            let seconds = more as f64 * run.round_ns as f64 / 1e9;
            row.observations
                .insert("more_rounds_to_settle".to_owned(), json!(more));
            row.observations
                .insert("more_s_to_settle".to_owned(), json!(round(seconds, 1)));
        }
    }
    // The bootstrap is worth its time once.
    if !last {
        return;
    }
    let Some(t) = case.tally.get(comparison.series) else {
        return;
    };
    let (a, b) = paired_blocks(t, base);
    let seed = lab.request.seed;
    if t.ops >= P50_OPS && base.ops >= P50_OPS {
        let found = quantile_ratio(&a, &b, 0.50, LEVEL, seed);
        set(
            found,
            &mut row.p50_ratio,
            &mut row.p50_ratio_low,
            &mut row.p50_ratio_high,
        );
    }
    if t.ops >= P99_OPS && base.ops >= P99_OPS {
        let found = quantile_ratio(&a, &b, 0.99, LEVEL, seed);
        set(
            found,
            &mut row.p99_ratio,
            &mut row.p99_ratio_low,
            &mut row.p99_ratio_high,
        );
    }
}

/// The blocks of the rounds in which both have one.
fn paired_blocks<'t>(a: &'t SeriesTally, b: &'t SeriesTally) -> (Vec<&'t Sparse>, Vec<&'t Sparse>) {
    a.blocks
        .iter()
        .filter(|x| x.whole)
        .filter_map(|x| {
            let at = b.blocks.binary_search_by_key(&x.round, |y| y.round).ok()?;
            b.blocks[at]
                .whole
                .then(|| (&x.spread, &b.blocks[at].spread))
        })
        .unzip()
}

fn set(
    from: Option<Interval>,
    ratio: &mut Option<f64>,
    low: &mut Option<f64>,
    high: &mut Option<f64>,
) {
    if let Some(i) = from {
        (*ratio, *low, *high) = (
            Some(round(i.estimate, 4)),
            Some(round(i.low, 4)),
            Some(round(i.high, 4)),
        );
    }
}

fn observations(row: &mut Row, comparison: &Comparison, case: &CaseRun, role: &Role<'_>) {
    for key in ["", comparison.series] {
        for (name, value) in case.seen.get(key).into_iter().flatten() {
            match name.as_str() {
                // These have columns of their own.
                "extents" => row.extents = value.as_u64(),
                "unwritten_pct" => row.unwritten_pct = value.as_f64(),
                "allocated_bytes" => row.allocated_bytes = value.as_u64(),
                _ => {
                    row.observations.insert(name.clone(), value.clone());
                }
            }
        }
    }
    if let Some(proof) = &case.proof
        && row.ops > 0
    {
        row.cold = Some(proof.verdict());
        row.cold_proof = Some(proof.clone());
    }
    if row.ops == 0 {
        return;
    }
    if !case.deferred.is_empty() {
        let blocks = case.deferred.len() as f64;
        let ns: u64 = case.deferred.iter().map(|d| d.ns).sum();
        let bytes: u64 = case.deferred.iter().map(|d| d.bytes).sum();
        row.observations.insert(
            "deferred_ms".to_owned(),
            json!(round(ns as f64 / 1e6 / blocks, 3)),
        );
        row.observations.insert(
            "deferred_bytes".to_owned(),
            json!((bytes as f64 / blocks).round() as u64),
        );
    }
    if let Some(t) = case.tally.get(comparison.series).filter(|t| t.groups > 0) {
        let mean = t.grouped_ops as f64 / t.groups as f64;
        let mut put = |name: &str, value: Value| row.observations.insert(name.to_owned(), value);
        put("groups", json!(t.groups));
        put("group_size_sum", json!(t.grouped_ops));
        put("group_size_mean", json!(round(mean, 3)));
    }
    if let Some(total) = comparison.total {
        total_figures(row, total, case, role);
    }
    if let Some(detail) = comparison.detail.and_then(|d| case.tally.get(d)) {
        detail_figures(row, detail);
    }
}

/// What the ratio is over, where the baseline has no row in this group.
fn baseline_figures(row: &mut Row, base: &CaseRun, series: &str) {
    if let Some(t) = base.tally.get(series).filter(|t| t.ops > 0) {
        let mean_us = t.sum_ns as f64 / t.ops as f64 / 1e3;
        row.observations
            .insert("baseline_mean_us".to_owned(), json!(round(mean_us, 3)));
    }
}

fn total_figures(row: &mut Row, total: &str, case: &CaseRun, role: &Role<'_>) {
    let Some(t) = case.tally.get(total).filter(|t| t.ops > 0) else {
        return;
    };
    let (ns, ops) = case
        .deferred
        .iter()
        .fold((0, 0), |(ns, ops), d| (ns + d.ns, ops + d.ops));
    let mean_ns = t.sum_ns as f64 / t.ops as f64 + ns as f64 / ops.max(1) as f64;
    let mut put = |name: &str, value: Value| row.observations.insert(name.to_owned(), value);
    put("total_mean_us", json!(round(mean_ns / 1e3, 3)));
    let interval = if role.is_baseline {
        Some(Interval {
            estimate: 1.0,
            low: 1.0,
            high: 1.0,
        })
    } else {
        let Judged { ratio, .. } = role.pairing.total.end(&Margins::default());
        ratio
    };
    if let Some(i) = interval {
        put("total_ratio", json!(round(i.estimate, 4)));
        put("total_ratio_low", json!(round(i.low, 4)));
        put("total_ratio_high", json!(round(i.high, 4)));
    }
}

fn detail_figures(row: &mut Row, t: &SeriesTally) {
    let over = |ms: u64, h: &Histogram| -> u64 {
        h.sparse()
            .0
            .iter()
            .filter(|(ns, _)| *ns > ms * 1_000_000)
            .map(|(_, n)| u64::from(*n))
            .sum()
    };
    let mut put = |name: &str, value: Value| row.observations.insert(name.to_owned(), value);
    put("commits", json!(t.ops));
    put(
        "commit_mean_us",
        json!(round(t.sum_ns as f64 / t.ops.max(1) as f64 / 1e3, 3)),
    );
    put("commit_p50_us", json!(Us(t.histogram.quantile_ns(0.5))));
    if t.ops >= P99_OPS {
        put("commit_p99_us", json!(Us(t.histogram.quantile_ns(0.99))));
    } else {
        put("commit_p99_us", Value::Null);
    }
    put("commit_max_us", json!(Us(t.histogram.max_ns())));
    put("stalls_over_10ms", json!(over(10, &t.histogram)));
    put("stalls_over_100ms", json!(over(100, &t.histogram)));
    if t.wal_bytes > 0 {
        put(
            "read_per_wal_byte",
            json!(round(
                t.counts.own_bytes_read as f64 / t.wal_bytes as f64,
                6
            )),
        );
    }
}

fn round(x: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    let rounded = (x * scale).round() / scale;
    if rounded.is_finite() { rounded } else { x }
}
