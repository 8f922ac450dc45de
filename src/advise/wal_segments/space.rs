//! Does this filesystem write in place? Measured by filling one, else known by its type.
//!
//! Two questions with one origin: whether zero-filling a segment reserves the space its
//! commits will need, and whether overwriting an old segment needs new space.

use walprobe_probes::report::{Evidence, Verdict};

use crate::advise::View;

/// An answer, and what it rests on.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) yes: bool,
    /// Seen on a full filesystem; else known from the filesystem's type.
    pub(super) measured: bool,
    /// The full filesystem was a small one of walprobe's own, of the same kind.
    pub(super) pocket: bool,
    pub(super) evidence: Evidence,
}

impl Answer {
    /// Where the answer comes from, for people.
    pub(super) const fn source(&self) -> &'static str {
        match (self.measured, self.pocket) {
            (true, true) => "measured on a small filesystem of the same kind, full",
            (true, false) => "measured on a full filesystem",
            (false, _) => "known from the filesystem's type, not measured",
        }
    }
}

/// Whether zero-filling reserves what commits into the segment need.
pub(super) fn zeroing_reserves(view: &View<'_>) -> Option<Answer> {
    reserved(view, "full", "zero-fill").or_else(|| in_place(view))
}

/// Whether overwriting an old segment does without new space.
pub(super) fn overwrites_in_place(view: &View<'_>) -> Option<Answer> {
    reserved(view, "rewrite-old", "old-segment").or_else(|| in_place(view))
}

fn reserved(view: &View<'_>, comparison: &str, case: &str) -> Option<Answer> {
    let leg = view.measured("enospc", comparison, case).ok()?;
    if leg.row.verdict == Some(Verdict::Inconclusive) {
        return None;
    }
    Some(Answer {
        yes: leg.flag("reserved")?,
        measured: true,
        pocket: leg.row.observations.get("place").and_then(|p| p.as_str()) == Some("pocket"),
        evidence: leg.cite("observations/reserved")?,
    })
}

fn in_place(view: &View<'_>) -> Option<Answer> {
    let (value, evidence) = view.fact("fs.in_place")?;
    let yes = match value.as_str() {
        Some("yes") => true,
        Some("no") => false,
        _ => value.as_bool()?,
    };
    Some(Answer {
        yes,
        measured: false,
        pocket: false,
        evidence,
    })
}
