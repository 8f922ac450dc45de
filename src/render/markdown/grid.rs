//! A table in pipes, padded so that it reads well unrendered.

use std::fmt::Write as _;

/// A table; its cells are Markdown.
pub(super) struct Grid {
    /// Headings, and whether the column is set to the right.
    columns: Vec<(String, bool)>,
    lines: Vec<Vec<String>>,
}

impl Grid {
    /// A table whose first column has this heading.
    pub(super) fn new(first: &str) -> Self {
        Self {
            columns: vec![(first.to_owned(), false)],
            lines: Vec::new(),
        }
    }

    /// Adds a column.
    pub(super) fn column(&mut self, head: &str, right: bool) {
        self.columns.push((head.to_owned(), right));
    }

    /// Adds a line.
    pub(super) fn line(&mut self, cells: impl Iterator<Item = String>) {
        self.lines.push(cells.collect());
    }

    /// The text, a newline after each line.
    pub(super) fn text(&self) -> String {
        let width = |at: usize| {
            let cells = self.lines.iter().filter_map(|l| l.get(at));
            let cells = cells.chain(std::iter::once(&self.columns[at].0));
            // A delimiter needs three characters, and a colon to the right.
            cells.map(|c| c.chars().count()).max().unwrap_or(0).max(4)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut out = String::new();
        let heads: Vec<String> = self.columns.iter().map(|(head, _)| head.clone()).collect();
        self.put(&mut out, &widths, &heads);
        for ((_, right), width) in self.columns.iter().zip(&widths) {
            let dashes = "-".repeat(width - usize::from(*right));
            let _ = write!(out, "| {dashes}{} ", if *right { ":" } else { "" });
        }
        out.push_str("|\n");
        for line in &self.lines {
            self.put(&mut out, &widths, line);
        }
        out
    }

    fn put(&self, out: &mut String, widths: &[usize], cells: &[String]) {
        for (at, (width, (_, right))) in widths.iter().zip(&self.columns).enumerate() {
            let cell = cells.get(at).map_or("", String::as_str);
            let _ = if *right {
                write!(out, "| {cell:>width$} ")
            } else {
                write!(out, "| {cell:<width$} ")
            };
        }
        out.push_str("|\n");
    }
}
