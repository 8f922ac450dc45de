//! Is one case faster than another: the verdict that follows from the interval of its ratio
//! and from the margins.
//!
//! One value a round: the log of the case's mean time over the baseline's. Cases run in random
//! order within a round, so that without a difference each value is as likely positive as
//! negative whatever the noise: the test behind the interval needs no model of it. Every look
//! is one more chance to be wrong, hence few looks, at a level that allows for all of them.

use super::distribution::normal_quantile;
pub use super::hodges_lehmann::{Interval, hodges_lehmann};
use crate::report::{Margins, Verdict};

/// Rounds after which verdicts are looked at; the first is the fewest for a verdict.
pub const LOOKS: [usize; 4] = [12, 24, 48, 96];

/// Coverage of the interval at each look; about 99% over all looks.
pub const LEVEL: f64 = 0.997;

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

/// After how many rounds in all an inconclusive comparison would probably be settled.
///
/// The interval is taken to narrow with the root of the rounds around where it stands now,
/// with an allowance for the estimate that will have moved. None where there is nothing to
/// settle, or where fewer than five rounds say nothing of the spread.
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
    Some(needed as u64)
}

/// One case's rounds as they come in.
///
/// A look decides only whether measuring may end. What is reported is judged from all rounds at
/// the end: it agrees with the blocks in the report, and rounds that other cases of the
/// group needed correct an early look instead of being thrown away.
#[derive(Clone, Debug)]
pub struct Sequential {
    log_ratios: Vec<f64>,
    seen: Verdict,
}

impl Default for Sequential {
    fn default() -> Self {
        Self {
            log_ratios: Vec::new(),
            seen: Verdict::Inconclusive,
        }
    }
}

impl Sequential {
    /// Adds a round. What is not finite is not a round.
    pub fn push(&mut self, log_ratio: f64) {
        if log_ratio.is_finite() {
            self.log_ratios.push(log_ratio);
        }
    }

    /// Looks, if a look is due after as many rounds: may be called after each.
    pub fn look(&mut self, margins: &Margins) {
        if is_look(self.len()) {
            self.seen = judge(&self.log_ratios, margins).verdict;
        }
    }

