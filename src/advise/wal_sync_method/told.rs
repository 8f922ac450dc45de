//! What is said of `wal_sync_method`: keep fdatasync, or set another method.

use walprobe_probes::report::{Effect, Finding};

use super::{DEFAULT, FURTHER, RATIO, SETTING, WalSyncMethod, standing::Unfit};
use crate::advise::{
    Gap, Leg, Saying, View,
    confidence::Confidence,
    draft::blank,
    gain::{Gain, Interval},
    words,
};

/// `one commit of 512 bytes of WAL`.
fn a_commit(leg: Leg<'_>) -> String {
    leg.row
        .params
        .get("commit_bytes")
        .and_then(serde_json::Value::as_u64)
        .map_or_else(
            || "one small commit".to_owned(),
            |bytes| format!("one commit of {} of WAL", words::bytes(bytes)),
        )
}

/// The default stays.
pub(super) fn keep(view: &View<'_>, base: Leg<'_>, unfit: Vec<(&str, Unfit)>) -> Saying {
    let mut sure = Confidence::new(view);
    let mut ratios = Vec::new();
    let mut told = Vec::new();
    let mut rows = vec![base.row];
    let mut evidence = base.cite_all(&["p50_us"]);
    let mut beaten = false;
    let mut nearest: Option<(Interval, Option<f64>)> = None;
    for (method, unfit) in unfit {
        if let Ok(leg) = view.measured("sync", "commit", method)
            && let Some(seen) = leg.ratio()
        {
            let gain = view.limits().gain(leg.row);
            beaten |= matches!(gain, Gain::Beyond | Gain::Open);
            if gain == Gain::Open {
                // Decided elsewhere: nothing rests on a figure that is not settled.
                evidence.extend(unfit.evidence);
                told.extend(unfit.told);
                continue;
            }
            ratios.push(format!("{method} {}", words::interval(seen)));
            evidence.extend(leg.cite_all(RATIO));
            rows.push(leg.row);
            if nearest.is_none_or(|(n, _)| seen.ratio < n.ratio) {
                nearest = Some((seen, leg.row.p99_ratio));
            }
        }
        evidence.extend(unfit.evidence);
        told.extend(unfit.told);
        if let Some(doubt) = unfit.doubt {
            sure.lower(doubt);
        }
    }
    sure.doubts(rows);
    let pct = view.limits().action_pct();
    let took = base.row.p50_us.map_or_else(String::new, |p50| {
        format!(
            "{} takes {} with fdatasync (median); ",
            a_commit(base),
            words::time(p50)
        )
    });
    let compared = if ratios.is_empty() && !told.is_empty() {
        "no other method's time is settled".to_owned()
    } else if ratios.is_empty() {
        "no other method could be measured".to_owned()
    } else {
        format!("time over fdatasync's: {}", ratios.join(", "))
    };
    let elsewhere = if beaten {
        " without a cost elsewhere"
    } else {
        ""
    };
    let told = if told.is_empty() {
        String::new()
    } else {
        format!("; {}", told.join("; "))
    };
    let (effect, p99_ratio) = nearest.map_or_else(
        || {
            (
                Interval {
                    ratio: 1.0,
                    low: 1.0,
                    high: 1.0,
                },
                None,
            )
        },
        |(effect, p99)| (effect, p99),
    );
    if evidence.is_empty() {
        evidence = base.cite_all(&["status"]);
    }
    Saying::Finding(Box::new(Finding {
        action: "keep".to_owned(),
        value: Some(DEFAULT.to_owned()),
        level: "info".to_owned(),
        confidence: sure.level().to_owned(),
        seen: format!("{took}{compared}{told}"),
        means: sure.told(&format!(
            "no other method is shown to make small commits durable more than {pct:.0}% sooner{elsewhere}"
        )),
        advice: "keep wal_sync_method = fdatasync, the default on Linux".to_owned(),
        cost: None,
        applies_when: format!("commits one after another on this directory, {} at a time", size(base)),
        not_when: "nothing is said of larger commits; another device, filesystem, kernel or mount option has to be measured"
            .to_owned(),
        undo: None,
        effect: Some(effect_of(effect, p99_ratio)),
        evidence,
        ..blank(&WalSyncMethod, SETTING, "any", DEFAULT)
    }))
}

