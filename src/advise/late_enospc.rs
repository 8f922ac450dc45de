//! A full disk that is told of too late: at fsync or close, or after the commit was acknowledged.
//!
//! Informs, and only where that was seen: no setting makes up for it.

use walprobe_probes::report::{Evidence, Finding};

use super::{Leg, Rule, Saying, View, confidence::Confidence, draft::blank};

const SETTING: &str = "max_wal_size";
/// Calls after which the server has gone on: its write had been taken.
const LATE: &[&str] = &["fsync", "fdatasync", "close"];
const FIGURES: &[&str] = &[
    "observations/fails_at",
    "observations/fails_errno",
    "observations/acked_lost",
    "observations/acked_commits",
];

/// The rule.
#[derive(Debug)]
pub struct LateEnospc;

impl Rule for LateEnospc {
    fn id(&self) -> &'static str {
        "late-enospc"
    }

    fn settings(&self) -> &'static [&'static str] {
        &[SETTING]
    }

    fn page(&self) -> &'static str {
        include_str!("../../docs/rules/late-enospc.md")
    }

    fn only_informs(&self) -> bool {
        true
    }

    fn judge(&self, view: &View<'_>) -> Vec<Saying> {
        let rows = &view.target().rows;
        let late: Vec<(Leg<'_>, String)> = rows
            .iter()
            .filter(|row| row.probe == "enospc" && row.comparison != "nearly-full")
            .filter_map(|row| view.measured(&row.probe, &row.comparison, &row.case).ok())
            .filter_map(|leg| Some((leg, seen(leg)?)))
            .collect();
        if late.is_empty() {
            return Vec::new();
        }
        let mut sure = Confidence::new(view);
        sure.doubts(late.iter().map(|(leg, _)| leg.row));
        let lost = late.iter().any(|(leg, _)| lost(*leg) > 0.0);
        let evidence: Vec<Evidence> = late
            .iter()
            .flat_map(|(leg, _)| leg.cite_all(FIGURES))
            .collect();
        let told: Vec<&str> = late.iter().map(|(_, told)| told.as_str()).collect();
        let means = if lost {
            "commits that PostgreSQL had reported as done were gone after the disk had been full"
        } else {
            "the write was taken and the full disk was told of later: PostgreSQL stops with a PANIC at the sync, and nothing that was acknowledged is lost"
        };
        vec![Saying::Finding(Box::new(Finding {
            default: None,
            action: "inform".to_owned(),
            level: if lost { "critical" } else { "warning" }.to_owned(),
            confidence: sure.level().to_owned(),
            seen: told.join("; "),
            means: sure.told(means),
            advice: "do not let this filesystem become full: give pg_wal a filesystem of its own, much larger than max_wal_size, which is no limit, and watch its free space"
                .to_owned(),
            applies_when: "the filesystem, or the quota of its files' owner, can become full".to_owned(),
            not_when: "the space is reserved for pg_wal by other means".to_owned(),
            evidence,
            ..blank(self, SETTING, "any", "")
        }))]
    }
}

fn lost(leg: Leg<'_>) -> f64 {
    leg.number("acked_lost").unwrap_or(0.0)
}

/// What was late in a row; none where nothing was.
fn seen(leg: Leg<'_>) -> Option<String> {
    let text = |name: &str| leg.row.observations.get(name)?.as_str();
    let late = text("fails_at").filter(|call| LATE.contains(call));
    let lost = lost(leg);
    let acked = leg.number("acked_commits").unwrap_or(0.0);
    let of = format!("{lost} of {acked} acknowledged commits were lost");
    match late {
        Some(call) => {
            let errno = text("fails_errno").unwrap_or("an error");
            Some(format!(
                "{}: the full disk was told of by {call} ({errno}), not by the write; {of}",
                leg.id()
            ))
        }
        None if lost > 0.0 => Some(format!("{}: {of}", leg.id())),
        None => None,
    }
}