    /// What the last look saw; measuring may end unless it is inconclusive.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        self.seen
    }

    /// Rounds so far.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.log_ratios.len()
    }

    /// No round so far.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.log_ratios.is_empty()
    }

    /// The judgement of all rounds: the last word, or the word so far.
    #[must_use]
    pub fn end(&self, margins: &Margins) -> Judged {
        judge(&self.log_ratios, margins)
    }

    /// See [`rounds_to_settle`].
    #[must_use]
    pub fn rounds_to_settle(&self, margins: &Margins) -> Option<u64> {
        rounds_to_settle(&self.log_ratios, margins)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `n` values spread evenly over `centre - half` to `centre + half`.
    fn evenly(n: usize, centre: f64, half: f64) -> Vec<f64> {
        let place = |i| 2.0 * i as f64 / (n - 1) as f64 - 1.0;
        (0..n).map(|i| centre + half * place(i)).collect()
    }

    fn verdict_of(n: usize, ratio: f64, half: f64) -> Verdict {
        judge(&evenly(n, f64::ln(ratio), half), &Margins::default()).verdict
    }

    #[test]
    fn margins_decide() {
        use Verdict::{Faster, Inconclusive, Slower, Tie};
        assert_eq!(verdict_of(24, 1.10, 0.05), Slower);
        assert_eq!(verdict_of(24, 0.90, 0.05), Faster);
        assert_eq!(verdict_of(24, 1.00, 0.02), Tie);
        // Excludes 1, but within 3%.
        assert_eq!(verdict_of(24, 1.02, 0.01), Tie);
        // Within the tie margin, but beyond 3% and excludes 1.
        assert_eq!(verdict_of(24, 1.04, 0.005), Slower);
        assert_eq!(verdict_of(24, 1.02, 0.09), Inconclusive);
        assert_eq!(verdict_of(24, 1.10, 0.50), Inconclusive);
    }

    #[test]
    fn no_verdict_before_the_first_look() {
        for n in 10..LOOKS[0] {
            let judged = judge(&evenly(n, 1.0, 0.01), &Margins::default());
            assert_eq!(judged.verdict, Verdict::Inconclusive);
            assert!(!judged.settled);
            assert!(judged.ratio.unwrap().low > 2.0);
        }
        assert!(
            judge(&evenly(9, 1.0, 0.01), &Margins::default())
                .ratio
                .is_none()
        );
        assert_eq!(verdict_of(12, 2.0, 0.01), Verdict::Slower);
    }

    #[test]
    fn equal_times_are_a_tie_and_ties_do_not_exclude_one() {
        let zeros = judge(&[0.0; 12], &Margins::default());
        let one = Interval {
            estimate: 1.0,
            low: 1.0,
            high: 1.0,
        };
        assert_eq!((zeros.verdict, zeros.ratio), (Verdict::Tie, Some(one)));
        // Four differences among equal times are too few, however large they are.
        let mut few = vec![0.0; 20];
        few.extend([0.5; 4]);
        let few = judge(&few, &Margins::default());
        assert_eq!(few.ratio.unwrap().low, 1.0);
        assert_ne!(few.verdict, Verdict::Slower);
    }

    #[test]
    fn values_that_are_none_are_left_out() {
        let mut logs = evenly(24, 0.1, 0.05);
        let without = judge(&logs, &Margins::default());
        for nothing in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            logs.insert(7, nothing);
        }
        assert_eq!(judge(&logs, &Margins::default()), without);
        assert!(judge(&[f64::NAN; 40], &Margins::default()).ratio.is_none());
        let huge = judge(&[1e300; 12], &Margins::default()).ratio.unwrap();
        assert!(huge.high.is_finite() && huge.low > 0.0);
    }

    #[test]
    fn looks_are_taken_at_looks_only_and_the_end_has_all_rounds() {
        let margins = Margins::default();
        let mut case = Sequential::default();
        for (round, x) in evenly(12, 0.1, 0.02).into_iter().enumerate() {
            assert_eq!(case.verdict(), Verdict::Inconclusive, "round {round}");
            case.push(x);
            case.look(&margins);
        }
        assert_eq!(case.verdict(), Verdict::Slower);
        for x in evenly(11, -0.1, 0.02) {
            case.push(x);
            case.look(&margins);
            assert_eq!(case.verdict(), Verdict::Slower);
        }
        assert_eq!(case.end(&margins).verdict, Verdict::Inconclusive);
        case.push(f64::NAN);
        assert_eq!(case.len(), 23);
        case.push(-0.1);
        case.look(&margins);
        assert_eq!(case.verdict(), Verdict::Inconclusive);
    }

    #[test]
    fn rounds_to_settle_grow_with_the_spread() {
        let margins = Margins::default();
        let needed = |n, half| rounds_to_settle(&evenly(n, 0.02, half), &margins);
        assert_eq!(needed(48, 0.02), None);
        let some = needed(48, 0.1).unwrap();
        let many = needed(48, 0.4).unwrap();
        assert!(48 < some && 8 * some < many, "{some} {many}");
        assert_eq!(needed(6, 0.01), Some(12));
        assert_eq!(needed(4, 0.01), None);
        assert_eq!(rounds_to_settle(&[], &margins), None);
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
        fn exchanging_the_sides_turns_the_verdict_round(mut values in logs(), shift in -0.3..0.3) {
            values.iter_mut().for_each(|x| *x = *x * 0.1 + shift);
            let there = judge(&values, &Margins::default());
            values.iter_mut().for_each(|x| *x = -*x);
            let back = judge(&values, &Margins::default());
            let turned = match there.verdict {
                Verdict::Faster => Verdict::Slower,
                Verdict::Slower => Verdict::Faster,
                same => same,
            };
            prop_assert_eq!(back.verdict, turned);
        }

        #[test]
        fn order_of_rounds_does_not_matter(mut values in logs()) {
            let before = judge(&values, &Margins::default());
            values.reverse();
            prop_assert_eq!(judge(&values, &Margins::default()), before);
        }

        #[test]
        fn nothing_odd_comes_out(bits in prop::collection::vec(any::<u64>(), 0..60), differ: f64, tie: f64) {
            let values: Vec<f64> = bits.into_iter().map(f64::from_bits).collect();
            let margins = Margins { differ, tie, action: 0.1 };
            let judged = judge(&values, &margins);
            if let Some(i) = judged.ratio {
                for x in [i.estimate, i.low, i.high] {
                    prop_assert!(x.is_finite() && x > 0.0);
                }
                prop_assert!(i.low <= i.estimate && i.estimate <= i.high);
            }
            prop_assert_eq!(judged.settled, judged.verdict != Verdict::Inconclusive);
            let _ = rounds_to_settle(&values, &margins);
        }
    }
}
