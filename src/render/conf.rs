//! A postgresql.conf fragment: what follows from the report, as lines to include.
//!
//! Only a `change` for every server is an active line. A value to keep, one for a single
//! role, one that older servers do not know, and all values of a report on several
//! directories are comments. A target on which nothing may be recommended gets a comment
//! that says why. Only settings of [`SETTINGS`] are ever written: none of them can weaken
//! durability, whatever a saved report says.

use std::fmt::Write as _;

use walprobe_probes::report::{Finding, Report, Target};

use super::{LEAST_COLUMNS, Options, Render, fill::fill, legible, table::card};

/// The format.
#[derive(Debug)]
pub struct Conf;

/// Server settings that a fragment may hold.
pub const SETTINGS: &[&str] = &[
    "wal_sync_method",
    "wal_init_zero",
    "wal_recycle",
    "commit_delay",
    "commit_siblings",
    "file_extend_method",
];

impl Render for Conf {
    fn name(&self) -> &'static str {
        "conf"
    }

    fn render(&self, report: &Report, options: &Options) -> anyhow::Result<String> {
        Ok(fragment(&legible(report)?, options, false))
    }
}

/// The fragment of a report whose strings are already escaped. What was not tested is counted only
/// where the report has said it already.
pub(super) fn fragment(report: &Report, options: &Options, said: bool) -> String {
    // A fragment is a file: as wide as a terminal of its own, unless less was asked for.
    let width = options
        .width
        .map_or(80, usize::from)
        .clamp(LEAST_COLUMNS, 80);
    let mut page = Page {
        out: String::new(),
        width,
        said,
    };
    page.comment(&format!(
        "{} {}, run {} of {}",
        report.tool.name, report.tool.version, report.run_id, report.started_at
    ));
    let alone = report.targets.len() == 1;
    if report.targets.is_empty() {
        page.comment("no directory was measured: nothing follows for any setting");
    } else if !alone {
        page.comment(
            "several directories were measured: uncomment the lines of the one that holds pg_wal",
        );
    }
    if report
        .targets
        .iter()
        .any(|t| t.findings.iter().any(|f| f.action == "change"))
    {
        page.comment("each of these settings takes effect on a reload");
    }
    for target in &report.targets {
        page.target(target, alone);
    }
    page.out
}

struct Page {
    out: String,
    width: usize,
    said: bool,
}

impl Page {
    fn comment(&mut self, text: &str) {
        fill(&mut self.out, self.width, "# ", "#   ", text);
    }

    fn detail(&mut self, text: &str) {
        fill(&mut self.out, self.width, "#   ", "#   ", text);
    }

    fn target(&mut self, target: &Target, alone: bool) {
        self.out.push_str("#\n");
        self.comment(&format!("{}: {}", target.dir, card::filesystem(target)));
        if let Some(reason) = &target.reason {
            self.comment(&format!("not measured to the end: {reason}"));
        }
        let verdict = target.durability.verdict;
        if !verdict.may_recommend() {
            self.comment(&format!(
                "durability {}: {}",
                verdict.as_str(),
                target.durability.text
            ));
            self.comment("no setting is changed on such a target");
        }
        let mut active: Vec<&str> = Vec::new();
        for finding in &target.findings {
            let Some(value) = &finding.value else {
                continue;
            };
            self.out.push('\n');
            if !SETTINGS.contains(&finding.setting.as_str()) {
                self.comment(&format!(
                    "{}: not a server setting that is written here; see the report",
                    finding.setting
                ));
            } else if finding.action == "change" {
                let hold = Self::hold(target, finding, alone, &active);
                self.change(finding, value, hold.as_deref());
                if hold.is_none() {
                    active.push(&finding.setting);
                }
            } else {
                self.keep(finding, value);
            }
        }
        if target.not_tested.is_empty() {
            return;
        }
        self.out.push('\n');
        if self.said {
            let settings: Vec<&str> = target
                .not_tested
                .iter()
                .map(|n| n.setting.as_str())
                .collect();
            self.comment(&format!("not tested, see above: {}", settings.join(", ")));
            return;
        }
        for setting in &target.not_tested {
            self.comment(&format!(
                "{}: not tested ({}: {})",
                setting.setting, setting.reason_code, setting.reason
            ));
            if let Some(hint) = &setting.hint {
                self.detail(&format!("hint: {hint}"));
            }
        }
    }

    /// Why a change must stay a comment.
    fn hold(target: &Target, finding: &Finding, alone: bool, active: &[&str]) -> Option<String> {
        if !target.durability.verdict.may_recommend() || !target.durability.may_recommend {
            Some("not recommended: see the durability verdict".to_owned())
        } else if finding.role != "any" {
            Some(format!("uncomment on a {} only", finding.role))
        } else if let Some(since) = &finding.since {
            Some(format!("uncomment on PostgreSQL {since} or later"))
        } else if !alone {
            Some("uncomment where this directory holds pg_wal".to_owned())
        } else if active.contains(&finding.setting.as_str()) {
            Some("the setting is already set above".to_owned())
        } else {
            None
        }
    }

    fn keep(&mut self, finding: &Finding, value: &str) {
        let why = match &finding.default {
            Some(default) if default == value => "the default",
            _ => "as it is",
        };
        let line = format!("{} = {}", finding.setting, quoted(value));
        let _ = writeln!(
            self.out,
            "# {line}  # {}: {why}{}; confidence {}",
            finding.action,
            match finding.role.as_str() {
                "any" => String::new(),
                role => format!(" on a {role}"),
            },
            finding.confidence
        );
        self.detail(&finding.seen);
    }

    fn change(&mut self, finding: &Finding, value: &str, hold: Option<&str>) {
        self.comment(&format!("{}: {}", finding.id, finding.seen));
        for (label, text) in [
            ("applies", Some(&finding.applies_when)),
            ("not when", Some(&finding.not_when)),
            ("cost", finding.cost.as_ref()),
            ("undo", finding.undo.as_ref()),
        ] {
            if let Some(text) = text.filter(|t| !t.is_empty()) {
                self.detail(&format!("{label}: {text}"));
            }
        }
        let mark = match hold {
            Some(hold) => {
                self.detail(hold);
                "# "
            }
            None => "",
        };
        let default = finding
            .default
            .as_ref()
            .map_or_else(String::new, |d| format!(", default {d}"));
        let _ = writeln!(
            self.out,
            "{mark}{} = {}  # confidence {}{default}",
            finding.setting,
            quoted(value),
            finding.confidence
        );
    }
}

/// A value as postgresql.conf takes it.
fn quoted(value: &str) -> String {
    let mut chars = value.chars();
    let plain = chars.next().is_some_and(|c| c.is_ascii_alphanumeric())
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    let number_first = value.starts_with(|c: char| c.is_ascii_digit());
    let is_number = value.chars().all(|c| c.is_ascii_digit());
    if plain && (!number_first || is_number) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_what_the_server_would_not_take_bare() {
        assert_eq!(quoted("off"), "off");
        assert_eq!(quoted("open_datasync"), "open_datasync");
        assert_eq!(quoted("250"), "250");
        assert_eq!(quoted("250us"), "'250us'");
        assert_eq!(quoted("0.5"), "'0.5'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("it's \\ x"), "'it''s \\\\ x'");
        assert_eq!(quoted("off\\nfsync = off"), "'off\\\\nfsync = off'");
    }
}
