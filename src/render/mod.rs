//! Renderers: pure functions from a report to text.
//!
//! Adding a format is one file here and one entry in [`RENDERERS`]. A renderer reads the
//! report and nothing else: no clock, no terminal, no environment. Whoever calls it
//! decides on width and colour. Strings of a report may come from hostile names, so every
//! format that a person reads is made from [`legible`], in which no control character is left.

use anyhow::Context as _;
use serde::Deserialize as _;
use serde_json::Value;
use walprobe_probes::report::Report;

pub mod conf;
pub mod csv;
pub mod escape;
pub mod evidence;
pub mod fill;
pub mod json;
pub mod markdown;
pub mod table;
pub mod units;
pub mod vocabulary;

pub use evidence::check_evidence;

/// Prose is never filled to more than this, however wide the terminal is.
pub const PROSE_COLUMNS: usize = 100;

/// The width that prose has where none is given, as in a pipe.
pub const DEFAULT_COLUMNS: usize = 80;

/// Below this, text is laid out for this width and left to the terminal to wrap.
pub const LEAST_COLUMNS: usize = 40;

/// What the caller decides about a rendering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Columns available. `None`, as in a pipe, gives each table its main columns at their
    /// natural width and fills prose to [`DEFAULT_COLUMNS`].
    pub width: Option<u16>,
    /// Terminal escape sequences may be used.
    pub color: bool,
}

impl Options {
    /// Columns for prose.
    #[must_use]
    pub fn prose(&self) -> usize {
        self.width
            .map_or(DEFAULT_COLUMNS, usize::from)
            .clamp(LEAST_COLUMNS, PROSE_COLUMNS)
    }

    /// Columns for tables; `None` is no limit.
    #[must_use]
    pub fn table(&self) -> Option<usize> {
        self.width.map(|w| usize::from(w).max(LEAST_COLUMNS))
    }
}

/// One output format.
pub trait Render: Sync {
    /// The format's name, as `--format` takes it.
    fn name(&self) -> &'static str;
    /// The whole text, with a newline at its end.
    ///
    /// # Errors
    /// The report holds a number that is not finite where one is needed.
    fn render(&self, report: &Report, options: &Options) -> anyhow::Result<String>;
}

/// Every format.
pub const RENDERERS: &[&dyn Render] = &[
    &table::Table,
    &markdown::Markdown,
    &json::Json,
    &csv::Csv,
    &conf::Conf,
];

/// A format by its name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Render> {
    RENDERERS.iter().copied().find(|r| r.name() == name)
}

/// The width to render for: what was asked for, else `COLUMNS`, else the terminal's own.
///
/// 0 and what is not a number say nothing. Pass `None` for `terminal` where the output is not one.
#[must_use]
pub fn choose_width(
    asked: Option<u16>,
    columns: Option<&str>,
    terminal: Option<u16>,
) -> Option<u16> {
    let columns = columns.and_then(|c| c.trim().parse().ok());
    [asked, columns, terminal]
        .into_iter()
        .flatten()
        .find(|w| *w > 0)
}

/// The report as a JSON value, sure to be readable again.
///
/// # Errors
/// A number is not finite where the format needs one.
pub fn document(report: &Report) -> anyhow::Result<Value> {
    let value = serde_json::to_value(report).context("cannot write the report as JSON")?;
    Report::deserialize(&value)
        .context("the report holds a number that is not finite, or cannot be read back")?;
    Ok(value)
}

/// The report with every control and invisible character of its strings escaped.
///
/// # Errors
/// As [`document`].
pub fn legible(report: &Report) -> anyhow::Result<Report> {
    let mut value =
        serde_json::to_value(report).context("cannot read the report through as JSON")?;
    escape::escape_value(&mut value);
    serde_json::from_value(value)
        .context("the report holds a number that is not finite, or cannot be read back")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_each_has_its_file() {
        let mut names: Vec<_> = RENDERERS.iter().map(|r| r.name()).collect();
        let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/render");
        for name in &names {
            assert!(here.join(format!("{name}.rs")).is_file(), "{name}");
            assert_eq!(by_name(name).map(Render::name), Some(*name));
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RENDERERS.len());
        assert!(by_name("nonsense").is_none());
    }

    #[test]
    fn width_is_asked_then_columns_then_terminal() {
        assert_eq!(choose_width(Some(120), Some("90"), Some(70)), Some(120));
        assert_eq!(choose_width(None, Some("90"), Some(70)), Some(90));
        assert_eq!(choose_width(None, Some("0"), Some(70)), Some(70));
        assert_eq!(choose_width(None, Some("wide"), Some(0)), None);
        assert_eq!(choose_width(Some(0), None, None), None);
    }

    #[test]
    fn tiny_widths_are_laid_out_as_forty() {
        let tiny = Options {
            width: Some(3),
            color: false,
        };
        assert_eq!(tiny.prose(), LEAST_COLUMNS);
        assert_eq!(tiny.table(), Some(LEAST_COLUMNS));
        assert_eq!(Options::default().table(), None);
        assert_eq!(Options::default().prose(), DEFAULT_COLUMNS);
    }
}
