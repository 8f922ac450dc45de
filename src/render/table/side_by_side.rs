//! Several directories: one table a comparison with a column each, and no verdict.
//!
//! The figure is the median of an operation, or the mean of a segment's life; the columns
//! are lettered and named above, since directory names are too long for headings.

use std::{fmt::Write as _, ops::Range};

use comfy_table::{CellAlignment, Table as Grid};
use walprobe_probes::report::{Report, Row, RowStatus, Target};

use super::{Page, card, comparison, plain_grid, tighten};
use crate::render::units;

/// What the figures are.
pub(in crate::render) const FIGURE: &str =
    "Median of an operation, or mean of a segment's life. No verdict across directories.";

/// Writes the section.
pub(super) fn write(page: &mut Page, report: &Report) {
    let ids = shared(report);
    if ids.is_empty() {
        return;
    }
    page.section("Side by side");
    page.prose(FIGURE);
    for (i, target) in report.targets.iter().enumerate() {
        page.labelled(1, &letter(i), &described(target));
    }
    for id in ids {
        let _ = writeln!(page.out, "\n{}", page.paint.bold(&id));
        table(page, report, &id);
    }
}

/// The comparisons of which more than one directory has figures.
pub(in crate::render) fn shared(report: &Report) -> Vec<String> {
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
    ids.into_iter().map(|(id, _)| id).collect()
}

/// The heading of a directory's column: A to Z, then by number.
pub(in crate::render) fn letter(at: usize) -> String {
    match u8::try_from(at).ok().filter(|at| *at < 26) {
        Some(at) => char::from(b'A' + at).to_string(),
        None => (at + 1).to_string(),
    }
}

/// A directory in one line; its mount options stand on its card.
pub(in crate::render) fn described(target: &Target) -> String {
    format!(
        "{}: {}; durability {}",
        target.dir,
        card::filesystem_alone(target),
        target.durability.verdict.as_str()
    )
}

/// The lines of a table: a case, and its figure in each directory.
pub(in crate::render) fn lines(report: &Report, id: &str) -> Vec<(String, Vec<String>)> {
    let of_id = |r: &&Row| format!("{}/{}", r.probe, r.comparison) == id && !comparison::same_as(r);
    let targets = report.targets.iter();
    let columns: Vec<Vec<&Row>> = targets
        .map(|t| t.rows.iter().filter(of_id).collect())
        .collect();
    let mut cases: Vec<&str> = Vec::new();
    for row in columns.iter().flatten() {
        if !cases.contains(&row.case.as_str()) {
            cases.push(&row.case);
        }
    }
    let figures = |case: &str| -> Vec<String> {
        let of_case = |rows: &Vec<&Row>| rows.iter().find(|r| r.case == case).map(|r| cell(r));
        let cells = columns.iter().map(of_case);
        cells.map(Option::unwrap_or_default).collect()
    };
    cases
        .iter()
        .map(|case| ((*case).to_owned(), figures(case)))
        .collect()
}

/// One table, or several below each other where the width does not hold all columns.
fn table(page: &mut Page, report: &Report, id: &str) {
    let lines = lines(report, id);
    let all = report.targets.len();
    let limit = page.options.table();
    let fits = |columns: usize| {
        let mut starts = (0..all).step_by(columns);
        starts.all(|from| {
            let grid = grid(&lines, from..all.min(from + columns));
            let widest = grid.lines().map(|l| l.trim_end().chars().count()).max();
            limit.is_none_or(|limit| widest.unwrap_or(0) <= limit)
        })
    };
    let columns = (1..=all).rev().find(|n| fits(*n)).unwrap_or(1);
    for from in (0..all).step_by(columns) {
        if from > 0 {
            page.out.push('\n');
        }
        for line in grid(&lines, from..all.min(from + columns)).lines() {
            let _ = writeln!(page.out, "{}", line.trim_end());
        }
    }
}

fn grid(lines: &[(String, Vec<String>)], shown: Range<usize>) -> Grid {
    let mut grid = plain_grid();
    let mut head = vec!["case".to_owned()];
    head.extend(shown.clone().map(letter));
    grid.set_header(head);
    for (case, figures) in lines {
        let figures = &figures[shown.clone()];
        grid.add_row(std::iter::once(case).chain(figures));
    }
    for at in 1..=shown.len() {
        if let Some(c) = grid.column_mut(at) {
            c.set_cell_alignment(CellAlignment::Right);
        }
    }
    tighten(&mut grid);
    grid
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
