//! One comparison as a table.
//!
//! The figures are laid out by the table crate at their natural width; columns are dropped
//! before anything is wrapped, so no number is ever broken. A row without figures has its
//! reason in their place.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Row as Line, Table as Grid};
use serde_json::Value;
use walprobe_probes::report::{Row, RowStatus, Target};

use super::{
    Page,
    columns::{COLUMNS, Column, KEEP, MAIN, SHOWN},
    legend,
    notes::{Notes, same_cold},
    pairs, plain_grid, tighten,
};
use crate::render::{fill::fill, vocabulary};

/// What the known comparisons ask, by probe and comparison.
const CAPTIONS: &[(&str, &str)] = &[
    ("durability/check", "does a sync reach the device?"),
    (
        "sync/commit",
        "which wal_sync_method makes a commit durable soonest?",
    ),
    ("sync/commit-64k", "the same with 64 KiB of WAL a commit"),
    (
        "sync/bulk",
        "1 MiB of WAL in 16 writes and one flush; open_* sync every write",
    ),
    ("sync/behaviour", "what else a commit relies on"),
    (
        "sync/one-8k",
        "pg_test_fsync's first section; +direct is not what a server does",
    ),
    ("sync/two-8k", "pg_test_fsync's second section"),
    (
        "sync/split-16k",
        "16 KiB by open_sync in different write sizes",
    ),
    (
        "sync/newer-calls",
        "newer calls; no PostgreSQL setting for this",
    ),
    ("prealloc/create", "making a new segment, durably"),
    (
        "prealloc/first-pass",
        "commits in a segment never written before",
    ),
    (
        "prealloc/second-pass",
        "commits in the same segment, the second time round",
    ),
    (
        "prealloc/life",
        "a new segment's life, making it and its commits",
    ),
    (
        "prealloc/cycles",
        "test_fallocate's experiment: make a file, rewrite it, remove it",
    ),
    (
        "recycle/life",
        "an old segment or a new one, while the cache is warm?",
    ),
    ("recycle/life-8k", "the same in smaller commits"),
    (
        "recycle/life-cold",
        "an old segment or a new one, once the old one is cold?",
    ),
    ("recycle/life-cold-8k", "the same in smaller commits"),
    (
        "recycle/life-standby",
        "the same on a standby, in walreceiver's unaligned chunks",
    ),
    (
        "recycle/life-bulk",
        "an old segment or a new one, synced once, when it is full?",
    ),
    (
        "recycle/standby",
        "a standby's commits, by what the segment was before",
    ),
    (
        "recycle/overwrite",
        "a primary's commits, by what the segment was before",
    ),
    (
        "recycle/beside",
        "old segments or new ones, while a file is read at random?",
    ),
    (
        "commit/clients",
        "how many commits a second, by clients that commit at the same time?",
    ),
    (
        "commit/delay",
        "would it gain if the leader waited half a flush for others?",
    ),
    (
        "commit/delay-think",
        "the same with 500 us between a client's commits",
    ),
    (
        "commit/beside",
        "the same clients, while another file is used",
    ),
    (
        "enospc/full",
        "new segments on a full disk: what fails, and is what was acknowledged there?",
    ),
    (
        "enospc/rewrite-old",
        "an old segment, overwritten on a full disk",
    ),
    (
        "enospc/nearly-full",
        "commits as the disk fills: to be compared with each other only",
    ),
    (
        "align/sweep",
        "single writes to a cold file: what is read first, and how long it takes",
    ),
    (
        "align/behaviour",
        "the smallest write that needs no read first; direct I/O",
    ),
];

/// Rows of the same comparison, in the order in which the first of each stands.
pub(in crate::render) fn comparisons(target: &Target) -> Vec<(String, Vec<&Row>)> {
    let mut out: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in &target.rows {
        let id = format!("{}/{}", row.probe, row.comparison);
        match out.iter_mut().find(|(known, _)| *known == id) {
            Some((_, rows)) => rows.push(row),
            None => out.push((id, vec![row])),
        }
    }
    out
}

/// Whether there is anything of a comparison to put into a table.
pub(in crate::render) fn tried(rows: &[&Row]) -> bool {
    rows.iter()
        .any(|r| matches!(r.status, RowStatus::Ok | RowStatus::Fault))
}

