//! Makes strings of a report safe to show.
//!
//! Directory names, device models and host names may hold anything. A control character
//! could move the cursor, recolour the screen or forge a line; an invisible or
//! direction-changing one could disguise a path. Both are written as visible escapes:
//! `\n`, `\x1b`, `\u{202e}`. A backslash itself stays as it is.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

/// Whether a character must not reach a terminal as it is.
#[must_use]
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// `text` with each unsafe character as a visible escape.
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            c if is_unsafe(c) && c.is_ascii() => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c if is_unsafe(c) => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Escapes every string of `value`, keys too.
pub fn escape_value(value: &mut Value) {
    match value {
        Value::String(s) => {
            if let Cow::Owned(safe) = escape(s) {
                *s = safe;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(escape_value),
        Value::Object(map) => {
            map.values_mut().for_each(escape_value);
            if map.keys().any(|k| k.contains(is_unsafe)) {
                *map = std::mem::take(map)
                    .into_iter()
                    .map(|(k, v)| (escape(&k).into_owned(), v))
                    .collect();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_a_terminal_would_obey() {
        assert_eq!(escape("/mnt/t"), "/mnt/t");
        assert_eq!(escape("a\x1b[31m\nb\u{9b}2J"), "a\\x1b[31m\\nb\\u{9b}2J");
        assert_eq!(escape("x\u{202e}gnp.exe\u{7f}"), "x\\u{202e}gnp.exe\\x7f");
        assert_eq!(escape("caf\u{e9}"), "caf\u{e9}");
    }

    #[test]
    fn escapes_keys_and_nested_strings() {
        let mut value = serde_json::json!({"a\n": ["\x07", {"b": "\t"}], "n": 1});
        escape_value(&mut value);
        assert_eq!(
            value,
            serde_json::json!({"a\\n": ["\\x07", {"b": "\\t"}], "n": 1})
        );
    }
}
