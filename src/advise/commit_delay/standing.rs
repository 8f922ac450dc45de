//! What one number of clients says of a delay.

use walprobe_probes::report::Evidence;

use super::{MISTAKEN, cases};
use crate::advise::{
    Gap, Leg, View,
    gain::{Gain, Interval, P99_NO_WORSE},
    words,
};

/// What one number of clients says of a delay.
pub(super) enum Standing<'a> {
    /// More commits a second beyond the action margin, the slowest no worse.
    Gains(Leg<'a>),
    /// Measured, and not worth it: the row, what the ratio alone does not say, its evidence.
    No(Leg<'a>, Option<String>, Vec<Evidence>),
    /// It cannot be told.
    Open(Gap),
}

pub(super) fn standing<'a>(view: &View<'a>, clients: u64) -> Standing<'a> {
    let (delayed, base) = cases(clients);
    let comparison = format!("delay-{clients}");
    let leg = match view.versus("commit", &comparison, &delayed, &base) {
        Ok(leg) => leg,
        Err(gap) => return Standing::Open(gap),
    };
    let limits = view.limits();
    let gain = limits.gain(leg.row);
    if matches!(gain, Gain::Within | Gain::Short)
        && let Some(gap) = mistaken(view, leg)
    {
        return Standing::Open(gap);
    }
    match gain {
        Gain::Beyond => p99(view, leg),
        Gain::Within => Standing::No(leg, None, vec![]),
        Gain::Short => {
            let pct = limits.action_pct();
            let told = format!("{clients} clients gain, though not surely more than {pct:.0}%");
            Standing::No(leg, Some(told), vec![])
        }
        Gain::Open => Standing::Open(unsettled(view, leg, leg.ratio(), limits.worth_it())),
    }
}

/// A delay that was no half of a flush as these clients met it says nothing of one that is.
fn mistaken(view: &View<'_>, leg: Leg<'_>) -> Option<Gap> {
    let tried_us = leg.number("delay_us")?;
    let flush_us = leg.baseline()?.row.phases.get("sync")?.mean_us.as_us();
    let half_us = flush_us / 2.0;
    let fits = tried_us <= half_us * MISTAKEN && half_us <= tried_us * MISTAKEN;
    (!fits).then(|| {
        Gap::new(
            "inconclusive",
            format!(
                "in {} the leader slept {tried_us:.0} us, and half a flush took {half_us:.0} us there",
                leg.row.comparison
            ),
            Some(view.again("commit", &leg.row.comparison, "")),
        )
    })
}

/// Its slowest commits are no worse.
fn p99<'a>(view: &View<'a>, leg: Leg<'a>) -> Standing<'a> {
    let row = leg.row;
    match Interval::new(row.p99_ratio, row.p99_ratio_low, row.p99_ratio_high) {
        Some(p99) if p99.high < P99_NO_WORSE => Standing::Gains(leg),
        Some(p99) if p99.low > 1.0 => Standing::No(
            leg,
            Some(format!(
                "in {} the 99th percentile becomes {} of what it was",
                row.comparison,
                words::interval(p99)
            )),
            leg.cite_all(&["p99_ratio", "p99_ratio_low", "p99_ratio_high"]),
        ),
        known => Standing::Open(Gap::new(
            "inconclusive",
            format!(
                "whether its 99th percentile is no worse in {} is not known",
                leg.id()
            ),
            Some(view.again(
                "commit",
                &row.comparison,
                &view.more(row, known, P99_NO_WORSE),
            )),
        )),
    }
}

fn unsettled(view: &View<'_>, leg: Leg<'_>, seen: Option<Interval>, bound: f64) -> Gap {
    let seen_text = seen.map_or_else(
        || "has no interval".to_owned(),
        |i| {
            format!(
                "takes {} of the time without a delay, which is not settled",
                words::interval(i)
            )
        },
    );
    Gap::new(
        "inconclusive",
        format!("{} {seen_text}", leg.id()),
        Some(view.again(
            "commit",
            &leg.row.comparison,
            &view.more(leg.row, seen, bound),
        )),
    )
}