fn size(base: Leg<'_>) -> String {
    base.row
        .params
        .get("commit_bytes")
        .and_then(serde_json::Value::as_u64)
        .map_or_else(
            || "little WAL".to_owned(),
            |bytes| format!("{} of WAL", words::bytes(bytes)),
        )
}

/// Another method is better in every leg.
pub(super) fn change(view: &View<'_>, base: Leg<'_>, method: &str, legs: &[Leg<'_>]) -> Saying {
    let mut sure = Confidence::new(view);
    sure.limits(view);
    sure.doubts(legs.iter().map(|leg| leg.row).chain([base.row]));
    let mut evidence = base.cite_all(&["p50_us"]);
    let mut further = Vec::new();
    for leg in legs {
        evidence.extend(leg.cite_all(RATIO));
        evidence.extend(leg.cite_all(&["flushes_per_op"]));
        let of = FURTHER
            .iter()
            .find(|(comparison, _)| *comparison == leg.row.comparison);
        if let (Some((_, of)), Some(ratio)) = (of, leg.ratio()) {
            further.push(format!("{} {of}", words::interval(ratio)));
        }
    }
    let Some((commit, effect)) = legs.first().and_then(|leg| Some((leg, leg.ratio()?))) else {
        let gap = Gap::new("internal", "sync/commit has no figures", None);
        return Gap::told(SETTING, "", &[gap]);
    };
    evidence.extend(commit.cite_all(&["p50_us", "p99_ratio", "p99_ratio_low", "p99_ratio_high"]));
    let row = commit.row;
    let medians = match (row.p50_us, base.row.p50_us) {
        (Some(new), Some(old)) => format!(
            " ({} against {}, medians)",
            words::time(new),
            words::time(old)
        ),
        _ => String::new(),
    };
    let p99 = Interval::new(row.p99_ratio, row.p99_ratio_low, row.p99_ratio_high)
        .map_or_else(String::new, |p99| {
            format!(", its 99th percentile {}", words::interval(p99))
        });
    let flushes = row.flushes_per_op.map_or_else(String::new, |flushes| {
        format!("; {flushes:.2} flushes a commit")
    });
    Saying::Finding(Box::new(Finding {
        action: "change".to_owned(),
        value: Some(method.to_owned()),
        level: "advice".to_owned(),
        confidence: sure.level().to_owned(),
        seen: format!(
            "with {method}, {} takes {} of fdatasync's time{medians}{p99}; {}{flushes}",
            a_commit(*commit),
            words::interval(effect),
            words::list(&further, "and")
        ),
        means: sure.told(
            "a commit waits less for its WAL to be durable; how much of that a client sees depends on how much of its time is this wait",
        ),
        advice: format!(
            "set wal_sync_method = {method} and reload; compare your own load's commits per second before and after"
        ),
        cost: Some(cost(method).to_owned()),
        applies_when: format!("commits one after another on this directory, {} at a time", size(base)),
        not_when: "another device, filesystem, kernel or mount option has to be measured first"
            .to_owned(),
        undo: Some("set wal_sync_method = fdatasync, or remove the line, and reload".to_owned()),
        effect: Some(effect_of(effect, row.p99_ratio)),
        evidence,
        ..blank(&WalSyncMethod, SETTING, "any", DEFAULT)
    }))
}

fn cost(method: &str) -> &'static str {
    if method.starts_with("open_") {
        "every write of WAL is synced, also those that no commit waits for (full WAL buffers, the WAL writer)"
    } else {
        "each flush may also write file metadata that fdatasync leaves out"
    }
}

fn effect_of(effect: Interval, p99_ratio: Option<f64>) -> Effect {
    Effect {
        of: "commit".to_owned(),
        ratio: effect.ratio,
        low: effect.low,
        high: effect.high,
        p99_ratio,
    }
}
