//! How long a block is and how many rounds are planned, from what calibration found.
//!
//! Pure. More rounds beat longer blocks, because the comparison is paired by round.

/// Rounds before which nothing is judged.
pub const MIN_ROUNDS: u64 = 12;
/// Rounds aimed at, the most that still leaves blocks long enough: for the same operations, many
/// short rounds tell more than few long ones (docs/method.md).
const AIMS: [u64; 4] = [96, 48, 24, MIN_ROUNDS];
/// Operations that make a block long enough, where the case allows as many.
const LEAST_OPS: u64 = 24;
/// Share of time and budget that is planned for: a block may cost more than calibration saw.
const PLANNED_SHARE: f64 = 0.85;
/// No block is planned to take longer than this.
const LONGEST_BLOCK_NS: u64 = 1_000_000_000;

/// What calibration found of one case.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Time of an operation, its own preparation included.
    pub op_ns: f64,
    /// Time around a block: preparation, discarded operations, observing, settling.
    pub block_ns: f64,
    /// Device bytes of an operation.
    pub op_bytes: f64,
    /// Device bytes around a block.
    pub block_bytes: f64,
    /// Most operations a block may have; 0 = no limit.
    pub max_ops: u64,
}

/// The size of a group's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Operations a block, the same for each case.
    pub ops: u64,
    /// Rounds that probably fit.
    pub rounds: u64,
    /// What keeps it from [`MIN_ROUNDS`]: `time`, `budget`, or nothing.
    pub short_of: Option<&'static str>,
}

/// Sizes the blocks of cases that cost `costs`, for `time_ns` and `bytes` in all.
#[must_use]
pub fn size(costs: &[Cost], time_ns: u64, bytes: u64) -> Size {
    let sum = |f: fn(&Cost) -> f64| costs.iter().map(f).sum::<f64>();
    let (op_ns, block_ns) = (sum(|c| c.op_ns).max(1.0), sum(|c| c.block_ns));
    let (op_bytes, block_bytes) = (sum(|c| c.op_bytes), sum(|c| c.block_bytes));
    let cap = costs
        .iter()
        .map(|c| if c.max_ops == 0 { u64::MAX } else { c.max_ops })
        .chain(
            costs
                .iter()
                .map(|c| (LONGEST_BLOCK_NS as f64 / c.op_ns.max(1.0)) as u64),
        )
        .min()
        .unwrap_or(1)
        .max(1);
    let (time_ns, bytes) = (time_ns as f64 * PLANNED_SHARE, bytes as f64 * PLANNED_SHARE);
    let fit = |rounds: u64| -> f64 {
        let by_time = (time_ns / rounds as f64 - block_ns) / op_ns;
        let by_bytes = if op_bytes > 0.0 {
            (bytes / rounds as f64 - block_bytes) / op_bytes
        } else {
            f64::INFINITY
        };
        by_time.min(by_bytes)
    };
    let least = LEAST_OPS.min(cap) as f64;
    let ops = AIMS
        .iter()
        .map(|&rounds| fit(rounds))
        .find(|ops| *ops >= least)
        .unwrap_or_else(|| fit(MIN_ROUNDS));
    let ops = (ops.clamp(1.0, cap as f64)) as u64;
    let round_ns = block_ns + op_ns * ops as f64;
    let round_bytes = block_bytes + op_bytes * ops as f64;
    let by_time = (time_ns / round_ns) as u64;
    let by_bytes = if round_bytes > 0.0 {
        (bytes / round_bytes) as u64
    } else {
        u64::MAX
    };
    let rounds = by_time.min(by_bytes);
    let short_of = (rounds < MIN_ROUNDS).then_some(if by_time <= by_bytes {
        "time"
    } else {
        "budget"
    });
    Size {
        ops,
        rounds,
        short_of,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(op_us: f64) -> Cost {
        Cost {
            op_ns: op_us * 1e3,
            block_ns: 10e6,
            op_bytes: 8192.0,
            block_bytes: 0.0,
            max_ops: 0,
        }
    }

    #[test]
    fn quick_commits_get_rounds_first_and_tails_too() {
        let s = size(&[commit(150.0); 4], 5_000_000_000, 200 << 20);
        assert!(s.rounds >= 48 && s.ops * s.rounds >= 1_000, "{s:?}");
        assert_eq!(s.short_of, None);
    }

    #[test]
    fn slow_commits_give_up_length_before_rounds() {
        let s = size(&[commit(10_000.0); 4], 8_000_000_000, 200 << 20);
        assert!(s.rounds >= MIN_ROUNDS, "{s:?}");
        assert!(s.ops >= 10, "{s:?}");
    }

    #[test]
    fn what_is_missing_is_named() {
        let life = Cost {
            op_ns: 50e6,
            block_ns: 20e6,
            op_bytes: 18e6,
            block_bytes: 0.0,
            max_ops: 0,
        };
        let s = size(&[life; 3], 60_000_000_000, 100_000_000);
        assert_eq!((s.ops, s.short_of), (1, Some("budget")), "{s:?}");
        let s = size(&[life; 3], 1_000_000_000, 10_000_000_000);
        assert_eq!((s.ops, s.short_of), (1, Some("time")), "{s:?}");
    }

    #[test]
    fn no_block_is_longer_than_a_second_or_the_case_allows() {
        let s = size(&[commit(100.0)], 600_000_000_000, u64::MAX >> 8);
        assert!(s.ops <= 10_000, "{s:?}");
        let one = Cost {
            max_ops: 1,
            ..commit(100.0)
        };
        assert_eq!(size(&[one], 600_000_000_000, 1 << 40).ops, 1);
    }
}
