//! Notes under a table, and the marks in its rows that point at them.
//!
//! A doubt stands beside the row that it touches. A cold claim is said once above the table
//! where all rows share it, and is a note of its row where they differ.

use std::fmt::Write as _;

use walprobe_probes::report::{Cold, Row, Verdict};

use super::{Page, comparison::figures};
use crate::render::{fill::fill, units};

/// Notes under a table: doubts, and what a cold claim rests on where the rows differ in it.
pub(in crate::render) struct Notes {
    /// The notes, in the order of their marks.
    pub(in crate::render) texts: Vec<String>,
    /// The rows differ in their cold claims.
    pub(in crate::render) cold: bool,
}

impl Notes {
    pub(in crate::render) fn of(rows: &[&Row]) -> Self {
        let mut notes = Self {
            texts: Vec::new(),
            cold: same_cold(rows).is_none(),
        };
        for row in rows {
            for text in notes.about(row) {
                if !notes.texts.contains(&text) {
                    notes.texts.push(text);
                }
            }
        }
        notes
    }

    pub(in crate::render) fn any(&self) -> bool {
        !self.texts.is_empty()
    }

    fn about(&self, row: &Row) -> Vec<String> {
        let doubts = row.doubts.iter().map(|d| format!("{}: {}", d.code, d.text));
        let cold = cold(row).filter(|_| self.cold && figures(row));
        let first = stopped(row).into_iter().chain(shared(row));
        first.chain(doubts).chain(cold).collect()
    }

    pub(in crate::render) fn marks(&self, row: &Row) -> String {
        let mine = self.about(row);
        self.texts
            .iter()
            .enumerate()
            .filter(|(_, text)| mine.contains(text))
            .map(|(i, _)| format!("[{}]", i + 1))
            .collect()
    }

    pub(super) fn write(&self, page: &mut Page) {
        for (i, text) in self.texts.iter().enumerate() {
            let mark = format!(" [{}] ", i + 1);
            let rest = " ".repeat(mark.len());
            fill(&mut page.out, page.options.prose(), &mark, &rest, text);
        }
    }
}

/// A row whose operations another comparison tells of too.
fn shared(row: &Row) -> Option<String> {
    let id = row.observations.get("same_operations_as")?.as_str()?;
    let (comparison, _) = id.rsplit_once('/')?;
    Some(format!("the same measurement as in {comparison}"))
}

/// Why an open comparison was not measured on, and what would probably settle it.
fn stopped(row: &Row) -> Option<String> {
    if row.verdict != Some(Verdict::Inconclusive) {
        return None;
    }
    let (what, more_of) = match row.observations.get("stopped_by")?.as_str()? {
        "budget" => ("write budget", "bytes for "),
        _ => ("time", ""),
    };
    let more = row
        .observations
        .get("more_s_to_settle")
        .and_then(serde_json::Value::as_f64);
    let more = more.map_or_else(String::new, |s| {
        format!(
            "; {more_of}some {} more would probably settle it",
            units::time(s * 1e6)
        )
    });
    Some(format!(
        "the {what} was spent after {} rounds{more}",
        row.rounds
    ))
}

/// The cold claim that all measured rows share.
pub(in crate::render) fn same_cold(rows: &[&Row]) -> Option<String> {
    let mut claims = rows.iter().filter(|r| figures(r)).map(|r| cold(r));
    let first = claims.next()??;
    claims.all(|c| c.as_ref() == Some(&first)).then_some(first)
}

/// A row's cold claim and its proof; the proof's figures where it failed.
fn cold(row: &Row) -> Option<String> {
    let claim = row.cold?;
    let mut text = format!("cold: {}", claim.as_str());
    let Some(proof) = &row.cold_proof else {
        return Some(text);
    };
    let _ = write!(
        text,
        " (dropped by {}: data {}, metadata {}",
        proof.hook, proof.data, proof.metadata
    );
    if claim != Cold::Proven {
        if let (Some(resident), Some(pages)) = (proof.resident_pages, proof.pages) {
            let _ = write!(text, "; {resident} of {pages} pages resident");
        }
        if let (Some(read), Some(all)) = (proof.witness_read_bytes, proof.witness_bytes) {
            let _ = write!(
                text,
                "; {} of {} of the witness came from the device",
                units::bytes(read as f64),
                units::bytes(all as f64)
            );
        }
    }
    text.push(')');
    Some(text)
}
