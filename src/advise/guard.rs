//! What holds for every rule, checked in this one place on everything a rule says.
//!
//! - not-durable, no-flush-seen: no finding with a value; each setting of each rule stands
//!   in `not_tested` with the verdict as its reason.
//! - not-provable, not-tested: a default may be kept, with low confidence; nothing changes.
//! - Each finding has evidence, and each piece of it is what its pointer resolves to.
//! - Nothing rests on an inconclusive comparison, on a case that failed or was skipped, on a
//!   cold case that was not proven cold, or on another directory's figures.
//! - What weakens durability is never recommended ([`never`](mod@super::never)).
//! - A setting has one value, or none: rules that contradict each other cancel out.
//!
//! A rule that breaks one of these is wrong; its finding becomes a `not_tested` entry with
//! reason code `internal`, which the rules' own tests look for.

use std::collections::BTreeSet;

use walprobe_probes::report::{DurabilityVerdict, Finding, NotTested, Row, RowStatus, Verdict};

use super::{
    Leg, Rule, Saying, View, draft,
    gain::{Gain, Interval, LEAST_ROUNDS},
    never::never,
    words,
};

/// What the durability verdict allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allowed {
    /// Changes and defaults.
    All,
    /// Defaults.
    Keep,
    /// Nothing with a value.
    Nothing,
}

fn allowed(view: &View<'_>) -> Allowed {
    match view.verdict() {
        DurabilityVerdict::NotDurable | DurabilityVerdict::NoFlushSeen => Allowed::Nothing,
        _ if view.may_recommend() => Allowed::All,
        _ => Allowed::Keep,
    }
}

/// What of the rules' sayings may enter the report, in order.
#[must_use]
pub fn admit(view: &View<'_>, said: Vec<(&dyn Rule, Vec<Saying>)>) -> Vec<Saying> {
    let mut admitted = Vec::new();
    for (rule, said) in said {
        let mut passed: Vec<Saying> = said
            .into_iter()
            .map(|saying| one(view, rule, saying))
            .collect();
        if allowed(view) == Allowed::Nothing {
            passed.retain(|s| matches!(s, Saying::Finding(f) if f.value.is_none()));
            if !rule.only_informs() {
                passed.extend(rule.settings().iter().map(|setting| blocked(view, setting)));
            }
        }
        for setting in rule.settings() {
            if !rule.only_informs() && !passed.iter().any(|saying| saying.setting() == *setting) {
                passed.push(broken(setting, rule, "said nothing of this setting"));
            }
        }
        admitted.extend(passed);
    }
    agree(admitted)
}

/// One saying, or what takes its place.
fn one(view: &View<'_>, rule: &dyn Rule, saying: Saying) -> Saying {
    let Saying::Finding(mut finding) = saying else {
        return saying;
    };
    if let Err(why) = sound(view, rule, &finding) {
        return broken(&finding.id, rule, &why);
    }
    if finding.value.is_none() || allowed(view) == Allowed::All {
        return Saying::Finding(finding);
    }
    let verdict = view.verdict().as_str();
    if finding.action == "change" {
        return Saying::NotTested(NotTested {
            setting: finding.id,
            reason_code: verdict.to_owned(),
            reason: format!(
                "the figures speak for {}, but {}: {}",
                finding.value.unwrap_or_default(),
                words::unshown(view.verdict()),
                view.target().durability.text
            ),
            hint: (view.verdict() == DurabilityVerdict::NotTested).then(|| view.command("all", "")),
        });
    }
    finding.confidence = "low".to_owned();
    Saying::Finding(finding)
}

/// A setting on a target whose syncs do not reach the device.
fn blocked(view: &View<'_>, setting: &str) -> Saying {
    let text = &view.target().durability.text;
    let colon = if text.is_empty() { "" } else { ": " };
    let (lead, hint) = match view.verdict() {
        DurabilityVerdict::NoFlushSeen => (
            "no flush reached the device, so these figures are not the price of a durable commit",
            Some(view.command("durability", "")),
        ),
        _ => (
            "acknowledged commits can be lost here, so these figures are not the price of a durable commit",
            None,
        ),
    };
    Saying::NotTested(NotTested {
        setting: setting.to_owned(),
        reason_code: view.verdict().as_str().to_owned(),
        reason: format!("{lead}{colon}{text}"),
        hint,
    })
}

fn broken(setting: &str, rule: &dyn Rule, why: &str) -> Saying {
    Saying::NotTested(NotTested {
        setting: setting.to_owned(),
        reason_code: "internal".to_owned(),
        reason: format!("walprobe's rule {} {why}; please report it", rule.id()),
        hint: None,
    })
}