/// Writes a target's tables, and before them what their columns mean.
pub(super) fn write_all(page: &mut Page, target: &Target) {
    let all = comparisons(target);
    let above = std::mem::take(&mut page.out);
    page.shown.clear();
    for (id, rows) in all.iter().filter(|(_, rows)| tried(rows)) {
        write(page, id, rows);
    }
    let tables = std::mem::replace(&mut page.out, above);
    let entries = legend::entries(&page.shown, "the row marked *");
    if !entries.is_empty() {
        page.section("Columns");
    }
    let width = entries.iter().map(|(label, _)| label.len()).max();
    let width = width.unwrap_or(0);
    for (label, text) in entries {
        let first = format!(" {label:<width$}  ");
        let rest = " ".repeat(first.len());
        fill(&mut page.out, page.options.prose(), &first, &rest, &text);
    }
    page.out.push_str(&tables);
}

/// What a comparison asks, where it is known.
pub(in crate::render) fn caption(id: &str) -> Option<&'static str> {
    let known = |of: &str| CAPTIONS.iter().find(|(known, _)| *known == of);
    let (_, caption) = known(id).or_else(|| {
        // One comparison for each number of clients.
        let (delay, clients) = id.split_once("/delay-")?;
        let think = if clients.ends_with("-think") {
            "-think"
        } else {
            ""
        };
        known(&format!("{delay}/delay{think}"))
    })?;
    Some(caption)
}

fn write(page: &mut Page, id: &str, rows: &[&Row]) {
    let _ = write!(page.out, "\n{}", page.paint.bold(id));
    match caption(id) {
        Some(caption) if id.len() + 2 + caption.len() <= page.options.prose() => {
            let _ = writeln!(page.out, "  {caption}");
        }
        other => {
            page.out.push('\n');
            if let Some(caption) = other {
                fill(&mut page.out, page.options.prose(), " ", " ", caption);
            }
        }
    }
    let notes = Notes::of(rows);
    let common = common(rows);
    if !common.is_empty() {
        fill(&mut page.out, page.options.prose(), " ", "   ", &common);
    }
    let shown: Vec<&'static Column> = COLUMNS
        .iter()
        .filter(|c| c.head != "cold" || notes.cold)
        .filter(|c| rows.iter().any(|r| figures(r) && (c.cell)(r).is_some()))
        .collect();
    let all = shown.len();
    let (grid, shown) = fitted(page.options.table(), shown, rows, &notes);
    page.narrowed |= shown.len() < all;
    page.shown.extend(shown.iter().map(|c| c.head));
    lay(page, grid, rows);
    let width = page.options.prose();
    // A row without figures has its line in their place.
    let with_figures = rows.iter().filter(|r| r.series.is_some());
    for line in with_figures.filter_map(|r| line_of(r)) {
        fill(&mut page.out, width, " ", "   ", line);
    }
    notes.write(page);
    if let Some(text) = without_baseline(rows) {
        fill(&mut page.out, width, " ", "   ", &text);
    }
}

/// What the baseline's row would have said, where it was left out.
pub(in crate::render) fn without_baseline(rows: &[&Row]) -> Option<String> {
    let baseline = rows.first()?.baseline.as_deref()?;
    let missing = rows.iter().all(|r| r.case != baseline && r.ratio.is_none());
    missing.then(|| format!("the baseline {baseline} was not measured: no ratio"))
}

/// A row whose figures are shown.
pub(in crate::render) fn figures(row: &Row) -> bool {
    row.status == RowStatus::Ok
}

/// The table that fits, and its columns.
fn fitted<'c>(
    limit: Option<usize>,
    mut shown: Vec<&'c Column>,
    rows: &[&Row],
    notes: &Notes,
) -> (Grid, Vec<&'c Column>) {
    if limit.is_none() {
        shown.retain(|c| c.rank >= MAIN);
    }
    loop {
        let grid = grid(&shown, rows, notes);
        let widest = grid.lines().map(|l| l.trim_end().chars().count()).max();
        let fits = limit.is_none_or(|limit| widest.unwrap_or(0) <= limit);
        let least = shown
            .iter()
            .enumerate()
            .filter(|(_, c)| c.rank != KEEP)
            .min_by_key(|(_, c)| c.rank)
            .map(|(at, _)| at);
        match least {
            Some(at) if !fits => {
                shown.remove(at);
            }
            _ => return (grid, shown),
        }
    }
}

