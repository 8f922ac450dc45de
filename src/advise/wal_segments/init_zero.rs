//! `wal_init_zero`: must a new segment be filled with zeros?
//!
//! Off only where commits into a sparse segment cost no more, zeroing reserves nothing, and
//! making segments becomes cheaper by more than the action margin.

use walprobe_probes::report::Verdict;

use super::{
    INIT_ZERO, NewSegments, RECYCLED, Role, SPARSE, ZEROED,
    contest::Contest,
    init_zero_told::{change, keep},
    space,
};
use crate::advise::{
    Gap, Leg, Saying, View,
    draft::id,
    gain::{Gain, Interval},
    words,
};

/// Why `wal_init_zero` stays on.
pub(super) enum Reason<'a> {
    /// Commits into a sparse segment cost more.
    CommitsCostMore,
    /// They cost no more, but zeros reserve the space.
    Reserves(space::Answer),
    /// The whole life of a sparse segment costs more.
    LifeCostsMore(Vec<Leg<'a>>),
    /// There is nothing to gain.
    NoGain(Leg<'a>),
}

/// What is said, and what it means for `wal_recycle`.
pub(super) fn judge(view: &View<'_>, role: &Role) -> (Saying, NewSegments) {
    match decide(view, role) {
        Ok(decided) => decided,
        Err(gap) => {
            let saying = Gap::told(&id(INIT_ZERO, role.name), "", &[gap]);
            (saying, NewSegments::Unknown)
        }
    }
}

fn decide(view: &View<'_>, role: &Role) -> Result<(Saying, NewSegments), Gap> {
    let Own { legs: own, open } = own(view, role)?;
    let commits = against_zeros(view, "first-pass")?;
    let limits = view.limits();
    let settled = commits
        .row
        .verdict
        .is_some_and(|v| v != Verdict::Inconclusive);
    let seen = match commits.ratio() {
        Some(seen) if settled => seen,
        _ => return Err(inconclusive(view, commits, "zero-fill")),
    };
    let on = |reason| {
        Ok((
            keep(view, role, commits, seen, &own, &reason),
            NewSegments::Zeroed,
        ))
    };
    if limits.more(seen) {
        return on(Reason::CommitsCostMore);
    }
    if !limits.no_more(seen) {
        return Err(inconclusive(view, commits, "zero-fill"));
    }
    let reserves = match space::zeroing_reserves(view) {
        None => {
            let why = "whether zero-filling a segment reserves its space is neither measured nor known for this filesystem";
            return Err(Gap::new("not-planned", why, None));
        }
        Some(answer) if answer.yes => return on(Reason::Reserves(answer)),
        Some(answer) => answer,
    };
    if let Some(legs) = dearer_life(view, role) {
        return on(Reason::LifeCostsMore(legs));
    }
    if let Some(gap) = open {
        return Err(gap);
    }
    no_dearer(view, &own)?;
    let gains = gains(view)?;
    match gains {
        Ok(gain) => Ok((
            change(view, role, commits, seen, &own, gain, &reserves),
            NewSegments::Sparse,
        )),
        Err(none) => on(Reason::NoGain(none)),
    }
}

/// A sparse segment against a zero-filled one.
fn against_zeros<'a>(view: &View<'a>, comparison: &str) -> Result<Leg<'a>, Gap> {
    view.versus("prealloc", comparison, "sparse", "zero-fill")
}

/// What sparse segments gain: the row that is beyond the action margin, or one that shows
/// there is none.
fn gains<'a>(view: &View<'a>) -> Result<Result<Leg<'a>, Leg<'a>>, Gap> {
    let create = against_zeros(view, "create");
    let life = against_zeros(view, "life");
    let gain = |leg: &Result<Leg<'a>, Gap>| {
        let leg = leg.as_ref().ok()?;
        Some((*leg, view.limits().gain(leg.row)))
    };
    let known = [gain(&create), gain(&life)];
    if let Some((leg, _)) = known.iter().flatten().find(|(_, g)| *g == Gain::Beyond) {
        return Ok(Ok(*leg));
    }
    let leg = create?;
    match view.limits().gain(leg.row) {
        Gain::Open => Err(inconclusive(view, leg, "zero-fill")),
        _ => Ok(Err(leg)),
    }
}

