//! The child's side: reads what to do from stdin, does it, tells it on stdout.
//!
//! The parent coordinates signals, so the child ignores them and stops when its stdin
//! says so or ends, which it also does when the parent is killed. A parent that no longer
//! listens is the same: stop, clean up, end.

use std::{
    io::{self, BufRead as _, Write as _},
    path::Path,
    sync::Arc,
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use walprobe_probes::{
    PROBES, clean, contract::Pulse, event::Event, request::Request, sys::process::ignore_signals,
    worker,
};

use crate::error::{Exit, say};

/// What a clean-up told, as one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cleaning {
    /// It was done.
    Done(Cleaned),
    /// The directory cannot be used.
    Refused {
        /// For the user.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
}

/// What a clean-up did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleaned {
    /// Removed.
    pub removed: Vec<String>,
    /// Not removed, and why.
    pub left: Vec<(String, String)>,
    /// Held by a process that still runs.
    pub running: Vec<String>,
}

/// Measures one directory: the request is one JSON line on stdin.
#[must_use]
pub fn measure() -> Exit {
    settle_in(c"walprobe-worker");
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) => return Exit::Done,
        Ok(_) => {}
        Err(e) => return broken(&format!("cannot read the request: {e}")),
    }
    let request: Request = match serde_json::from_str(&line) {
        Ok(request) => request,
        Err(e) => return broken(&format!("cannot read the request: {e}")),
    };
    let pulse = Arc::new(Pulse::default());
    let listener = Arc::clone(&pulse);
    let listening = thread::Builder::new()
        .name("stdin".to_owned())
        .stack_size(128 << 10)
        .spawn(move || {
            let told = wait_for_stop(io::stdin().lock());
            listener.stop();
            if !told {
                outlive_briefly(&listener);
                die();
            }
        });
    if let Err(e) = listening {
        return broken(&format!("cannot start a thread: {e}"));
    }
    worker::run(PROBES, &request, &pulse, &|event: &Event| {
        if tell(event).is_err() {
            pulse.stop();
        }
    });
    Exit::Done
}

/// Removes what dead runs left in `dir`, or one of them, and tells what it did.
#[must_use]
pub fn clean_up(dir: &str, run_id: Option<&str>) -> Exit {
    settle_in(c"walprobe-clean");
    let dir = Path::new(dir);
    let cleaned = match run_id {
        Some(run_id) => clean::clean_run(dir, run_id),
        None => clean::clean(dir),
    };
    let cleaning = match cleaned {
        Ok(report) => Cleaning::Done(Cleaned {
            removed: report.removed,
            left: report.left,
            running: report.running,
        }),
        Err(refused) => Cleaning::Refused {
            message: refused.message,
            hint: refused.hint,
        },
    };
    // Nobody listens any more: what was to be done is done.
    let _ = tell(&cleaning);
    Exit::Done
}

/// An orphan may take this long to end its operation and remove its folder; `walprobe clean` is for
/// the rest.
const ORPHAN_GRACE: Duration = Duration::from_secs(15);
/// But not longer than this while no call returns.
const ORPHAN_SILENCE: Duration = Duration::from_secs(4);

/// The parent is gone: nobody would end this process if it does not end by itself.
fn outlive_briefly(pulse: &Pulse) {
    const STEP: Duration = Duration::from_millis(250);
    let (mut waited, mut silent) = (Duration::ZERO, Duration::ZERO);
    let mut beats = pulse.beats();
    while waited < ORPHAN_GRACE && silent < ORPHAN_SILENCE {
        thread::sleep(STEP);
        waited += STEP;
        let now = pulse.beats();
        silent = if now == beats {
            silent + STEP
        } else {
            Duration::ZERO
        };
        beats = now;
    }
}

/// Lines until `stop` or the end; whether it was `stop`.
fn wait_for_stop(input: impl io::BufRead) -> bool {
    for line in input.lines() {
        match line {
            Ok(line) if line == "stop" => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    false
}

fn die() {
    use rustix::process::{Signal, getpid, kill_process};
    // It cannot be refused: the process is ours.
    let _ = kill_process(getpid(), Signal::KILL);
}

fn settle_in(name: &std::ffi::CStr) {
    // SIGPIPE is ignored by the runtime; SIGXFSZ becomes EFBIG, a result like others.
    ignore_signals(&[
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
        SIGXFSZ,
    ]);
    let _ = rustix::thread::set_name(name);
    // Short of memory, the kernel should take this process and not the database beside it.
    let _ = std::fs::write("/proc/self/oom_score_adj", "800");
}

/// signal-hook has no name for it.
pub(crate) const SIGXFSZ: i32 = rustix::process::Signal::XFSZ.as_raw();

fn tell(what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

fn broken(message: &str) -> Exit {
    say(&format!("walprobe worker: {message}"));
    Exit::Broken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stop_or_the_end_ends_the_wait() {
        let mut input = io::Cursor::new(b"x\nstop\nrest\n".to_vec());
        assert!(wait_for_stop(&mut input));
        assert_eq!(input.position(), 7);
        let mut input = io::Cursor::new(b"x\n".to_vec());
        assert!(!wait_for_stop(&mut input));
        assert_eq!(input.position(), 2);
    }
}
