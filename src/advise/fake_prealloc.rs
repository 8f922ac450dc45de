//! A preallocation that reserves nothing: fallocate succeeds, and the writes into its space fail.
//!
//! Informs, and only where that was seen. Such a call is merely cheap: no reason to change
//! `file_extend_method`.

use walprobe_probes::report::Finding;

use super::{Rule, Saying, View, confidence::Confidence, draft::blank, words};

const SETTING: &str = "fallocate";
const FIGURES: &[&str] = &[
    "observations/reserved",
    "observations/fails_at",
    "observations/fails_errno",
    "observations/fails_at_bytes",
    "observations/prepared_bytes",
];

/// The rule.
#[derive(Debug)]
pub struct FakePrealloc;

impl Rule for FakePrealloc {
    fn id(&self) -> &'static str {
        "fake-prealloc"
    }

    fn settings(&self) -> &'static [&'static str] {
        &[SETTING]
    }

    fn page(&self) -> &'static str {
        include_str!("../../docs/rules/fake-prealloc.md")
    }

    fn only_informs(&self) -> bool {
        true
    }

    fn judge(&self, view: &View<'_>) -> Vec<Saying> {
        let Ok(leg) = view.measured("enospc", "full", "fallocate") else {
            return Vec::new();
        };
        if leg.flag("reserved") != Some(false) {
            return Vec::new();
        }
        let text = |name: &str| leg.row.observations.get(name).and_then(|v| v.as_str());
        let bytes = |name: &str| words::bytes(leg.number(name).unwrap_or(0.0) as u64);
        let mut sure = Confidence::new(view);
        sure.doubts([leg.row]);
        vec![Saying::Finding(Box::new(Finding {
            default: None,
            action: "inform".to_owned(),
            level: "info".to_owned(),
            confidence: sure.level().to_owned(),
            seen: format!(
                "fallocate gave a segment {}; on the full disk {} failed ({}) after {}",
                bytes("prepared_bytes"),
                text("fails_at").unwrap_or("a call"),
                text("fails_errno").unwrap_or("an error"),
                bytes("fails_at_bytes")
            ),
            means: sure.told(
                "fallocate reserves nothing here: PostgreSQL extends a table with it (16 and later) and meets the full disk only when the pages are written; WAL is never made with it",
            ),
            advice: "do not count on preallocated files; reserve space by the filesystem's own means and watch what is free. file_extend_method need not change for it: the call is merely cheap"
                .to_owned(),
            applies_when: "the filesystem or a quota can become full".to_owned(),
            not_when: "its space is reserved by other means".to_owned(),
            evidence: leg.cite_all(FIGURES),
            ..blank(self, SETTING, "any", "")
        }))]
    }
}
