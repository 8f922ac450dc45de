//! One expectation a line, about a finished report: `SUBJECT OPERATOR VALUES`.
//!
//! | subject | is |
//! |---|---|
//! | `sync/commit/fdatasync.flushes_per_op` | a row's key; `*` in a case's place: every row of the comparison that is not `same-as` another |
//! | `recycle/life-cold/*.observations.commits` | a key below a key |
//! | `durability.verdict`, `target.status` | the verdict's and the target's keys |
//! | `fact fs.type` | a fact's value |
//! | `ground device-flushes.value` | a ground of the verdict, by its id |
//! | `device 0.kind` | a device of the stack, by its place |
//! | `finding wal_recycle.action`, `not_tested wal_recycle.reason_code` | what is said of a setting; `*` = all |
//!
//! Besides the row's own keys: `device_kib_per_op`, device KiB written for each operation;
//! `ungrouped_ops`, operations in no group of commits; `flushes_per_group`, flushes that the device
//! counted for each group; `doubt_codes`, as in the CSV. A finding for one role is named `wal_recycle@standby`.
//! Operators: `= V`, `!= V`, `in V V...`, `between LOW HIGH` (both included), `<= N`, `>= N`, `has WORD`
//! of several; and, without a key, `present` and `absent`. Values: numbers, `true`, `false`, `null`,
//! else text; `"..."` where text has blanks. `on FACT=BEGINNING: EXPECTATION` is asked only where
//! that fact's text begins so.
//!
//! An expectation *holds*, *fails*, or *cannot* be asked (no such row, nothing measured). Only
//! the first passes. A line turned round (`turned:`, see `sheet`) must fail: one that cannot be
//! asked proves nothing.

use std::fmt::Write;

use serde_json::Value;

use crate::document::Document;

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// What it is about.
    pub subject: Subject,
    /// A fact, and how its text must begin for this to be asked at all.
    only: Option<(String, String)>,
    test: Test,
    /// The line as written.
    pub text: String,
}

/// What an expectation is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// `PROBE/COMPARISON/CASE`.
    Row {
        /// The row's id, its case perhaps `*`.
        id: [String; 3],
        /// Keys, from the row down.
        keys: Vec<String>,
    },
    /// Something else of the first target.
    Other {
        /// `durability`, `target`, `fact`, `ground`, `device`, `finding` or `not_tested`.
        kind: String,
        /// Which one, where there are several.
        name: String,
        /// Keys, from there down.
        keys: Vec<String>,
    },
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    Equal(Value),
    NotEqual(Value),
    In(Vec<Value>),
    Between(f64, f64),
    AtMost(f64),
    AtLeast(f64),
    Has(String),
    Present,
    Absent,
}

/// What came of an expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is so.
    Holds,
    /// It is not; what is instead.
    Fails(String),
    /// There is nothing to compare; why.
    Cannot(String),
}

impl Expectation {
    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(rest) = text.trim().strip_prefix("on ") {
            let (fact, rest) = rest.split_once(": ").ok_or("on FACT=BEGINNING: ...")?;
            let (fact, beginning) = fact.split_once('=').ok_or("on FACT=BEGINNING: ...")?;
            let only = Some((fact.to_owned(), beginning.to_owned()));
            let text = text.trim().to_owned();
            return Self::parse(rest).map(|asked| Self {
                only,
                text,
                ..asked
            });
        }
        let words = words(text)?;
        let mut words = words.iter().map(String::as_str);
        let first = words.next().ok_or("an empty expectation")?;
        let subject = match first {
            "fact" | "ground" | "device" | "finding" | "not_tested" => {
                let second = words.next().ok_or("no name")?;
                let mut keys = second.split('.').map(str::to_owned);
                let (name, keys) = if first == "fact" {
                    (second.to_owned(), vec!["value".to_owned()])
                } else {
                    (keys.next().unwrap_or_default(), keys.collect())
                };
                Subject::Other {
                    kind: first.to_owned(),
                    name,
                    keys,
                }
            }
            _ => {
                let mut keys = first.split('.').map(str::to_owned);
                let head = keys.next().unwrap_or_default();
                let keys: Vec<_> = keys.collect();
                let parts: Vec<_> = head.split('/').map(str::to_owned).collect();
                match <[String; 3]>::try_from(parts) {
                    Ok(id) => Subject::Row { id, keys },
                    Err(_) if head == "durability" || head == "target" => Subject::Other {
                        kind: head,
                        name: String::new(),
                        keys,
                    },
                    Err(_) => return Err(format!("{head:?} is not a subject")),
                }
            }
        };
        let operator = words.next().ok_or("no operator")?;
        let values: Vec<_> = words.map(value).collect();
        let test = Test::parse(operator, &values)?;
        let existence = matches!(test, Test::Present | Test::Absent);
        let (Subject::Row { keys, .. } | Subject::Other { keys, .. }) = &subject;
        if keys.is_empty() != existence && first != "fact" {
            return Err("a key goes with a value, present and absent go without".to_owned());
        }
        Ok(Self {
            subject,
            only: None,
            test,
            text: text.trim().to_owned(),
        })
    }

    /// Asks the report.
    #[must_use]
    pub fn ask(&self, document: &Document) -> Outcome {
        if let Some((name, beginning)) = &self.only {
            let fact = &document.json["targets"][0]["facts"][name]["value"];
            match fact.as_str() {
                Some(text) if text.starts_with(beginning.as_str()) => {}
                Some(_) => return Outcome::Holds,
                None => return Outcome::Cannot(format!("fact {name} is {fact}")),
            }
        }
        let found = self.subject.find(document);
        match self.test {
            Test::Absent if found.is_empty() => return Outcome::Holds,
            Test::Absent => return Outcome::Fails(format!("there are {}", found.len())),
            Test::Present if found.is_empty() => {
                return Outcome::Fails("there is none".to_owned());
            }
            Test::Present => return Outcome::Holds,
            _ => {}
        }
        if found.is_empty() {
            return Outcome::Cannot("there is none in the report".to_owned());
        }
        let (Subject::Row { keys, .. } | Subject::Other { keys, .. }) = &self.subject;
        let (mut failed, mut cannot) = (Vec::new(), Vec::new());
        for (name, place) in found {
            match resolve(place, keys) {
                None => cannot.push(format!("{name} has no {}", keys.join("."))),
                Some(value) if self.test.holds(&value) => {}
                // Null is a value only where it is asked for.
                Some(Value::Null) if !self.test.mentions_null() => {
                    cannot.push(format!("{name} is null{}", excuse(place)));
                }
                Some(value) => failed.push(format!("{name} is {value}{}", excuse(place))),
            }
        }
        if !failed.is_empty() {
            Outcome::Fails(failed.join(", "))
        } else if !cannot.is_empty() {
            Outcome::Cannot(cannot.join(", "))
        } else {
            Outcome::Holds
        }
    }
}

