//! What was left out, and why: comparisons never reached and settings nothing can be said of.

use walprobe_probes::report::{Row, RowStatus, Target};

use super::{Page, comparison};
use crate::render::vocabulary;

/// Writes the section; nothing where nothing was left out.
pub(super) fn write(page: &mut Page, target: &Target) {
    let groups = untried(target);
    if groups.is_empty() && target.not_tested.is_empty() {
        return;
    }
    page.section(&format!("Left out on {}", target.dir));
    for (reason, ids) in &groups {
        let mut text = ids.join(", ");
        text.push_str(": ");
        text.push_str(reason);
        page.labelled(1, "left out", &text);
    }
    for setting in &target.not_tested {
        let text = format!(
            "{}: {} ({})",
            setting.setting, setting.reason, setting.reason_code
        );
        page.labelled(1, "not tested", &text);
        if let Some(hint) = &setting.hint {
            page.labelled(1, "", &format!("hint: {hint}"));
        }
    }
}

/// Comparisons without a table and rows skipped in the others, by their reason.
pub(in crate::render) fn untried(target: &Target) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |reason: String, id: String| match groups.iter_mut().find(|(r, _)| *r == reason) {
        Some((_, ids)) => ids.push(id),
        None => groups.push((reason, vec![id])),
    };
    for (id, rows) in comparison::comparisons(target) {
        let left: Vec<&&Row> = rows
            .iter()
            .filter(|r| matches!(r.status, RowStatus::Skipped | RowStatus::Unsupported))
            .filter(|r| !comparison::same_as(r))
            .collect();
        let Some(first) = left.first() else {
            continue;
        };
        let alike = left.len() == rows.len() && left.iter().all(|r| reason(r) == reason(first));
        if alike && rows.len() > 1 {
            add(reason(first), format!("{id} (all {} cases)", rows.len()));
        } else {
            for row in left {
                add(reason(row), format!("{id}/{}", row.case));
            }
        }
    }
    groups
}

fn reason(row: &Row) -> String {
    let code = row.reason_code.as_deref().unwrap_or(row.status.as_str());
    match &row.reason {
        Some(reason) => format!("{reason} ({code})"),
        None => vocabulary::words(vocabulary::REASON_CODES, code).to_owned(),
    }
}
