//! The parent's side of a child process: start it, hear it, ask it to stop, kill it.
//!
//! A child is this same program under a hidden command, in its own process group. Its
//! three standard descriptors are pipes to us and everything else is close-on-exec, so a
//! child that can never die holds nothing of the shell's. Its first line of input says
//! what to do; the pipe then stays open, and its end (or a line `stop`) means stop, also
//! when this process is killed. Threads read its pipes; nobody ever waits for them,
//! since whoever inherited the other end may keep it for ever.

use std::{
    ffi::{OsStr, OsString},
    io::{self, BufRead, BufReader, Read, Write as _},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    process::{Child as Process, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel},
    },
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::{clock::Stopwatch, signals};

/// The longest line of output that is taken; rows with histograms stay far below it.
const LINE_BYTES: u64 = 64 << 20;
/// The longest line of stderr that is passed on.
const STDERR_LINE_BYTES: u64 = 4 << 10;
/// Lines that may wait: a child that talks faster than we listen has to wait too.
const WAITING: usize = 256;

/// This program. Right even when its file was replaced or removed since we started.
const SELF: &str = "/proc/self/exe";

/// What a child said.
#[derive(Debug)]
pub enum Said {
    /// A line on stdout, without its end.
    Line(Vec<u8>),
    /// A line on stderr, without its end.
    Stderr(String),
    /// stdout is closed.
    Closed,
    /// stderr is closed.
    StderrClosed,
}

/// A child process.
#[derive(Debug)]
pub struct Child {
    process: Process,
    said: Receiver<Said>,
    /// Dropped or used: the child's stdin is closed.
    stop: Option<Sender<()>>,
    abandoned: Arc<AtomicBool>,
}

impl Child {
    /// Starts this program with `arguments` and `first_line` on its stdin.
    ///
    /// # Errors
    /// The system refuses a process, a pipe or a thread.
    pub fn start(arguments: &[&str], first_line: String) -> io::Result<Self> {
        Self::start_program(&program(), arguments, first_line)
    }

    /// As [`Self::start`], for children that are never played in tests.
    ///
    /// # Errors
    /// The system refuses a process, a pipe or a thread.
    pub fn start_own(arguments: &[&str], first_line: String) -> io::Result<Self> {
        Self::start_program(SELF.as_ref(), arguments, first_line)
    }

    fn start_program(program: &OsStr, arguments: &[&str], first_line: String) -> io::Result<Self> {
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let (sender, said) = sync_channel(WAITING);
        let (stop, stopped) = channel();
        let abandoned = Arc::new(AtomicBool::new(false));
        if let Some(stdin) = process.stdin.take() {
            background(move || feed(stdin, &first_line, &stopped))?;
        }
        if let Some(stdout) = process.stdout.take() {
            let (sender, abandoned) = (sender.clone(), abandoned.clone());
            background(move || {
                read_lines(stdout, LINE_BYTES, &sender, &abandoned, Said::Line);
                let _ = sender.send(Said::Closed);
            })?;
        }
        if let Some(stderr) = process.stderr.take() {
            let abandoned = abandoned.clone();
            background(move || {
                let text = |line: Vec<u8>| Said::Stderr(String::from_utf8_lossy(&line).into());
                read_lines(stderr, STDERR_LINE_BYTES, &sender, &abandoned, text);
                let _ = sender.send(Said::StderrClosed);
            })?;
        }
        Ok(Self {
            process,
            said,
            stop: Some(stop),
            abandoned,
        })
    }

    /// What it says next, if it does within `patience`.
    pub fn hear(&self, patience: Duration) -> Option<Said> {
        match self.said.recv_timeout(patience) {
            Ok(said) => Some(said),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // Both pipes are closed; only its end is left to wait for.
                thread::sleep(patience);
                None
            }
        }
    }

    /// Asks it to stop.
    pub fn ask_to_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Whether it has ended. It is not reaped yet, so its group's number stays its own.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(Pid::from_child(&self.process)), look) {
            Ok(status) => status.is_some(),
            Err(e) => e == rustix::io::Errno::CHILD,
        }
    }

    /// Kills its whole group and waits for its end, at most `patience`. Without an end
    /// nothing more can be done: it hangs in a call.
    #[must_use]
    pub fn kill(self, patience: Duration) -> Option<ExitStatus> {
        let _ = kill_process_group(Pid::from_child(&self.process), Signal::KILL);
        let mut watch = Stopwatch::start();
        while !self.has_ended() {
            if watch.lived() > patience {
                return None;
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.reap()
    }

    fn reap(mut self) -> Option<ExitStatus> {
        self.process.wait().ok()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }
}

/// How a child ended, in words.
#[must_use]
pub fn how(status: Option<ExitStatus>) -> String {
    match status.map(|s| (s.signal(), s.code())) {
        Some((Some(signal), _)) => format!("was killed by {}", signals::name(signal)),
        // Rust's exit code of a panic.
        Some((_, Some(101))) => "panicked".to_owned(),
        Some((_, Some(code))) => format!("exited with code {code}"),
        _ => "ended in an unknown way".to_owned(),
    }
}

/// This program; in builds for tests, the one that plays the child.
fn program() -> OsString {
    #[cfg(debug_assertions)]
    if let Some(program) = std::env::var_os("WALPROBE_TEST_WORKER") {
        return program;
    }
    SELF.into()
}

fn background(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(work)
        .map(drop)
}

/// Hands out the first line, then holds the pipe open until told to stop. A thread of its
/// own, since a child that does not read would block the write.
fn feed(mut stdin: std::process::ChildStdin, first_line: &str, stopped: &Receiver<()>) {
    if stdin
        .write_all(format!("{first_line}\n").as_bytes())
        .is_ok()
        && stopped.recv().is_ok()
    {
        let _ = stdin.write_all(b"stop\n");
    }
}

/// Passes lines on until the end, an error, or nobody listens. Of a line beyond `limit`
/// the rest is dropped.
fn read_lines(
    pipe: impl Read,
    limit: u64,
    sender: &SyncSender<Said>,
    abandoned: &AtomicBool,
    wrap: impl Fn(Vec<u8>) -> Said,
) {
    let mut pipe = BufReader::new(pipe);
    loop {
        let mut line = Vec::new();
        let read = pipe.by_ref().take(limit).read_until(b'\n', &mut line);
        if !matches!(read, Ok(n) if n > 0) || abandoned.load(Ordering::Relaxed) {
            return;
        }
        let whole = line.pop_if(|last| *last == b'\n').is_some();
        if sender.send(wrap(line)).is_err() {
            return;
        }
        if !whole && pipe.skip_until(b'\n').is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8], limit: u64) -> Vec<Vec<u8>> {
        let (sender, said) = sync_channel(16);
        read_lines(input, limit, &sender, &AtomicBool::new(false), Said::Line);
        drop(sender);
        said.iter()
            .map(|s| match s {
                Said::Line(line) => line,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn long_lines_are_cut_and_the_next_one_is_whole() {
        assert_eq!(
            lines(b"abcdefgh\nij\n\nk", 4),
            [&b"abcd"[..], b"ij", b"", b"k"]
        );
    }

    #[test]
    fn a_status_is_told_in_words() {
        assert_eq!(how(Some(ExitStatus::from_raw(9))), "was killed by SIGKILL");
        assert_eq!(
            how(Some(ExitStatus::from_raw(7 << 8))),
            "exited with code 7"
        );
        assert_eq!(how(Some(ExitStatus::from_raw(101 << 8))), "panicked");
    }
}
