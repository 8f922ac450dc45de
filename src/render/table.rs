//! The terminal report.
//!
//! For each directory: a card, one table a comparison, what follows for the settings, and
//! what was left out and why; then, of several directories, their figures side by side;
//! last the postgresql.conf fragment. ASCII only apart from the report's own names, so that
//! it survives e-mail; colour adds nothing that the words do not say.

use std::fmt::Write as _;

use comfy_table::{ContentArrangement, LineStyle, Table as Grid, TableStyle};
use walprobe_probes::report::{EndedBy, Report, Target, TargetStatus};

use super::{Options, Render, conf, fill::fill, legible, units};

pub(super) mod advice;
pub mod card;
pub(super) mod columns;
pub(super) mod comparison;
mod facts;
pub(super) mod left_out;
pub(super) mod legend;
pub(super) mod notes;
mod paint;
pub(super) mod side_by_side;

use paint::Paint;

/// The format.
#[derive(Debug)]
pub struct Table;

impl Render for Table {
    fn name(&self) -> &'static str {
        "table"
    }

    fn render(&self, report: &Report, options: &Options) -> anyhow::Result<String> {
        let report = legible(report)?;
        let mut page = Page {
            out: String::new(),
            options: *options,
            paint: Paint(options.color),
            narrowed: false,
            shown: Vec::new(),
        };
        page.head(&report);
        for target in &report.targets {
            page.target(target);
        }
        if report.targets.len() > 1 {
            side_by_side::write(&mut page, &report);
        }
        page.tail(&report);
        Ok(page.out)
    }
}

/// What must be said where several directories were measured.
pub(super) const SEVERAL: &str = "The directories were measured one after another: their figures \
    stand side by side, with no verdict across them.";

/// The text so far, and how it is to look.
struct Page {
    out: String,
    options: Options,
    paint: Paint,
    /// Columns were left out of a table.
    narrowed: bool,
    /// The columns that stand in the tables of this directory.
    shown: Vec<&'static str>,
}

impl Page {
    fn prose(&mut self, text: &str) {
        fill(&mut self.out, self.options.prose(), "", "", text);
    }

    fn labelled(&mut self, indent: usize, label: &str, text: &str) {
        super::fill::labelled(&mut self.out, self.options.prose(), indent, label, text);
    }

    fn section(&mut self, title: &str) {
        let _ = writeln!(self.out, "\n{}", self.paint.bold(title));
    }

    fn head(&mut self, report: &Report) {
        let tool = format!("{} {}", report.tool.name, report.tool.version);
        let _ = writeln!(
            self.out,
            "{}  run {}  {}",
            self.paint.bold(&tool),
            report.run_id,
            report.started_at
        );
        let parts = known(report);
        self.prose(&parts.join(", "));
        if let Some(why) = ended(report.ended_by) {
            let line = format!("NOT COMPLETE: {why}; what was measured until then is below");
            self.loud(&line);
        }
        if report.targets.len() > 1 {
            self.prose(SEVERAL);
        }
    }

    /// A line that must not be missed.
    fn loud(&mut self, text: &str) {
        let mut filled = String::new();
        fill(&mut filled, self.options.prose(), "", "", text);
        for line in filled.lines() {
            let _ = writeln!(self.out, "{}", self.paint.alarm(line));
        }
    }

    fn target(&mut self, target: &Target) {
        card::write(self, target);
        if target.rows.is_empty() {
            if target.status != TargetStatus::Skipped {
                facts::write(self, target);
            }
            return;
        }
        comparison::write_all(self, target);
        advice::write(self, target);
        left_out::write(self, target);
    }

    fn tail(&mut self, report: &Report) {
        if self.narrowed {
            self.out.push('\n');
            self.prose("Further columns fit into --width 200; JSON and CSV have all figures.");
        }
        if report.targets.iter().any(|t| !t.rows.is_empty()) {
            self.section("postgresql.conf");
            let fragment = conf::fragment(report, &self.options, true);
            self.out.push_str(&fragment);
        }
    }
}

/// A table of natural width with a rule below its head and no other line.
fn plain_grid() -> Grid {
    let rule = LineStyle::none().fill('-').junction('-');
    let mut grid = Grid::new();
    grid.load_style(TableStyle::new().header_separator(rule));
    grid.set_content_arrangement(ContentArrangement::Disabled);
    grid
}

/// Two blanks between columns, once they are all there.
fn tighten(grid: &mut Grid) {
    for column in grid.column_iter_mut() {
        column.set_padding((1, 0));
    }
}

/// What the head says of the run.
pub(super) fn known(report: &Report) -> Vec<String> {
    let kernel = report.host.facts.get("host.kernel");
    let kernel = kernel.and_then(|f| f.value.as_str());
    let parts = [
        report.host.name.as_ref().map(|n| format!("host {n}")),
        kernel.map(|k| format!("kernel {k}")),
        Some(format!("profile {}", report.profile)),
        Some(format!("seed {}", report.seed)),
    ];
    parts.into_iter().flatten().collect()
}

/// Why a report is not complete.
pub(super) fn ended(by: EndedBy) -> Option<&'static str> {
    match by {
        EndedBy::Done => None,
        EndedBy::Sigint => Some("interrupted by SIGINT"),
        EndedBy::Sigterm => Some("interrupted by SIGTERM"),
        EndedBy::Sighup => Some("interrupted by SIGHUP"),
        EndedBy::Budget => Some("the write budget was spent"),
        EndedBy::Time => Some("the time limit was reached"),
        EndedBy::Error => Some("walprobe failed"),
    }
}

/// A scalar of the report as text; bytes with their unit.
fn scalar(name: &str, value: &serde_json::Value) -> String {
    if let (true, Some(n)) = (name.ends_with("_bytes"), value.as_f64()) {
        return units::bytes(n);
    }
    if let (true, Some(n)) = (name.ends_with("_us"), value.as_f64()) {
        return units::time(n);
    }
    if let (true, Some(n)) = (name.ends_with("_ms"), value.as_f64()) {
        return units::time(n * 1_000.0);
    }
    if let (true, Some(n)) = (name.ends_with("_pct"), value.as_f64()) {
        return units::percent(n);
    }
    match value {
        serde_json::Value::String(s) => s.clone(),
        serde_json::Value::Bool(true) => "yes".to_owned(),
        serde_json::Value::Bool(false) => "no".to_owned(),
        serde_json::Value::Number(n) => match n.as_f64() {
            Some(f) if n.is_f64() => units::number(f),
            _ => n.to_string(),
        },
        other => other.to_string(),
    }
}

/// A key without its unit, as words.
fn title(name: &str) -> String {
    ["_bytes", "_us", "_ms", "_pct"]
        .iter()
        .find_map(|unit| name.strip_suffix(unit))
        .unwrap_or(name)
        .replace('_', " ")
}

/// `name value` pairs of a map, nulls left out.
fn pairs<'a>(map: impl IntoIterator<Item = (&'a String, &'a serde_json::Value)>) -> Vec<String> {
    map.into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| format!("{} {}", title(name), scalar(name, value)))
        .collect()
}
