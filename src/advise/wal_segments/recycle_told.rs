//! What is said of `wal_recycle`: keep it on, or off.

use walprobe_probes::report::{Effect, Finding, Verdict};

use super::{DEFAULT, RATIO, RECYCLE, Role, SPARSE, WalSegments, contest::Contest, space};
use crate::advise::{
    Gap, Leg, Saying, View,
    confidence::Confidence,
    draft::{blank, id},
    gain::{Gain, Interval},
    words,
};

const OTHERS: &str = "another device, filesystem, kernel or mount option has to be measured";

/// New segments won everywhere.
pub(super) struct Won<'c, 'a> {
    /// They are made without zeros.
    pub(super) sparse: bool,
    pub(super) cold: &'c [Contest<'a>],
    pub(super) warm: &'c [Contest<'a>],
    pub(super) space: &'c space::Answer,
}

/// It stays on. `gaps` is what was not known out of cache.
pub(super) fn keep(
    view: &View<'_>,
    role: &Role,
    settled: &[Contest<'_>],
    gaps: &[Gap],
    space: Option<&space::Answer>,
) -> Saying {
    let limits = view.limits();
    let pct = limits.action_pct();
    let Some(nearest) = settled
        .iter()
        .min_by(|a, b| a.waited.ratio.total_cmp(&b.waited.ratio))
    else {
        return Gap::told(&id(RECYCLE, role.name), "", gaps);
    };
    let mut sure = Confidence::new(view);
    let faster = settled.iter().any(|contest| contest.gain == Gain::Beyond);
    let in_place = space.is_some_and(|answer| answer.yes);
    if faster && in_place {
        sure.lowest(
            "new segments measured faster in part, though old ones are overwritten in place",
        );
    }
    if settled.iter().any(|contest| contest.gain == Gain::Short) {
        sure.lower(format!(
            "new segments may yet be faster by more than {pct:.0}%"
        ));
    }
    if settled.iter().any(Contest::is_vague) {
        sure.lower(
            "not every comparison used is settled, though none hides a gain beyond the margin",
        );
    }
    let mut unknown = String::new();
    if !gaps.is_empty() {
        unknown = format!("; not known: {}", Gap::reasons(gaps));
        sure.lower("not all is known of old segments out of cache");
    }
    sure.doubts(settled.iter().map(|contest| contest.leg.row));
    let mut evidence: Vec<_> = settled.iter().flat_map(Contest::evidence).collect();
    let place = space.map_or("", |answer| {
        evidence.push(answer.evidence.clone());
        match (answer.yes, answer.measured) {
            (true, true) => "; an old segment can be written again on a full filesystem (measured)",
            (true, false) => "; an old segment can be written again without new space (known from the filesystem's type, not measured)",
            (false, _) => "",
        }
    });
    let means = match (faster, in_place) {
        (true, true) => "recycled segments are kept for the space they hold".to_owned(),
        (true, false) => format!(
            "making new segments saves more than {pct:.0}% in some of these, but not in each that wal_recycle = off would need"
        ),
        (false, _) => format!(
            "making new segments instead of recycling old ones is not shown to save more than {pct:.0}%"
        ),
    };
    Saying::Finding(Box::new(Finding {
        action: "keep".to_owned(),
        value: Some(DEFAULT.to_owned()),
        confidence: sure.level().to_owned(),
        seen: format!("{}{unknown}", told(settled)),
        means: sure.told(&format!("{means}{place}")),
        advice: "keep wal_recycle = on, the default".to_owned(),
        applies_when: role.writes.to_owned(),
        not_when: OTHERS.to_owned(),
        effect: Some(effect(nearest)),
        evidence,
        ..blank(&WalSegments, RECYCLE, role.name, DEFAULT)
    }))
}

/// It goes off.
pub(super) fn change(view: &View<'_>, role: &Role, won: &Won<'_, '_>) -> Saying {
    let Some(least) = won
        .cold
        .iter()
        .max_by(|a, b| a.waited.high.total_cmp(&b.waited.high))
    else {
        return Gap::told(&id(RECYCLE, role.name), "", &[]);
    };
    let mut sure = Confidence::new(view);
    if !won.space.measured {
        sure.lowest(
            "it is known from the filesystem's type, not measured, that overwriting needs new space",
        );
    }
    sure.limits(view);
    let price = won.warm.iter().map(|c| c.waited.ratio).fold(0.0, f64::max);
    if price * least.waited.ratio > 1.0 {
        sure.lower("new segments lose more in cache than they win out of it");
    }
    sure.doubts(won.cold.iter().chain(won.warm).map(|c| c.leg.row));
    let mut evidence: Vec<_> = won.cold.iter().flat_map(Contest::evidence).collect();
    // An inconclusive price is told as such and carries nothing.
    let plain = |contest: &&Contest<'_>| contest.is_settled() && !contest.is_vague();
    evidence.extend(won.warm.iter().filter(plain).flat_map(Contest::evidence));
    let commits = warm_commits(view, role);
    evidence.extend(commits.iter().flat_map(|(leg, _)| leg.cite_all(RATIO)));
    evidence.push(won.space.evidence.clone());
    let kind = if won.sparse {
        "new segments without zeros"
    } else {
        "new segments"
    };
    let with = if won.sparse {
        " together with wal_init_zero = off"
    } else {
        ""
    };
    Saying::Finding(Box::new(Finding {
        action: "change".to_owned(),
        value: Some("off".to_owned()),
        level: "advice".to_owned(),
        confidence: sure.level().to_owned(),
        seen: told(won.cold),
        means: sure.told(&format!(
            "{kind} cost less than old ones that have left the cache: overwriting those needs new space all the same ({})",
            won.space.source()
        )),
        advice: format!("set wal_recycle = off{with} and reload; compare commit times under your own load before and after"),
        cost: Some(price_told(won.warm, commits)),
        applies_when: format!(
            "{}, where old segments have left the cache before they are written again",
            role.writes
        ),
        not_when: format!(
            "little WAL, so that old segments are still cached; pg_wal on a filesystem that overwrites in place; {OTHERS} first"
        ),
        undo: Some("set wal_recycle = on, or remove the line, and reload".to_owned()),
        effect: Some(effect(least)),
        evidence,
        ..blank(&WalSegments, RECYCLE, role.name, DEFAULT)
    }))
}

/// A standby has no lives in cache; its commits into an old segment in cache against those into
/// a new one, where that is settled.
fn warm_commits<'a>(view: &View<'a>, role: &Role) -> Option<(Leg<'a>, Interval)> {
    if !role.is_standby() {
        return None;
    }
    let leg = view.versus("recycle", "standby", "warm", "new").ok()?;
    let settled = leg.row.verdict? != Verdict::Inconclusive;
    settled.then_some((leg, leg.ratio()?))
}

