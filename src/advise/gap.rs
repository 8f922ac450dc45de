//! What is missing: why nothing can be said of a setting, and the command that would tell.

use walprobe_probes::report::NotTested;

use super::Saying;

/// Why a figure is not there or not enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// From the closed list of reason codes.
    pub code: String,
    /// For people.
    pub reason: String,
    /// The command that would tell.
    pub hint: Option<String>,
}

impl Gap {
    /// A gap with a reason code of our own.
    #[must_use]
    pub fn new(code: &str, reason: impl Into<String>, hint: Option<String>) -> Self {
        Self {
            code: code.to_owned(),
            reason: reason.into(),
            hint,
        }
    }

    /// Everyone's reason, each once.
    #[must_use]
    pub fn reasons(gaps: &[Self]) -> String {
        let mut reasons: Vec<&str> = Vec::new();
        for gap in gaps {
            if !reasons.contains(&gap.reason.as_str()) {
                reasons.push(&gap.reason);
            }
        }
        reasons.join("; ")
    }

    /// As the report has it. Several gaps become one entry: the first one's code and
    /// command, everyone's reason.
    #[must_use]
    pub fn told(setting: &str, lead: &str, gaps: &[Self]) -> Saying {
        let colon = if lead.is_empty() { "" } else { ": " };
        Saying::NotTested(NotTested {
            setting: setting.to_owned(),
            reason_code: gaps.first().map_or("internal", |gap| &gap.code).to_owned(),
            reason: format!("{lead}{colon}{}", Self::reasons(gaps)),
            hint: gaps.iter().find_map(|gap| gap.hint.clone()),
        })
    }
}
