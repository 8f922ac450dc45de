//! Worlds made of what filesystems did: consecutive blocks of a recorded trace, from a random
//! place on, so that waves and pauses of the real thing stay as long as they were.

use std::sync::LazyLock;

use fastrand::Rng;

use super::noise::{Model, World};

static EXT4: LazyLock<Vec<f64>> = LazyLock::new(|| parse(include_str!("../traces/ext4.csv")));
static XFS: LazyLock<Vec<f64>> = LazyLock::new(|| parse(include_str!("../traces/xfs.csv")));
static BTRFS: LazyLock<Vec<f64>> = LazyLock::new(|| parse(include_str!("../traces/btrfs.csv")));

/// Recorded as `docs/method.md` says.
pub(crate) const TRACES: [Model; 3] = [
    Model {
        name: "trace of ext4",
        make: |blocks, rng| piece(&EXT4, blocks, rng),
    },
    Model {
        name: "trace of XFS",
        make: |blocks, rng| piece(&XFS, blocks, rng),
    },
    Model {
        name: "trace of btrfs",
        make: |blocks, rng| piece(&BTRFS, blocks, rng),
    },
];

/// A heading, then a block's mean in nanoseconds a line.
fn parse(csv: &str) -> Vec<f64> {
    let lines = csv.lines().skip(1);
    lines.map(|l| l.parse().expect("a number a line")).collect()
}

fn piece(trace: &'static [f64], blocks: usize, rng: &mut Rng) -> Box<dyn World> {
    assert!(trace.len() > 2 * blocks, "the trace is too short to vary");
    let start = rng.usize(0..trace.len() - blocks);
    Box::new(Piece(&trace[start..start + blocks]))
}

struct Piece(&'static [f64]);

impl World for Piece {
    fn block(&mut self, _first: bool, _rng: &mut Rng) -> f64 {
        let (mean, rest) = self.0.split_first().expect("as many as were asked for");
        self.0 = rest;
        *mean
    }
}