fn grid(shown: &[&Column], rows: &[&Row], notes: &Notes) -> Grid {
    let mut grid = plain_grid();
    let mut head = vec!["case"];
    head.extend(shown.iter().map(|c| c.head));
    if notes.any() {
        head.push("");
    }
    grid.set_header(head);
    for row in rows {
        let mut line = Line::new();
        line.add_cell(name(row).into());
        for column in shown {
            let text = if figures(row) {
                (column.cell)(row)
            } else {
                None
            };
            line.add_cell(text.unwrap_or_default().into());
        }
        if notes.any() {
            line.add_cell(notes.marks(row).into());
        }
        grid.add_row(line);
    }
    for (at, column) in shown.iter().enumerate() {
        if let Some(c) = grid.column_mut(at + 1).filter(|_| column.head != "verdict") {
            c.set_cell_alignment(CellAlignment::Right);
        }
    }
    tighten(&mut grid);
    grid
}

/// The case, marked where the others are compared with it.
fn name(row: &Row) -> String {
    if row.baseline.as_ref() == Some(&row.case) {
        format!("{} *", row.case)
    } else {
        row.case.clone()
    }
}

/// Writes the lines, each row without figures with its words instead.
fn lay(page: &mut Page, grid: Grid, rows: &[&Row]) {
    let case_width = grid
        .column_max_content_widths()
        .first()
        .map_or(0, |w| usize::from(*w));
    let width = page
        .options
        .table()
        .unwrap_or_else(|| page.options.prose())
        .min(crate::render::PROSE_COLUMNS);
    let head_lines = 2;
    for (at, line) in grid.lines().enumerate() {
        let row = at.checked_sub(head_lines).and_then(|i| rows.get(i));
        let words = row.and_then(|r| words(r, line.trim_end()));
        match (row, words) {
            (Some(row), Some(words)) => {
                let first = format!(" {:<case_width$}  ", name(row));
                let rest = " ".repeat(first.chars().count());
                fill(&mut page.out, width, &first, &rest, &words);
            }
            (Some(row), None) => {
                let verdict = row.verdict.map_or("", |v| v.as_str());
                let painted = page.paint.verdict(line.trim_end(), verdict);
                let _ = writeln!(page.out, "{painted}");
                let observed = observed(row);
                let told = row.series.is_none() || row.comparison == "behaviour";
                if told && !observed.is_empty() {
                    fill(&mut page.out, width, "   ", "   ", &observed);
                }
            }
            (None, _) => {
                let _ = writeln!(page.out, "{}", line.trim_end());
            }
        }
    }
}

/// What stands in place of a row's figures.
fn words(row: &Row, line: &str) -> Option<String> {
    if figures(row) {
        // Nothing but the case: what was observed is all there is.
        let bare = line.trim() == name(row).trim();
        let observed = observed(row);
        return (bare && !observed.is_empty()).then_some(observed);
    }
    Some(why(row))
}

/// A row whose figures stand in another.
pub(in crate::render) fn same_as(row: &Row) -> bool {
    row.reason_code.as_deref() == Some("same-as")
}

/// Why a row has no figures.
pub(in crate::render) fn why(row: &Row) -> String {
    let code = row.reason_code.as_deref().unwrap_or("");
    let reason = row
        .reason
        .as_deref()
        .unwrap_or_else(|| vocabulary::words(vocabulary::REASON_CODES, code));
    let code = match code {
        "" => String::new(),
        code => format!(" ({code})"),
    };
    format!("{}{code}: {reason}", row.status.as_str())
}

/// A row's own line for people.
fn line_of(row: &Row) -> Option<&str> {
    row.observations.get("line")?.as_str()
}

/// What was observed of a row and stands in no column: in its own words where it has some.
pub(in crate::render) fn observed(row: &Row) -> String {
    if let Some(line) = line_of(row) {
        return line.to_owned();
    }
    pairs(
        row.observations
            .iter()
            .filter(|(name, _)| !SHOWN.contains(&name.as_str())),
    )
    .join(", ")
}

/// What all measured rows have in common: parameters and the state of the cache.
pub(in crate::render) fn common(rows: &[&Row]) -> String {
    let measured: Vec<&&Row> = rows.iter().filter(|r| figures(r)).collect();
    let Some(first) = measured.first() else {
        return String::new();
    };
    let shared: std::collections::BTreeMap<&String, &Value> = first
        .params
        .iter()
        .filter(|(k, v)| measured.iter().all(|r| r.params.get(*k) == Some(*v)))
        .collect();
    let mut parts = pairs(shared);
    parts.extend(same_cold(rows));
    parts.join(", ")
}
