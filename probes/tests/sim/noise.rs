//! What a filesystem's timing may look like: each world yields the mean time of the next
//! block, in the order in which blocks run. It does not know which case the block is of.

use fastrand::Rng;

/// Mean time of one block after another, in nanoseconds.
pub(crate) trait World {
    /// The next block's mean; `first`: it is the first of its round.
    fn block(&mut self, first: bool, rng: &mut Rng) -> f64;
}

/// A named way of making worlds.
#[derive(Clone, Copy)]
pub(crate) struct Model {
    /// As the documentation names it.
    pub(crate) name: &'static str,
    /// A fresh world for `blocks` blocks.
    pub(crate) make: fn(blocks: usize, rng: &mut Rng) -> Box<dyn World>,
}

pub(crate) const HEAVY_TAILED: Model = Model {
    name: "heavy-tailed operations",
    make: |_, _| Box::new(HeavyTailed),
};

pub(crate) const ROUND_EFFECT: Model = Model {
    name: "12% round effect",
    make: |_, _| Box::new(RoundEffect { round: 1.0 }),
};

pub(crate) const OUTLIERS_AND_DRIFT: Model = Model {
    name: "outliers and drift",
    make: |blocks, _| Box::new(OutliersAndDrift { at: 0, blocks }),
};

pub(crate) const POSITION: Model = Model {
    name: "first block of a round 25% slower",
    make: |_, _| Box::new(Position),
};

/// The three that the error rates are promised under.
pub(crate) const MODELS: [Model; 3] = [HEAVY_TAILED, ROUND_EFFECT, OUTLIERS_AND_DRIFT];

pub(crate) fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}

/// 64 lognormal operations, one in fifty with a Pareto stall of infinite variance on top.
struct HeavyTailed;

impl World for HeavyTailed {
    fn block(&mut self, _first: bool, rng: &mut Rng) -> f64 {
        let ops = 64;
        let sum: f64 = (0..ops).map(|_| operation(rng)).sum();
        sum / f64::from(ops)
    }
}

/// One operation of the heavy-tailed world, in nanoseconds.
pub(crate) fn operation(rng: &mut Rng) -> f64 {
    let mut ns = 200_000.0 * (0.5 * normal(rng)).exp();
    if rng.f64() < 0.02 {
        ns += 400_000.0 * (1.0 - rng.f64()).powf(-1.0 / 1.5);
    }
    ns
}

/// 12% of noise common to a round's blocks, and 12% of each block's own.
struct RoundEffect {
    round: f64,
}

impl World for RoundEffect {
    fn block(&mut self, first: bool, rng: &mut Rng) -> f64 {
        if first {
            self.round = (0.12 * normal(rng)).exp();
        }
        200_000.0 * self.round * (0.12 * normal(rng)).exp()
    }
}

/// 8% of noise, one block in twenty four times as slow, 50% slower at the end than at the start.
struct OutliersAndDrift {
    at: usize,
    blocks: usize,
}

impl World for OutliersAndDrift {
    fn block(&mut self, _first: bool, rng: &mut Rng) -> f64 {
        let drift = 1.0 + 0.5 * self.at as f64 / self.blocks as f64;
        self.at += 1;
        let outlier = if rng.f64() < 0.05 { 4.0 } else { 1.0 };
        200_000.0 * drift * outlier * (0.08 * normal(rng)).exp()
    }
}

/// 8% of noise; whatever runs first in a round pays 25% more.
struct Position;

impl World for Position {
    fn block(&mut self, first: bool, rng: &mut Rng) -> f64 {
        let place = if first { 1.25 } else { 1.0 };
        200_000.0 * place * (0.08 * normal(rng)).exp()
    }
}
