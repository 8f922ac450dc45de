//! A finding with the parts that its rule, setting and role decide.

use walprobe_probes::report::Finding;

use super::{Rule, version};

/// A finding on `setting` for `role`, its words and figures still empty.
#[must_use]
pub fn blank(rule: &dyn Rule, setting: &str, role: &str, default: &str) -> Finding {
    Finding {
        id: id(setting, role),
        rule: rule.id().to_owned(),
        setting: setting.to_owned(),
        role: role.to_owned(),
        value: None,
        default: Some(default.to_owned()),
        action: String::new(),
        level: "info".to_owned(),
        confidence: "low".to_owned(),
        since: version::since(setting).map(str::to_owned),
        seen: String::new(),
        means: String::new(),
        advice: String::new(),
        cost: None,
        applies_when: String::new(),
        not_when: String::new(),
        undo: None,
        effect: None,
        evidence: Vec::new(),
    }
}

/// The setting, with `@ROLE` where the role is not any.
#[must_use]
pub fn id(setting: &str, role: &str) -> String {
    if role == "any" {
        setting.to_owned()
    } else {
        format!("{setting}@{role}")
    }
}
