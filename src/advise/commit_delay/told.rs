//! What is said of `commit_delay` and `commit_siblings`: leave them, or a delay to test.

use walprobe_probes::report::{Effect, Finding, Verdict};

use super::{
    COARSE, CommitDelay, DEFAULT_SIBLINGS, DELAY, Gap, NO_DELAY, RATIO, SIBLINGS, cases, open,
    standing::Standing,
};
use crate::advise::{
    Leg, Saying, View,
    confidence::Confidence,
    draft::blank,
    gain::{Gain, Interval},
    words,
};

const LOAD: &str = "it was measured with clients that do nothing but commit";

/// Two neighbouring numbers of clients gain.
pub(super) fn change(view: &View<'_>, legs: [Leg<'_>; 2]) -> Vec<Saying> {
    let broken = |why: String| open(&[Gap::new("inconclusive", why, None)]);
    let mut sure = Confidence::new(view);
    sure.limits(view);
    sure.lower(LOAD);
    let mut seen = Vec::new();
    let mut evidence = Vec::new();
    let mut rows = Vec::new();
    let mut spoilt = None;
    for leg in legs {
        let (Some(ratio), Some(clients)) = (leg.ratio(), clients(leg)) else {
            return broken(format!("{} has no figures", leg.id()));
        };
        let p99 = Interval::new(
            leg.row.p99_ratio,
            leg.row.p99_ratio_low,
            leg.row.p99_ratio_high,
        );
        let p99 = p99.map_or_else(String::new, |p99| {
            format!(", the 99th percentile {}", words::interval(p99))
        });
        let grouped = |leg: Leg<'_>| leg.number("group_size_mean");
        let groups = leg
            .baseline()
            .and_then(|base| Some((grouped(base)?, grouped(leg)?)))
            .map_or_else(String::new, |(old, new)| {
                format!(", {new:.1} commits a flush instead of {old:.1}")
            });
        seen.push(format!(
            "a commit of {clients} clients takes {} of the time{p99}{groups}",
            words::interval(ratio)
        ));
        evidence.extend(leg.cite_all(RATIO));
        evidence.extend(leg.cite_all(&[
            "p99_ratio",
            "p99_ratio_low",
            "p99_ratio_high",
            "observations/group_size_mean",
            "observations/delay_us",
            "observations/delay_really_us",
        ]));
        rows.push(leg.row);
        rows.extend(leg.baseline().map(|base| base.row));
        match thinking(view, clients) {
            Thinking::Fine => {}
            Thinking::Worse(worse) => {
                evidence.extend(worse.cite_all(RATIO));
                spoilt = worse.ratio().map(|ratio| {
                    format!(
                        "with think time between commits {clients} clients take {} of the time",
                        words::interval(ratio)
                    )
                });
            }
            Thinking::Unknown => sure.lower("clients that think between commits were not settled"),
        }
    }
    sure.doubts(rows);
    let [few, many] = legs;
    let (Some(delay_us), Some(really_us)) = (
        few.number("delay_us").filter(|us| *us >= 1.0),
        few.number("delay_really_us"),
    ) else {
        return broken(format!("{} does not say how long it slept", few.id()));
    };
    if many.number("delay_us") != Some(delay_us) {
        return broken("the leaders did not sleep equally long".to_owned());
    }
    if really_us >= COARSE * delay_us {
        spoilt = Some(format!(
            "a sleep of {delay_us:.0} us takes {really_us:.0} us here, so that so short a delay cannot be set"
        ));
    }
    let seen = words::list(&seen, "and");
    let effect = effect_of(few);
    if let Some(spoilt) = spoilt {
        let finding = kept(DELAY, NO_DELAY, &sure, format!("{seen}; but {spoilt}"));
        let finding = Finding {
            means: sure.told("a delay is not shown to be worth setting"),
            effect,
            evidence: evidence.clone(),
            ..finding
        };
        return vec![one(finding), siblings(&sure, evidence, effect_of(few))];
    }
    let (low, high) = (clients(few).unwrap_or(0), clients(many).unwrap_or(0));
    let change = Finding {
        action: "change".to_owned(),
        value: Some(format!("{delay_us:.0}")),
        level: "advice".to_owned(),
        confidence: sure.level().to_owned(),
        seen: format!("with a delay of {delay_us:.0} us, half a flush, {seen}"),
        means: sure.told("where many sessions commit at the same time, a leader that waits for them saves flushes"),
        advice: format!(
            "test commit_delay = {delay_us:.0} under your own load, as a starting point, and keep it only if commits per second rise"
        ),
        cost: Some(
            "every commit that leads while enough others are active waits that much longer; with fewer sessions nothing changes"
                .to_owned(),
        ),
        applies_when: format!(
            "{low} to {high} sessions that commit at the same time, with synchronous_commit not off"
        ),
        not_when: "few sessions, long transactions, or another device, filesystem, kernel or mount option: measure first"
            .to_owned(),
        undo: Some("set commit_delay = 0, or remove the line, and reload".to_owned()),
        effect,
        evidence: evidence.clone(),
        ..blank(&CommitDelay, DELAY, "any", NO_DELAY)
    };
    vec![one(change), siblings(&sure, evidence, effect_of(few))]
}

