//! One way of making a new segment against recycling, in one comparison.

use walprobe_probes::report::{Evidence, Verdict};

use super::{RATIO, RECYCLED, Spot, TOTAL};
use crate::advise::{
    Gap, Leg, View,
    gain::{Gain, Interval},
    words,
};

/// What one comparison says of new segments against recycled ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contest<'a> {
    pub(super) spot: Spot,
    pub(super) leg: Leg<'a>,
    /// What committing backends wait for.
    pub(super) waited: Interval,
    /// With removal and deferred writes in.
    pub(super) total: Option<Interval>,
    pub(super) gain: Gain,
}

/// Whether new segments won beyond the action margin.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// Waited for and in all.
    Won,
    /// Not in what is waited for, or not in all.
    Lost,
    /// It cannot be told.
    Open(Gap),
}

impl<'a> Contest<'a> {
    /// The figures, if both sides were measured and, where cold, shown to be.
    pub(super) fn of(view: &View<'a>, spot: Spot, case: &str) -> Result<Self, Gap> {
        let leg = view.versus("recycle", spot.comparison, case, RECYCLED)?;
        let waited = leg
            .ratio()
            .ok_or_else(|| open(view, leg, "has no interval"))?;
        Ok(Self {
            spot,
            leg,
            waited,
            total: leg.total(),
            gain: view.limits().gain(leg.row),
        })
    }

    pub(super) fn outcome(&self, view: &View<'_>) -> Outcome {
        let worth_it = view.limits().worth_it();
        match (self.gain, self.total) {
            (Gain::Within | Gain::Short, _) => Outcome::Lost,
            (Gain::Beyond, Some(total)) if total.high < worth_it => Outcome::Won,
            (Gain::Beyond, Some(total)) if total.low >= worth_it => Outcome::Lost,
            (Gain::Beyond, Some(total)) => {
                let seen = format!(
                    "takes {} of recycling's time in all, which is not settled",
                    words::interval(total)
                );
                Outcome::Open(open(view, self.leg, &seen))
            }
            (Gain::Beyond, None) => {
                Outcome::Open(open(view, self.leg, "has no figure for its cost in all"))
            }
            (Gain::Open, _) => {
                let seen = format!(
                    "takes {} of recycling's time, which is not settled",
                    words::interval(self.waited)
                );
                Outcome::Open(open(view, self.leg, &seen))
            }
        }
    }

    /// Its figures may carry a finding.
    pub(super) fn is_settled(&self) -> bool {
        self.gain != Gain::Open
    }

    /// It is settled by its interval alone.
    pub(super) fn is_vague(&self) -> bool {
        self.leg.row.verdict == Some(Verdict::Inconclusive)
    }

    pub(super) fn evidence(&self) -> Vec<Evidence> {
        let mut evidence = self.leg.cite_all(RATIO);
        if self.total.is_some() {
            evidence.extend(self.leg.cite_all(TOTAL));
        }
        evidence
    }

    /// `out of cache, 64 KiB of WAL a commit: 1.35 (1.22 to 1.49) and 1.80 (1.60 to 2.00)`.
    pub(super) fn told(&self) -> String {
        let total = self
            .total
            .map_or_else(|| "unknown".to_owned(), words::interval);
        let (waited, spot) = (words::interval(self.waited), self.spot.told);
        format!("{spot}: {waited} and {total}")
    }

    /// The segment's size, and how much of it was walked.
    pub(super) fn segment(&self) -> Option<String> {
        let size = |name| self.leg.row.params.get(name)?.as_u64();
        let whole = size("segment_bytes")?;
        let walked = size("walked_bytes").filter(|walked| *walked < whole);
        let reckoned = walked.map_or_else(String::new, |walked| {
            format!(", reckoned from {} of each", words::bytes(walked))
        });
        Some(format!("segments of {}{reckoned}", words::bytes(whole)))
    }
}

fn open(view: &View<'_>, leg: Leg<'_>, seen: &str) -> Gap {
    let worth_it = view.limits().worth_it();
    let more = view.more(leg.row, leg.ratio(), worth_it);
    let command = view.again("recycle", &leg.row.comparison, &more);
    Gap::new(
        "inconclusive",
        format!("{} {seen}", leg.id()),
        Some(command),
    )
}
