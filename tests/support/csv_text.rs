//! The CSV form of a report, and that every cell says what the JSON says.
//!
//! One row a case, all columns of schema 1 in their order. Columns before `probe`
//! come from the report and the target, those after from the row's key of the
//! same name, a few from the row's observations.

use serde_json::Value;

use crate::document::Document;

/// The columns of schema 1.
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

const FROM_OBSERVATIONS: &[&str] = &[
    "read_per_write_bytes",
    "record_bytes",
    "group_size_mean",
    "fails_at",
    "fails_errno",
    "reserved",
    "acked_lost",
    "recovers",
];

/// Reads one CSV document; its records without the header, which is checked.
///
/// # Errors
/// It is not CSV, has another header, or a record of another length.
pub fn read(text: &[u8]) -> Result<Vec<Vec<String>>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(text);
    let mut records = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| format!("not CSV: {error}"))?;
        records.push(record.iter().map(str::to_owned).collect::<Vec<_>>());
    }
    if records.first().is_none_or(|header| header != COLUMNS) {
        return Err(format!("the header is {:?}", records.first()));
    }
    records.remove(0);
    if let Some(cell) = records
        .iter()
        .flatten()
        .find(|cell| cell.starts_with(['=', '+', '-', '@', '\t', '\r']))
    {
        return Err(format!("a spreadsheet would run the cell {cell:?}"));
    }
    Ok(records)
}

/// Every cell is what the report's JSON says.
///
/// # Errors
/// The first cells that are not.
pub fn agrees(records: &[Vec<String>], document: &Document) -> Result<(), String> {
    let rows = rows(&document.json);
    if rows.len() != records.len() {
        return Err(format!("{} records for {} rows", records.len(), rows.len()));
    }
    let mut wrong = Vec::new();
    for (record, (target, row)) in records.iter().zip(rows) {
        for (column, cell) in COLUMNS.iter().zip(record) {
            let value = value(&document.json, target, row, column);
            if !same(cell, &value) {
                wrong.push(format!(
                    "{}/{}/{}: column {column} is {cell:?}, in the JSON {value}",
                    row["probe"], row["comparison"], row["case"]
                ));
            }
        }
    }
    wrong.truncate(10);
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}

fn rows(report: &Value) -> Vec<(&Value, &Value)> {
    let targets = report["targets"].as_array().into_iter().flatten();
    targets
        .flat_map(|target| {
            let rows = target["rows"].as_array().into_iter().flatten();
            rows.map(move |row| (target, row))
        })
        .collect()
}

fn value(report: &Value, target: &Value, row: &Value, column: &str) -> Value {
    match column {
        "schema" | "run_id" | "started_at" => report[column].clone(),
        "host" => report["host"]["name"].clone(),
        "target" => target["dir"].clone(),
        "fs" => target["facts"]["fs.type"]["value"].clone(),
        "device" => {
            let devices = target["devices"].as_array().into_iter().flatten();
            devices
                .filter(|device| device["above"].is_null())
                .map(|device| device["name"].clone())
                .next()
                .unwrap_or_default()
        }
        "durability" => target["durability"]["verdict"].clone(),
        "doubts" => {
            let doubts = row["doubts"].as_array().into_iter().flatten();
            let codes: Vec<_> = doubts.filter_map(|doubt| doubt["code"].as_str()).collect();
            Value::String(codes.join(" "))
        }
        column if FROM_OBSERVATIONS.contains(&column) => row["observations"][column].clone(),
        column => row[column].clone(),
    }
}

/// Numbers are compared as numbers: the two formats may write them differently.
/// A text cell may carry the apostrophe that keeps a spreadsheet from running it.
fn same(cell: &str, value: &Value) -> bool {
    match value {
        Value::Null => cell.is_empty(),
        Value::Bool(flag) => cell == flag.to_string(),
        Value::Number(number) => {
            cell == number.to_string() || cell.parse::<f64>().ok() == number.as_f64()
        }
        Value::String(text) => cell == text || cell.strip_prefix('\'') == Some(text),
        Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expect::samples;

    fn written(document: &Document) -> String {
        let mut text = COLUMNS.join(",");
        for (target, row) in rows(&document.json) {
            let cells: Vec<_> = COLUMNS
                .iter()
                .map(|column| match value(&document.json, target, row, column) {
                    Value::Null => String::new(),
                    Value::String(text) => format!("\"{text}\""),
                    other => other.to_string(),
                })
                .collect();
            text.push('\n');
            text.push_str(&cells.join(","));
        }
        text
    }

    #[test]
    fn the_same_figures_agree_and_another_does_not() -> Result<(), String> {
        let document = Document::read(samples::json().to_string().as_bytes())?;
        let text = written(&document);
        let mut records = read(text.as_bytes())?;
        agrees(&records, &document)?;
        assert!(
            agrees(&records[1..], &document).is_err(),
            "a row is missing"
        );
        let flushes = COLUMNS.iter().position(|column| *column == "flushes");
        records[0][flushes.unwrap_or_default()] = "7".into();
        let error = agrees(&records, &document).err().unwrap_or_default();
        assert!(error.contains("column flushes"), "{error}");
        Ok(())
    }

    #[test]
    fn another_header_a_short_record_and_a_formula_are_refused() {
        let header = COLUMNS.join(",");
        assert!(read(b"").is_err());
        assert!(read(header.to_uppercase().as_bytes()).is_err());
        assert!(read(format!("{header}\n1,2\n").as_bytes()).is_err());
        let commas = ",".repeat(COLUMNS.len() - 1);
        assert!(read(format!("{header}\n1{commas}\n").as_bytes()).is_ok());
        assert!(read(format!("{header}\n=1{commas}\n").as_bytes()).is_err());
    }
}
