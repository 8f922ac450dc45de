//! The terminal report as GitHub-flavoured Markdown, for an issue or a mail.
//!
//! The same words and the main columns, whatever the terminal's width: what is pasted does
//! not depend on where it was made. Tables are padded, so that they read well as plain text
//! too; prose is one line a paragraph, since forges keep line breaks. Names that are not
//! ours stand in code spans or escaped ([`text`]).

use std::fmt::Write as _;

use walprobe_probes::report::{Finding, Report, Row, Target, TargetStatus};

use super::{
    Options, Render, conf, legible,
    table::{
        self, advice, card,
        columns::{COLUMNS, Column, MAIN},
        comparison, left_out, legend,
        notes::Notes,
        side_by_side,
    },
    units,
};

mod grid;
pub mod text;

use grid::Grid;
use text::{block, code, prose};

/// The format.
#[derive(Debug)]
pub struct Markdown;

impl Render for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn render(&self, report: &Report, _options: &Options) -> anyhow::Result<String> {
        let report = legible(report)?;
        let mut page = Page::default();
        page.head(&report);
        for target in &report.targets {
            page.target(target);
        }
        if report.targets.len() > 1 {
            page.side_by_side(&report);
        }
        if !report.targets.is_empty() {
            page.heading(2, "postgresql.conf");
            let fragment = conf::fragment(&report, &Options::default(), true);
            page.paragraph(&block(&fragment));
        }
        Ok(page.0)
    }
}

/// The text so far; each part begins with an empty line.
#[derive(Default)]
struct Page(String);

impl Page {
    /// A heading; `title` is Markdown.
    fn heading(&mut self, level: usize, title: &str) {
        let _ = writeln!(self.0, "\n{} {title}", "#".repeat(level));
    }

