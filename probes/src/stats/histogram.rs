//! Times in log-spaced buckets: two significant digits, constant memory, exact maximum.
//!
//! The buckets are those of HdrHistogram (<https://hdrhistogram.github.io/HdrHistogram/>).

use hdrhistogram::Histogram as Hdr;

use crate::report::{HistogramFigures, Us};

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
        self.buckets.saturating_record(ns.max(1));
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Sparse) {
        for &(ns, count) in &other.0 {
            // Auto-resizing histograms take every value.
            let _ = self.buckets.record_n(ns, count);
            self.max_ns = self.max_ns.max(ns);
        }
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
