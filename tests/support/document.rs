//! A report that walprobe wrote, read as strictly as the format allows.
//!
//! Exactly one JSON document with every key of schema 1 and no other: what was read
//! is written again by the report's types and must be the same value. Then the
//! rules that hold for every report whatever was measured: evidence resolves to
//! its value, codes are from the closed lists, a row that was not measured says
//! why, the budget was kept.

use serde_json::Value;
use walprobe_probes::report::{Report, Row, RowStatus, SCHEMA, Verdict};

/// A report, as types and as the JSON it came from.
#[derive(Clone, Debug)]
pub struct Document {
    /// The types.
    pub report: Report,
    /// The same, for pointers and paths.
    pub json: Value,
}

const REASON_CODES: &[&str] = &[
    "errno",
    "no-answer",
    "need-root",
    "need-tool",
    "need-hook",
    "need-option",
    "filesystem",
    "kernel",
    "time",
    "budget",
    "space",
    "interrupted",
    "not-proven-cold",
    "same-as",
    "not-durable",
    "no-flush-seen",
    "inconclusive",
    "not-planned",
    "internal",
];

const GROUNDS: &[&str] = &[
    "fs-in-memory",
    "overlay-volatile",
    "barriers-off",
    "zfs-sync-disabled",
    "preload",
    "device-flushes",
    "lower-device-drops-flushes",
    "write-through-device",
    "fua-device",
    "sync-as-cheap-as-write",
    "faster-than-medium",
    "network-filesystem",
    "user-space-filesystem",
    "virtual-device",
    "backing-file-unseen",
    "journal-unseen",
    "foreign-flushes",
    "mount-changed",
    "stacked-filesystem",
    "not-asked",
];

const DOUBTS: &[&str] = &[
    "drift",
    "foreign-writes",
    "foreign-flushes",
    "steal",
    "throttled",
    "burst-ended",
    "few-rounds",
    "coarse-clock",
    "cpu-bound",
    "allocation-lags",
    "whole-system-drop",
];

impl Document {
    /// Reads what must be one JSON document and nothing else.
    ///
    /// # Errors
    /// It is not JSON, is not the report's shape, or lacks a key.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let shown = || {
            let text = String::from_utf8_lossy(text);
            let start: String = text.chars().take(200).collect();
            format!("{} bytes, beginning {start:?}", text.len())
        };
        let json: Value = serde_json::from_slice(text)
            .map_err(|error| format!("not one JSON document: {error} ({})", shown()))?;
        let report: Report = serde_json::from_slice(text)
            .map_err(|error| format!("not a report: {error} ({})", shown()))?;
        let again = serde_json::to_value(&report).map_err(|error| error.to_string())?;
        if let Some(difference) = first_difference("", &json, &again) {
            return Err(format!("not the report's shape: {difference}"));
        }
        Ok(Self { report, json })
    }

    /// The rules that every report keeps.
    ///
    /// # Errors
    /// All that are broken.
    pub fn check(&self) -> Result<(), String> {
        let mut broken = Vec::new();
        if self.report.schema != SCHEMA {
            broken.push(format!("schema is {}", self.report.schema));
        }
        if self.report.targets.is_empty() {
            broken.push("no target".to_owned());
        }
        for target in &self.report.targets {
            if target.bytes_written > self.report.write_budget_bytes {
                broken.push(format!(
                    "bytes_written {} is over the budget of {}",
                    target.bytes_written, self.report.write_budget_bytes
                ));
            }
            for row in &target.rows {
                let mut say = |text: String| broken.push(format!("{}: {text}", id(row)));
                row_rules(row, &mut say);
            }
            for ground in &target.durability.grounds {
                if !GROUNDS.contains(&ground.id.as_str()) {
                    broken.push(format!("ground {} is not in the list", ground.id));
                }
                if let Some(pointer) = &ground.evidence {
                    broken.extend(self.resolves(pointer, &ground.value).err());
                }
            }
            for finding in &target.findings {
                for evidence in &finding.evidence {
                    broken.extend(self.resolves(&evidence.pointer, &evidence.value).err());
                }
            }
            for untested in &target.not_tested {
                if !REASON_CODES.contains(&untested.reason_code.as_str()) {
                    broken.push(format!(
                        "not_tested {}: reason_code {} is not in the list",
                        untested.setting, untested.reason_code
                    ));
                }
            }
        }
        if broken.is_empty() {
            Ok(())
        } else {
            Err(broken.join("\n"))
        }
    }

    fn resolves(&self, pointer: &str, value: &Value) -> Result<(), String> {
        match self.json.pointer(pointer) {
            None => Err(format!("evidence {pointer} points nowhere")),
            Some(found) if found != value => {
                Err(format!("evidence {pointer} is {found}, not {value}"))
            }
            Some(_) => Ok(()),
        }
    }

    /// The row with this id, in the first target.
    #[must_use]
    pub fn row(&self, wanted: &str) -> Option<&Row> {
        self.report
            .targets
            .first()?
            .rows
            .iter()
            .find(|row| id(row) == wanted)
    }
}

/// `PROBE/COMPARISON/CASE`.
#[must_use]
pub fn id(row: &Row) -> String {
    format!("{}/{}/{}", row.probe, row.comparison, row.case)
}

