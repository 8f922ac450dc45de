//! How sure a finding is: one scale for all rules.
//!
//! `high` where nothing speaks against it; each reason takes one step down, `low` at two;
//! some reasons mean `low` at once. The reasons are told beside the word.

use walprobe_probes::report::{Row, Weight};

use super::{view::View, words};

/// Grounds that make any figure of the target doubtful, though they do not decide the verdict.
const DOUBTFUL: &[&str] = &["faster-than-medium", "sync-as-cheap-as-write"];

/// Reasons collected while a rule judges.
#[derive(Clone, Debug, Default)]
pub struct Confidence {
    reasons: Vec<String>,
    lowest: bool,
}

impl Confidence {
    /// Starts with what the durability verdict's grounds take off.
    #[must_use]
    pub fn new(view: &View<'_>) -> Self {
        let mut new = Self::default();
        if !view.may_recommend() {
            new.lowest(words::unshown(view.verdict()));
        }
        for ground in &view.target().durability.grounds {
            if ground.weight == Weight::Against || DOUBTFUL.contains(&ground.id.as_str()) {
                new.lower(format!("the durability check noted {}", ground.id));
            }
        }
        new
    }

    /// One step down for each limit of the durability verdict, where a setting would change.
    pub fn limits(&mut self, view: &View<'_>) {
        for ground in &view.target().durability.grounds {
            if ground.weight == Weight::Limits {
                self.lower(format!("the durability check noted {}", ground.id));
            }
        }
    }

    /// One step down.
    pub fn lower(&mut self, why: impl Into<String>) {
        let why = why.into();
        if !self.reasons.contains(&why) {
            self.reasons.push(why);
        }
    }

    /// `low` at once.
    pub fn lowest(&mut self, why: impl Into<String>) {
        self.lowest = true;
        self.lower(why);
    }

    /// One step down if doubts stand beside any of the rows.
    pub fn doubts<'a>(&mut self, rows: impl IntoIterator<Item = &'a Row>) {
        let mut codes: Vec<&str> = rows
            .into_iter()
            .flat_map(|row| &row.doubts)
            .map(|doubt| doubt.code.as_str())
            .collect();
        codes.sort_unstable();
        codes.dedup();
        if !codes.is_empty() {
            let is = if codes.len() == 1 { "is" } else { "are" };
            self.lower(format!(
                "{} {is} noted beside the figures",
                words::list(&codes, "and")
            ));
        }
    }

    /// `high`, `medium` or `low`.
    #[must_use]
    pub fn level(&self) -> &'static str {
        match self.reasons.len() {
            _ if self.lowest => "low",
            0 => "high",
            1 => "medium",
            _ => "low",
        }
    }

    /// `text`, with the reasons behind it where there are any.
    #[must_use]
    pub fn told(&self, text: &str) -> String {
        if self.reasons.is_empty() {
            return text.to_owned();
        }
        format!(
            "{text}; confidence is {} because {}",
            self.level(),
            words::list(&self.reasons, "and")
        )
    }
}