/// Whether a finding keeps to what holds for all, whatever the verdict.
fn sound(view: &View<'_>, rule: &dyn Rule, finding: &Finding) -> Result<(), String> {
    if let Some(value) = &finding.value
        && never(&finding.setting, value)
    {
        return Err("wanted a value that is never recommended".to_owned());
    }
    well_formed(rule, finding)?;
    if finding.evidence.is_empty() {
        return Err("gave no evidence".to_owned());
    }
    for evidence in &finding.evidence {
        let pointer = &evidence.pointer;
        if view.cite(pointer).as_ref() != Some(evidence) {
            return Err(format!(
                "gave evidence that is not in the report: {pointer}"
            ));
        }
        if view.is_foreign(pointer) {
            return Err(format!("gave evidence of another directory: {pointer}"));
        }
        if let Some((leg, key)) = view.row_at(pointer) {
            bears(view, finding, leg, key)?;
        }
    }
    Ok(())
}

/// The closed lists, and that action, value and default agree.
fn well_formed(rule: &dyn Rule, finding: &Finding) -> Result<(), String> {
    let Finding {
        id,
        setting,
        role,
        value,
        default,
        ..
    } = finding;
    let listed = |word: &str, list: &[&str]| list.contains(&word);
    let action = match finding.action.as_str() {
        "keep" => value.is_some() && value == default,
        "change" => value.is_some() && value != default,
        "inform" => value.is_none(),
        _ => false,
    };
    let right = rule.id() == finding.rule
        && rule.settings().contains(&setting.as_str())
        && *id == draft::id(setting, role)
        && listed(role, &["any", "primary", "standby"])
        && listed(&finding.level, &["info", "advice", "warning", "critical"])
        && listed(&finding.confidence, &["high", "medium", "low"])
        && action
        && (value.is_none() || !rule.only_informs())
        && (finding.effect.is_some() || finding.action == "inform");
    if right {
        Ok(())
    } else {
        Err(format!("made a finding on {id} that contradicts itself"))
    }
}

/// Whether a row's figure may carry the finding.
fn bears(view: &View<'_>, finding: &Finding, leg: Leg<'_>, key: &str) -> Result<(), String> {
    let id = leg.id();
    let Row {
        status,
        verdict,
        rounds,
        case,
        baseline,
        ..
    } = leg.row;
    if *status != RowStatus::Ok {
        let tells_why =
            ["status", "reason_code", "reason"].contains(&key) || key.starts_with("fault/");
        return if tells_why && finding.action != "change" {
            Ok(())
        } else {
            Err(format!("rests on {id}, which was not measured"))
        };
    }
    if finding.value.is_none() {
        return Ok(());
    }
    if leg.is_cold() == Some(false) {
        return Err(format!("rests on {id}, which was not proven cold"));
    }
    let is_baseline = baseline.as_ref() == Some(case);
    if *verdict == Some(Verdict::Inconclusive) && !is_baseline {
        // A default may be kept on an interval that excludes what would speak against it.
        let excluded = *rounds >= LEAST_ROUNDS
            && Interval::of(leg.row).is_some()
            && view.limits().gain(leg.row) == Gain::Within;
        if finding.action == "change" || !excluded {
            return Err(format!("rests on {id}, which is inconclusive"));
        }
    }
    Ok(())
}

/// One answer for each setting and role: a value said twice alike is said once; where
/// answers differ, nothing can be said.
fn agree(said: Vec<Saying>) -> Vec<Saying> {
    let mut done = BTreeSet::new();
    let mut agreed = Vec::new();
    for saying in &said {
        let id = saying.id();
        if matches!(saying, Saying::Finding(f) if f.value.is_none()) {
            agreed.push(saying.clone());
            continue;
        }
        if !done.insert(id.to_owned()) {
            continue;
        }
        let valued = |s: &&Saying| !matches!(s, Saying::Finding(f) if f.value.is_none());
        let same: Vec<&Saying> = said
            .iter()
            .filter(|s| s.id() == id)
            .filter(valued)
            .collect();
        let not = same.iter().find(|s| matches!(s, Saying::NotTested(_)));
        let values: BTreeSet<_> = same
            .iter()
            .filter_map(|s| match s {
                Saying::Finding(f) => f.value.as_deref(),
                Saying::NotTested(_) => None,
            })
            .collect();
        agreed.push(match (not, values.len()) {
            (Some(not), _) => (*not).clone(),
            (None, 0 | 1) => saying.clone(),
            (None, _) => Saying::NotTested(NotTested {
                setting: id.to_owned(),
                reason_code: "inconclusive".to_owned(),
                reason: format!(
                    "what was measured speaks for different values: {}",
                    values.into_iter().collect::<Vec<_>>().join(", ")
                ),
                hint: None,
            }),
        });
    }
    agreed
}
