//! What casts doubt on a row: each doubt with how much, for the row that it touches.

use crate::{
    contract::{Noise, Quiet},
    engine::{case::CaseRun, sizing::MIN_ROUNDS, tally::SeriesTally},
    report::Doubt,
    stats::drift,
};

/// Shares below this are not worth a word.
const WORTH_PCT: f64 = 2.0;
/// An operation shorter than this many clock readings cannot be timed well.
const READINGS: f64 = 20.0;

/// Processors this busy leave none free for a client that is woken.
const CPU_BOUND_PCT: f64 = 70.0;

/// Facts about the run that doubts need.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setting {
    /// Background rates.
    pub quiet: Quiet,
    /// Processors.
    pub cpus: u64,
    /// Cost of a clock reading, in nanoseconds.
    pub timer_ns: f64,
    /// The comparison has a baseline, judged or not.
    pub compared: bool,
    /// Rounds measured.
    pub rounds: u64,
}

/// Doubts about `series` of `case`.
#[must_use]
pub fn doubts(case: &CaseRun, series: &SeriesTally, setting: &Setting) -> Vec<Doubt> {
    let mut out = Vec::new();
    let proven_by = case.proof.as_ref().map(|p| p.hook.as_str());
    let dropped_by = case.case.params.get("dropped_by").and_then(|h| h.as_str());
    if [proven_by, dropped_by].contains(&Some("system")) {
        out.push(Doubt {
            code: "whole-system-drop".to_owned(),
            value: None,
            unit: None,
            text: "the caches of the whole host were dropped before each operation".to_owned(),
        });
    }
    let mut doubt = |code: &str, value: f64, unit: &str, text: String| {
        out.push(Doubt {
            code: code.to_owned(),
            value: Some((value * 10.0).round() / 10.0),
            unit: Some(unit.to_owned()),
            text,
        });
    };
    if setting.compared && setting.rounds < MIN_ROUNDS {
        doubt(
            "few-rounds",
            setting.rounds as f64,
            "rounds",
            format!(
                "{} rounds, and nothing is judged before {MIN_ROUNDS}",
                setting.rounds
            ),
        );
    }
    let told = |name: &str| case.seen.get("").and_then(|seen| seen.get(name)?.as_f64());
    if let Some(pct) = told("allocated_of_written_pct") {
        doubt(
            "allocation-lags",
            pct,
            "pct",
            format!("of what had been written durably, {pct:.0}% was counted as allocated"),
        );
    }
    if let Some(pct) = told("cpu_busy_pct").filter(|pct| *pct >= CPU_BOUND_PCT) {
        doubt(
            "cpu-bound",
            pct,
            "pct",
            format!(
                "the clients kept the {} processors busy for {pct:.0}% of the time: that, and not the device alone, makes these figures",
                setting.cpus
            ),
        );
    }
    let wall_s = case.wall_ns as f64 / 1e9;
    let written = series.counts.device_bytes_written as f64;
    let (before, between) = (setting.quiet, case.busy());
    let when = |between: bool| {
        if between {
            "between the blocks"
        } else {
            "before the run"
        }
    };
    let later = between.write_bytes_per_s > before.write_bytes_per_s;
    let rate = before.write_bytes_per_s.max(between.write_bytes_per_s);
    let foreign = share_pct(rate * wall_s, written);
    if foreign >= WORTH_PCT {
        let when = when(later);
        doubt(
            "foreign-writes",
            foreign,
            "pct",
            format!(
                "about {foreign:.1}% of what the device wrote was probably not ours: it was busy {when}"
            ),
        );
    }
    let later = between.flushes_per_s > before.flushes_per_s;
    let flushes = share_pct(
        before.flushes_per_s.max(between.flushes_per_s) * wall_s,
        series.counts.flushes as f64,
    );
    if flushes >= WORTH_PCT {
        let when = when(later);
        doubt(
            "foreign-flushes",
            flushes,
            "pct",
            format!(
                "about {flushes:.1}% of the flushes were probably not ours: there were flushes {when}"
            ),
        );
    }
    let Noise {
        steal_ms,
        throttled_us,
    } = case.noise;
    let steal = share_pct(steal_ms as f64 / 1e3, wall_s * setting.cpus.max(1) as f64);
    if steal >= WORTH_PCT {
        doubt(
            "steal",
            steal,
            "pct",
            format!("the hypervisor took {steal:.1}% of the processors' time"),
        );
    }
    let throttled = share_pct(throttled_us as f64 / 1e6, wall_s);
    if throttled >= WORTH_PCT {
        doubt(
            "throttled",
            throttled,
            "pct",
            format!("this control group was held back for {throttled:.1}% of the time"),
        );
    }
    let p50 = series.histogram.quantile_ns(0.5) as f64;
    if p50 > 0.0 && p50 < READINGS * setting.timer_ns {
        doubt(
            "coarse-clock",
            setting.timer_ns,
            "ns",
            format!(
                "reading the clock takes {:.0} ns, near the operation's own time",
                setting.timer_ns
            ),
        );
    }
    let means: Vec<f64> = series
        .blocks
        .iter()
        .filter_map(super::tally::Block::mean_ns)
        .collect();
    if let Some(drift) = drift::drift(&means) {
        doubt(
            "drift",
            drift.pct,
            "pct",
            format!(
                "the operation's time changed by {:+.1}% over the run",
                drift.pct
            ),
        );
    }
    if let Some(change) = drift::burst_ended(&means) {
        doubt(
            "burst-ended",
            change.factor,
            "times",
            format!(
                "from block {} on an operation took {:.1} times as long",
                change.at, change.factor
            ),
        );
    }
    out
}

fn share_pct(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        (100.0 * part / whole).min(100.0)
    } else {
        0.0
    }
}