impl Subject {
    /// The trial that the expectation belongs to: the probe, or `durability`, `facts`,
    /// `settings`, `report`.
    #[must_use]
    pub fn area(&self) -> &str {
        match self {
            Self::Row {
                id: [probe, ..], ..
            } => probe,
            Self::Other { kind, .. } => match kind.as_str() {
                "durability" | "ground" => "durability",
                "fact" | "device" => "facts",
                "finding" | "not_tested" => "settings",
                _ => "report",
            },
        }
    }

    /// The places in the report, with a name for messages.
    fn find<'a>(&self, document: &'a Document) -> Vec<(String, &'a Value)> {
        let Some(target) = document.json.pointer("/targets/0") else {
            return Vec::new();
        };
        let listed = |key: &str, id: &str, wanted: &str| -> Vec<(String, &'a Value)> {
            let list = target[key].as_array().map_or(&[][..], Vec::as_slice);
            list.iter()
                .filter_map(|place| Some((place[id].as_str()?, place)))
                .filter(|(name, _)| wanted == "*" || *name == wanted)
                .map(|(name, place)| (name.to_owned(), place))
                .collect()
        };
        match self {
            Self::Row {
                id: [probe, comparison, case],
                ..
            } => listed("rows", "case", case)
                .into_iter()
                .filter(|(_, row)| row["probe"] == **probe && row["comparison"] == **comparison)
                // What is the same as another case is not measured.
                .filter(|(_, row)| case != "*" || row["reason_code"] != "same-as")
                .map(|(name, row)| (format!("{probe}/{comparison}/{name}"), row))
                .collect(),
            Self::Other { kind, name, .. } => match kind.as_str() {
                "target" => vec![("target".to_owned(), target)],
                "durability" => vec![("durability".to_owned(), &target["durability"])],
                "ground" => listed_grounds(target, name),
                "device" => name
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| target["devices"].get(index))
                    .map(|device| vec![(format!("device {name}"), device)])
                    .unwrap_or_default(),
                "finding" if name.contains('@') => listed("findings", "id", name),
                "finding" => listed("findings", "setting", name),
                "not_tested" => listed("not_tested", "setting", name),
                _ => target["facts"]
                    .get(name)
                    .or_else(|| document.json["host"]["facts"].get(name))
                    .map(|fact| vec![(name.clone(), fact)])
                    .unwrap_or_default(),
            },
        }
    }
}

fn listed_grounds<'a>(target: &'a Value, wanted: &str) -> Vec<(String, &'a Value)> {
    let grounds = target["durability"]["grounds"].as_array();
    grounds
        .into_iter()
        .flatten()
        .filter(|ground| ground["id"] == *wanted)
        .map(|ground| (format!("ground {wanted}"), ground))
        .collect()
}