    /// `text` is Markdown.
    fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.0, "\n{text}");
    }

    fn loud(&mut self, text: &str) {
        self.paragraph(&format!("**{}**", prose(text)));
    }

    /// An entry of a list; `label` is Markdown, `text` is not.
    fn entry(&mut self, depth: usize, label: &str, text: &str) {
        let _ = writeln!(
            self.0,
            "{:indent$}- {label}: {}",
            "",
            prose(text),
            indent = 2 * depth
        );
    }

    fn head(&mut self, report: &Report) {
        let _ = writeln!(
            self.0,
            "# {} {}",
            prose(&report.tool.name),
            prose(&report.tool.version)
        );
        let run = [format!("run {}", report.run_id), report.started_at.clone()];
        let parts: Vec<String> = run.into_iter().chain(table::known(report)).collect();
        self.paragraph(&prose(&parts.join(", ")));
        if let Some(why) = table::ended(report.ended_by) {
            self.loud(&format!(
                "NOT COMPLETE: {why}; what was measured until then is below"
            ));
        }
        if report.targets.len() > 1 {
            self.paragraph(table::SEVERAL);
        }
    }

    fn target(&mut self, target: &Target) {
        self.heading(2, &code(&target.dir));
        self.card(target);
        if target.status == TargetStatus::Skipped && target.rows.is_empty() {
            return;
        }
        let above = std::mem::take(&mut self.0);
        let mut shown = Vec::new();
        let all = comparison::comparisons(target);
        for (id, rows) in all.iter().filter(|(_, rows)| comparison::tried(rows)) {
            self.comparison(id, rows, &mut shown);
        }
        let tables = std::mem::replace(&mut self.0, above);
        let entries = legend::entries(&shown, "the baseline");
        if !entries.is_empty() {
            self.heading(3, "Columns");
            self.0.push('\n');
        }
        for (label, text) in entries {
            self.entry(0, &prose(&label), &text);
        }
        self.0.push_str(&tables);
        self.advice(target);
        self.left_out(target);
    }

    fn card(&mut self, target: &Target) {
        if let Some(line) = card::alarm(target) {
            self.loud(&line);
        }
        if let Some(reason) = &target.reason {
            self.loud(&format!("not measured to the end: {reason}"));
        }
        if !target.left_behind.is_empty() {
            self.loud(&format!(
                "LEFT BEHIND: {}; walprobe clean {} removes it",
                target.left_behind.join(", "),
                target.dir
            ));
        }
        if target.facts.is_empty() && target.rows.is_empty() {
            return;
        }
        self.0.push('\n');
        self.entry(0, "filesystem", &card::filesystem(target));
        let details = card::details(target);
        if !details.is_empty() {
            self.entry(0, "details", &details);
        }
        for (depth, device) in card::stack(&target.devices) {
            self.entry(depth.min(8), "device", &card::describe(device));
        }
        let durability = &target.durability;
        let said = format!("{}: {}", durability.verdict.as_str(), durability.text);
        self.entry(0, "durability", &said);
        for ground in &durability.grounds {
            self.entry(1, card::weight(ground.weight), &card::words(ground));
        }
        if target.bytes_written > 0 {
            self.entry(0, "written", &units::bytes(target.bytes_written as f64));
        }
    }

    fn comparison(&mut self, id: &str, rows: &[&Row], shown: &mut Vec<&str>) {
        let caption = comparison::caption(id).map(|c| format!(": {}", prose(c)));
        self.heading(3, &format!("{}{}", code(id), caption.unwrap_or_default()));
        let notes = Notes::of(rows);
        let common = comparison::common(rows);
        if !common.is_empty() {
            self.paragraph(&prose(&common));
        }
        let with_figures: Vec<&Row> = rows
            .iter()
            .copied()
            .filter(|r| comparison::figures(r))
            .collect();
        let columns: Vec<&Column> = COLUMNS
            .iter()
            .filter(|c| c.rank >= MAIN && (c.head != "cold" || notes.cold))
            .filter(|c| with_figures.iter().any(|r| (c.cell)(r).is_some()))
            .collect();
        shown.extend(columns.iter().map(|c| c.head));
        if !columns.is_empty() {
            self.paragraph(figures(&with_figures, &columns, &notes).text().trim_end());
        }
        self.remarks(rows, &columns, &notes);
        if let Some(text) = comparison::without_baseline(rows) {
            self.paragraph(&prose(&text));
        }
    }

    /// What stands in no column: reasons, observations, notes.
    fn remarks(&mut self, rows: &[&Row], columns: &[&Column], notes: &Notes) {
        let mut entries: Vec<(String, String)> = Vec::new();
        for row in rows {
            let said = if !comparison::figures(row) {
                comparison::why(row)
            } else if row.series.is_none() || columns.iter().all(|c| (c.cell)(row).is_none()) {
                comparison::observed(row)
            } else {
                String::new()
            };
            if !said.is_empty() {
                entries.push((code(&row.case), said));
            }
        }
        let marks = notes.texts.iter().enumerate();
        entries.extend(marks.map(|(i, text)| (format!("({})", i + 1), text.clone())));
        if !entries.is_empty() {
            self.0.push('\n');
        }
        for (label, said) in entries {
            self.entry(0, &label, &said);
        }
    }

    fn advice(&mut self, target: &Target) {
        let none = target.findings.is_empty();
        if none && (target.durability.verdict.may_recommend() || target.rows.is_empty()) {
            return;
        }
        self.heading(3, &format!("Recommendations for {}", code(&target.dir)));
        self.0.push('\n');
        if none {
            let verdict = target.durability.verdict.as_str();
            self.entry(0, "settings", &format!("none: durability is {verdict}"));
        }
        let (told, kept): (Vec<&Finding>, Vec<&Finding>) =
            target.findings.iter().partition(|f| f.action != "keep");
        for finding in told {
            let label = if finding.action == "change" {
                "CHANGE"
            } else {
                "note"
            };
            let label = format!("**{label} {}**", code(&advice::assignment(finding)));
            self.entry(0, &label, &advice::known(finding));
            for (label, text) in advice::told(finding) {
                self.entry(1, label, text);
            }
        }
        for finding in kept {
            let label = format!("keep {}", code(&advice::assignment(finding)));
            let said = format!("{}{}", advice::urgent(finding), finding.seen);
            self.entry(0, &label, &said);
        }
    }

    fn left_out(&mut self, target: &Target) {
        let groups = left_out::untried(target);
        if groups.is_empty() && target.not_tested.is_empty() {
            return;
        }
        self.heading(3, &format!("Left out on {}", code(&target.dir)));
        self.0.push('\n');
        for (reason, ids) in &groups {
            let ids: Vec<String> = ids.iter().map(|id| code(id)).collect();
            self.entry(0, &format!("left out: {}", ids.join(", ")), reason);
        }
        for setting in &target.not_tested {
            let said = format!("{} ({})", setting.reason, setting.reason_code);
            self.entry(0, &format!("not tested: {}", code(&setting.setting)), &said);
            if let Some(hint) = &setting.hint {
                self.entry(1, "hint", hint);
            }
        }
    }

    fn side_by_side(&mut self, report: &Report) {
        let ids = side_by_side::shared(report);
        if ids.is_empty() {
            return;
        }
        self.heading(2, "Side by side");
        self.paragraph(side_by_side::FIGURE);
        self.0.push('\n');
        for (i, target) in report.targets.iter().enumerate() {
            self.entry(
                0,
                &side_by_side::letter(i),
                &side_by_side::described(target),
            );
        }
        for id in ids {
            self.heading(3, &code(&id));
            let mut grid = Grid::new("case");
            for i in 0..report.targets.len() {
                grid.column(&side_by_side::letter(i), true);
            }
            for (case, figures) in side_by_side::lines(report, &id) {
                let figures = figures.iter().map(|f| prose(f));
                grid.line(std::iter::once(text::code_in_table(&case)).chain(figures));
            }
            self.paragraph(grid.text().trim_end());
        }
    }
}

fn figures(rows: &[&Row], columns: &[&Column], notes: &Notes) -> Grid {
    let mut grid = Grid::new("case");
    for column in columns {
        grid.column(&prose(column.head), column.head != "verdict");
    }
    if notes.any() {
        grid.column("", false);
    }
    for row in rows {
        let mark = match &row.baseline {
            Some(baseline) if *baseline == row.case => " (baseline)",
            _ => "",
        };
        let case = format!("{}{mark}", text::code_in_table(&row.case));
        let cells = columns.iter().map(|c| (c.cell)(row).unwrap_or_default());
        // In brackets they would have to be escaped.
        let marks = notes.marks(row).replace('[', "(").replace(']', ")");
        let marks = notes.any().then_some(marks);
        let cells = cells.chain(marks).map(|cell| prose(&cell));
        grid.line(std::iter::once(case).chain(cells));
    }
    grid
}
