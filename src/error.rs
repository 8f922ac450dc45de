//! How walprobe ends: the one table of exit codes, and what a failure tells the user.
//!
//! Faults and skips on a target are results, never failures. Everything here goes to
//! stderr, with control characters escaped: paths and kernel strings are not ours.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    process::ExitCode,
};

/// Why the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The job is done.
    Done,
    /// A condition the user set is not met.
    NotMet,
    /// Usage, or a target or output file refused.
    Refused,
    /// walprobe itself failed.
    Broken,
    /// Interrupted by this signal.
    Signal(i32),
}

impl Exit {
    /// The number the shell sees.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::NotMet => 1,
            Self::Refused => 2,
            Self::Broken => 3,
            Self::Signal(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The exit codes as the help shows them.
pub const TABLE: &[(&str, &str)] = &[
    ("0", "done; faults and skipped cases are results"),
    ("1", "a condition set on the command line is not met"),
    (
        "2",
        "wrong usage, or a directory or output file refused: nothing was measured, stdout is empty",
    ),
    (
        "3",
        "walprobe itself failed, an output could not be written, or something it made could not be \
         removed (0 where the directory is at fault: see left_behind)",
    ),
    (
        "128+N",
        "interrupted by signal N (130, 143, 129): what was measured is printed and saved",
    ),
];

/// A reason to end early, as the user reads it.
#[derive(Debug)]
pub struct Failure {
    /// How the process ends.
    pub exit: Exit,
    /// Lower case, no final period, the path in it.
    pub message: String,
    /// What to do, one line each.
    pub hints: Vec<String>,
}

impl Failure {
    /// The user asked for something that cannot be done.
    #[must_use]
    pub fn refused(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Refused,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// walprobe itself failed.
    #[must_use]
    pub fn broken(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Broken,
            ..Self::refused(message)
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Writes it to stderr.
    pub fn say(&self) {
        say(&format!("walprobe: {}", self.message));
        for hint in &self.hints {
            say(&format!("hint: {hint}"));
        }
    }
}

/// Writes one line to stderr, escaped. A closed stderr changes nothing.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", escape(line));
}

/// Makes control characters visible, so that no string can steer the terminal.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // C0, DEL, C1, and the marks that reorder or hide text.
        if c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
        {
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Quotes a word for a POSIX shell where it needs it.
#[must_use]
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_map_to_the_shells_codes() {
        let codes: Vec<u8> = [2, 15, 1].map(|s| Exit::Signal(s).code()).to_vec();
        assert_eq!(codes, [130, 143, 129]);
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(escape("a\x1b[2Jb\r\n\u{9b}c"), "a\\u{1b}[2Jb\\r\\n\\u{9b}c");
        assert_eq!(escape("/mnt/\u{fc}"), "/mnt/\u{fc}");
    }

    #[test]
    fn words_survive_the_shell() {
        assert_eq!(quote("/mnt/t"), "/mnt/t");
        assert_eq!(quote("/mnt/my disk"), "'/mnt/my disk'");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
    }
}
