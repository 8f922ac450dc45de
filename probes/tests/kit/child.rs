//! The test binary run again as a process of its own, to be killed, to have another umask,
//! or to be another user.
//!
//! A test crate has one test `child_entry`, which does nothing unless `CHILD_CASE` is set.
//! A child says `child: WORD...` on its stdout; everything else there is libtest's.

use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{self, ChildStdout, Command, ExitStatus, Stdio},
};

/// An ordinary user, and its group.
pub(crate) const NOBODY: u32 = 65534;

/// A child at work. Dropping it is a SIGKILL, and waits until the process is gone.
pub(crate) struct Child {
    process: process::Child,
    stdout: BufReader<ChildStdout>,
}

/// Starts `child_entry` with `CHILD_CASE` and `CHILD_DIR` set.
pub(crate) fn start(case: &str, dir: &Path, env: &[(&str, &str)]) -> Child {
    Child::spawn(command(
        &env::current_exe().expect("current_exe"),
        case,
        dir,
        env,
    ))
}

/// As [`start`], as an ordinary user. Only root can; `dir` must be one that user can reach.
pub(crate) fn start_as_nobody(case: &str, dir: &Path, env: &[(&str, &str)]) -> Child {
    use std::os::unix::fs::PermissionsExt as _;
    // The build directory may be one that only its owner can reach.
    let home = tempfile::tempdir().expect("tempdir");
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).expect("chmod");
    let copy = home.path().join("test");
    let exe = env::current_exe().expect("current_exe");
    // By another process: a file that this one has open for writing while another thread
    // forks cannot be executed.
    if std::fs::hard_link(&exe, &copy).is_err() {
        let status = Command::new("cp")
            .arg(&exe)
            .arg(&copy)
            .status()
            .expect("cp");
        assert!(status.success());
    }
    let mut command = command(&copy, case, dir, env);
    command.uid(NOBODY).gid(NOBODY).current_dir("/");
    let mut child = Child::spawn(command);
    child.wait_for("ready");
    child
}

fn command(exe: &Path, case: &str, dir: &Path, env: &[(&str, &str)]) -> Command {
    let mut command = Command::new(exe);
    command
        .args(["--exact", "child_entry", "--nocapture", "--test-threads=1"])
        .env("CHILD_CASE", case)
        .env("CHILD_DIR", dir)
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

impl Child {
    fn spawn(mut command: Command) -> Self {
        let mut process = command.spawn().expect("spawn");
        let stdout = BufReader::new(process.stdout.take().expect("piped"));
        Self { process, stdout }
    }

    /// The rest of the next line that says `word`; panics if the child ends without.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, word: &str) -> String {
        let mut seen = String::new();
        loop {
            let mut line = String::new();
            let read = self.stdout.read_line(&mut line).expect("read");
            assert!(read > 0, "the child ended without {word}:\n{seen}");
            // libtest's own `test child_entry ... ` may stand before it.
            if let Some(at) = line.find("child: ")
                && let Some(rest) = line[at + 7..].strip_prefix(word)
            {
                return rest.trim().to_owned();
            }
            seen.push_str(&line);
        }
    }

    /// Waits until the child has ended by itself.
    pub(crate) fn end(mut self) -> ExitStatus {
        let mut line = String::new();
        while self.stdout.read_line(&mut line).expect("read") > 0 {
            line.clear();
        }
        self.process.wait().expect("wait")
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// In a child: says something to the parent.
pub(crate) fn say(words: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "child: {words}")
        .and_then(|()| out.flush())
        .expect("say");
}
