//! Worlds made of what filesystems did: consecutive blocks of a recorded trace, from a random
//! place on, so that waves and pauses of the real thing stay as long as they were.

use fastrand::Rng;

use super::noise::{Model, World};

pub const TRACES: [Model; 3] = [
    Model {
        name: "trace of ext4",
        make: |blocks, rng| piece(include_str!("../traces/ext4.csv"), blocks, rng),
    },
    Model {
        name: "trace of XFS",
        make: |blocks, rng| piece(include_str!("../traces/xfs.csv"), blocks, rng),
    },
    Model {
        name: "trace of btrfs",
        make: |blocks, rng| piece(include_str!("../traces/btrfs.csv"), blocks, rng),
    },
];

/// The trace as numbers.
pub fn parse(csv: &str) -> Vec<f64> {
    let lines = csv.lines().filter(|l| !l.starts_with("block_mean_ns"));
    lines.map(|l| l.parse().expect("a number a line")).collect()
}

fn piece(csv: &str, blocks: usize, rng: &mut Rng) -> Box<dyn World> {
    let trace = parse(csv);
    assert!(trace.len() > 2 * blocks, "the trace is too short to vary");
    let start = rng.usize(0..trace.len() - blocks);
    Box::new(Piece {
        blocks: trace[start..start + blocks].to_vec().into_iter(),
    })
}

struct Piece {
    blocks: std::vec::IntoIter<f64>,
}

impl World for Piece {
    fn block(&mut self, _first: bool, _rng: &mut Rng) -> f64 {
        self.blocks
            .next()
            .expect("as many blocks as were asked for")
    }
}
