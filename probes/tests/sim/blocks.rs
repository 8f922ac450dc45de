//! Blocks of one case: histograms for the quantiles, means for drift.

use fastrand::Rng;
use walprobe_probes::stats::{
    drift::{burst_ended, drift},
    histogram::{Histogram, Sparse},
    paired::LEVEL,
    quantile::quantile_ratio,
};

use super::noise::{self, Model};

/// Blocks of the heavy-tailed world as histograms, `ratio` times as long; one random factor
/// a round and one a block.
fn histograms(rounds: usize, ops: usize, ratio: f64, rng: &mut Rng) -> [Vec<Sparse>; 2] {
    let mut sides = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let common = (0.12 * noise::normal(rng)).exp();
        for (side, factor) in sides.iter_mut().zip([ratio, 1.0]) {
            let block = factor * common * (0.12 * noise::normal(rng)).exp();
            let mut histogram = Histogram::new();
            for _ in 0..ops {
                histogram.record((block * noise::operation(rng)) as u64);
            }
            side.push(histogram.sparse());
        }
    }
    sides
}

/// Runs in which the interval of a quantile's ratio holds the truth, and the width in logs.
pub(crate) fn quantile_coverage(rounds: usize, ops: usize, q: f64, runs: u64) -> (usize, f64) {
    let (mut covered, mut width) = (0, 0.0);
    for seed in 0..runs {
        let mut rng = Rng::with_seed(seed + 1_000);
        let [case, base] = histograms(rounds, ops, 1.1, &mut rng);
        let (case, base): (Vec<_>, Vec<_>) = (case.iter().collect(), base.iter().collect());
        let i = quantile_ratio(&case, &base, q, LEVEL, seed).expect("enough rounds");
        covered += usize::from(i.low <= 1.1 && 1.1 <= i.high);
        width += (i.high / i.low).ln() / runs as f64;
    }
    (covered, width)
}

/// Runs in which drift and burst are told.
pub(crate) fn drifts(runs: u64, mut blocks: impl FnMut(&mut Rng) -> Vec<f64>) -> (usize, usize) {
    let (mut drifted, mut burst) = (0, 0);
    for seed in 0..runs {
        let means = blocks(&mut Rng::with_seed(seed));
        drifted += usize::from(drift(&means).is_some());
        burst += usize::from(burst_ended(&means).is_some());
    }
    (drifted, burst)
}

/// Block means without drift.
pub(crate) fn stationary(model: Model, n: usize) -> impl FnMut(&mut Rng) -> Vec<f64> {
    move |rng| {
        let mut world = (model.make)(n, rng);
        (0..n).map(|_| world.block(true, rng)).collect()
    }
}

/// Block means that are each like the one before.
pub(crate) fn alike(n: usize, correlation: f64) -> impl FnMut(&mut Rng) -> Vec<f64> {
    move |rng| {
        let mut log = 0.3 * noise::normal(rng);
        let step = 0.3 * (1.0 - correlation * correlation).sqrt();
        let mut next = |_| {
            log = correlation * log + step * noise::normal(rng);
            200_000.0 * log.exp()
        };
        (0..n).map(&mut next).collect()
    }
}

/// 12% of noise around `shape` of the place in the run, 0 to 1.
pub(crate) fn shaped(n: usize, shape: fn(f64) -> f64) -> impl FnMut(&mut Rng) -> Vec<f64> {
    move |rng| {
        let place = |i| i as f64 / (n - 1) as f64;
        let noise = |rng: &mut Rng| (0.12 * noise::normal(rng)).exp();
        (0..n)
            .map(|i| 200_000.0 * shape(place(i)) * noise(rng))
            .collect()
    }
}