fn resolve(place: &Value, keys: &[String]) -> Option<Value> {
    if keys == ["device_kib_per_op"] {
        let ops = place["ops"].as_f64().filter(|ops| *ops > 0.0);
        let bytes = place["device_bytes_written"].as_f64();
        return Some(match (bytes, ops) {
            (Some(bytes), Some(ops)) => Value::from(bytes / ops / 1024.0),
            _ => Value::Null,
        });
    }
    if keys == ["doubt_codes"] {
        let doubts = place["doubts"].as_array()?;
        let codes: Vec<_> = doubts.iter().filter_map(|d| d["code"].as_str()).collect();
        return Some(Value::from(codes.join(" ")));
    }
    let number = |place: &Value, key: &str| place[key].as_f64().filter(|number| *number > 0.0);
    if keys == ["ungrouped_ops"] {
        let ops = number(place, "ops");
        let grouped = number(&place["observations"], "group_size_sum");
        return Some(match (ops, grouped) {
            (Some(ops), Some(grouped)) => Value::from(ops - grouped),
            _ => Value::Null,
        });
    }
    if keys == ["flushes_per_group"] {
        let flushes = place["flushes"].as_f64();
        let groups = number(&place["observations"], "groups");
        return Some(match (flushes, groups) {
            (Some(flushes), Some(groups)) => Value::from(flushes / groups),
            _ => Value::Null,
        });
    }
    keys.iter()
        .try_fold(place, |place, key| place.get(key))
        .cloned()
}

/// What else the row says, where it has no figure or an unexpected one.
fn excuse(row: &Value) -> String {
    let mut text = String::new();
    if let Some(status) = row["status"].as_str().filter(|status| *status != "ok") {
        let _ = write!(
            text,
            " ({status}, {}: {})",
            row["reason_code"].as_str().unwrap_or("no code"),
            row["reason"].as_str().unwrap_or("no reason")
        );
    }
    for doubt in row["doubts"].as_array().into_iter().flatten() {
        let _ = write!(text, " (doubt: {})", doubt["text"].as_str().unwrap_or("?"));
    }
    text
}

impl Test {
    fn parse(operator: &str, values: &[Value]) -> Result<Self, String> {
        let number = |value: &Value| value.as_f64().ok_or(format!("{value} is not a number"));
        match (operator, values) {
            ("=", [one]) => Ok(Self::Equal(one.clone())),
            ("!=", [one]) => Ok(Self::NotEqual(one.clone())),
            ("in", [_, ..]) => Ok(Self::In(values.to_vec())),
            ("between", [low, high]) => match (number(low)?, number(high)?) {
                (low, high) if low <= high => Ok(Self::Between(low, high)),
                _ => Err("between HIGH LOW".to_owned()),
            },
            ("<=", [most]) => Ok(Self::AtMost(number(most)?)),
            (">=", [least]) => Ok(Self::AtLeast(number(least)?)),
            ("has", [Value::String(word)]) => Ok(Self::Has(word.clone())),
            ("present", []) => Ok(Self::Present),
            ("absent", []) => Ok(Self::Absent),
            _ => Err(format!("{operator} with {} values", values.len())),
        }
    }

    fn holds(&self, found: &Value) -> bool {
        let number = found.as_f64();
        match self {
            Self::Equal(one) => equal(found, one),
            Self::NotEqual(one) => !found.is_null() && !equal(found, one),
            Self::In(list) => list.iter().any(|one| equal(found, one)),
            Self::Between(low, high) => {
                number.is_some_and(|number| (*low..=*high).contains(&number))
            }
            Self::AtMost(most) => number.is_some_and(|number| number <= *most),
            Self::AtLeast(least) => number.is_some_and(|number| number >= *least),
            Self::Has(word) => found
                .as_str()
                .is_some_and(|text| text.split(' ').any(|one| one == word)),
            Self::Present | Self::Absent => false,
        }
    }

    fn mentions_null(&self) -> bool {
        match self {
            Self::Equal(one) | Self::NotEqual(one) => one.is_null(),
            Self::In(list) => list.iter().any(Value::is_null),
            _ => false,
        }
    }
}

/// 1 and 1.0 are the same value.
fn equal(found: &Value, one: &Value) -> bool {
    match (found.as_f64(), one.as_f64()) {
        (Some(found), Some(one)) => found == one,
        _ => found == one,
    }
}

fn value(word: &str) -> Value {
    match word {
        "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => word
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .map_or_else(|| Value::String(word.to_owned()), Value::from),
    }
}

/// Words at blanks; `"..."` keeps them together.
pub(crate) fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let (mut word, mut quoted, mut open) = (String::new(), false, false);
    for letter in text.chars() {
        match letter {
            '"' => {
                quoted = !quoted;
                open = true;
            }
            ' ' | '\t' if !quoted => {
                if open {
                    words.push(std::mem::take(&mut word));
                    open = false;
                }
            }
            _ => {
                word.push(letter);
                open = true;
            }
        }
    }
    if quoted {
        return Err(format!("a quote is not closed in {text:?}"));
    }
    if open {
        words.push(word);
    }
    Ok(words)
}

#[cfg(test)]
#[path = "expect_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "samples.rs"]
pub(crate) mod samples;
