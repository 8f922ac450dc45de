//! Times in log-spaced buckets: two significant digits, constant memory, exact maximum.
//!
//! The buckets are those of HdrHistogram (<https://hdrhistogram.github.io/HdrHistogram/>).

use hdrhistogram::Histogram as Hdr;

use crate::report::{HistogramFigures, Us};

/// Longer durations are counted as this one, 36 years.
const LONGEST_NS: u64 = 1 << 60;

/// Counts of durations.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Hdr<u32>,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    ///
    /// # Panics
    /// Never: two significant digits are always valid.
    #[must_use]
    pub fn new() -> Self {
        Self {
            buckets: Hdr::new(2).expect("two significant digits are valid"),
            max_ns: 0,
        }
    }

    /// Adds one duration.
    pub fn record(&mut self, ns: u64) {
        self.add(ns, 1);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Sparse) {
        for &(ns, count) in &other.0 {
            self.add(ns, count);
        }
    }

    fn add(&mut self, ns: u64, count: u32) {
        // Not the saturating call: that one clamps to the range so far instead of widening it.
        // Widening cannot fail for a duration up to the longest.
        let _ = self.buckets.record_n(ns.clamp(1, LONGEST_NS), count);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Durations counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// The exact maximum.
    #[must_use]
    pub const fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The duration that a share `q` of all does not exceed, to two digits; 0 when empty.
    #[must_use]
    pub fn quantile_ns(&self, q: f64) -> u64 {
        self.buckets
            .value_at_quantile(q.clamp(0.0, 1.0))
            .min(self.max_ns)
    }

    /// Non-empty buckets: their upper bounds and counts.
    #[must_use]
    pub fn sparse(&self) -> Sparse {
        Sparse(
            self.buckets
                .iter_recorded()
                .map(|v| (v.value_iterated_to(), v.count_at_value()))
                .collect(),
        )
    }

    /// The report's form.
    #[must_use]
    pub fn figures(&self) -> HistogramFigures {
        let sparse = self.sparse();
        HistogramFigures {
            upper_us: sparse.0.iter().map(|&(ns, _)| Us(ns)).collect(),
            count: sparse.0.iter().map(|&(_, n)| u64::from(n)).collect(),
        }
    }
}

/// The non-empty buckets of a histogram: one block's distribution, kept small.
#[derive(Clone, Debug, Default)]
pub struct Sparse(
    /// Upper bound in nanoseconds, count; ascending.
    pub Vec<(u64, u32)>,
);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_within_two_digits() {
        let mut h = Histogram::new();
        for ns in 1..=1_000u64 {
            h.record(ns * 1_000);
        }
        assert_eq!(h.count(), 1_000);
        assert_eq!(h.max_ns(), 1_000_000);
        for (q, ns) in [(0.5, 500_000.0), (0.99, 990_000.0), (1.0, 1_000_000.0)] {
            let got = h.quantile_ns(q) as f64;
            assert!((got / ns - 1.0).abs() < 0.01, "{q}: {got}");
        }
    }

    #[test]
    fn every_duration_is_taken() {
        let mut h = Histogram::new();
        for ns in [u64::MAX, 0, 1, LONGEST_NS, 250_000] {
            h.record(ns);
        }
        assert_eq!(h.count(), 5);
        assert_eq!(h.max_ns(), u64::MAX);
        assert_eq!(h.sparse().0.len(), 3);
    }

    #[test]
    fn empty_has_no_figures() {
        let h = Histogram::new();
        assert_eq!((h.count(), h.max_ns(), h.quantile_ns(0.5)), (0, 0, 0));
        assert!(h.sparse().0.is_empty());
    }

    proptest! {
        #[test]
        fn merging_is_recording_to_the_bucket(times in prop::collection::vec(1u64..10_000_000_000, 1..200)) {
            let mut whole = Histogram::new();
            let mut merged = Histogram::new();
            for half in times.chunks(50) {
                let mut part = Histogram::new();
                for &ns in half {
                    whole.record(ns);
                    part.record(ns);
                }
                merged.merge(&part.sparse());
            }
            prop_assert_eq!(whole.sparse().0, merged.sparse().0);
            prop_assert_eq!(whole.count(), times.len() as u64);
        }

        #[test]
        fn quantiles_are_ordered(times in prop::collection::vec(0u64..10_000_000_000, 1..200), a in 0.0..1.0, b in 0.0..1.0) {
            let mut h = Histogram::new();
            times.iter().for_each(|&ns| h.record(ns));
            let (a, b) = if a < b { (a, b) } else { (b, a) };
            prop_assert!(h.quantile_ns(a) <= h.quantile_ns(b));
            prop_assert!(h.quantile_ns(b) <= h.max_ns());
        }

        #[test]
        fn buckets_ascend_and_bound_what_is_in_them(ns in 1u64..1 << 50) {
            let mut h = Histogram::new();
            h.record(ns);
            let (top, count) = h.sparse().0[0];
            prop_assert_eq!(count, 1);
            prop_assert!(top >= ns && (top - ns) as f64 <= ns as f64 / 100.0);
        }
    }
}
