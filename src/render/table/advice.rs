//! What follows for the settings.
//!
//! A setting to keep takes a line and its evidence; one to change is told in full: what was
//! seen, what it means, what to do, what it costs, when it applies, how to go back.

use std::fmt::Write as _;

use walprobe_probes::report::{Finding, Target};

use super::Page;
use crate::render::units;

/// Writes a target's findings, changes first.
pub(super) fn write(page: &mut Page, target: &Target) {
    if target.findings.is_empty() {
        if !target.durability.verdict.may_recommend() && !target.rows.is_empty() {
            page.section(&format!("Recommendations for {}", target.dir));
            let line = format!("none: durability is {}", target.durability.verdict.as_str());
            page.labelled(1, "settings", &line);
        }
        return;
    }
    page.section(&format!("Recommendations for {}", target.dir));
    let (told, kept): (Vec<&Finding>, Vec<&Finding>) =
        target.findings.iter().partition(|f| f.action != "keep");
    for finding in told {
        in_full(page, finding);
    }
    for finding in kept {
        let sure = format!("{}; confidence {}", assignment(finding), finding.confidence);
        page.labelled(1, "keep", &sure);
        page.labelled(1, "", &format!("{}{}", urgent(finding), finding.seen));
    }
}

fn in_full(page: &mut Page, finding: &Finding) {
    let label = if finding.action == "change" {
        "CHANGE"
    } else {
        "note"
    };
    let paint = page.paint;
    let _ = writeln!(
        page.out,
        " {}{:pad$} {}",
        paint.bold(label),
        "",
        paint.bold(&assignment(finding)),
        pad = 12 - label.len()
    );
    page.labelled(1, "", &known(finding));
    for (label, text) in told(finding) {
        page.labelled(3, label, text);
    }
}

/// How grave, how sure, how large.
pub(in crate::render) fn known(finding: &Finding) -> String {
    let effect = finding.effect.as_ref().map(|e| {
        let p99 = e
            .p99_ratio
            .map_or_else(String::new, |r| format!(", p99 {}", units::ratio(r)));
        format!(
            "{} of the time in {}{p99}",
            units::interval(e.ratio, Some(e.low), Some(e.high)),
            e.of
        )
    });
    let known = [
        Some(format!(
            "{}, confidence {}",
            finding.level, finding.confidence
        )),
        finding
            .default
            .as_ref()
            .map(|d| format!("the default is {d}")),
        finding
            .since
            .as_ref()
            .map(|v| format!("PostgreSQL {v} or later")),
        effect,
    ];
    let known: Vec<String> = known.into_iter().flatten().collect();
    known.join("; ")
}

/// A finding's texts under their labels.
pub(in crate::render) fn told(finding: &Finding) -> Vec<(&'static str, &str)> {
    let texts = [
        ("seen", Some(&finding.seen)),
        ("means", Some(&finding.means)),
        ("advice", Some(&finding.advice)),
        ("applies", Some(&finding.applies_when)),
        ("not when", Some(&finding.not_when)),
        ("cost", finding.cost.as_ref()),
        ("undo", finding.undo.as_ref()),
    ];
    let texts = texts.into_iter();
    texts
        .filter_map(|(label, text)| Some((label, text.filter(|t| !t.is_empty())?.as_str())))
        .collect()
}

/// `wal_recycle = off (on a standby)`.
pub(in crate::render) fn assignment(finding: &Finding) -> String {
    let mut out = finding.setting.clone();
    if let Some(value) = &finding.value {
        let _ = write!(out, " = {value}");
        if finding.action == "keep" && finding.default.as_ref() == Some(value) {
            out.push_str(", the default");
        }
    }
    if finding.role != "any" {
        let _ = write!(out, " (on a {})", finding.role);
    }
    out
}

/// The level, where it must be said.
pub(in crate::render) fn urgent(finding: &Finding) -> String {
    match finding.level.as_str() {
        level @ ("warning" | "critical") => format!("{level}: "),
        _ => String::new(),
    }
}
