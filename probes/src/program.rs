//! Runs a program of the system's or the user's: by its absolute path, without a shell, bounded.
//!
//! Its stdin is empty unless it is given one, what it says goes to memory, and its locale is C. It gets a process group of
//! its own, which is killed as a whole when its time is over. While it runs the pulse beats: the
//! time limit here is the watchdog's.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::fd::OwnedFd,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileExt as _, PermissionsExt as _},
        process::{CommandExt as _, ExitStatusExt as _},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use rustix::{
    fs::MemfdFlags,
    process::{Pid, Signal, kill_process_group},
};

use crate::{contract::Pulse, paths};

/// Where administration programs live, whatever `PATH` says.
const ALSO: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];
/// How often a program is looked at.
const STEP: Duration = Duration::from_millis(5);
/// What a killed program has to vanish.
const DYING: Duration = Duration::from_secs(2);
/// A program that says more is killed: its words are kept in memory.
const MAX_BYTES: u64 = 16 << 20;
/// Of a failed program's last line this much is told: more than the longest name of a dataset.
const MAX_TOLD: usize = 400;

/// Why a program did not do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The run is to end.
    Interrupted,
    /// What happened, with the program's name.
    Told(String),
}

/// The absolute path of a program: itself where it has a slash, else the first of `PATH` and the
/// folders of administration programs that may be executed.
pub(crate) fn find(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return std::path::absolute(Path::new(name)).ok();
    }
    #[cfg(test)]
    if let Some(folder) = LOOK_IN.with_borrow(Clone::clone) {
        return Some(folder.join(name)).filter(|file| file.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .chain(ALSO.map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| {
            file.metadata()
                .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
        })
}

#[cfg(test)]
thread_local!(static LOOK_IN: std::cell::RefCell<Option<PathBuf>> = const { std::cell::RefCell::new(None) });

/// In unit tests: the one folder in which this thread finds programs.
#[cfg(test)]
pub(crate) fn look_in(folder: Option<&Path>) {
    LOOK_IN.set(folder.map(Path::to_owned));
}

/// A program to be run.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    path: &'a Path,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
    folder: Option<&'static str>,
    stdin: Option<OwnedFd>,
    limit: Duration,
    stops: bool,
}

impl<'a> Program<'a> {
    /// A program by its absolute path, killed after `limit` or when the run is to end.
    pub(crate) fn new(path: &'a Path, limit: Duration) -> Self {
        Self {
            path,
            arguments: Vec::new(),
            environment: Vec::new(),
            folder: None,
            stdin: None,
            limit,
            stops: true,
        }
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, more: impl IntoIterator<Item = S>) -> Self {
        let more = more.into_iter().map(|a| a.as_ref().to_owned());
        self.arguments.extend(more);
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Runs in `/`, where it keeps no filesystem busy.
    pub(crate) const fn in_root(mut self) -> Self {
        self.folder = Some("/");
        self
    }

    /// Has this as its stdin, and with it what hangs on it, such as a lock.
    pub(crate) fn stdin(mut self, fd: OwnedFd) -> Self {
        self.stdin = Some(fd);
        self
    }

    /// Goes on when the run is to end: what it does must not be left half done.
    pub(crate) const fn not_stopped(mut self) -> Self {
        self.stops = false;
        self
    }

    /// Runs it; what it wrote to stdout.
    pub(crate) fn run(&self, pulse: &Pulse) -> Result<String, Failure> {
        let name = paths::show(self.path);
        let cannot = |e: io::Error| Failure::Told(format!("cannot run {name}: {e}"));
        let (out, err) = (memory()?, memory()?);
        let stdin = match &self.stdin {
            Some(fd) => fd.try_clone().map_err(cannot)?.into(),
            None => Stdio::null(),
        };
        let mut command = Command::new(self.path);
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(n, v)| (n, v)))
            .env("LC_ALL", "C")
            .stdin(stdin)
            .stdout(out.try_clone().map_err(cannot)?)
            .stderr(err.try_clone().map_err(cannot)?)
            .process_group(0);
        if let Some(folder) = self.folder {
            command.current_dir(folder);
        }
        let mut child = command.spawn().map_err(cannot)?;
        let ended = self.wait(&mut child, &[&out, &err], pulse);
        let status = match ended {
            Ok(status) => status,
            Err(why) => {
                let gone = if kill(&mut child) {
                    ""
                } else {
                    ", and its process cannot be killed"
                };
                return Err(match why {
                    None => Failure::Interrupted,
                    Some(why) => Failure::Told(format!("{name} {why}{gone}")),
                });
            }
        };
        if status.success() {
            return Ok(String::from_utf8_lossy(&slurp(&out)).into_owned());
        }
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, Some(signal)) => format!("was killed by signal {signal}"),
            (None, None) => "ended in an unknown way".to_owned(),
        };
        let said = [slurp(&err), slurp(&out)].into_iter().find_map(last_line);
        let said = said.map_or_else(String::new, |line| format!(": {line}"));
        Err(Failure::Told(format!("{name} {how}{said}")))
    }

    /// Its end; or why it is not waited for, none where the run is to end.
    fn wait(
        &self,
        child: &mut Child,
        said: &[&File],
        pulse: &Pulse,
    ) -> Result<ExitStatus, Option<String>> {
        let mut waited = Duration::ZERO;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => {}
                Err(e) => return Err(Some(format!("cannot be waited for: {e}"))),
            }
            if self.stops && pulse.stopped() {
                return Err(None);
            }
            if waited >= self.limit {
                let limit = self.limit.as_secs_f64();
                return Err(Some(format!("did not end within {limit:.0} s")));
            }
            if said.iter().any(|f| size(f) > MAX_BYTES) {
                return Err(Some(format!("said more than {MAX_BYTES} bytes")));
            }
            std::thread::sleep(STEP);
            waited += STEP;
            pulse.beat();
        }
    }
}

