//! What no report may recommend, whatever was measured.
//!
//! Read off a finished report alone: which settings may be spoken of under which
//! durability verdict, what is never recommended, and that each setting is
//! either a finding or says why it is not.

use walprobe_probes::report::{Cold, DurabilityVerdict, Finding, Report, Row, Target, Verdict};

use crate::document::id;

/// Settings that every report must speak of.
pub const SETTINGS: &[&str] = &[
    "wal_sync_method",
    "wal_init_zero",
    "wal_recycle",
    "commit_delay",
    "commit_siblings",
];

/// Settings whose change is never recommended.
const NEVER: &[&str] = &[
    "fsync",
    "full_page_writes",
    "data_sync_retry",
    "debug_io_direct",
];

/// All guards, on every target.
///
/// # Errors
/// All that are broken.
pub fn check(report: &Report) -> Result<(), String> {
    let mut broken = Vec::new();
    for target in &report.targets {
        let mut say = |text: String| broken.push(format!("{}: {text}", target.dir));
        spoken_of(target, &mut say);
        by_verdict(target, &mut say);
        for finding in &target.findings {
            let mut say = |text: String| say(format!("finding {}: {text}", finding.id));
            finding_rules(finding, target, &mut say);
            if finding.action == "change" {
                for evidence in &finding.evidence {
                    if let Some(row) = row_of(report, &evidence.pointer) {
                        evidence_rules(row, &mut say);
                    }
                }
            }
        }
    }
    if broken.is_empty() {
        Ok(())
    } else {
        Err(broken.join("\n"))
    }
}

fn spoken_of(target: &Target, say: &mut dyn FnMut(String)) {
    for setting in SETTINGS {
        let found = target.findings.iter().any(|one| one.setting == *setting);
        let untested = untested(target, setting).next().is_some();
        if !found && !untested {
            say(format!("{setting} is neither a finding nor in not_tested"));
        }
    }
}

fn by_verdict(target: &Target, say: &mut dyn FnMut(String)) {
    let durability = &target.durability;
    let verdict = durability.verdict;
    if durability.may_recommend != verdict.may_recommend() {
        say(format!(
            "may_recommend is {} under {}",
            durability.may_recommend,
            verdict.as_str()
        ));
    }
    if !verdict.may_recommend() {
        for finding in target.findings.iter().filter(|one| one.action == "change") {
            say(format!(
                "{} is to be changed under {}",
                finding.setting,
                verdict.as_str()
            ));
        }
    }
    if matches!(
        verdict,
        DurabilityVerdict::NotDurable | DurabilityVerdict::NoFlushSeen
    ) {
        for finding in target.findings.iter().filter(|one| one.value.is_some()) {
            say(format!(
                "{} = {:?} under {}",
                finding.setting,
                finding.value,
                verdict.as_str()
            ));
        }
        for setting in SETTINGS {
            let codes: Vec<_> = untested(target, setting).collect();
            if codes.is_empty() || codes.iter().any(|code| *code != verdict.as_str()) {
                say(format!(
                    "{setting} is in not_tested with {codes:?}, under {}",
                    verdict.as_str()
                ));
            }
        }
    }
}

fn finding_rules(finding: &Finding, target: &Target, say: &mut dyn FnMut(String)) {
    let inform = finding.action == "inform";
    if !["keep", "change", "inform"].contains(&finding.action.as_str()) {
        say(format!("action {}", finding.action));
    }
    if finding.evidence.is_empty() {
        say("no evidence".to_owned());
    }
    if finding.value.is_none() != inform {
        say(format!("value {:?} with {}", finding.value, finding.action));
    }
    if finding.effect.is_none() && !inform {
        say("no effect".to_owned());
    }
    if finding.action == "keep" && finding.value != finding.default {
        say(format!(
            "keep {:?}, where the default is {:?}",
            finding.value, finding.default
        ));
    }
    if finding.action == "change" {
        if NEVER.contains(&finding.setting.as_str()) {
            say("is never to be changed".to_owned());
        }
        if finding.value == finding.default {
            say("a change to the default".to_owned());
        }
        let in_place = target
            .facts
            .get("fs.in_place")
            .is_some_and(|fact| fact.value == "yes" || fact.value == true);
        if in_place && ["wal_recycle", "wal_init_zero"].contains(&finding.setting.as_str()) {
            say("changed where overwriting needs no new space".to_owned());
        }
    }
}

/// What a change may rest on.
fn evidence_rules(row: &Row, say: &mut dyn FnMut(String)) {
    if row.verdict == Some(Verdict::Inconclusive) {
        say(format!("rests on {}, which is inconclusive", id(row)));
    }
    if row.cold.is_some_and(|cold| cold != Cold::Proven) {
        say(format!("rests on {}, which was not proven cold", id(row)));
    }
}

