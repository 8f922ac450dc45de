//! JSON: the whole document, keys in the order of the report's types.
//!
//! What fits on a line stands on one line, and so does every list of numbers however long
//! it is; anything else has one entry a line. The digits are those of the serialiser: the
//! layout moves white space only. Control and invisible characters are written as `\u`
//! escapes, so that the text is safe to print.

use std::fmt::Write as _;

use anyhow::Context as _;
use walprobe_probes::report::Report;

use super::{Options, Render, document, escape};

/// The format.
#[derive(Debug)]
pub struct Json;

const LINE_BYTES: usize = 100;

impl Render for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn render(&self, report: &Report, _options: &Options) -> anyhow::Result<String> {
        document(report)?;
        let compact = serde_json::to_string(report).context("cannot write the report as JSON")?;
        Ok(lay_out(&compact))
    }
}

/// Lays out a compact JSON text.
#[must_use]
pub fn lay_out(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len() * 5 / 4);
    place(compact, 0, &mut out);
    out.push('\n');
    out
}

/// Writes one value whose first line begins at the indentation `depth`.
fn place(text: &str, depth: usize, out: &mut String) {
    let parts = split(text);
    let list_of_scalars = text.starts_with('[') && !parts.iter().any(|p| p.starts_with(['[', '{']));
    if parts.is_empty() || list_of_scalars || text.len() + 2 * depth <= LINE_BYTES {
        inline(text, out);
        return;
    }
    let (open, close) = if text.starts_with('{') {
        ('{', '}')
    } else {
        ('[', ']')
    };
    out.push(open);
    for (i, part) in parts.iter().enumerate() {
        out.push_str(if i == 0 { "\n" } else { ",\n" });
        indent(depth + 1, out);
        let value = if open == '{' {
            let colon = string_end(part) + 1;
            inline(&part[..colon], out);
            out.push(' ');
            &part[colon..]
        } else {
            part
        };
        place(value, depth + 1, out);
    }
    out.push('\n');
    indent(depth, out);
    out.push(close);
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', 2 * depth));
}

/// Writes `text` on one line, with a blank after each comma and colon.
fn inline(text: &str, out: &mut String) {
    let mut in_string = false;
    let mut escaped = false;
    let last = text.len();
    for (at, c) in text.char_indices() {
        if escape::is_unsafe(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
        if escaped {
            escaped = false;
        } else if in_string {
            escaped = c == '\\';
            in_string = c != '"';
        } else if c == '"' {
            in_string = true;
        } else if matches!(c, ',' | ':') && at + 1 < last {
            out.push(' ');
        }
    }
}

/// The members of an array or object, as they stand; empty for a scalar and an empty container.
fn split(text: &str) -> Vec<&str> {
    if !text.starts_with(['[', '{']) || text.len() <= 2 {
        return Vec::new();
    }
    let bytes = text.as_bytes();
    let mut parts = Vec::new();
    let (mut start, mut depth, mut at) = (1, 0, 1);
    while at < bytes.len() - 1 {
        match bytes[at] {
            b'"' => at += string_end(&text[at..]) - 1,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    parts.push(&text[start..bytes.len() - 1]);
    parts
}

/// Length of the JSON string that `text` begins with, quotes included.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_numbers_stay_on_one_line() {
        let long: Vec<f64> = (0..200).map(|i| f64::from(i) / 8.0).collect();
        let value = serde_json::json!({"count": long, "b": {"c": [1, 2]}, "d": "x,y:\"{["});
        let text = lay_out(&value.to_string());
        assert_eq!(text.lines().count(), 5, "{text}");
        assert!(text.contains("\n  \"b\": {\"c\": [1, 2]},\n"), "{text}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            value
        );
    }

    #[test]
    fn escapes_what_a_terminal_would_obey() {
        let value = serde_json::json!(["\u{9b}2J\x1b", "\u{202e}", "\u{e0001}", ",\\\""]);
        let text = lay_out(&value.to_string());
        assert!(!text.trim_end().contains(escape::is_unsafe), "{text}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            value
        );
    }
}
