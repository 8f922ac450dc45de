//! Did a case's own speed change while it was measured?
//!
//! Drift: the Theil-Sen slope of the logs of the block means (H. Theil 1950; P. K. Sen, JASA 63,
//! 1968), told only where the Mann-Kendall test (H. B. Mann, Econometrica 13, 1945) is sure
//! of it. Blocks that follow each other are alike, which makes trends out of nothing: the
//! test's variance is raised by the lag-one correlation (S. Yue and C. Wang, Water Resources
//! Management 18, 2004). A burst that ended: two plateaus, the later one slower to the end,
//! as when a device's fast cache or its credits are used up.
//!
//! Neither touches a paired ratio, whose sides drift together: they say that the plain
//! figures are those of no one state.

/// Fewest blocks for a drift.
const FEWEST_BLOCKS: usize = 12;
/// Drifts that are smaller, in percent, are not told.
const LEAST_PCT: f64 = 10.0;
/// How many deviations Kendall's statistic must be away from none.
const SURE: f64 = 2.8;
/// Longer runs are looked at in this many pieces.
const MOST_PIECES: usize = 200;
/// Fewest blocks of a plateau.
const PLATEAU: usize = 4;
/// Least factor from one plateau to the other.
const LEAST_FACTOR: f64 = 1.5;
/// Share of a plateau's blocks that may lie on the other's side.
const STRAY: f64 = 0.1;

/// A change of speed over the whole run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Change of the block means from the first to the last block, in percent: more is slower.
    pub pct: f64,
}

/// A run in two plateaus.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The first block of the later plateau.
    pub at: usize,
    /// Median of the later plateau over that of the earlier.
    pub factor: f64,
}

/// The drift of block means in the order in which they ran, where there clearly is one.
///
/// Means that are not positive and finite are left out.
#[must_use]
pub fn drift(block_means: &[f64]) -> Option<Drift> {
    let logs = logs(block_means).map(|(_, x)| x).collect::<Vec<_>>();
    if logs.len() < FEWEST_BLOCKS {
        return None;
    }
    let size = logs.len().div_ceil(MOST_PIECES);
    let pieces: Vec<f64> = logs
        .chunks_exact(size)
        .map(|c| c.iter().sum::<f64>() / size as f64)
        .collect();
    let n = pieces.len();

    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    let mut kendall = 0.0;
    for (i, a) in pieces.iter().enumerate() {
        for (j, b) in pieces.iter().enumerate().skip(i + 1) {
            slopes.push((b - a) / (j - i) as f64);
            kendall += f64::from((b > a) as i8 - (b < a) as i8);
        }
    }
    let slope = median(&mut slopes);
    let alike = correlation(&pieces, slope);
    let n = n as f64;
    let variance = n * (n - 1.0) * (2.0 * n + 5.0) / 18.0 * (1.0 + alike) / (1.0 - alike);
    let pct = 100.0 * (slope * (n - 1.0)).exp_m1();
    let sure = kendall.abs() > SURE * variance.sqrt() && kendall * slope > 0.0;
    (sure && pct.abs() >= LEAST_PCT && pct.is_finite()).then_some(Drift { pct })
}

/// Lag-one correlation of the ranks around the trend, corrected for its bias in short series;
/// not below 0.
fn correlation(pieces: &[f64], slope: f64) -> f64 {
    let n = pieces.len();
    let rest = |i: usize| pieces[i] - slope * i as f64;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| rest(a).total_cmp(&rest(b)));
    let mut ranks = vec![0.0; n];
    for (rank, at) in order.into_iter().enumerate() {
        ranks[at] = rank as f64 - (n - 1) as f64 / 2.0;
    }
    let square: f64 = ranks.iter().map(|r| r * r).sum();
    let lagged: f64 = ranks.windows(2).map(|w| w[0] * w[1]).sum();
    let seen = lagged / square;
    (seen + (1.0 + 4.0 * seen.max(0.0)) / n as f64).clamp(0.0, 0.9)
}

