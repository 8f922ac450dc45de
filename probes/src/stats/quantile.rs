//! The ratio of two cases' quantiles: of the medians, of the 99th percentiles.
//!
//! Each side's blocks are pooled. The interval is a bootstrap over rounds (B. Efron, Annals of
//! Statistics 7, 1979): whole rounds are drawn, the same for both sides, since operations of one
//! round share their fate. Percentile ends are widened to Student's t, without which a
//! dozen rounds promise too much (T. Hesterberg, The American Statistician 69, 2015).
//! Whether there are operations enough for a quantile is for the caller to know.

use fastrand::Rng;

use super::{
    distribution::{normal_quantile, student_quantile},
    histogram::Sparse,
    paired::Interval,
};

/// Rounds drawn anew this many times.
const RESAMPLES: usize = 1_000;

/// Fewest rounds for an interval: with less the draws are too much alike.
const FEWEST_ROUNDS: usize = 6;

/// Quantile `q` of `case` over that of `base`, one histogram a round on each side.
///
/// Rounds beyond the shorter side are left out. None where there are fewer than six, where
/// `q` or `level` is not between 0 and 1, or where a side has no operations.
#[must_use]
pub fn quantile_ratio(
    case: &[&Sparse],
    base: &[&Sparse],
    q: f64,
    level: f64,
    seed: u64,
) -> Option<Interval> {
    let rounds = case.len().min(base.len());
    let inside = |x: f64| x > 0.0 && x < 1.0;
    if rounds < FEWEST_ROUNDS || !inside(q) || !inside(level) {
        return None;
    }
    let case = Pooled::new(&case[..rounds]);
    let base = Pooled::new(&base[..rounds]);
    let log_ratio =
        |times: &[u32]| Some((case.quantile(times, q)? / base.quantile(times, q)?).ln());

    let estimate = log_ratio(&vec![1; rounds])?;
    let mut rng = Rng::with_seed(seed);
    let mut times = vec![0; rounds];
    let mut drawn = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        times.fill(0);
        for _ in 0..rounds {
            times[rng.usize(..rounds)] += 1;
        }
        // Nothing, where all drawn rounds are empty on one side.
        drawn.extend(log_ratio(&times));
    }
    drawn.sort_unstable_by(f64::total_cmp);

    let tail = 0.5 - level / 2.0;
    let n = rounds as f64;
    let widen = student_quantile(1.0 - tail, n - 1.0) / normal_quantile(1.0 - tail)
        * (n / (n - 1.0)).sqrt();
    let end = |p: f64| estimate + widen * (at(&drawn, p) - estimate);
    let logs = Interval {
        estimate,
        low: end(tail).min(estimate),
        high: end(1.0 - tail).max(estimate),
    };
    Some(logs.exp())
}

/// The share `p` of sorted values, between two neighbours.
fn at(sorted: &[f64], p: f64) -> f64 {
    let place = p * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - place.floor()) * (sorted[above] - sorted[below])
}

/// Histograms of several rounds on common buckets, laid out so that a quantile of any choice of
/// rounds is a binary search.
struct Pooled {
    /// Bounds of the buckets.
    bounds: Vec<(f64, f64)>,
    /// Operations up to and with a bucket, one row a bucket, one column a round.
    up_to: Vec<u32>,
    rounds: usize,
}

impl Pooled {
    fn new(blocks: &[&Sparse]) -> Self {
        let mut tops: Vec<u64> = blocks
            .iter()
            .flat_map(|b| b.0.iter().map(|c| c.0))
            .collect();
        tops.sort_unstable();
        tops.dedup();
        let rounds = blocks.len();
        let mut up_to = vec![0u32; tops.len() * rounds];
        for (round, block) in blocks.iter().enumerate() {
            let mut sum = 0u32;
            let mut counts = block.0.iter().peekable();
            for (bucket, &top) in tops.iter().enumerate() {
                while let Some(&(_, count)) = counts.next_if(|c| c.0 <= top) {
                    sum = sum.saturating_add(count);
                }
                up_to[bucket * rounds + round] = sum;
            }
        }
        Self {
            bounds: tops.iter().map(|&top| bounds(top)).collect(),
            up_to,
            rounds,
        }
    }

    /// Operations up to and with `bucket`, each round counted as often as it was drawn.
    fn count(&self, bucket: usize, times: &[u32]) -> u64 {
        let row = &self.up_to[bucket * self.rounds..][..self.rounds];
        let counts = row.iter().zip(times);
        counts.map(|(&n, &t)| u64::from(n) * u64::from(t)).sum()
    }

    /// The quantile, interpolated within its bucket; none without operations.
    fn quantile(&self, times: &[u32], q: f64) -> Option<f64> {
        let last = self.bounds.len().checked_sub(1)?;
        let total = self.count(last, times);
        if total == 0 {
            return None;
        }
        let rank = q * total as f64;
        let (mut low, mut high) = (0, last);
        while low < high {
            let middle = low.midpoint(high);
            if (self.count(middle, times) as f64) < rank {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let before = match low {
            0 => 0,
            _ => self.count(low - 1, times),
        };
        let within = (rank - before as f64) / (self.count(low, times) - before) as f64;
        let (bottom, top) = self.bounds[low];
        Some(bottom + within * (top - bottom))
    }
}

/// Where a bucket whose highest value is `top` begins and ends: buckets are one wide up to
/// 255, then 128 to each power of two.
fn bounds(top: u64) -> (f64, f64) {
    let width = 1u64 << top.max(128).ilog2().saturating_sub(7);
    (top as f64 - width as f64 + 0.5, top as f64 + 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::histogram::Histogram;

    #[test]
    fn bounds_are_those_of_the_histogram() {
        let mut value = 1u64;
        while value < 1 << 45 {
            let mut one = Histogram::new();
            one.record(value);
            let top = one.sparse().0[0].0;
            let (low, high) = bounds(top);
            assert!(low < value as f64 && (value as f64) < high, "{value}");
            let mut two = Histogram::new();
            two.record(low.ceil() as u64);
            two.record(high.floor() as u64);
            assert_eq!(two.sparse().0, [(top, 2)], "{value}");
            two.record(high.ceil() as u64);
            assert_eq!(two.sparse().0.len(), 2, "{value}");
            value = value + value / 3 + 1;
        }
    }
}
