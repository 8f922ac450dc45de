//! What is going on, on stderr: one status line where stderr is a terminal, notes as lines.
//!
//! Everything that reaches stderr while children run goes through one [`Console`], so
//! that a note and the status line never share a line. Redrawn at most twice a second.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};

use walprobe_probes::event::Event;

use crate::{
    clock::Stopwatch,
    error::{escape, say},
};

/// Time between two drawings.
const REDRAW: Duration = Duration::from_millis(500);
/// Lines that a child may have passed on to stderr.
const CHILD_LINES: usize = 200;

/// Owns stderr while children run.
#[derive(Debug)]
pub struct Console {
    terminal: bool,
    drawn: bool,
    clock: Stopwatch,
    next: Duration,
    status: Status,
    child_lines: usize,
}

/// What the status line says.
#[derive(Clone, Debug, Default)]
struct Status {
    dir: String,
    limit_s: f64,
    began: Duration,
    doing: String,
    bytes_written: u64,
}

impl Default for Console {
    fn default() -> Self {
        Self::new()
    }
}

impl Console {
    /// Looks at stderr and `TERM`.
    #[must_use]
    pub fn new() -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|t| t.is_empty() || t == "dumb");
        Self {
            terminal: io::stderr().is_terminal() && !dumb,
            drawn: false,
            clock: Stopwatch::start(),
            next: Duration::ZERO,
            status: Status::default(),
            child_lines: 0,
        }
    }

    /// A child begins with `dir`.
    pub fn begin(&mut self, dir: &str, limit_s: f64) {
        self.child_lines = 0;
        self.status = Status {
            dir: dir.to_owned(),
            limit_s,
            began: self.clock.lived(),
            doing: "starting".to_owned(),
            bytes_written: 0,
        };
    }

    /// An event that changes the status line.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Doing {
                probe,
                comparison,
                case,
                round,
            } => {
                self.status.doing = format!(
                    "{probe}/{comparison}/{case} round {}",
                    round.saturating_add(1)
                );
            }
            Event::Alive { bytes_written } => self.status.bytes_written = *bytes_written,
            _ => {}
        }
        self.tick();
    }

    /// Time passes: draws when it is time to.
    pub fn tick(&mut self) {
        if !self.terminal {
            return;
        }
        let now = self.clock.lived();
        if now < self.next {
            return;
        }
        self.next = now + REDRAW;
        let columns = rustix::termios::tcgetwinsize(io::stderr()).map_or(80, |w| w.ws_col);
        let line = self.status.line(now, usize::from(columns.max(20)) - 1);
        let _ = write!(io::stderr().lock(), "\r\x1b[K{line}");
        self.drawn = true;
    }

    /// Erases the status line.
    pub fn clear(&mut self) {
        if self.drawn {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
            self.drawn = false;
        }
    }

    /// One line for the user.
    pub fn note(&mut self, line: &str) {
        self.clear();
        say(line);
    }

    /// One line that a child wrote; beyond a number of them none is passed on.
    pub fn child_line(&mut self, line: &str) {
        self.child_lines += 1;
        if self.child_lines <= CHILD_LINES {
            self.note(line);
        } else if self.child_lines == CHILD_LINES + 1 {
            self.note("walprobe: further lines of the worker are left out");
        }
    }
}

impl Status {
    /// At most `columns` characters; of a long directory the end is kept.
    fn line(&self, now: Duration, columns: usize) -> String {
        let lived = now.saturating_sub(self.began).as_secs();
        let rest = format!(
            "  {}  {lived}/{:.0} s  {:.1} MiB",
            escape(&self.doing),
            self.limit_s,
            self.bytes_written as f64 / f64::from(1 << 20),
        );
        let dir = escape(&self.dir);
        let room = columns.saturating_sub(rest.chars().count()).max(8);
        let length = dir.chars().count();
        let dir = if length > room {
            let tail: String = dir.chars().skip(length - room + 2).collect();
            format!("..{tail}")
        } else {
            dir
        };
        format!("{dir}{rest}").chars().take(columns).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_line_fits_and_keeps_what_changes() {
        let status = Status {
            dir: "/mnt/a/very/long/path/to/some/scratch/directory".to_owned(),
            limit_s: 90.0,
            began: Duration::from_secs(5),
            doing: "sync/commit/fdatasync round 3".to_owned(),
            bytes_written: 3 << 20,
        };
        let now = Duration::from_secs(17);
        assert_eq!(
            status.line(now, 79),
            "..th/to/some/scratch/directory  sync/commit/fdatasync round 3  12/90 s  3.0 MiB"
        );
        assert_eq!(status.line(now, 30).chars().count(), 30);
        assert!(status.line(now, 200).starts_with("/mnt/a/very"));
    }

    #[test]
    fn a_hostile_name_cannot_steer_the_terminal() {
        let status = Status {
            dir: "/mnt/\x1b[2J".to_owned(),
            ..Status::default()
        };
        assert!(!status.line(Duration::ZERO, 79).contains('\x1b'));
    }
}
