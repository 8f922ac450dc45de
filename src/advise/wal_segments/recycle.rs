//! `wal_recycle`: should old segments be used again?
//!
//! Off only where overwriting needs new space, and making new segments beats overwriting
//! old ones that are proven out of cache, waited for and in all, at each commit size.

use super::{
    NewSegments, RECYCLE, Role, SPARSE, ZEROED,
    contest::{Contest, Outcome},
    recycle_told::{Won, change, keep},
    space,
};
use crate::advise::{Gap, Saying, View, draft::id};

/// All contests of one way to make new segments.
struct Bout<'a> {
    case: &'static str,
    cold: Vec<(Contest<'a>, Outcome)>,
    warm: Vec<Contest<'a>>,
    cold_gaps: Vec<Gap>,
    warm_gaps: Vec<Gap>,
}

/// How a bout ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// New segments won everywhere.
    Won,
    /// They lost somewhere, so that off is out of the question.
    Lost,
    /// It cannot be told.
    Open,
}

impl<'a> Bout<'a> {
    fn of(view: &View<'a>, role: &Role, case: &'static str) -> Self {
        let mut bout = Self {
            case,
            cold: Vec::new(),
            warm: Vec::new(),
            cold_gaps: Vec::new(),
            warm_gaps: Vec::new(),
        };
        for spot in role.cold {
            match Contest::of(view, *spot, case) {
                Ok(contest) => {
                    let outcome = contest.outcome(view);
                    if let Outcome::Open(gap) = &outcome {
                        bout.cold_gaps.push(gap.clone());
                    }
                    bout.cold.push((contest, outcome));
                }
                Err(gap) => bout.cold_gaps.push(gap),
            }
        }
        for spot in role.warm {
            match Contest::of(view, *spot, case) {
                Ok(contest) => bout.warm.push(contest),
                Err(gap) => bout.warm_gaps.push(gap),
            }
        }
        bout
    }

    fn end(&self) -> End {
        if self.cold.iter().any(|(_, o)| matches!(o, Outcome::Lost)) {
            End::Lost
        } else if self.cold_gaps.is_empty() && !self.cold.is_empty() {
            End::Won
        } else {
            End::Open
        }
    }

    /// Contests whose figures may carry a finding, out of cache first.
    fn settled(&self) -> Vec<Contest<'a>> {
        let cold = self.cold.iter().map(|(contest, _)| *contest);
        cold.chain(self.warm.iter().copied())
            .filter(Contest::is_settled)
            .collect()
    }
}

/// What is said of recycling, given how new segments are made.
pub(super) fn judge(view: &View<'_>, role: &Role, new: NewSegments) -> Saying {
    let cases: &[&'static str] = match new {
        NewSegments::Zeroed => &[ZEROED],
        NewSegments::Sparse => &[SPARSE],
        NewSegments::Unknown => &[ZEROED, SPARSE],
    };
    let bouts: Vec<Bout<'_>> = cases
        .iter()
        .map(|case| Bout::of(view, role, case))
        .collect();
    let in_place = space::overwrites_in_place(view);
    if let Some(answer) = in_place.as_ref().filter(|answer| answer.yes) {
        return overwriting(view, role, &bouts, answer);
    }
    if bouts.iter().all(|bout| bout.end() == End::Lost) {
        return kept(view, role, &bouts, in_place.as_ref());
    }
    // Where zeroing is undecided it stays on, and zeroed segments are what off would mean.
    let Some(bout) = bouts.first() else {
        return Gap::told(&id(RECYCLE, role.name), "", &[]);
    };
    let mut gaps = bout.cold_gaps.clone();
    match bout.end() {
        End::Won => gaps.extend(bout.warm_gaps.iter().cloned()),
        // Zeroed lost, sparse did not, and whether segments may be sparse is open.
        End::Lost => {
            gaps = bouts.iter().flat_map(|b| b.cold_gaps.clone()).collect();
            let why = "whether wal_init_zero = off is right here is not known, and new segments without zeros may be the cheaper ones";
            gaps.push(Gap::new("inconclusive", why, None));
        }
        End::Open => {}
    }
    let Some(space) = in_place else {
        let why = "whether overwriting an old segment needs new space is neither measured nor known for this filesystem";
        gaps.push(Gap::new("not-planned", why, None));
        return Gap::told(&id(RECYCLE, role.name), "", &gaps);
    };
    if !gaps.is_empty() {
        return Gap::told(&id(RECYCLE, role.name), "", &gaps);
    }
    let cold: Vec<Contest<'_>> = bout.cold.iter().map(|(contest, _)| *contest).collect();
    change(
        view,
        role,
        &Won {
            sparse: bout.case == SPARSE,
            cold: &cold,
            warm: &bout.warm,
            space: &space,
        },
    )
}

/// A filesystem that overwrites in place: recycling stays, on whatever was measured.
fn overwriting(view: &View<'_>, role: &Role, bouts: &[Bout<'_>], answer: &space::Answer) -> Saying {
    if bouts.iter().all(|bout| bout.settled().is_empty()) {
        let gaps: Vec<Gap> = bouts
            .iter()
            .flat_map(|b| b.cold_gaps.iter().chain(&b.warm_gaps).cloned())
            .chain(
                bouts
                    .iter()
                    .flat_map(|b| &b.warm)
                    .filter_map(|c| match c.outcome(view) {
                        Outcome::Open(gap) => Some(gap),
                        _ => None,
                    }),
            )
            .collect();
        return Gap::told(&id(RECYCLE, role.name), "", &gaps);
    }
    kept(view, role, bouts, Some(answer))
}

fn kept(view: &View<'_>, role: &Role, bouts: &[Bout<'_>], space: Option<&space::Answer>) -> Saying {
    let settled: Vec<Contest<'_>> = bouts.iter().flat_map(Bout::settled).collect();
    let gaps: Vec<Gap> = bouts
        .iter()
        .flat_map(|bout| bout.cold_gaps.clone())
        .collect();
    keep(view, role, &settled, &gaps, space)
}
