//! Clean-up, always in a child of its own with a bound: removing may hang as well.

use std::{fmt::Write as _, time::Duration};

use crate::{
    clock::Stopwatch,
    error::{Exit, Failure, escape, quote, say},
    signals::Signals,
    stdout,
    worker::{Child, Said, how},
    worker_child::Cleaned,
};

/// What `walprobe clean` may take.
const COMMAND: Duration = Duration::from_secs(60);
/// How often signals are looked at.
const TICK: Duration = Duration::from_millis(100);
/// What a killed clean-up has to vanish.
const DYING: Duration = Duration::from_millis(500);

/// Cleans `dir` in a child, at most for `bound`. A signal beyond the first ends it early.
///
/// # Errors
/// Why it is not known what was removed.
pub fn in_child(dir: &str, bound: Duration, signals: &Signals) -> Result<Cleaned, String> {
    let child = Child::start(&["worker", "--clean", dir], String::new())
        .map_err(|e| format!("cannot start a process: {e}"))?;
    let before = signals.count();
    let mut clock = Stopwatch::start();
    let mut closed = false;
    let result = loop {
        match child.hear(TICK) {
            Some(Said::Line(line)) => {
                if let Ok(cleaned) = serde_json::from_slice::<Cleaned>(&line) {
                    break Ok(cleaned);
                }
            }
            Some(Said::Stderr(line)) => say(&line),
            Some(Said::Closed) => closed = true,
            Some(Said::StderrClosed) | None => {}
        }
        if closed && child.has_ended() {
            break Err(None);
        }
        if clock.lived() > bound {
            let seconds = bound.as_secs();
            break Err(Some(format!("no answer within {seconds} s")));
        }
        if signals.count() > before.max(1) {
            break Err(Some("interrupted".to_owned()));
        }
    };
    let status = child.kill(DYING);
    result.map_err(|why| why.unwrap_or_else(|| format!("the clean-up {}", how(status))))
}

/// `walprobe clean DIR`.
///
/// # Errors
/// It is not known what was removed.
pub fn command(dir: &str) -> Result<Exit, Failure> {
    let signals =
        Signals::catch().map_err(|e| Failure::broken(format!("cannot catch signals: {e}")))?;
    let cleaned = match in_child(dir, COMMAND, &signals) {
        Ok(cleaned) => cleaned,
        Err(why) => {
            let failure = Failure::broken(format!("cannot clean {dir}: {why}"));
            return match signals.first() {
                Some(signal) => {
                    failure.say();
                    Ok(Exit::Signal(signal))
                }
                None => Err(failure),
            };
        }
    };
    let printed = stdout(&tell(dir, &cleaned));
    if cleaned.left.is_empty() && cleaned.running.is_empty() {
        return Ok(printed);
    }
    Ok(Exit::Broken)
}

fn tell(dir: &str, cleaned: &Cleaned) -> String {
    let mut text = String::new();
    for path in &cleaned.removed {
        let _ = writeln!(text, "removed {}", escape(path));
    }
    for (path, why) in &cleaned.left {
        let _ = writeln!(text, "could not remove {}: {}", escape(path), escape(why));
    }
    for path in &cleaned.running {
        let _ = writeln!(text, "left {}: a process still uses it", escape(path));
    }
    if text.is_empty() {
        let _ = writeln!(text, "nothing of walprobe's is left in {}", escape(dir));
    }
    text
}

/// The command that cleans up `dir`, for a hint.
#[must_use]
pub fn hint(dir: &str) -> String {
    format!("walprobe clean {}", quote(dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_told() {
        let cleaned = Cleaned {
            removed: vec!["/t/a".to_owned()],
            left: vec![("/t/b".to_owned(), "Permission denied".to_owned())],
            running: vec!["/t/c".to_owned()],
        };
        insta::assert_snapshot!(tell("/t", &cleaned), @r"
        removed /t/a
        could not remove /t/b: Permission denied
        left /t/c: a process still uses it
        ");
        assert!(tell("/t", &Cleaned::default()).starts_with("nothing"));
    }
}
