//! Several directories: one table a comparison with a column each, and no verdict.
//!
//! The figure is the median of an operation, or the mean of a segment's life; the columns
//! are numbered and named above, since directory names are too long for headings.

use std::fmt::Write as _;

use comfy_table::CellAlignment;
use walprobe_probes::report::{Report, Row, RowStatus};

use super::{Page, card, comparison, plain_grid, tighten};
use crate::render::units;

/// Writes the section.
pub(super) fn write(page: &mut Page, report: &Report) {
    let mut ids: Vec<(String, usize)> = Vec::new();
    for target in &report.targets {
        for (id, rows) in comparison::comparisons(target) {
            if rows.iter().all(|r| figure(r).is_none()) {
                continue;
            }
            match ids.iter_mut().find(|(known, _)| *known == id) {
                Some((_, targets)) => *targets += 1,
                None => ids.push((id, 1)),
            }
        }
    }
    ids.retain(|(_, targets)| *targets > 1);
    if ids.is_empty() {
        return;
    }
    page.section("Side by side");
    page.prose(
        "Median of an operation, or mean of a segment's life. No verdict across directories.",
    );
    for (i, target) in report.targets.iter().enumerate() {
        let text = format!(
            "{}: {}; durability {}",
            target.dir,
            card::filesystem(target),
            target.durability.verdict.as_str()
        );
        page.labelled(1, &format!("#{}", i + 1), &text);
    }
    for (id, _) in ids {
        let _ = writeln!(page.out, "\n{}", page.paint.bold(&id));
        table(page, report, &id);
    }
}

fn table(page: &mut Page, report: &Report, id: &str) {
    let rows_of = |i: usize| -> Vec<&Row> {
        comparison::comparisons(&report.targets[i])
            .into_iter()
            .find(|(known, _)| known == id)
            .map_or_else(Vec::new, |(_, rows)| rows)
    };
    let columns: Vec<Vec<&Row>> = (0..report.targets.len()).map(rows_of).collect();
    let mut cases: Vec<&str> = Vec::new();
    for row in columns.iter().flatten() {
        if !cases.contains(&row.case.as_str()) {
            cases.push(&row.case);
        }
    }
    let mut grid = plain_grid();
    let mut head = vec!["case".to_owned()];
    head.extend((1..=columns.len()).map(|n| format!("#{n}")));
    grid.set_header(head);
    for case in cases {
        let mut line = vec![case.to_owned()];
        line.extend(columns.iter().map(|rows| {
            let row = rows.iter().find(|r| r.case == case);
            row.map_or_else(String::new, |r| cell(r))
        }));
        grid.add_row(line);
    }
    for at in 1..=columns.len() {
        if let Some(c) = grid.column_mut(at) {
            c.set_cell_alignment(CellAlignment::Right);
        }
    }
    tighten(&mut grid);
    for line in grid.lines() {
        let _ = writeln!(page.out, "{}", line.trim_end());
    }
}

fn cell(row: &Row) -> String {
    match row.status {
        RowStatus::Ok => figure(row).unwrap_or_else(|| "-".to_owned()),
        other => other.as_str().to_owned(),
    }
}

fn figure(row: &Row) -> Option<String> {
    if row.status != RowStatus::Ok {
        return None;
    }
    let whole = matches!(row.series.as_deref(), Some("life" | "create"));
    let time = if whole { row.mean_us } else { row.p50_us };
    time.map(|t| units::time(t.as_us()))
}
