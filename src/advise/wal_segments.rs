//! `wal_init_zero` and `wal_recycle`: how should a segment come to be?
//!
//! One rule judges both, since the one decides what the other is compared with: a server
//! that does not recycle makes new segments, zero-filled or sparse. A primary writes whole
//! aligned pages, a standby walreceiver's unaligned chunks; each role has its own findings.
//! The page, `docs/rules/wal-segments.md`, has the table.

mod contest;
mod init_zero;
mod init_zero_told;
mod recycle;
mod recycle_told;
mod space;

use super::{Rule, Saying, View};

const INIT_ZERO: &str = "wal_init_zero";
const RECYCLE: &str = "wal_recycle";
const DEFAULT: &str = "on";
/// The default pair: what every other way of getting a segment is compared with.
const RECYCLED: &str = "recycle+zero";
const ZEROED: &str = "new+zero";
const SPARSE: &str = "new+sparse";
const RATIO: &[&str] = &["ratio", "ratio_low", "ratio_high"];
const TOTAL: &[&str] = &[
    "observations/total_ratio",
    "observations/total_ratio_low",
    "observations/total_ratio_high",
];

/// One comparison of `recycle` and how to speak of it.
#[derive(Clone, Copy, Debug)]
struct Spot {
    comparison: &'static str,
    told: &'static str,
}

/// A server's role, and the comparisons that stand for its way of writing.
#[derive(Debug)]
struct Role {
    name: &'static str,
    writes: &'static str,
    /// `wal_recycle = off` must win in each of these.
    cold: &'static [Spot],
    /// The price while old segments are still in the cache.
    warm: &'static [Spot],
}

impl Role {
    fn is_standby(&self) -> bool {
        self.name == "standby"
    }
}

const ROLES: &[Role] = &[
    Role {
        name: "primary",
        writes: "a primary, which writes WAL in whole pages",
        cold: &[
            Spot {
                comparison: "life-cold",
                told: "out of cache, 64 KiB of WAL a commit",
            },
            Spot {
                comparison: "life-cold-8k",
                told: "out of cache, 8 KiB of WAL a commit",
            },
        ],
        warm: &[
            Spot {
                comparison: "life",
                told: "in cache, 64 KiB of WAL a commit",
            },
            Spot {
                comparison: "life-8k",
                told: "in cache, 8 KiB of WAL a commit",
            },
        ],
    },
    Role {
        name: "standby",
        writes: "a standby, whose walreceiver writes unaligned pieces",
        cold: &[Spot {
            comparison: "life-standby",
            told: "out of cache, in walreceiver's pieces",
        }],
        warm: &[],
    },
];

/// What was decided about new segments, for those that compare with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NewSegments {
    /// `wal_init_zero` stays on.
    Zeroed,
    /// It goes off.
    Sparse,
    /// It cannot be told; on is in force.
    Unknown,
}

/// The rule.
#[derive(Debug)]
pub struct WalSegments;

impl Rule for WalSegments {
    fn id(&self) -> &'static str {
        "wal-segments"
    }

    fn settings(&self) -> &'static [&'static str] {
        &[INIT_ZERO, RECYCLE]
    }

    fn page(&self) -> &'static str {
        include_str!("../../docs/rules/wal-segments.md")
    }

    fn judge(&self, view: &View<'_>) -> Vec<Saying> {
        let (mut zero, mut recycle) = (Vec::new(), Vec::new());
        for role in ROLES {
            let (saying, new) = init_zero::judge(view, role);
            zero.push(saying);
            recycle.push(recycle::judge(view, role, new));
        }
        zero.append(&mut recycle);
        zero
    }
}
