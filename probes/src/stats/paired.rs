//! Is one case faster than another: the Hodges-Lehmann estimate of paired log ratios, its
//! signed-rank interval, and the verdict that follows from the margins.
//!
//! J. L. Hodges and E. L. Lehmann, Estimates of location based on rank tests, Annals of
//! Mathematical Statistics 34 (1963); J. W. Tukey for the interval from Walsh averages;
//! D. F. Bauer, Constructing confidence sets using rank statistics, JASA 67 (1972).
//!
//! One value a round: the log of the case's mean time over the baseline's. Cases run in random
//! order within a round, so that without a difference each value is as likely positive as
//! negative whatever the noise: the interval's level needs no model of the noise.

use super::distribution::{normal_quantile, signed_rank_depth};
use crate::report::{Margins, Verdict};

/// Rounds after which verdicts are looked at; the first is the fewest for a verdict.
pub const LOOKS: [usize; 4] = [12, 24, 48, 96];

/// Coverage of the interval at each look; about 99% over all looks.
pub const LEVEL: f64 = 0.997;

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

/// What the rounds so far say of one case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// Time over the baseline's time; none where the rounds are too few for an interval.
    pub ratio: Option<Interval>,
    /// Never [`Verdict::Baseline`].
    pub verdict: Verdict,
    /// The verdict is not [`Verdict::Inconclusive`].
    pub settled: bool,
}

/// Whether verdicts are looked at after this many rounds.
#[must_use]
pub fn is_look(rounds: usize) -> bool {
    LOOKS.contains(&rounds)
}

/// The centre of `values` and an interval that covers it with at least `level`: the median of
/// the Walsh averages (means of all pairs, each value paired with itself too), and those
/// of them that the signed-rank test at `1 - level` does not reject. Values that are not
/// finite are left out. None where what remains is too little for `level`.
#[must_use]
pub fn hodges_lehmann(values: &[f64], level: f64) -> Option<Interval> {
    let values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    let depth = signed_rank_depth(values.len(), level)?;
    let mut walsh = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (i, a) in values.iter().enumerate() {
        walsh.extend(values[i..].iter().map(|b| 0.5 * a + 0.5 * b));
    }
    // Selection from the middle outwards: each step leaves the next a smaller part.
    let count = walsh.len();
    let (left, &mut upper_middle, right) = walsh.select_nth_unstable_by(count / 2, f64::total_cmp);
    let high = match (count - 1 - depth).checked_sub(count / 2 + 1) {
        Some(at) => *right.select_nth_unstable_by(at, f64::total_cmp).1,
        None => upper_middle,
    };
    let estimate = if count % 2 == 1 {
        upper_middle
    } else {
        let lower_middle = left.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        0.5 * lower_middle + 0.5 * upper_middle
    };
    let low = if depth < left.len() {
        *left.select_nth_unstable_by(depth, f64::total_cmp).1
    } else {
        upper_middle
    };
    Some(Interval {
        estimate,
        low,
        high,
    })
}

/// Judges one case from the logs of its ratios, one a round.
///
/// Pure: what it says depends on no earlier look. Values that are not finite are no rounds.
#[must_use]
pub fn judge(log_ratios: &[f64], margins: &Margins) -> Judged {
    let logs = hodges_lehmann(log_ratios, LEVEL);
    let rounds = log_ratios.iter().filter(|x| x.is_finite()).count();
    let verdict = match logs {
        Some(logs) if rounds >= LOOKS[0] => verdict(&logs, margins),
        _ => Verdict::Inconclusive,
    };
    Judged {
        ratio: logs.map(Interval::exp),
        verdict,
        settled: verdict != Verdict::Inconclusive,
    }
}

fn verdict(logs: &Interval, margins: &Margins) -> Verdict {
    let (differ, tie) = in_logs(margins);
    if logs.high < 0.0 && logs.estimate < -differ {
        Verdict::Faster
    } else if logs.low > 0.0 && logs.estimate > differ {
        Verdict::Slower
    } else if logs.low >= -tie && logs.high <= tie {
        Verdict::Tie
    } else {
        Verdict::Inconclusive
    }
}

/// `differ` and `tie` as distances from 0.
fn in_logs(margins: &Margins) -> (f64, f64) {
    (
        margins.differ.max(0.0).ln_1p(),
        margins.tie.max(0.0).ln_1p(),
    )
}

/// How many further rounds would probably settle an inconclusive comparison.
///
/// The interval is taken to narrow with the root of the rounds around where it stands now,
/// with a margin for the estimate that will have moved. None where there is nothing to settle
/// or where fewer than five rounds say nothing of the spread.
#[must_use]
pub fn rounds_to_settle(log_ratios: &[f64], margins: &Margins) -> Option<u64> {
    /// The level of an interval that five rounds can give.
    const ROUGH: f64 = 0.9;
    /// 1 + z(0.8) / z((1 + LEVEL) / 2): four in five estimates will not have moved further.
    const MOVED: f64 = 1.28;
    if judge(log_ratios, margins).settled {
        return None;
    }
    let rounds = log_ratios.iter().filter(|x| x.is_finite()).count();
    let (logs, widen) = match hodges_lehmann(log_ratios, LEVEL) {
        Some(logs) => (logs, 1.0),
        None => (
            hodges_lehmann(log_ratios, ROUGH)?,
            normal_quantile(0.5 + LEVEL / 2.0) / normal_quantile(0.5 + ROUGH / 2.0),
        ),
    };
    let (differ, tie) = in_logs(margins);
    let half_width = 0.5 * (logs.high - logs.low) * widen * MOVED;
    let distance = logs.estimate.abs();
    let mut room = tie - distance;
    if distance > differ {
        room = room.max(distance);
    }
    // Beyond `differ` the distance is room, up to it `tie` leaves some: margins with a gap leave none.
    if room <= 0.0 {
        return None;
    }
    let needed = (rounds as f64 * (half_width / room).powi(2)).ceil();
    let needed = needed.clamp(LOOKS[0].max(rounds + 1) as f64, 1e15);
    Some(needed as u64 - rounds as u64)
}

/// One case's rounds, judged as the engine goes on.
///
/// Looks decide only when measuring may end. The verdict is that of all rounds at the end, so that
/// it agrees with the ratio, the interval and the blocks in the report, and later
/// rounds may correct an early look.
#[derive(Clone, Debug, Default)]
pub struct Sequential {
    log_ratios: Vec<f64>,
}

impl Sequential {
    /// Adds a round. A round without a figure on either side is no round: leave it out, or
    /// push what is not finite.
    pub fn push(&mut self, log_ratio: f64) {
        if log_ratio.is_finite() {
            self.log_ratios.push(log_ratio);
        }
    }

    /// Rounds so far.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.log_ratios.len()
    }

    /// The log ratios so far.
    #[must_use]
    pub fn log_ratios(&self) -> &[f64] {
        &self.log_ratios
    }

    /// The judgement of all rounds.
    #[must_use]
    pub fn end(&self, margins: &Margins) -> Judged {
        judge(&self.log_ratios, margins)
    }
}
