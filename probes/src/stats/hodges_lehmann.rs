//! The centre of a few noisy values, and the interval that covers it.
//!
//! J. L. Hodges and E. L. Lehmann, Estimates of location based on rank tests, Annals of
//! Mathematical Statistics 34 (1963); the interval from the signed-rank test after J. W. Tukey,
//! and D. F. Bauer, Constructing confidence sets using rank statistics, JASA 67 (1972).
//!
//! Up to 29% of the values may be anything without moving the estimate beyond the others. The
//! interval assumes that values are symmetric around the centre, and nothing else.

use super::distribution::signed_rank_depth;

/// An estimate and the interval around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Estimate; never outside the interval.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// From logs to ratios: finite and positive.
    pub(super) fn exp(self) -> Self {
        let exp = |x: f64| x.exp().clamp(f64::MIN_POSITIVE, f64::MAX);
        Self {
            estimate: exp(self.estimate),
            low: exp(self.low),
            high: exp(self.high),
        }
    }
}

/// The centre of `values` and an interval that covers it with at least `level`: the median of
/// the Walsh averages (means of all pairs, each value paired with itself too), and those
/// of them that the signed-rank test at `1 - level` does not reject. Values that are not
/// finite are left out. None where what remains is too little for `level`.
#[must_use]
pub fn hodges_lehmann(values: &[f64], level: f64) -> Option<Interval> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    let depth = signed_rank_depth(sorted.len(), level)?;
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len() * (sorted.len() + 1) / 2 - 1;
    let middle = walsh(&sorted, last / 2);
    Some(Interval {
        estimate: 0.5 * middle + 0.5 * walsh(&sorted, last.div_ceil(2)),
        low: walsh(&sorted, depth),
        high: walsh(&sorted, last - depth),
    })
}

/// The Walsh average with `rank` smaller ones, of ascending values.
///
/// Averages ascend with both of their values, so one pass counts those up to a bound: the
/// bounds are bisected until few are left between them, and only these are listed. After D. B.
/// Johnson and T. Mizoguchi, SIAM Journal on Computing 7 (1978). Never a negative zero.
fn walsh(sorted: &[f64], rank: usize) -> f64 {
    let n = sorted.len();
    // Calls `row(i, end)` for each value: its averages with the values `i..end` are at most `x`.
    let rows = |x: f64, row: &mut dyn FnMut(usize, usize)| {
        let mut end = n;
        for (i, a) in sorted.iter().enumerate() {
            while end > i && 0.5 * a + 0.5 * sorted[end - 1] > x {
                end -= 1;
            }
            if end <= i {
                break;
            }
            row(i, end);
        }
    };
    let (mut low, mut high) = (order(sorted[0]), order(sorted[n - 1]));
    // The averages looked for are above `above` and at most `high`.
    let (mut above, mut below) = (f64::NEG_INFINITY, 0);
    let mut up_to = n * (n + 1) / 2;
    while low < high && up_to - below > 2 * n {
        let middle = low.midpoint(high);
        let mut count = 0;
        rows(unorder(middle), &mut |i, end| count += end - i);
        if count > rank {
            (high, up_to) = (middle, count);
        } else {
            (low, above, below) = (middle + 1, unorder(middle), count);
        }
    }
    if low == high {
        return unorder(low) + 0.0;
    }
    let mut left = Vec::with_capacity(up_to - below);
    rows(unorder(high), &mut |i, end| {
        let averages = sorted[i..end]
            .iter()
            .rev()
            .map(|b| 0.5 * sorted[i] + 0.5 * b);
        left.extend(averages.take_while(|x| *x > above));
    });
    *left.select_nth_unstable_by(rank - below, f64::total_cmp).1 + 0.0
}

/// Numbers that ascend as floats do.
const fn order(x: f64) -> u64 {
    let bits = x.to_bits();
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

const fn unorder(x: u64) -> f64 {
    f64::from_bits(if x >> 63 == 1 { x & !(1 << 63) } else { !x })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats::paired::LEVEL;

    /// The definition, by list.
    fn by_list(values: &[f64], level: f64) -> Option<Interval> {
        let depth = signed_rank_depth(values.len(), level)?;
        let mut walsh = Vec::new();
        for (i, a) in values.iter().enumerate() {
            walsh.extend(values[..=i].iter().map(|b| 0.5 * a + 0.5 * b));
        }
        walsh.sort_by(f64::total_cmp);
        let n = walsh.len();
        Some(Interval {
            estimate: 0.5 * walsh[(n - 1) / 2] + 0.5 * walsh[n / 2],
            low: walsh[depth],
            high: walsh[n - 1 - depth],
        })
    }

    #[test]
    fn a_worked_example() {
        // Depression scores of nine patients, Hollander and Wolfe, Nonparametric Statistical
        // Methods, table 3.1: estimate -0.46, interval at 96% from -0.786 to -0.010.
        let scores = [
            -0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010,
        ];
        let found = hodges_lehmann(&scores, 0.96).unwrap();
        assert!((found.estimate + 0.46).abs() < 1e-9, "{found:?}");
        assert!((found.low + 0.786).abs() < 1e-9, "{found:?}");
        assert!((found.high + 0.010).abs() < 1e-9, "{found:?}");
    }

    fn logs() -> impl Strategy<Value = Vec<f64>> {
        let value = prop_oneof![
            4 => -1.0..1.0,
            1 => Just(0.0),
            1 => (-3i32..3).prop_map(|x| f64::from(x) * 0.1),
        ];
        prop::collection::vec(value, 0..120)
    }

    proptest! {
        #[test]
        fn selection_agrees_with_the_list(values in logs(), level in 0.5..0.999) {
            prop_assert_eq!(hodges_lehmann(&values, level), by_list(&values, level));
        }

        #[test]
        fn interval_contains_the_estimate(values in logs(), level in 0.5..0.999) {
            if let Some(i) = hodges_lehmann(&values, level) {
                prop_assert!(i.low <= i.estimate && i.estimate <= i.high, "{:?}", i);
            }
        }

        #[test]
        fn wider_at_a_higher_level(values in logs()) {
            if let (Some(a), Some(b)) = (hodges_lehmann(&values, 0.9), hodges_lehmann(&values, LEVEL)) {
                prop_assert!(b.low <= a.low && a.high <= b.high);
                prop_assert_eq!(a.estimate, b.estimate);
            }
        }
    }
}
