//! Where one method stands against fdatasync: leg by leg, the first that it fails decides.

use walprobe_probes::report::{DurabilityVerdict, Evidence, RowStatus, Verdict};

use super::{DEFAULT, FURTHER, LEAST_FLUSHES, RATIO};
use crate::advise::{
    Gap, Leg, View,
    gain::{Gain, Interval, P99_NO_WORSE},
    words,
};

/// Where one method stands.
pub(super) enum Standing<'a> {
    /// May be recommended on these legs, `commit` first.
    Fit(Vec<Leg<'a>>),
    /// Measured, and not worth setting.
    Unfit(Unfit),
    /// It cannot be told.
    Open(Vec<Gap>),
}

/// Why a method is not worth setting.
#[derive(Default)]
pub(super) struct Unfit {
    /// What to add to the figures, if the ratio does not say it all.
    pub(super) told: Option<String>,
    /// Why the finding is less sure.
    pub(super) doubt: Option<String>,
    /// Figures beside the ratio in `commit`.
    pub(super) evidence: Vec<Evidence>,
}

impl Unfit {
    fn because(told: String, doubt: Option<String>, evidence: Vec<Evidence>) -> Self {
        Self {
            told: Some(told),
            doubt,
            evidence,
        }
    }
}

/// Holds one method against the default in every leg.
pub(super) fn standing<'a>(view: &View<'a>, method: &str) -> Standing<'a> {
    let commit = match usable(view, "commit", method) {
        Ok(leg) => leg,
        Err(standing) => return standing,
    };
    match view.limits().gain(commit.row) {
        Gain::Beyond => {}
        Gain::Within => {
            return Standing::Unfit(Unfit {
                doubt: (commit.row.verdict == Some(Verdict::Inconclusive))
                    .then(|| format!("{method} is neither shown to be the same nor to differ")),
                ..Unfit::default()
            });
        }
        Gain::Short => {
            let pct = view.limits().action_pct();
            return Standing::Unfit(Unfit::because(
                format!("{method} is faster, though not surely by more than {pct:.0}%"),
                Some(format!("{method} may yet be faster by more than {pct:.0}%")),
                vec![],
            ));
        }
        Gain::Open => {
            // Where it is worse elsewhere, this comparison cannot make it worth setting.
            for (further, _) in FURTHER {
                if let worse @ Standing::Unfit(_) = no_worse(view, further, method, false) {
                    return worse;
                }
            }
            return Standing::Open(vec![inconclusive(view, commit, view.limits().worth_it())]);
        }
    }
    let checks = [flushes(view, commit), p99(view, commit)]
        .into_iter()
        .chain(
            FURTHER
                .iter()
                .map(|(further, _)| no_worse(view, further, method, true)),
        );
    let mut legs = vec![commit];
    let mut gaps = Vec::new();
    for check in checks {
        match check {
            Standing::Fit(more) => legs.extend(more),
            Standing::Unfit(unfit) => return Standing::Unfit(unfit),
            Standing::Open(more) => gaps.extend(more),
        }
    }
    if gaps.is_empty() {
        return Standing::Fit(legs);
    }
    if let (Some(seen), Some(first)) = (commit.ratio(), gaps.first_mut()) {
        first.reason = format!(
            "{method} takes {} of fdatasync's time for a small commit, but {}",
            words::interval(seen),
            first.reason
        );
    }
    Standing::Open(gaps)
}

/// The method's row in one comparison, if it has figures.
fn usable<'a>(view: &View<'a>, comparison: &str, method: &str) -> Result<Leg<'a>, Standing<'a>> {
    view.versus("sync", comparison, method, DEFAULT)
        .map_err(|gap| match view.leg("sync", comparison, method) {
            Some(leg) if matches!(leg.row.status, RowStatus::Unsupported | RowStatus::Fault) => {
                let keys = ["status", "reason_code", "fault/call", "fault/errno_name"];
                let doubt = (leg.row.status == RowStatus::Fault)
                    .then(|| format!("{method} failed and was not compared"));
                Standing::Unfit(Unfit::because(leg.gap().reason, doubt, leg.cite_all(&keys)))
            }
            _ => Standing::Open(vec![gap]),
        })
}