/// Where the run fell from one plateau to a clearly slower one and stayed there.
#[must_use]
pub fn burst_ended(block_means: &[f64]) -> Option<Change> {
    let (places, logs): (Vec<usize>, Vec<f64>) = logs(block_means).unzip();
    let n = logs.len();
    if n < 2 * PLATEAU {
        return None;
    }
    // The split with the most between its sides: that of least squares.
    let all: f64 = logs.iter().sum();
    let mut before: f64 = logs[..PLATEAU - 1].iter().sum();
    let mut best = (f64::NEG_INFINITY, 0);
    for at in PLATEAU..=n - PLATEAU {
        before += logs[at - 1];
        let (left, right) = (at as f64, (n - at) as f64);
        let step = (all - before) / right - before / left;
        let between = step.abs() * step * left * right;
        if between > best.0 {
            best = (between, at);
        }
    }
    let at = best.1;
    let (early, late) = logs.split_at(at);
    let (fast, slow) = (median(&mut early.to_vec()), median(&mut late.to_vec()));
    let factor = (slow - fast).exp();
    let middle = 0.5 * (fast + slow);
    let few = |strays: usize, side: usize| strays as f64 <= STRAY * side as f64;
    let stays = few(early.iter().filter(|x| **x > middle).count(), early.len())
        && few(late.iter().filter(|x| **x < middle).count(), late.len());
    (stays && factor >= LEAST_FACTOR && factor.is_finite()).then_some(Change {
        at: places[at],
        factor,
    })
}

/// Places and logs of the means that have one.
fn logs(block_means: &[f64]) -> impl Iterator<Item = (usize, f64)> {
    let usable = block_means
        .iter()
        .enumerate()
        .filter(|(_, m)| **m > 0.0 && m.is_finite());
    usable.map(|(i, m)| (i, m.ln()))
}

/// The middle value, or the mean of the middle two.
fn median(values: &mut [f64]) -> f64 {
    let (half, odd) = (values.len() / 2, values.len() % 2 == 1);
    let (left, &mut upper, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    if odd {
        return upper;
    }
    let lower = left.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    0.5 * (lower + upper)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Block means that follow `shape` with a ripple of 2%.
    fn means(n: usize, shape: impl Fn(usize) -> f64) -> Vec<f64> {
        let ripple = |i: usize| 1.0 + 0.02 * ((i * 7 % 5) as f64 - 2.0);
        (0..n).map(|i| 250_000.0 * shape(i) * ripple(i)).collect()
    }

    #[test]
    fn drift_is_the_change_over_the_run() {
        for n in [12, 24, 500] {
            let up = drift(&means(n, |i| 1.0 + 0.5 * i as f64 / (n - 1) as f64)).unwrap();
            assert!((40.0..60.0).contains(&up.pct), "{n}: {up:?}");
            let down = drift(&means(n, |i| 1.0 - 0.5 * i as f64 / (n - 1) as f64)).unwrap();
            assert!((-60.0..-40.0).contains(&down.pct), "{n}: {down:?}");
        }
    }

    #[test]
    fn small_or_no_change_is_not_told() {
        assert_eq!(drift(&means(48, |_| 1.0)), None);
        assert_eq!(drift(&means(48, |i| 1.0 + 0.05 * i as f64 / 47.0)), None);
        assert_eq!(drift(&[1.0; 48]), None);
        assert_eq!(drift(&means(11, |i| (1 + i) as f64)), None);
        assert_eq!(drift(&[]), None);
    }

    #[test]
    fn a_burst_ends_where_the_later_plateau_begins() {
        let change = burst_ended(&means(24, |i| if i < 9 { 1.0 } else { 3.0 })).unwrap();
        assert_eq!(change.at, 9);
        assert!((change.factor - 3.0).abs() < 0.2, "{change:?}");
        // Blocks without a mean keep their place.
        let mut holed = means(24, |i| if i < 9 { 1.0 } else { 3.0 });
        holed[2] = f64::NAN;
        assert_eq!(burst_ended(&holed).unwrap().at, 9);
    }

    #[test]
    fn what_is_no_end_of_a_burst() {
        assert_eq!(
            burst_ended(&means(24, |i| if i < 9 { 1.0 } else { 1.3 })),
            None
        );
        assert_eq!(
            burst_ended(&means(24, |i| if i < 9 { 3.0 } else { 1.0 })),
            None
        );
        assert_eq!(
            burst_ended(&means(24, |i| if i < 22 { 1.0 } else { 9.0 })),
            None
        );
        assert_eq!(
            burst_ended(&means(24, |i| if i % 12 < 9 { 1.0 } else { 3.0 })),
            None
        );
        assert_eq!(
            burst_ended(&means(7, |i| if i < 3 { 1.0 } else { 3.0 })),
            None
        );
        assert_eq!(burst_ended(&[1.0; 24]), None);
    }

    proptest! {
        #[test]
        fn nothing_odd_comes_out(bits in prop::collection::vec(any::<u64>(), 0..60)) {
            let means: Vec<f64> = bits.into_iter().map(f64::from_bits).collect();
            if let Some(d) = drift(&means) {
                prop_assert!(d.pct.is_finite());
            }
            if let Some(c) = burst_ended(&means) {
                prop_assert!(c.at < means.len() && c.factor.is_finite());
            }
        }
    }
}
