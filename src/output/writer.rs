//! The child that touches the filesystems of output files.
//!
//! A filesystem that does not answer (frozen, a dead server) holds whoever calls it, and a
//! held thread would keep the whole process from ending. So each check and each save is a
//! process of its own, given a time, and left alone when that is over.

use std::{
    io::{self, BufRead as _, Write as _},
    os::unix::fs::MetadataExt as _,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::file::{self, Checked, Save, Stamp};
use crate::{
    clock::Stopwatch,
    error::{Exit, say},
    worker::{Child, Said, how},
};

/// How often signals are looked at.
const TICK: Duration = Duration::from_millis(50);
/// What a killed writer has to vanish.
const DYING: Duration = Duration::from_millis(200);

/// What the child is asked, as one line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Ask {
    Check {
        format: String,
        given: String,
        force: bool,
    },
    Save(Save),
    /// Device and inode of each.
    Identify(Vec<String>),
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Checked(Checked),
    Saved(Result<Stamp, String>),
    Identities(Vec<Option<(u64, u64)>>),
}

/// A question under way.
pub(super) struct Asked(Child);

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Unanswered {
    pub(super) why: String,
    /// A signal ended the wait.
    pub(super) interrupted: bool,
}

impl Unanswered {
    pub(super) fn because(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            interrupted: false,
        }
    }
}

/// Starts a child on a question.
pub(super) fn ask(ask: &Ask) -> Result<Asked, Unanswered> {
    serde_json::to_string(ask)
        .map_err(io::Error::from)
        .and_then(|line| Child::start_own(&["worker", "--write"], line))
        .map(Asked)
        .map_err(|e| Unanswered::because(format!("cannot start a process: {e}")))
}

impl Asked {
    /// Waits for the answer until `clock` has lived for `bound`, or `stop`.
    pub(super) fn answer(
        self,
        clock: &mut Stopwatch,
        bound: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Answer, Unanswered> {
        let Self(child) = self;
        let mut closed = false;
        let answer = loop {
            match child.hear(TICK) {
                Some(Said::Line(line)) => {
                    break serde_json::from_slice(&line)
                        .map_err(|e| Unanswered::because(format!("the writer's answer: {e}")));
                }
                Some(Said::Stderr(line)) => say(&line),
                Some(Said::Closed) => closed = true,
                Some(Said::StderrClosed) | None => {}
            }
            if closed && child.has_ended() {
                let ending = how(child.kill(DYING));
                return Err(Unanswered::because(format!("the writer {ending}")));
            }
            if clock.lived() > bound {
                let why = format!("no answer within {} s", bound.as_secs());
                break Err(Unanswered::because(why));
            }
            if stop() {
                break Err(Unanswered {
                    why: "interrupted while it did not answer".to_owned(),
                    interrupted: true,
                });
            }
        };
        let _ = child.kill(DYING);
        answer
    }
}

/// The child's side: one question, one answer.
#[must_use]
pub(crate) fn serve() -> Exit {
    let mut line = Vec::new();
    let read = io::stdin().lock().read_until(b'\n', &mut line);
    // Half a line: who asked is gone.
    if read.is_err() || line.last() != Some(&b'\n') {
        return Exit::Broken;
    }
    let Ok(ask) = serde_json::from_slice::<Ask>(&line) else {
        return Exit::Broken;
    };
    let answer = match ask {
        Ask::Check {
            format,
            given,
            force,
        } => Answer::Checked(file::check(&format, &given, force)),
        Ask::Save(save) => Answer::Saved(file::save(&save).map_err(|e| e.to_string())),
        Ask::Identify(dirs) => Answer::Identities(dirs.iter().map(|d| identity(d)).collect()),
    };
    let told = serde_json::to_vec(&answer)
        .map_err(io::Error::from)
        .and_then(|mut line| {
            line.push(b'\n');
            io::stdout().lock().write_all(&line)
        });
    if told.is_ok() {
        Exit::Done
    } else {
        Exit::Broken
    }
}

fn identity(dir: &str) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(dir).ok()?;
    Some((metadata.dev(), metadata.ino()))
}