/// Lives in which a sparse segment is shown to cost more than a zeroed one.
fn dearer_life<'a>(view: &View<'a>, role: &Role) -> Option<Vec<Leg<'a>>> {
    let direct = against_zeros(view, "life").ok().filter(|leg| {
        leg.row.verdict == Some(Verdict::Slower)
            && leg.ratio().is_some_and(|seen| view.limits().more(seen))
    });
    if let Some(leg) = direct {
        return Some(vec![leg]);
    }
    role.cold.iter().chain(role.warm).find_map(|spot| {
        let pair =
            [SPARSE, ZEROED].map(|case| view.versus("recycle", spot.comparison, case, RECYCLED));
        let [Ok(sparse), Ok(zeroed)] = pair else {
            return None;
        };
        let dearer = sparse.ratio()?.low > zeroed.ratio()?.high;
        let usable = |leg: Leg<'_>| {
            leg.row.verdict.is_some_and(|v| v != Verdict::Inconclusive)
                && leg.is_cold() != Some(false)
        };
        (dearer && usable(sparse) && usable(zeroed)).then(|| vec![sparse, zeroed])
    })
}

/// A standby's own comparison: legs that may carry a finding, sparse first.
struct Own<'a> {
    legs: Vec<Leg<'a>>,
    /// What is open of zeroed segments, where keeping does not need it.
    open: Option<Gap>,
}

/// What a standby's own comparison says of new segments; settled and proven cold, since nothing
/// is said of a standby from a primary's figures alone. Where a sparse segment is slower than a
/// recycled one, how a zeroed one compares decides nothing that is kept.
fn own<'a>(view: &View<'a>, role: &Role) -> Result<Own<'a>, Gap> {
    let mut own = Own {
        legs: Vec::new(),
        open: None,
    };
    if !role.is_standby() {
        return Ok(own);
    }
    for spot in role.cold {
        let settled = |case| {
            let contest = Contest::of(view, *spot, case)?;
            if contest.is_vague() || !contest.is_settled() {
                return Err(inconclusive(view, contest.leg, RECYCLED));
            }
            Ok(contest.leg)
        };
        let sparse = settled(SPARSE)?;
        own.legs.push(sparse);
        match settled(ZEROED) {
            Ok(zeroed) => own.legs.push(zeroed),
            Err(gap) if gap.code != "inconclusive" => return Err(gap),
            Err(gap) if sparse.row.verdict == Some(Verdict::Slower) => own.open = Some(gap),
            Err(gap) => return Err(gap),
        }
    }
    Ok(own)
}

/// A standby's pieces in a sparse segment cost no more than in a zeroed one, by the far ends
/// of both intervals.
fn no_dearer(view: &View<'_>, own: &[Leg<'_>]) -> Result<(), Gap> {
    let [sparse, zeroed] = own else {
        return Ok(());
    };
    let fits = sparse.ratio().zip(zeroed.ratio()).is_some_and(|(s, z)| {
        view.limits().no_more(Interval {
            ratio: s.ratio / z.ratio,
            low: s.low / z.high,
            high: s.high / z.low,
        })
    });
    if fits {
        return Ok(());
    }
    let told = |leg: &Leg<'_>| {
        leg.ratio()
            .map_or_else(|| "unknown".to_owned(), words::interval)
    };
    let mut gap = inconclusive(view, *sparse, RECYCLED);
    gap.reason = format!(
        "{} takes {} of the time of {RECYCLED} and {} {}: it is not shown that leaving out the zeros costs no more",
        sparse.id(),
        told(sparse),
        zeroed.id(),
        told(zeroed)
    );
    Err(gap)
}

fn inconclusive(view: &View<'_>, leg: Leg<'_>, over: &str) -> Gap {
    let seen = leg.ratio();
    let told = seen.map_or_else(
        || "has no interval".to_owned(),
        |seen| {
            format!(
                "takes {} of the time of {over}, which is not settled",
                words::interval(seen)
            )
        },
    );
    let row = leg.row;
    let more = view.more(row, seen, 1.05);
    let command = view.again(&row.probe, &row.comparison, &more);
    Gap::new(
        "inconclusive",
        format!("{} {told}", leg.id()),
        Some(command),
    )
}
