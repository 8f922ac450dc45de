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
    use proptest::prelude::*;

    use super::*;
    use crate::stats::{histogram::Histogram, paired::LEVEL};

    fn block(times: impl IntoIterator<Item = u64>) -> Sparse {
        let mut histogram = Histogram::new();
        times.into_iter().for_each(|ns| histogram.record(ns));
        histogram.sparse()
    }

    fn ratio(case: &[Sparse], base: &[Sparse], q: f64) -> Option<Interval> {
        let (case, base): (Vec<_>, Vec<_>) = (case.iter().collect(), base.iter().collect());
        quantile_ratio(&case, &base, q, LEVEL, 7)
    }

    /// Twelve blocks of times from `from` on, `step` apart.
    fn blocks(from: u64, step: u64) -> Vec<Sparse> {
        let block_from = |b: u64| block((0..100).map(|i| from + b * 100 + i * step));
        (0..12).map(block_from).collect()
    }

    #[test]
    fn ratio_of_pooled_quantiles() {
        let (case, base) = (blocks(300_000, 3_000), blocks(200_000, 2_000));
        for q in [0.01, 0.5, 0.99] {
            let i = ratio(&case, &base, q).unwrap();
            assert!((i.estimate - 1.5).abs() < 0.01, "{q}: {i:?}");
            assert!(
                i.low < 1.501 && 1.499 < i.high && i.high < 1.6,
                "{q}: {i:?}"
            );
        }
        let same = ratio(&base, &base, 0.5).unwrap();
        assert_eq!((same.estimate, same.low, same.high), (1.0, 1.0, 1.0));
    }

    #[test]
    fn small_differences_are_not_lost_in_a_bucket() {
        // Both medians lie in one bucket of 2,048 ns.
        let i = ratio(&blocks(200_900, 20), &blocks(200_200, 20), 0.5).unwrap();
        let truth = (200_900.0 + 1_550.0) / (200_200.0 + 1_550.0);
        assert!((i.estimate / truth - 1.0).abs() < 0.002, "{i:?} {truth}");
    }

    #[test]
    fn same_seed_same_interval() {
        let noisy = |k: u64| -> Vec<Sparse> {
            let times =
                |b: u64| (0..40u64).map(move |i| 100_000 + (b * 977 + i * 7919 + k) % 50_000);
            (0..20).map(|b| block(times(b))).collect()
        };
        let (case, base) = (noisy(0), noisy(13));
        assert_eq!(ratio(&case, &base, 0.9), ratio(&case, &base, 0.9));
    }

    #[test]
    fn nothing_to_say() {
        let some = blocks(200_000, 2_000);
        assert_eq!(ratio(&some[..5], &some, 0.5), None);
        assert_eq!(ratio(&some, &vec![Sparse::default(); 12], 0.5), None);
        assert_eq!(ratio(&vec![Sparse::default(); 12], &some, 0.5), None);
        for q in [0.0, 1.0, -0.5, f64::NAN] {
            assert_eq!(ratio(&some, &some, q), None);
        }
        // A single block with operations is drawn in most resamples.
        let mut one = vec![Sparse::default(); 12];
        one[3] = some[3].clone();
        assert!(ratio(&one, &some, 0.5).is_some());
    }

    proptest! {
        #[test]
        fn quantiles_ascend_and_stay_within_the_times(
            times in prop::collection::vec(prop::collection::vec(1u64..10_000_000, 1..30), 6..12),
            a in 0.01..0.99, b in 0.01..0.99,
        ) {
            let all: Vec<Sparse> = times.iter().map(|t| block(t.iter().copied())).collect();
            let pooled = Pooled::new(&all.iter().collect::<Vec<_>>());
            let drawn = vec![1; all.len()];
            let (a, b) = if a < b { (a, b) } else { (b, a) };
            let (low, high) = (pooled.quantile(&drawn, a).unwrap(), pooled.quantile(&drawn, b).unwrap());
            prop_assert!(low <= high);
            let (least, most) = (times.iter().flatten().min().unwrap(), times.iter().flatten().max().unwrap());
            prop_assert!(low > *least as f64 * 0.99 - 1.0 && high < *most as f64 * 1.01 + 1.0);
        }

        #[test]
        fn interval_contains_the_estimate(
            times in prop::collection::vec((1u64..1_000_000, 1u64..1_000_000), 6..40), q in 0.01..0.99,
        ) {
            let side = |f: fn(&(u64, u64)) -> u64| -> Vec<Sparse> { times.iter().map(|t| block([f(t), f(t) / 2])).collect() };
            let i = ratio(&side(|t| t.0), &side(|t| t.1), q).unwrap();
            prop_assert!(i.low > 0.0 && i.low <= i.estimate && i.estimate <= i.high && i.high.is_finite());
        }
    }

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
