//! CSV: one row a case, all rows of all targets, always the same columns.
//!
//! Each cell is the value of the JSON document, digit for digit: a dot as the decimal
//! sign, `true` and `false`, null as an empty cell. Quoting is RFC 4180's, lines end with
//! a newline. Text has its control characters escaped, so a row is one line; text that a
//! spreadsheet would run as a formula begins with an apostrophe. Numbers are never touched.

use anyhow::Context as _;
use serde_json::Value;
use walprobe_probes::report::Report;

use super::{Options, Render, document, escape};

/// The format.
#[derive(Debug)]
pub struct Csv;

/// All columns of schema 1, in order.
pub const COLUMNS: &[&str] = &[
    "schema",
    "run_id",
    "started_at",
    "host",
    "target",
    "fs",
    "device",
    "durability",
    "probe",
    "comparison",
    "case",
    "baseline",
    "status",
    "reason_code",
    "reason",
    "ops",
    "rounds",
    "ops_per_sec",
    "mean_us",
    "stddev_us",
    "p50_us",
    "p95_us",
    "p99_us",
    "p999_us",
    "max_us",
    "ratio",
    "ratio_low",
    "ratio_high",
    "verdict",
    "bytes_written",
    "device_bytes_written",
    "device_bytes_read",
    "flushes",
    "cold",
    "extents",
    "unwritten_pct",
    "allocated_bytes",
    "wal_bytes",
    "syncs",
    "flushes_per_op",
    "own_bytes_read",
    "p50_ratio",
    "p99_ratio",
    "read_per_write_bytes",
    "record_bytes",
    "group_size_mean",
    "fails_at",
    "fails_errno",
    "reserved",
    "acked_lost",
    "recovers",
    "doubts",
];

impl Render for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn render(&self, report: &Report, _options: &Options) -> anyhow::Result<String> {
        let document = document(report)?;
        let mut writer = ::csv::WriterBuilder::new().from_writer(Vec::new());
        writer.write_record(COLUMNS)?;
        for target in list(&document["targets"]) {
            for row in list(&target["rows"]) {
                writer.write_record(
                    COLUMNS
                        .iter()
                        .map(|c| cell(&value(&document, target, row, c))),
                )?;
            }
        }
        let bytes = writer.into_inner().context("cannot finish the CSV text")?;
        String::from_utf8(bytes).context("the CSV text is not UTF-8")
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A column's value, by the mapping of the format page.
fn value(document: &Value, target: &Value, row: &Value, column: &str) -> Value {
    match column {
        "schema" | "run_id" | "started_at" => document[column].clone(),
        "host" => document["host"]["name"].clone(),
        "target" => target["dir"].clone(),
        "fs" => target["facts"]["fs.type"]["value"].clone(),
        "device" => joined(
            list(&target["devices"]).filter(|d| d["above"].is_null()),
            "name",
        ),
        "durability" => target["durability"]["verdict"].clone(),
        "read_per_write_bytes"
        | "record_bytes"
        | "group_size_mean"
        | "fails_at"
        | "fails_errno"
        | "reserved"
        | "acked_lost"
        | "recovers" => row["observations"][column].clone(),
        "doubts" => joined(list(&row["doubts"]), "code"),
        _ => row[column].clone(),
    }
}

fn joined<'a>(items: impl Iterator<Item = &'a Value>, key: &str) -> Value {
    let words: Vec<&str> = items.filter_map(|i| i[key].as_str()).collect();
    if words.is_empty() {
        Value::Null
    } else {
        Value::String(words.join(" "))
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => guarded(text),
        other => other.to_string(),
    }
}

/// Text that no spreadsheet takes for a formula and no terminal for a command.
fn guarded(text: &str) -> String {
    let text = escape::escape(text);
    // The full-width forms are taken for the plain ones by spreadsheets in some locales.
    let runs = text.trim_start().starts_with([
        '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ]);
    if runs {
        format!("'{text}")
    } else {
        text.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_never_touched_and_text_never_runs() {
        assert_eq!(cell(&json!(-3.5)), "-3.5");
        assert_eq!(cell(&json!("-3.5")), "'-3.5");
        assert_eq!(cell(&json!("=HYPERLINK(1)")), "'=HYPERLINK(1)");
        assert_eq!(cell(&json!("@x")), "'@x");
        assert_eq!(cell(&json!(" +x")), "' +x");
        assert_eq!(cell(&json!("\t=1")), "\\t=1");
        assert_eq!(cell(&json!("a\r\n=1")), "a\\r\\n=1");
        assert_eq!(cell(&json!(true)), "true");
        assert_eq!(cell(&json!(240.0)), "240.0");
        assert_eq!(cell(&Value::Null), "");
    }
}
