//! What one case has yielded: a [`SeriesTally`] for each series, filled by the
//! [`Lap`](super::lap::Lap), read when rows are made.

use std::collections::BTreeMap;

use crate::{
    contract::{Counts, Observations, Phase, Series},
    stats::histogram::{Histogram, Sparse},
};

/// One phase of a series.
#[derive(Clone, Debug, Default)]
pub struct PhaseTally {
    /// Distribution.
    pub histogram: Histogram,
    /// Sum of times.
    pub sum_ns: u64,
}

/// One second of a series.
#[derive(Clone, Copy, Debug)]
pub struct Second {
    /// Second on the engine's clock.
    pub t: u64,
    /// Operations.
    pub ops: u64,
    /// Least time.
    pub min_ns: u64,
    /// Greatest time.
    pub max_ns: u64,
    /// Sum of times in microseconds.
    pub sum_us: f64,
    /// Sum of squares.
    pub sumsq_us2: f64,
}

/// One block of a series.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Round number.
    pub round: u64,
    /// Place within the round.
    pub order: u64,
    /// Start on the engine's clock.
    pub at_ns: u64,
    /// Samples.
    pub ops: u64,
    /// Sum of their times.
    pub sum_ns: u64,
    /// All operations of the block were done.
    pub whole: bool,
    /// Their distribution.
    pub spread: Sparse,
}

impl Block {
    /// Mean time of a sample; none without samples.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.ops > 0).then(|| self.sum_ns as f64 / self.ops as f64)
    }
}

/// Everything about one series of one case.
#[derive(Clone, Debug, Default)]
pub struct SeriesTally {
    /// Samples.
    pub ops: u64,
    /// Sum of their times.
    pub sum_ns: u64,
    /// Sum of squares.
    pub sumsq_ns2: f64,
    /// Distribution of all blocks.
    pub histogram: Histogram,
    /// Distribution of the block under way.
    pub block_histogram: Histogram,
    /// Samples of the block under way.
    pub block_ops: u64,
    /// Sum of the block under way.
    pub block_sum_ns: u64,
    /// Phases by name.
    pub phases: BTreeMap<Phase, PhaseTally>,
    /// Seconds in which samples ended.
    pub seconds: Vec<Second>,
    /// Measured blocks.
    pub blocks: Vec<Block>,
    /// What the counters moved while the leg was open.
    pub counts: Counts,
    /// WAL volume.
    pub wal_bytes: u64,
    /// Bytes handed to the kernel.
    pub bytes_written: u64,
    /// Syncs.
    pub syncs: u64,
    /// Segment over walked bytes: what one operation of the leg stands for in a segment's life.
    pub weight: f64,
    /// Observations of this series alone.
    pub seen: Observations,
}

/// All series of one case.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    series: Vec<(Series, SeriesTally)>,
}

impl Tally {
    /// A series' figures, made on first use.
    pub fn leg(&mut self, series: Series) -> &mut SeriesTally {
        // A handful of series: a scan beats a map on the way between two operations.
        let at = self.series.iter().position(|(s, _)| *s == series);
        let at = at.unwrap_or_else(|| {
            self.series.push((series, SeriesTally::default()));
            self.series.len() - 1
        });
        &mut self.series[at].1
    }

    /// A series' figures, where there are any.
    #[must_use]
    pub fn get(&self, series: &str) -> Option<&SeriesTally> {
        self.series
            .iter()
            .find(|(s, _)| *s == series)
            .map(|(_, t)| t)
    }

    /// Every series that has figures.
    pub fn names(&self) -> impl Iterator<Item = Series> {
        self.series.iter().map(|(s, _)| *s)
    }

    pub(crate) fn sample(
        &mut self,
        series: Series,
        ns: u64,
        marks: &[(Phase, u64)],
        ended_ns: u64,
    ) {
        let t = self.leg(series);
        t.ops += 1;
        t.sum_ns += ns;
        t.sumsq_ns2 += (ns as f64) * (ns as f64);
        t.histogram.record(ns);
        t.block_histogram.record(ns);
        t.block_ops += 1;
        t.block_sum_ns += ns;
        for &(phase, spent) in marks {
            let p = t.phases.entry(phase).or_default();
            p.histogram.record(spent);
            p.sum_ns += spent;
        }
        second(&mut t.seconds, ended_ns, ns);
    }

    /// Closes the block under way in every series that has samples of it.
    pub(crate) fn end_block(&mut self, round: u64, order: u64, at_ns: u64, whole: bool) {
        for (_, t) in &mut self.series {
            if t.block_ops == 0 {
                continue;
            }
            t.blocks.push(Block {
                round,
                order,
                at_ns,
                ops: t.block_ops,
                sum_ns: t.block_sum_ns,
                whole,
                spread: t.block_histogram.sparse(),
            });
            t.block_ops = 0;
            t.block_sum_ns = 0;
            t.block_histogram = Histogram::new();
        }
    }
}

fn second(seconds: &mut Vec<Second>, ended_ns: u64, ns: u64) {
    let t = ended_ns / 1_000_000_000;
    let us = ns as f64 / 1_000.0;
    match seconds.last_mut() {
        Some(s) if s.t == t => {
            s.ops += 1;
            s.min_ns = s.min_ns.min(ns);
            s.max_ns = s.max_ns.max(ns);
            s.sum_us += us;
            s.sumsq_us2 += us * us;
        }
        _ => seconds.push(Second {
            t,
            ops: 1,
            min_ns: ns,
            max_ns: ns,
            sum_us: us,
            sumsq_us2: us * us,
        }),
    }
}
