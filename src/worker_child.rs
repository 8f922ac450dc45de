//! The child's side: reads what to do from stdin, does it, tells it on stdout.
//!
//! The parent coordinates signals, so the child ignores them and stops when its stdin
//! says so or ends, which it also does when the parent is killed. A parent that no longer
//! listens is the same: stop, clean up, end.

use std::{
    io::{self, BufRead as _, Write as _},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use serde::{Deserialize, Serialize};
use walprobe_probes::{event::Event, request::Request, sys::process::ignore_signals};

use crate::{
    error::{Exit, say},
    standins::{target, worker},
};

/// What a clean-up did, as one line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleaned {
    /// Removed.
    pub removed: Vec<String>,
    /// Not removed, and why.
    pub left: Vec<(String, String)>,
    /// Held by a process that still runs.
    pub running: Vec<String>,
}

impl Cleaned {
    /// Whether something of `path` is still there, or of a folder that holds it.
    #[must_use]
    pub fn is_left(&self, path: &str) -> bool {
        let left = self.left.iter().map(|(left, _)| left);
        left.chain(&self.running).any(|left| {
            let (left, path) = (Path::new(left), Path::new(path));
            left.starts_with(path) || path.starts_with(left)
        })
    }
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
    let stop = Arc::new(AtomicBool::new(false));
    let listener = stop.clone();
    let listening = thread::Builder::new()
        .name("stdin".to_owned())
        .stack_size(128 << 10)
        .spawn(move || {
            wait_for_stop(io::stdin().lock());
            listener.store(true, Ordering::SeqCst);
        });
    if let Err(e) = listening {
        return broken(&format!("cannot start a thread: {e}"));
    }
    let mut sink = |event: &Event| {
        if tell(event).is_err() {
            stop.store(true, Ordering::SeqCst);
        }
    };
    worker::run(request, &mut sink, &stop);
    Exit::Done
}

/// Removes what a dead run left in `dir`, and tells what it did.
#[must_use]
pub fn clean(dir: &str) -> Exit {
    settle_in(c"walprobe-clean");
    let report = target::clean(Path::new(dir));
    let cleaned = Cleaned {
        removed: report.removed,
        left: report.left,
        running: report.running,
    };
    // Nobody listens any more: what was to be done is done.
    let _ = tell(&cleaned);
    Exit::Done
}

/// Lines until `stop` or the end.
fn wait_for_stop(input: impl io::BufRead) {
    for line in input.lines() {
        match line {
            Ok(line) if line != "stop" => {}
            _ => return,
        }
    }
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
    fn a_file_left_inside_leaves_the_folder() {
        let cleaned = Cleaned {
            removed: vec!["/t/a".to_owned()],
            left: vec![("/t/b/seg-1".to_owned(), "busy".to_owned())],
            running: vec!["/t/c".to_owned()],
        };
        let left = ["/t/a", "/t/b", "/t/c", "/t/bb"].map(|p| cleaned.is_left(p));
        assert_eq!(left, [false, true, true, false]);
    }

    #[test]
    fn only_stop_or_the_end_ends_the_wait() {
        let mut input = io::Cursor::new(b"x\nstop\nrest\n".to_vec());
        wait_for_stop(&mut input);
        assert_eq!(input.position(), 7);
        let mut input = io::Cursor::new(b"x\n".to_vec());
        wait_for_stop(&mut input);
        assert_eq!(input.position(), 2);
    }
}
