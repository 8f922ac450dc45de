//! Runs the binary under test: bounded, with its streams captured through pipes.
//!
//! "Came back" means that the process has ended and that both pipes have reached
//! their end: a child that was left behind holding stdout would keep a shell's
//! `$(...)` waiting as well. Only processes that were started here, and those
//! they started, are ever sent a signal, by their id and start time.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::Signal;

use crate::family::{Process, pid};
use crate::stopwatch::{Stopwatch, poll};

/// A command line to run.
#[derive(Clone, Debug)]
pub struct Invocation {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    stdout: Option<PathBuf>,
}

impl Invocation {
    /// A program without arguments.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            stdout: None,
        }
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// With more arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        let arguments = arguments
            .into_iter()
            .map(|argument| argument.as_ref().to_owned());
        self.arguments.extend(arguments);
        self
    }

    /// With an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// With stdout on a file instead of a pipe.
    #[must_use]
    pub fn stdout_to(mut self, path: impl Into<PathBuf>) -> Self {
        self.stdout = Some(path.into());
        self
    }

    /// Starts it, as the leader of a process group of its own.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(self) -> Result<Running, String> {
        let shown = format!("{} {:?}", self.program.display(), self.arguments);
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .envs(self.environment)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(match &self.stdout {
                None => Stdio::piped(),
                Some(path) => fs::File::options()
                    .write(true)
                    .open(path)
                    .map_err(|error| format!("cannot open {}: {error}", path.display()))?
                    .into(),
            })
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| format!("cannot start {shown}: {error}"))?;
        let stdout = child.stdout.take().map(Capture::start).unwrap_or_default();
        let stderr = child.stderr.take().map(Capture::start).unwrap_or_default();
        Ok(Running {
            shown,
            child,
            status: None,
            stdout,
            stderr,
            known: BTreeSet::new(),
        })
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// It cannot be started, or does not come back within `limit`.
    pub fn run(self, limit: Duration) -> Result<Finished, String> {
        self.start()?.finish(limit)
    }
}

/// How a process ended and what it wrote.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The command line, for messages.
    pub shown: String,
    /// How it ended.
    pub status: ExitStatus,
    /// All it wrote to stdout.
    pub stdout: Vec<u8>,
    /// All it wrote to stderr.
    pub stderr: String,
}

impl Finished {
    /// Fails unless it ended with this exit code.
    ///
    /// # Errors
    /// How it ended, and its stderr.
    pub fn expect_code(&self, code: i32) -> Result<&Self, String> {
        if self.status.code() == Some(code) {
            return Ok(self);
        }
        Err(format!(
            "{} ended with {} instead of exit code {code}; stderr: {}",
            self.shown,
            self.ending(),
            self.stderr.trim_end()
        ))
    }

    fn ending(&self) -> String {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => self.status.to_string(),
        }
    }
}

/// A process that was started; killed with its descendants when dropped.
#[derive(Debug)]
pub struct Running {
    shown: String,
    child: Child,
    status: Option<ExitStatus>,
    stdout: Capture,
    stderr: Capture,
    known: BTreeSet<Process>,
}

impl Running {
    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// It has ended.
    pub fn ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    /// What it has written to stderr so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr.so_far()).into_owned()
    }

    /// All living processes that it started, and those that they started. They stay
    /// known after their parent's death.
    pub fn descendants(&mut self) -> Vec<Process> {
        if !self.ended() {
            self.known.extend(Process::descendants_of(self.child.id()));
        }
        let grown: Vec<_> = self
            .known
            .iter()
            .flat_map(|process| Process::descendants_of(process.id))
            .collect();
        self.known.extend(grown);
        self.known.retain(|process| process.lives());
        self.known.iter().copied().collect()
    }

    /// Sends it a signal; nothing happens once it has ended.
    pub fn signal(&mut self, signal: Signal) {
        if !self.ended()
            && let Some(pid) = pid(self.child.id())
        {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Sends its whole process group a signal, as a terminal does on Ctrl-C.
    pub fn signal_group(&mut self, signal: Signal) {
        if !self.ended()
            && let Some(pid) = pid(self.child.id())
        {
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }

    /// Waits until it has come back.
    ///
    /// # Errors
    /// It does not come back within `limit`; it is killed then.
    pub fn finish(mut self, limit: Duration) -> Result<Finished, String> {
        let watch = Stopwatch::start();
        let back = poll(limit, || {
            (self.ended() && self.stdout.at_end() && self.stderr.at_end()).then_some(())
        });
        match (back, self.status) {
            (Some(()), Some(status)) => Ok(Finished {
                shown: self.shown.clone(),
                status,
                stdout: self.stdout.so_far(),
                stderr: self.stderr(),
            }),
            (_, status) => Err(format!(
                "{} did not come back within {:.0} s ({}); stderr: {}",
                self.shown,
                watch.elapsed().as_secs_f64(),
                match status {
                    None => "it still runs",
                    Some(_) => "it ended, but something holds its stdout or stderr open",
                },
                self.stderr().trim_end()
            )),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for process in self.descendants() {
            process.kill();
        }
        self.signal(Signal::KILL);
        // Bounded: a process in an uninterruptible call cannot be waited for.
        poll(Duration::from_secs(2), || self.ended().then_some(()));
    }
}

/// Collects a stream in a thread.
#[derive(Debug, Default)]
struct Capture {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Capture {
    fn start(mut stream: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut buffer) {
                sink.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend_from_slice(&buffer[..read]);
            }
        });
        Self {
            bytes,
            reader: Some(reader),
        }
    }

    fn at_end(&self) -> bool {
        self.reader.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn so_far(&self) -> Vec<u8> {
        self.bytes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The binary under test: `WALPROBE_TEST_EXE`, or the one that was built with the test.
#[must_use]
pub fn binary(built_with: &str) -> PathBuf {
    env::var_os("WALPROBE_TEST_EXE").map_or_else(|| built_with.into(), PathBuf::from)
}

/// A copy of a program that every user may run.
///
/// # Errors
/// It cannot be copied.
pub fn copy_for_all(program: &Path, folder: &Path) -> Result<PathBuf, String> {
    use std::os::unix::fs::PermissionsExt;
    let copy = folder.join(program.file_name().unwrap_or_default());
    fs::copy(program, &copy)
        .and_then(|_| fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)))
        .map_err(|error| format!("cannot copy {}: {error}", program.display()))?;
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn streams_and_code_are_captured() -> Result<(), String> {
        let finished = Invocation::new("/bin/sh")
            .args(["-c", "echo out; echo err >&2; exit 3"])
            .run(20 * SECOND)?;
        assert_eq!(finished.stdout, b"out\n");
        assert_eq!(finished.stderr, "err\n");
        assert!(finished.expect_code(3).is_ok() && finished.expect_code(0).is_err());
        Ok(())
    }

    #[test]
    fn a_child_that_keeps_stdout_open_has_not_come_back() -> Result<(), String> {
        let mut running = Invocation::new("/bin/sh")
            .args(["-c", "sleep 60 & sleep 0.2"])
            .start()?;
        let left = poll(20 * SECOND, || running.descendants().first().copied());
        let late = running.finish(SECOND);
        assert!(late.is_err_and(|text| text.contains("holds its stdout")));
        // Dropping it killed what it had left behind.
        let left = left.ok_or("no descendant was seen")?;
        assert!(poll(5 * SECOND, || (!left.lives()).then_some(())).is_some());
        Ok(())
    }
}
