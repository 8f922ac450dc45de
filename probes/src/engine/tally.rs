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
    /// Time on the wall in which they were done: the sum, unless they overlapped.
    pub elapsed_ns: u64,
    /// All operations of the block were done.
    pub whole: bool,
    /// Their distribution.
    pub spread: Sparse,
}

impl Block {
    /// Mean time on the wall for a sample; none without samples.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.ops > 0).then(|| self.elapsed_ns as f64 / self.ops as f64)
    }
}

/// Everything about one series of one case.
#[derive(Clone, Debug, Default)]
pub struct SeriesTally {
    /// Samples.
    pub ops: u64,
    /// Sum of their times.
    pub sum_ns: u64,
    /// Time on the wall in which they were done: the sum, unless they overlapped.
    pub elapsed_ns: u64,
    /// Sum of squares.
    pub sumsq_ns2: f64,
    /// Flushes that each served a group of samples.
    pub groups: u64,
    /// Sum of the groups' sizes; where there are groups, the number of samples.
    pub grouped_ops: u64,
    /// Distribution of all blocks.
    pub histogram: Histogram,
    /// Distribution of the block under way.
    pub block_histogram: Histogram,
    /// Samples of the block under way.
    pub block_ops: u64,
    /// Sum of the block under way.
    pub block_sum_ns: u64,
    /// Time on the wall of the block under way.
    pub block_elapsed_ns: u64,
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

impl SeriesTally {
    fn add(&mut self, ns: u64) {
        self.ops += 1;
        self.sum_ns += ns;
        self.sumsq_ns2 += (ns as f64) * (ns as f64);
        self.histogram.record(ns);
        self.block_histogram.record(ns);
        self.block_ops += 1;
        self.block_sum_ns += ns;
    }

    const fn elapsed(&mut self, ns: u64) {
        self.elapsed_ns += ns;
        self.block_elapsed_ns += ns;
    }

    fn phases(&mut self, marks: &[(Phase, u64)]) {
        for &(phase, spent) in marks {
            let p = self.phases.entry(phase).or_default();
            p.histogram.record(spent);
            p.sum_ns += spent;
        }
    }
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
        t.add(ns);
        t.elapsed(ns);
        t.phases(marks);
        second(&mut t.seconds, ended_ns, ns);
    }

    /// Samples that overlapped, and the time on the wall in which all of them were done.
    pub(crate) fn burst(
        &mut self,
        series: Series,
        elapsed_ns: u64,
        samples_ns: &[u64],
        ended_ns: u64,
    ) {
        let t = self.leg(series);
        t.elapsed(elapsed_ns);
        for &ns in samples_ns {
            t.add(ns);
            second(&mut t.seconds, ended_ns, ns);
        }
    }

    /// A flush that served `ops` samples of a burst, and where its time went.
    pub(crate) fn group(&mut self, series: Series, ops: u64, marks: &[(Phase, u64)]) {
        let t = self.leg(series);
        t.groups += 1;
        t.grouped_ops += ops;
        t.phases(marks);
    }

    /// Where flushes serve groups of samples, each sample was served by exactly one.
    ///
    /// # Errors
    /// The series in which that is not so.
    pub(crate) fn agrees(&self) -> Result<(), String> {
        let wrong = self
            .series
            .iter()
            .find(|(_, t)| t.groups > 0 && t.grouped_ops != t.ops);
        wrong.map_or(Ok(()), |(series, t)| {
            Err(format!(
                "{} operations of {series}, and {} in its groups",
                t.ops, t.grouped_ops
            ))
        })
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
                elapsed_ns: t.block_elapsed_ns,
                whole,
                spread: t.block_histogram.sparse(),
            });
            t.block_ops = 0;
            t.block_sum_ns = 0;
            t.block_elapsed_ns = 0;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_overlap_are_rated_on_the_wall() {
        let mut tally = Tally::default();
        tally.burst("commit", 1_000, &[400, 500, 600, 500], 10);
        tally.group("commit", 1, &[("sync", 300)]);
        tally.group("commit", 3, &[("sync", 500), ("delay", 50)]);
        assert_eq!(tally.agrees(), Ok(()));
        tally.end_block(3, 0, 0, true);
        let t = tally.get("commit").unwrap();
        assert_eq!((t.ops, t.sum_ns, t.elapsed_ns), (4, 2_000, 1_000));
        assert_eq!((t.groups, t.grouped_ops), (2, 4));
        assert_eq!(t.blocks[0].mean_ns(), Some(250.0));
        assert_eq!(t.phases["sync"].sum_ns, 800);
        assert_eq!(t.phases["delay"].histogram.count(), 1);
    }

    #[test]
    fn samples_one_after_another_take_their_sum() {
        let mut tally = Tally::default();
        tally.sample("commit", 400, &[("sync", 400)], 10);
        tally.sample("commit", 600, &[("sync", 600)], 20);
        tally.end_block(0, 0, 0, true);
        let t = tally.get("commit").unwrap();
        assert_eq!((t.sum_ns, t.elapsed_ns, t.groups), (1_000, 1_000, 0));
        assert_eq!(t.blocks[0].mean_ns(), Some(500.0));
        assert_eq!(tally.agrees(), Ok(()));
    }

    #[test]
    fn a_sample_in_no_group_is_noticed() {
        let mut tally = Tally::default();
        tally.burst("commit", 1_000, &[400, 500], 10);
        tally.group("commit", 1, &[]);
        let wrong = tally.agrees().unwrap_err();
        assert_eq!(wrong, "2 operations of commit, and 1 in its groups");
    }
}
