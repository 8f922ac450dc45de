//! Clean-up, always in a child of its own with a bound: removing may hang as well.

use std::{fmt::Write as _, time::Duration};

use crate::{
    clock::Stopwatch,
    error::{Exit, Failure, escape, quote, say},
    signals::Signals,
    stdout,
    worker::{Child, Said, how},
    worker_child::{Cleaned, Cleaning},
};

/// What `walprobe clean` may take.
const COMMAND: Duration = Duration::from_secs(60);
/// How often signals are looked at.
const TICK: Duration = Duration::from_millis(100);
/// What a killed clean-up has to vanish.
const DYING: Duration = Duration::from_millis(500);

/// Cleans `dir` in a child, or only one run's folder there, at most for `bound`. A signal
/// beyond the first ends it early.
///
/// # Errors
/// The directory cannot be used, or it is not known what was removed.
pub fn in_child(
    dir: &str,
    run_id: Option<&str>,
    bound: Duration,
    signals: &Signals,
) -> Result<Cleaned, Failure> {
    let broken = |why: &str| Failure::broken(format!("cannot clean {dir}: {why}"));
    let mut arguments = vec!["worker", "--clean", dir];
    arguments.extend(run_id.iter().flat_map(|id| ["--run", *id]));
    let child = Child::start(&arguments, String::new())
        .map_err(|e| broken(&format!("cannot start a process: {e}")))?;
    let before = signals.count();
    let mut clock = Stopwatch::start();
    let mut closed = false;
    let told = loop {
        match child.hear(TICK) {
            Some(Said::Line(line)) => {
                if let Ok(told) = serde_json::from_slice::<Cleaning>(&line) {
                    break Ok(told);
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
            break Err(Some(format!("no answer within {} s", bound.as_secs())));
        }
        if signals.count() > before.max(1) {
            break Err(Some("interrupted".to_owned()));
        }
    };
    let status = child.kill(DYING);
    match told {
        Ok(Cleaning::Done(cleaned)) => Ok(cleaned),
        Ok(Cleaning::Refused { message, hint }) => Err(Failure {
            hints: hint.into_iter().collect(),
            ..Failure::refused(message)
        }),
        Err(Some(why)) => Err(broken(&why)),
        Err(None) => Err(broken(&format!("the clean-up {}", how(status)))),
    }
}

/// `walprobe clean DIR`.
///
/// # Errors
/// The directory cannot be used, or it is not known what was removed.
pub fn command(dir: &str) -> Result<Exit, Failure> {
    let signals =
        Signals::catch().map_err(|e| Failure::broken(format!("cannot catch signals: {e}")))?;
    let cleaned = in_child(dir, None, COMMAND, &signals).map_err(|failure| Failure {
        exit: signals.first().map_or(failure.exit, Exit::Signal),
        ..failure
    })?;
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