/// Kills the program's whole group; whether it is gone. It is not reaped yet, so the group's
/// number is its own.
fn kill(child: &mut Child) -> bool {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let mut waited = Duration::ZERO;
    while waited < DYING {
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        std::thread::sleep(STEP);
        waited += STEP;
    }
    false
}

/// A file that is nowhere: who holds it open after the program's end keeps nobody waiting.
fn memory() -> Result<File, Failure> {
    rustix::fs::memfd_create(c"program", MemfdFlags::CLOEXEC)
        .map(File::from)
        .map_err(|e| Failure::Told(format!("memfd_create: {}", io::Error::from(e))))
}

fn size(file: &File) -> u64 {
    file.metadata().map_or(0, |m| m.len())
}

fn slurp(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; size(file).min(MAX_BYTES) as usize];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => bytes,
        Err(_) => Vec::new(),
    }
}

fn last_line(said: Vec<u8>) -> Option<String> {
    let line = said.trim_ascii().rsplit(|b| *b == b'\n').next()?;
    let line = line.trim_ascii();
    (!line.is_empty()).then(|| paths::show_bytes(&line[..line.len().min(MAX_TOLD)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, limit_ms: u64) -> Result<String, Failure> {
        Program::new(Path::new("/bin/sh"), Duration::from_millis(limit_ms))
            .args(["-c", script])
            .env("WALPROBE_FILE", "/x y")
            .in_root()
            .run(&Pulse::default())
    }

    #[test]
    fn what_it_says_and_its_surroundings() {
        let script = r#"printf '%s|%s|%s|' "$LC_ALL" "$WALPROBE_FILE" "$PWD"; cat"#;
        assert_eq!(sh(script, 60_000), Ok("C|/x y|/|".to_owned()));
    }

    #[test]
    fn a_failure_is_told_with_its_last_line() {
        let told = |text: &str| Err(Failure::Told(format!("/bin/sh {text}")));
        assert_eq!(sh("exit 3", 60_000), told("ended with exit code 3"));
        let noisy = "echo one; echo two >&2; echo 'three\x1b[31m' >&2; exit 1";
        let last = r"ended with exit code 1: three\x1b[31m";
        assert_eq!(sh(noisy, 60_000), told(last));
        assert_eq!(sh("kill -9 $$", 60_000), told("was killed by signal 9"));
    }

    #[test]
    fn one_that_hangs_is_killed_with_its_children() {
        let file = std::env::temp_dir().join(format!("walprobe-program-{}", std::process::id()));
        let script = format!("sleep 77 & echo $! > {}; wait", file.display());
        let told = "/bin/sh did not end within 0 s".to_owned();
        assert_eq!(sh(&script, 300), Err(Failure::Told(told)));
        let child = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let stat = format!("/proc/{}/stat", child.trim());
        let lives = || std::fs::read_to_string(&stat).is_ok_and(|s| !s.contains(") Z "));
        for _ in 0..200 {
            if !lives() {
                return;
            }
            std::thread::sleep(STEP);
        }
        panic!("its child lives");
    }

    #[test]
    fn the_end_of_the_run_ends_it_unless_it_must_not() {
        let pulse = Pulse::default();
        pulse.stop();
        let program = || {
            Program::new(Path::new("/bin/sh"), Duration::from_secs(60)).args(["-c", "sleep 0.2"])
        };
        assert_eq!(program().run(&pulse), Err(Failure::Interrupted));
        assert_eq!(program().not_stopped().run(&pulse), Ok(String::new()));
    }

    #[test]
    fn programs_are_found_by_absolute_path() {
        assert!(find(OsStr::new("sh")).is_some_and(|p| p.is_absolute()));
        assert_eq!(find(OsStr::new("no-such-program-at-all")), None);
        assert_eq!(find(OsStr::new("/x/y")), Some(PathBuf::from("/x/y")));
        assert!(find(OsStr::new("./y")).is_some_and(|p| p.is_absolute()));
    }

    #[test]
    fn what_is_not_there_cannot_be_run() {
        let program = Program::new(Path::new("/no/such"), Duration::from_secs(1));
        let Err(Failure::Told(why)) = program.run(&Pulse::default()) else {
            panic!("it ran");
        };
        assert!(
            why.starts_with("cannot run /no/such: No such file"),
            "{why}"
        );
    }
}
