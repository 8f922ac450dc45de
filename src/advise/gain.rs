//! Margins: how an interval of a time ratio is read.
//!
//! A ratio is the case's time over the baseline's, below 1 where the case is faster. All
//! margins are symmetrical in the logarithm, as a tie's is: "beyond 10%" is a ratio below
//! 1/1.10. A report's own margins are taken only where they are stricter than ours, so that
//! an altered report cannot loosen them.

use walprobe_probes::report::{Margins, Row, Verdict};

/// Rounds before which no interval is believed.
pub const LEAST_ROUNDS: u64 = 12;

/// The most that a 99th percentile may be worse where another setting is recommended.
pub const P99_NO_WORSE: f64 = 1.25;

/// An estimate and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Estimate.
    pub ratio: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// `None` unless all three are known and make sense.
    #[must_use]
    pub fn new(ratio: Option<f64>, low: Option<f64>, high: Option<f64>) -> Option<Self> {
        let (ratio, low, high) = (ratio?, low?, high?);
        let sound = [ratio, low, high].iter().all(|x| x.is_finite() && *x > 0.0);
        (sound && low <= high).then_some(Self { ratio, low, high })
    }

    /// The row's `ratio`.
    #[must_use]
    pub fn of(row: &Row) -> Option<Self> {
        Self::new(row.ratio, row.ratio_low, row.ratio_high)
    }
}

/// The margins in force.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    action: f64,
    tie: f64,
}

impl Limits {
    /// The report's margins, where they are stricter than the defaults.
    #[must_use]
    pub fn of(margins: &Margins) -> Self {
        let ours = Margins::default();
        // f64::max and f64::min pass over NaN; beyond 100% a margin is a mistake.
        Self {
            action: ours.action.max(margins.action).min(1.0),
            tie: ours.tie.min(margins.tie),
        }
    }

    /// Below this, a whole interval is a gain worth a setting.
    #[must_use]
    pub fn worth_it(self) -> f64 {
        1.0 / (1.0 + self.action)
    }

    /// The action margin in per cent, for people.
    #[must_use]
    pub fn action_pct(self) -> f64 {
        self.action * 100.0
    }

    /// The case costs no more: the interval's upper end is within the tie margin.
    #[must_use]
    pub fn no_more(self, interval: Interval) -> bool {
        interval.high < 1.0 + self.tie
    }

    /// The case costs more: it is shown to be slower, and not shown to be no more.
    #[must_use]
    pub fn more(self, interval: Interval) -> bool {
        interval.low > 1.0 && !self.no_more(interval)
    }

    /// How much faster than its baseline the row's case is.
    #[must_use]
    pub fn gain(self, row: &Row) -> Gain {
        let (Some(interval), Some(verdict)) = (Interval::of(row), row.verdict) else {
            return Gain::Open;
        };
        let within = interval.low >= self.worth_it();
        match verdict {
            Verdict::Faster if interval.high < self.worth_it() => Gain::Beyond,
            Verdict::Faster if within => Gain::Within,
            Verdict::Faster => Gain::Short,
            Verdict::Slower | Verdict::Tie if within => Gain::Within,
            Verdict::Inconclusive if within && row.rounds >= LEAST_ROUNDS => Gain::Within,
            _ => Gain::Open,
        }
    }
}

/// How much faster than its baseline a case is shown to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gain {
    /// Faster, the interval's near end beyond the action margin.
    Beyond,
    /// Shown to be faster, not shown to be so beyond the action margin.
    Short,
    /// A gain beyond the action margin is excluded.
    Within,
    /// It cannot be told.
    Open,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(low: f64, ratio: f64, high: f64, verdict: Verdict, rounds: u64) -> Row {
        Row {
            ratio: Some(ratio),
            ratio_low: Some(low),
            ratio_high: Some(high),
            verdict: Some(verdict),
            rounds,
            ..Row::default()
        }
    }

    #[test]
    fn the_near_end_decides() {
        let limits = Limits::of(&Margins::default());
        let gain = |low, high, verdict| limits.gain(&row(low, 0.9, high, verdict, 24));
        assert_eq!(gain(0.85, 0.90, Verdict::Faster), Gain::Beyond);
        assert_eq!(gain(0.85, 0.91, Verdict::Faster), Gain::Short);
        assert_eq!(gain(0.91, 0.95, Verdict::Faster), Gain::Within);
        assert_eq!(gain(0.85, 0.90, Verdict::Inconclusive), Gain::Open);
        assert_eq!(gain(0.85, 1.10, Verdict::Inconclusive), Gain::Open);
        assert_eq!(gain(0.92, 1.10, Verdict::Inconclusive), Gain::Within);
        assert_eq!(
            limits.gain(&row(0.92, 1.0, 1.1, Verdict::Inconclusive, 11)),
            Gain::Open
        );
        assert_eq!(limits.gain(&Row::default()), Gain::Open);
    }

    #[test]
    fn a_report_can_only_tighten() {
        let loose = Limits::of(&Margins {
            differ: 0.0,
            tie: 9.0,
            action: 0.0,
        });
        assert!((loose.worth_it() - 1.0 / 1.1).abs() < 1e-12);
        assert!(!loose.no_more(Interval {
            ratio: 1.0,
            low: 0.9,
            high: 1.06
        }));
        let odd = Limits::of(&Margins {
            differ: 0.0,
            tie: f64::NAN,
            action: f64::NAN,
        });
        assert!((odd.worth_it() - 1.0 / 1.1).abs() < 1e-12);
    }

    #[test]
    fn figures_that_make_no_sense_are_no_interval() {
        assert_eq!(Interval::new(Some(1.0), Some(1.1), Some(0.9)), None);
        assert_eq!(Interval::new(Some(1.0), Some(0.0), Some(1.1)), None);
        assert_eq!(Interval::new(Some(f64::NAN), Some(0.9), Some(1.1)), None);
        assert_eq!(Interval::new(Some(1.0), None, Some(1.1)), None);
    }
}
