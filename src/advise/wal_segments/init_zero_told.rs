//! What is said of `wal_init_zero`: keep it on, or off.

use walprobe_probes::report::{Effect, Finding};

use super::{DEFAULT, INIT_ZERO, RATIO, Role, WalSegments, init_zero::Reason, space};
use crate::advise::{
    Leg, Saying, View,
    confidence::Confidence,
    draft::blank,
    gain::{Gain, Interval},
    words,
};

const OTHERS: &str = "another device, filesystem, kernel or mount option has to be measured";

/// It stays on.
pub(super) fn keep(
    view: &View<'_>,
    role: &Role,
    commits: Leg<'_>,
    seen: Interval,
    own: &[Leg<'_>],
    reason: &Reason<'_>,
) -> Saying {
    let mut sure = Confidence::new(view);
    let mut evidence = commits.cite_all(RATIO);
    let mut told = commit_cost(commits, seen);
    let mut rows = vec![commits.row];
    let means = match reason {
        Reason::CommitsCostMore => {
            "without the zeros, commits into a new segment would cost more, until it is used again"
                .to_owned()
        }
        Reason::Reserves(answer) => {
            evidence.push(answer.evidence.clone());
            if !answer.measured {
                sure.lowest(
                    "it is known from the filesystem's type, not measured, that zeros reserve space",
                );
            }
            format!(
                "zeros reserve the segment's space ({}): a full disk is noticed when the segment is made, not by a commit",
                answer.source()
            )
        }
        Reason::LifeCostsMore(legs) => {
            // The standby's own are told below.
            let further: Vec<Leg<'_>> = legs
                .iter()
                .filter(|leg| own.iter().all(|own| own.id() != leg.id()))
                .copied()
                .collect();
            evidence.extend(further.iter().flat_map(|leg| leg.cite_all(RATIO)));
            rows.extend(further.iter().map(|leg| leg.row));
            told.push_str(&lives(&further));
            "over a whole segment's life, leaving out the zeros costs more than it saves".to_owned()
        }
        Reason::NoGain(leg) => {
            evidence.extend(leg.cite_all(RATIO));
            rows.push(leg.row);
            told.push_str(&creation(*leg));
            if view.limits().gain(leg.row) == Gain::Short {
                sure.lower("making a sparse segment may yet be faster by more than the margin");
            }
            format!(
                "leaving out the zeros is not shown to save more than {:.0}%",
                view.limits().action_pct()
            )
        }
    };
    told.push_str(&lives(own));
    evidence.extend(own.iter().flat_map(|leg| leg.cite_all(RATIO)));
    rows.extend(own.iter().map(|leg| leg.row));
    sure.doubts(rows);
    Saying::Finding(Box::new(Finding {
        action: "keep".to_owned(),
        value: Some(DEFAULT.to_owned()),
        confidence: sure.level().to_owned(),
        seen: told,
        means: sure.told(&means),
        advice: "keep wal_init_zero = on, the default".to_owned(),
        applies_when: format!(
            "{}, whenever a segment is made and not recycled",
            role.writes
        ),
        not_when: OTHERS.to_owned(),
        effect: Some(effect(commits, seen)),
        evidence,
        ..blank(&WalSegments, INIT_ZERO, role.name, DEFAULT)
    }))
}

/// It goes off: `gain` is the row that is beyond the action margin.
pub(super) fn change(
    view: &View<'_>,
    role: &Role,
    commits: Leg<'_>,
    seen: Interval,
    own: &[Leg<'_>],
    gain: Leg<'_>,
    reserves: &space::Answer,
) -> Saying {
    let mut sure = Confidence::new(view);
    if !reserves.measured {
        sure.lowest(
            "it is known from the filesystem's type, not measured, that zeros reserve nothing",
        );
    }
    sure.limits(view);
    let used = [commits, gain].into_iter().chain(own.iter().copied());
    sure.doubts(used.map(|leg| leg.row));
    let mut evidence = commits.cite_all(RATIO);
    evidence.extend(own.iter().flat_map(|leg| leg.cite_all(RATIO)));
    evidence.extend(gain.cite_all(RATIO));
    evidence.push(reserves.evidence.clone());
    let gained = gain.ratio().unwrap_or(seen);
    Saying::Finding(Box::new(Finding {
        action: "change".to_owned(),
        value: Some("off".to_owned()),
        level: "advice".to_owned(),
        confidence: sure.level().to_owned(),
        seen: format!("{}{}{}", commit_cost(commits, seen), creation(gain), lives(own)),
        means: sure.told(&format!(
            "the zeros cost time and writes and buy nothing here: they reserve no space ({}) and make no later commit cheaper",
            reserves.source()
        )),
        advice: "set wal_init_zero = off and reload".to_owned(),
        cost: Some(
            "a full disk is noticed by a commit, which stops the server (PANIC); where zeros reserve nothing they do not prevent that either"
                .to_owned(),
        ),
        applies_when: format!("{}, whenever a segment is made and not recycled", role.writes),
        not_when: format!("pg_wal on a filesystem that overwrites in place; {OTHERS} first"),
        undo: Some("set wal_init_zero = on, or remove the line, and reload".to_owned()),
        effect: Some(effect(gain, gained)),
        evidence,
        ..blank(&WalSegments, INIT_ZERO, role.name, DEFAULT)
    }))
}

fn commit_cost(commits: Leg<'_>, seen: Interval) -> String {
    let size = commits
        .row
        .params
        .get("commit_bytes")
        .and_then(serde_json::Value::as_u64)
        .map_or_else(String::new, |bytes| format!(" of {}", words::bytes(bytes)));
    format!(
        "a commit{size} into a new sparse segment takes {} of the time of one into a zero-filled segment",
        words::interval(seen)
    )
}

fn creation(leg: Leg<'_>) -> String {
    let what = if leg.row.comparison == "create" {
        "making the sparse segment"
    } else {
        "making and filling it"
    };
    leg.ratio().map_or_else(String::new, |seen| {
        format!(
            "; {what} takes {} of the zero-filled one's time",
            words::interval(seen)
        )
    })
}

fn lives(legs: &[Leg<'_>]) -> String {
    let Some(first) = legs.first() else {
        return String::new();
    };
    let told: Vec<String> = legs
        .iter()
        .filter_map(|leg| Some(format!("{} {}", leg.id(), words::interval(leg.ratio()?))))
        .collect();
    let over = first.row.baseline.as_deref().unwrap_or("the baseline");
    format!(
        "; a whole segment's time over {over}'s: {}",
        words::list(&told, "and")
    )
}

fn effect(leg: Leg<'_>, seen: Interval) -> Effect {
    Effect {
        of: leg.row.comparison.clone(),
        ratio: seen.ratio,
        low: seen.low,
        high: seen.high,
        p99_ratio: leg.row.p99_ratio,
    }
}