fn row_rules(row: &Row, say: &mut dyn FnMut(String)) {
    let explained = row
        .reason_code
        .as_deref()
        .is_some_and(|code| REASON_CODES.contains(&code))
        && row.reason.as_deref().is_some_and(|text| !text.is_empty());
    if row.status == RowStatus::Ok && row.reason_code.is_some() {
        say(format!("ok, with reason_code {:?}", row.reason_code));
    }
    if row.status != RowStatus::Ok && !explained {
        say(format!(
            "{} without a reason: code {:?}, text {:?}",
            row.status.as_str(),
            row.reason_code,
            row.reason
        ));
    }
    if row.reason_code.as_deref() == Some("errno") && row.fault.is_none() {
        say("reason_code errno, and no fault".to_owned());
    }
    for doubt in &row.doubts {
        if !DOUBTS.contains(&doubt.code.as_str()) {
            say(format!("doubt {} is not in the list", doubt.code));
        }
    }
    if row.p99_us.is_some() && row.ops < 1_000 {
        say(format!("a p99 of {} operations", row.ops));
    }
    if row.p999_us.is_some() && row.ops < 10_000 {
        say(format!("a p99.9 of {} operations", row.ops));
    }
    if let (Some(low), Some(ratio), Some(high)) = (row.ratio_low, row.ratio, row.ratio_high)
        && !(low <= ratio && ratio <= high)
    {
        say(format!("ratio {ratio} is outside {low} to {high}"));
    }
    let is_baseline = row.baseline.as_deref() == Some(row.case.as_str());
    match row.verdict {
        Some(Verdict::Baseline) if !is_baseline => {
            say(format!("called baseline, which is {:?}", row.baseline));
        }
        Some(Verdict::Faster | Verdict::Slower | Verdict::Tie) if row.ratio.is_none() => {
            say(format!("a verdict ({:?}) without a ratio", row.verdict));
        }
        _ => {}
    }
}

/// Where two JSON values first differ.
fn first_difference(path: &str, read: &Value, again: &Value) -> Option<String> {
    match (read, again) {
        (Value::Object(read), Value::Object(again)) => {
            read.keys()
                .chain(again.keys())
                .find_map(|key| match (read.get(key), again.get(key)) {
                    (Some(one), Some(other)) => {
                        first_difference(&format!("{path}/{key}"), one, other)
                    }
                    (None, _) => Some(format!("no key {path}/{key}")),
                    (_, None) => Some(format!("unknown key {path}/{key}")),
                })
        }
        (Value::Array(read), Value::Array(again)) if read.len() == again.len() => read
            .iter()
            .zip(again)
            .enumerate()
            .find_map(|(index, (one, other))| {
                first_difference(&format!("{path}/{index}"), one, other)
            }),
        _ if read == again => None,
        _ => Some(format!("{path} is {read}, and read again {again}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use walprobe_probes::report::Target;

    use super::*;
    use crate::expect::samples;

    /// Breaks one rule.
    type Change = fn(&mut Target);

    fn bytes(json: &Value) -> Vec<u8> {
        json.to_string().into_bytes()
    }

    #[test]
    fn a_whole_document_passes_and_a_second_one_does_not() -> Result<(), String> {
        let text = bytes(&samples::json());
        Document::read(&text)?.check()?;
        let twice = [text.clone(), text.clone()].concat();
        assert!(Document::read(&twice).is_err());
        assert!(Document::read(&text[..text.len() - 1]).is_err());
        assert!(Document::read(b"").is_err());
        Ok(())
    }

    #[test]
    fn a_missing_and_an_unknown_key_are_named() {
        let mut json = samples::json();
        json["targets"][0]["rows"][0]["surprise"] = json!(1);
        let error = Document::read(&bytes(&json)).err().unwrap_or_default();
        assert!(
            error.contains("unknown key /targets/0/rows/0/surprise"),
            "{error}"
        );

        let mut json = samples::json();
        if let Some(row) = json["targets"][0]["rows"][0].as_object_mut() {
            row.remove("flushes");
        }
        let error = Document::read(&bytes(&json)).err().unwrap_or_default();
        assert!(
            error.contains("no key /targets/0/rows/0/flushes"),
            "{error}"
        );
    }

    /// Breaks one rule at a time.
    #[test]
    fn each_rule_can_fail() -> Result<(), String> {
        let breaks: [(&str, Change); 9] = [
            ("over the budget", |target| target.bytes_written = u64::MAX),
            ("not", |target| {
                target.findings[0].evidence[0].value = json!(7)
            }),
            ("points nowhere", |target| {
                target.findings[0].evidence[0].pointer = "/targets/9".into();
            }),
            ("points nowhere", |target| {
                target.durability.grounds[0].evidence = Some("/nowhere".into());
            }),
            ("without a reason", |target| {
                target.rows[0].status = RowStatus::Skipped;
            }),
            ("p99 of", |target| target.rows[0].ops = 999),
            ("outside", |target| target.rows[0].ratio_low = Some(1.5)),
            ("called baseline", |target| {
                target.rows[0].baseline = Some("fsync".into());
            }),
            ("not in the list", |target| {
                target.durability.grounds[0].id = "a-feeling".into();
            }),
        ];
        for (expected, change) in breaks {
            let mut document = Document::read(&bytes(&samples::json()))?;
            change(&mut document.report.targets[0]);
            let error = document.check().err().unwrap_or_default();
            assert!(error.contains(expected), "{expected:?}: {error:?}");
        }
        Ok(())
    }
}