/// No two neighbours gain.
pub(super) fn keep(view: &View<'_>, standings: &[(u64, Standing<'_>)]) -> Vec<Saying> {
    let mut sure = Confidence::new(view);
    let mut told = Vec::new();
    let mut ratios = Vec::new();
    let mut evidence = Vec::new();
    let mut rows = Vec::new();
    let mut nearest: Option<Leg<'_>> = None;
    for (clients, standing) in standings {
        let leg = match standing {
            Standing::Open(gap) => {
                sure.lower(format!(
                    "nothing is known of {clients} clients: {}",
                    gap.reason
                ));
                continue;
            }
            Standing::Gains(leg) => {
                told.push(format!("{clients} clients gain, their neighbours do not"));
                *leg
            }
            Standing::No(leg, more, further) => {
                told.extend(more.clone());
                evidence.extend(further.clone());
                if view.limits().gain(leg.row) == Gain::Short {
                    let pct = view.limits().action_pct();
                    sure.lower(format!(
                        "{clients} clients may yet gain more than {pct:.0}%"
                    ));
                }
                if leg.row.verdict == Some(Verdict::Inconclusive) {
                    sure.lower(format!(
                        "a delay is neither shown to be the same nor to differ for {clients} clients"
                    ));
                }
                *leg
            }
        };
        if let Some(ratio) = leg.ratio() {
            ratios.push(format!("{clients} clients {}", words::interval(ratio)));
            evidence.extend(leg.cite_all(RATIO));
        }
        rows.push(leg.row);
        let faster = |than: Leg<'_>| leg.row.ratio < than.row.ratio;
        if nearest.is_none_or(faster) {
            nearest = Some(leg);
        }
    }
    sure.doubts(rows);
    let Some(nearest) = nearest else {
        return open(&[Gap::new("internal", "no row has figures", None)]);
    };
    let told = if told.is_empty() {
        String::new()
    } else {
        format!("; {}", told.join("; "))
    };
    let seen = format!(
        "time a commit with a leader that waits half a flush, over the time without: {}{told}",
        ratios.join(", ")
    );
    let pct = view.limits().action_pct();
    let finding = Finding {
        means: sure.told(&format!(
            "clients that commit at the same time share flushes without a delay; waiting for more of them is not shown to gain {pct:.0}% at two neighbouring numbers of clients"
        )),
        effect: effect_of(nearest),
        evidence: evidence.clone(),
        ..kept(DELAY, NO_DELAY, &sure, seen)
    };
    vec![one(finding), siblings(&sure, evidence, effect_of(nearest))]
}

/// commit_siblings stays what it was when the delay was tried.
fn siblings(
    sure: &Confidence,
    evidence: Vec<walprobe_probes::report::Evidence>,
    effect: Option<Effect>,
) -> Saying {
    let seen = format!(
        "the delay was tried with commit_siblings = {DEFAULT_SIBLINGS}: a leader waits only if so many others are active"
    );
    one(Finding {
        means: sure.told("no other value was tried; without commit_delay it has no effect"),
        effect,
        evidence,
        ..kept(SIBLINGS, DEFAULT_SIBLINGS, sure, seen)
    })
}

fn kept(setting: &str, default: &str, sure: &Confidence, seen: String) -> Finding {
    Finding {
        action: "keep".to_owned(),
        value: Some(default.to_owned()),
        level: "info".to_owned(),
        confidence: sure.level().to_owned(),
        seen,
        advice: format!("keep {setting} = {default}, the default"),
        applies_when: "sessions that commit at the same time on this directory".to_owned(),
        not_when: "another device, filesystem, kernel or mount option has to be measured"
            .to_owned(),
        ..blank(&CommitDelay, setting, "any", default)
    }
}

fn one(finding: Finding) -> Saying {
    Saying::Finding(Box::new(finding))
}

fn clients(leg: Leg<'_>) -> Option<u64> {
    leg.row.comparison.strip_prefix("delay-")?.parse().ok()
}

fn effect_of(leg: Leg<'_>) -> Option<Effect> {
    leg.ratio().map(|ratio| Effect {
        of: leg.row.comparison.clone(),
        ratio: ratio.ratio,
        low: ratio.low,
        high: ratio.high,
        p99_ratio: leg.row.p99_ratio,
    })
}

/// What the same delay does to clients that think between commits.
enum Thinking<'a> {
    Fine,
    Worse(Leg<'a>),
    Unknown,
}

fn thinking<'a>(view: &View<'a>, clients: u64) -> Thinking<'a> {
    let (delayed, base) = cases(clients);
    let comparison = format!("delay-{clients}-think");
    let Ok(leg) = view.versus("commit", &comparison, &delayed, &base) else {
        return Thinking::Unknown;
    };
    let limits = view.limits();
    match leg.ratio() {
        Some(ratio) if leg.row.verdict == Some(Verdict::Slower) && limits.more(ratio) => {
            Thinking::Worse(leg)
        }
        Some(ratio) if limits.no_more(ratio) => Thinking::Fine,
        _ => Thinking::Unknown,
    }
}