/// The row that a pointer such as `/targets/0/rows/3/ratio` points into.
fn row_of<'a>(report: &'a Report, pointer: &str) -> Option<&'a Row> {
    let parts: Vec<_> = pointer.split('/').collect();
    match parts.as_slice() {
        ["", "targets", target, "rows", row, ..] => report
            .targets
            .get(target.parse::<usize>().ok()?)?
            .rows
            .get(row.parse::<usize>().ok()?),
        _ => None,
    }
}

fn untested<'a>(target: &'a Target, setting: &'a str) -> impl Iterator<Item = &'a str> {
    target
        .not_tested
        .iter()
        .filter(move |one| one.setting.split('@').next() == Some(setting))
        .map(|one| one.reason_code.as_str())
}

/// A `postgresql.conf` fragment sets nothing: every line is empty or a comment.
///
/// # Errors
/// The first line that sets something.
pub fn sets_nothing(fragment: &str) -> Result<(), String> {
    match fragment
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'))
    {
        None => Ok(()),
        Some(line) => Err(format!("the fragment sets {line:?}")),
    }
}

#[cfg(test)]
mod tests {
    use walprobe_probes::report::NotTested;

    use super::*;
    use crate::document::Document;
    use crate::expect::samples;

    /// Breaks one rule.
    type Change = fn(&mut Target);

    fn sample() -> Result<Report, String> {
        Document::read(samples::json().to_string().as_bytes()).map(|document| document.report)
    }

    /// A target under a verdict, with every setting in not_tested for that reason.
    fn silent(verdict: DurabilityVerdict) -> Result<Report, String> {
        let mut report = sample()?;
        let target = &mut report.targets[0];
        target.durability.verdict = verdict;
        target.durability.may_recommend = false;
        target.findings.clear();
        target.not_tested = SETTINGS
            .iter()
            .map(|setting| NotTested {
                setting: (*setting).to_owned(),
                reason_code: verdict.as_str().to_owned(),
                reason: "no flush was seen".to_owned(),
                hint: None,
            })
            .collect();
        Ok(report)
    }

    #[test]
    fn the_sample_keeps_them() -> Result<(), String> {
        check(&sample()?)?;
        check(&silent(DurabilityVerdict::NotDurable)?)?;
        check(&silent(DurabilityVerdict::NoFlushSeen)?)
    }

    #[test]
    fn each_guard_can_fail() -> Result<(), String> {
        let breaks: [(&str, Change); 9] = [
            ("neither", |target| target.not_tested.clear()),
            ("may_recommend", |target| {
                target.durability.may_recommend = false;
            }),
            ("no evidence", |target| target.findings[0].evidence.clear()),
            ("no effect", |target| target.findings[0].effect = None),
            ("keep Some", |target| {
                target.findings[0].value = Some("open_sync".into());
            }),
            ("a change to the default", |target| {
                target.findings[0].action = "change".into();
            }),
            ("never to be changed", |target| {
                target.findings[0].action = "change".into();
                target.findings[0].setting = "fsync".into();
            }),
            ("needs no new space", |target| {
                target.findings[0].action = "change".into();
                target.findings[0].setting = "wal_recycle".into();
            }),
            ("is inconclusive", |target| {
                target.findings[0].action = "change".into();
                target.rows[0].verdict = Some(Verdict::Inconclusive);
            }),
        ];
        for (expected, change) in breaks {
            let mut report = sample()?;
            change(&mut report.targets[0]);
            let error = check(&report).err().unwrap_or_default();
            assert!(error.contains(expected), "{expected:?}: {error:?}");
        }
        Ok(())
    }

    #[test]
    fn nothing_is_recommended_without_durability() -> Result<(), String> {
        let mut report = silent(DurabilityVerdict::NotDurable)?;
        report.targets[0].findings = sample()?.targets[0].findings.clone();
        let error = check(&report).err().unwrap_or_default();
        assert!(error.contains("under not-durable"), "{error}");

        let mut report = silent(DurabilityVerdict::NoFlushSeen)?;
        report.targets[0].not_tested[1].reason_code = "time".into();
        assert!(check(&report).is_err());

        let mut report = silent(DurabilityVerdict::NotProvable)?;
        report.targets[0].findings = sample()?.targets[0].findings.clone();
        report.targets[0].findings[0].action = "change".into();
        report.targets[0].findings[0].default = Some("fsync".into());
        let error = check(&report).err().unwrap_or_default();
        assert!(
            error.contains("to be changed under not-provable"),
            "{error}"
        );
        Ok(())
    }

    #[test]
    fn a_fragment_of_comments_sets_nothing() {
        assert_eq!(sets_nothing("# a\n\n  # wal_recycle = off\n"), Ok(()));
        assert!(sets_nothing("# a\nwal_recycle = off\n").is_err());
    }

    #[test]
    fn a_pointer_finds_its_row() -> Result<(), String> {
        let report = sample()?;
        assert!(row_of(&report, "/targets/0/rows/0/p50_us").is_some());
        assert!(row_of(&report, "/targets/0/rows/99/p50_us").is_none());
        assert!(row_of(&report, "/margins/tie").is_none());
        Ok(())
    }
}