/// Its flushes are counted, or no device needs one.
fn flushes<'a>(view: &View<'a>, leg: Leg<'a>) -> Standing<'a> {
    if view.verdict() == DurabilityVerdict::NoFlushNeeded {
        return Standing::Fit(vec![]);
    }
    let method = &leg.row.case;
    match leg.row.flushes_per_op {
        Some(counted) if counted >= LEAST_FLUSHES => Standing::Fit(vec![]),
        Some(counted) => Standing::Unfit(Unfit::because(
            format!("{method} is faster, but only {counted:.2} flushes a commit were counted"),
            Some(format!(
                "fewer flushes than commits were counted with {method}"
            )),
            leg.cite_all(&["flushes_per_op"]),
        )),
        None => Standing::Open(vec![Gap::new(
            "inconclusive",
            format!("its flushes in {} could not be counted", leg.id()),
            None,
        )]),
    }
}

/// Its slowest commits are no worse.
fn p99<'a>(view: &View<'a>, leg: Leg<'a>) -> Standing<'a> {
    let row = leg.row;
    match Interval::new(row.p99_ratio, row.p99_ratio_low, row.p99_ratio_high) {
        Some(p99) if p99.high < P99_NO_WORSE => Standing::Fit(vec![]),
        Some(p99) if p99.low > 1.0 => Standing::Unfit(Unfit::because(
            format!(
                "{} is faster, but its 99th percentile is {} of fdatasync's",
                row.case,
                words::interval(p99)
            ),
            None,
            leg.cite_all(&["p99_ratio", "p99_ratio_low", "p99_ratio_high"]),
        )),
        known => Standing::Open(vec![Gap::new(
            "inconclusive",
            format!(
                "whether its 99th percentile is no worse in {} is not known",
                leg.id()
            ),
            Some(view.again(
                "sync",
                &row.comparison,
                &view.more(row, known, P99_NO_WORSE),
            )),
        )]),
    }
}

/// It costs no more in a further comparison; `faster` where it is for a small commit.
fn no_worse<'a>(view: &View<'a>, comparison: &str, method: &str, faster: bool) -> Standing<'a> {
    if let Err(gap) = view.measured("sync", comparison, DEFAULT) {
        return Standing::Open(vec![gap]);
    }
    let leg = match usable(view, comparison, method) {
        Ok(leg) => leg,
        Err(standing) => return standing,
    };
    let limits = view.limits();
    match leg.ratio() {
        Some(seen) if limits.more(seen) && leg.row.verdict != Some(Verdict::Inconclusive) => {
            let small = if faster {
                "is faster for a small commit"
            } else {
                "is not settled for a small commit"
            };
            Standing::Unfit(Unfit::because(
                format!(
                    "{method} {small}, but takes {} of fdatasync's time in {comparison}",
                    words::interval(seen)
                ),
                None,
                leg.cite_all(RATIO),
            ))
        }
        Some(seen)
            if limits.no_more(seen)
                && leg.row.verdict.is_some_and(|v| v != Verdict::Inconclusive) =>
        {
            match flushes(view, leg) {
                Standing::Fit(_) => Standing::Fit(vec![leg]),
                other => other,
            }
        }
        _ => Standing::Open(vec![inconclusive(view, leg, 1.05)]),
    }
}

fn inconclusive(view: &View<'_>, leg: Leg<'_>, bound: f64) -> Gap {
    let seen = leg.ratio().map_or_else(
        || "has no interval".to_owned(),
        |i| {
            format!(
                "takes {} of fdatasync's time, which is not settled",
                words::interval(i)
            )
        },
    );
    Gap::new(
        "inconclusive",
        format!("{} {seen}", leg.id()),
        Some(view.again(
            "sync",
            &leg.row.comparison,
            &view.more(leg.row, leg.ratio(), bound),
        )),
    )
}
