//! CSV: each cell equals its value in the JSON.

use super::*;

/// The columns of schema 1, as promised.
const PROMISED: &str = "schema,run_id,started_at,host,target,fs,device,durability,\
    probe,comparison,case,baseline,status,reason_code,reason,ops,rounds,\
    ops_per_sec,mean_us,stddev_us,p50_us,p95_us,p99_us,p999_us,max_us,\
    ratio,ratio_low,ratio_high,verdict,\
    bytes_written,device_bytes_written,device_bytes_read,flushes,cold,extents,unwritten_pct,\
    allocated_bytes,\
    wal_bytes,syncs,flushes_per_op,own_bytes_read,p50_ratio,p99_ratio,read_per_write_bytes,\
    record_bytes,group_size_mean,\
    fails_at,fails_errno,reserved,acked_lost,recovers,doubts";

/// Holds each cell of a report's CSV to its JSON.
fn held_to_json(report: &Report) -> Result<usize, TestCaseError> {
    let document: Value = serde_json::from_str(&render("json", report, None)).unwrap();
    let text = render("csv", report, None);
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let head: Vec<String> = reader
        .headers()
        .unwrap()
        .iter()
        .map(str::to_owned)
        .collect();
    prop_assert_eq!(head.join(","), PROMISED);
    let mut records = reader.records();
    let mut rows = 0;
    for target in document["targets"].as_array().unwrap() {
        for row in target["rows"].as_array().unwrap() {
            let record = records.next().expect("a record for each row").unwrap();
            for (column, cell) in head.iter().zip(record.iter()) {
                let value = mapped(&document, target, row, column);
                prop_assert!(holds(&value, cell), "{}: {} but {}", column, value, cell);
            }
            rows += 1;
        }
    }
    prop_assert!(records.next().is_none());
    prop_assert_eq!(text.lines().count(), rows + 1, "a row is one line");
    Ok(rows)
}

fn mapped(document: &Value, target: &Value, row: &Value, column: &str) -> Value {
    let words = |list: &Value, key: &str, keep: fn(&Value) -> bool| {
        let list = list.as_array().unwrap();
        let words: Vec<_> = list
            .iter()
            .filter(|e| keep(e))
            .map(|e| e[key].as_str().unwrap())
            .collect();
        match words.is_empty() {
            true => Value::Null,
            false => Value::from(words.join(" ")),
        }
    };
    let position = PROMISED.split(',').position(|c| c == column).unwrap();
    let probe = PROMISED.split(',').position(|c| c == "probe").unwrap();
    let lifted = PROMISED
        .split(',')
        .skip_while(|c| *c != "read_per_write_bytes")
        .take_while(|c| *c != "doubts")
        .any(|c| c == column);
    match column {
        "host" => document["host"]["name"].clone(),
        "target" => target["dir"].clone(),
        "fs" => target["facts"]["fs.type"]["value"].clone(),
        "device" => words(&target["devices"], "name", |d| d["above"].is_null()),
        "durability" => target["durability"]["verdict"].clone(),
        "doubts" => words(&row["doubts"], "code", |_| true),
        _ if position < probe => document[column].clone(),
        _ if lifted => row["observations"][column].clone(),
        _ => row.get(column).expect("a key of that name").clone(),
    }
}

fn holds(value: &Value, cell: &str) -> bool {
    match value {
        Value::Null => cell.is_empty(),
        Value::Bool(b) => cell == if *b { "true" } else { "false" },
        Value::Number(n) => cell == n.to_string(),
        Value::String(s) => {
            // Text that would run is guarded; text that is unsafe to print is only safe here.
            const RUNS: &str = "=+-@\u{ff1d}\u{ff0b}\u{ff0d}\u{ff20}";
            let starts = |text: &str| text.trim_start().starts_with(|c| RUNS.contains(c));
            let plain = !s.contains(escape::is_unsafe);
            let expected = if starts(s) {
                format!("'{s}")
            } else {
                s.clone()
            };
            !starts(cell) && !cell.contains(escape::is_unsafe) && (!plain || cell == expected)
        }
        _ => false,
    }
}

#[test]
fn every_column_equals_its_value_in_the_json() {
    for (name, report) in fixtures() {
        let rows = held_to_json(&report).unwrap();
        let all: usize = report.targets.iter().map(|t| t.rows.len()).sum();
        assert_eq!(rows, all, "{name}");
    }
}

#[test]
fn digits_are_those_of_the_json_text() {
    let json = render("json", &example(), None);
    let csv = render("csv", &example(), None);
    let first = csv.lines().nth(1).unwrap();
    assert!(json.contains("\"p50_us\": 240.0,") && json.contains("\"max_us\": 4410.2,"));
    assert!(
        first.contains(",240.0,330.0,610.0,,4410.2,1.0,1.0,1.0,baseline,"),
        "{first}"
    );
}

#[test]
fn without_rows_there_is_the_head_alone() {
    let nothing = reports::report(Vec::new());
    assert_eq!(render("csv", &nothing, None), format!("{PROMISED}\n"));
    let mut empty = reports::report(vec![reports::ext4()]);
    empty.targets[0].rows.clear();
    assert_eq!(render("csv", &empty, None), format!("{PROMISED}\n"));
    assert_eq!(csv::COLUMNS.join(","), PROMISED);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_column_of_a_full_report_equals_its_value(report in generated::report()) {
        let row = |r: &Row| serde_json::to_value(r).unwrap();
        for r in report.targets.iter().flat_map(|t| &t.rows) {
            for (key, value) in row(r).as_object().unwrap() {
                prop_assert!(!value.is_null(), "{} is not set", key);
            }
        }
        held_to_json(&report)?;
    }
}