/// The price while old segments are still in the cache.
fn price_told(warm: &[Contest<'_>], commits: Option<(Leg<'_>, Interval)>) -> String {
    let each = "every segment is made and removed, which is more work for the filesystem";
    if let Some((_, ratio)) = commits {
        return format!(
            "{each}; while old segments are in cache, commits into them take {} of the time of commits into new ones",
            words::interval(ratio)
        );
    }
    if warm.is_empty() {
        return format!("{each}; the price while old segments are in cache was not measured");
    }
    let open = if warm.iter().any(Contest::is_vague) {
        " (not all of it settled)"
    } else {
        ""
    };
    let told: Vec<String> = warm.iter().map(Contest::told).collect();
    format!(
        "{each}; while old segments are in cache, the same figures are: {}{open}",
        told.join("; ")
    )
}

/// Each kind of new segment with its figures.
fn told(contests: &[Contest<'_>]) -> String {
    let mut told: Vec<String> = Vec::new();
    let mut last = "";
    for contest in contests {
        let case = contest.leg.row.case.as_str();
        let kind = if case == SPARSE {
            "a new segment without zeros"
        } else {
            "a new zero-filled segment"
        };
        let of = if case == last {
            String::new()
        } else {
            format!(
                "time of {kind} over a recycled one's, waited for by backends and in all (removal and deferred writes included): "
            )
        };
        last = case;
        told.push(format!("{of}{}", contest.told()));
    }
    told.extend(contests.first().and_then(Contest::segment));
    told.join("; ")
}

fn effect(contest: &Contest<'_>) -> Effect {
    let Interval { ratio, low, high } = contest.waited;
    Effect {
        of: contest.leg.row.comparison.clone(),
        ratio,
        low,
        high,
        p99_ratio: contest.leg.row.p99_ratio,
    }
}
