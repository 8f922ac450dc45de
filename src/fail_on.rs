//! `--fail-on`: whether a report holds something of a level or above.
//!
//! Findings have their own level. On a directory that loses acknowledged commits nothing is
//! recommended, so no finding could say so: its durability verdict counts as critical.

use walprobe_probes::report::{DurabilityVerdict, Report};

use crate::render::vocabulary::LEVELS;

/// The least level that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailOn {
    /// `warning` or `critical`.
    Warning,
    /// `critical` only.
    Critical,
}

impl FailOn {
    /// As written on the command line and in a finding's `level`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }

    /// What of the report is of this level or above, one line each, in the report's order.
    #[must_use]
    pub fn reasons(self, report: &Report) -> Vec<String> {
        let rank = |level: &str| LEVELS.iter().position(|l| *l == level);
        let least = rank(self.as_str());
        let mut reasons = Vec::new();
        for target in &report.targets {
            let verdict = target.durability.verdict;
            if matches!(
                verdict,
                DurabilityVerdict::NotDurable | DurabilityVerdict::NoFlushSeen
            ) {
                reasons.push(format!("{}: critical: {}", target.dir, verdict.as_str()));
            }
            let grave = target.findings.iter().filter(|f| rank(&f.level) >= least);
            reasons.extend(grave.map(|f| format!("{}: {}: {}", target.dir, f.level, f.id)));
        }
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walprobe_probes::report::Finding;

    fn report(verdict: &str, levels: &[&str]) -> Report {
        let text = include_str!("../tests/fixtures/report-example.json");
        let mut report: Report = serde_json::from_str(text).unwrap();
        report.targets.truncate(1);
        let target = &mut report.targets[0];
        target.durability.verdict = serde_json::from_value(verdict.into()).unwrap();
        let finding = target.findings[0].clone();
        target.findings = levels
            .iter()
            .map(|level| Finding {
                level: (*level).to_owned(),
                ..finding.clone()
            })
            .collect();
        report
    }

    #[test]
    fn levels_at_or_above_fail() {
        for (verdict, levels, warning, critical) in [
            ("flushes-seen", &["info", "advice"][..], 0, 0),
            ("flushes-seen", &["info", "warning"], 1, 0),
            ("flushes-seen", &["critical", "warning"], 2, 1),
            ("not-durable", &[], 1, 1),
            ("no-flush-seen", &[], 1, 1),
            ("not-provable", &[], 0, 0),
            ("not-tested", &["nonsense"], 0, 0),
        ] {
            let report = report(verdict, levels);
            let count = |on: FailOn| on.reasons(&report).len();
            assert_eq!(count(FailOn::Warning), warning, "{verdict} {levels:?}");
            assert_eq!(count(FailOn::Critical), critical, "{verdict} {levels:?}");
        }
    }
}
