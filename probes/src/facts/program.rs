//! Asking a program: found on the path or where system programs live, run without a shell
//! in the C locale, and given up after a time limit.

use std::{
    env,
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// A pool that hangs must not hang the run.
const LIMIT: Duration = Duration::from_secs(5);
/// How long a killed program is waited for, and one that has closed its output.
const END: Duration = Duration::from_millis(200);
/// More output than any answer has.
const MOST_BYTES: u64 = 1 << 20;
/// Where system programs live that an ordinary user's path leaves out.
const SYSTEM: [&str; 4] = ["/sbin", "/usr/sbin", "/usr/local/sbin", "/usr/bin"];

/// What a program writes to its standard output.
///
/// # Errors
/// Why there is no answer: not there, a failure with its own words, or the time limit.
pub(super) fn output(name: &str, arguments: &[&str]) -> Result<String, String> {
    let path = find(name).ok_or_else(|| format!("no program {name}"))?;
    run(&path, arguments, LIMIT).map_err(|why| format!("{name}: {why}"))
}

/// Relative entries of the path are left out: they mean whatever directory this is.
fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(SYSTEM.iter().map(PathBuf::from))
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

fn run(path: &Path, arguments: &[&str], limit: Duration) -> Result<String, String> {
    let mut child = Command::new(path)
        .args(arguments)
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot be started: {e}"))?;
    let (tell, told) = mpsc::channel();
    if let Some(out) = child.stdout.take() {
        collect(true, out, tell.clone());
    }
    if let Some(errors) = child.stderr.take() {
        collect(false, errors, tell);
    }
    let mut texts = [String::new(), String::new()];
    for _ in 0..2 {
        let Ok((is_output, text)) = told.recv_timeout(limit) else {
            end(&mut child);
            return Err(format!("no answer within {} s", limit.as_secs_f64()));
        };
        texts[usize::from(!is_output)] = text;
    }
    let [out, errors] = texts;
    let status = match exit(&mut child) {
        Some(status) => status,
        None => {
            end(&mut child);
            return Err("it closed its output and did not end".to_owned());
        }
    };
    if status.success() {
        return Ok(out);
    }
    let first = errors.lines().find(|line| !line.trim().is_empty());
    Err(first.map_or_else(|| status.to_string(), |line| line.trim().to_owned()))
}

fn collect(is_output: bool, from: impl Read + Send + 'static, tell: mpsc::Sender<(bool, String)>) {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is all that there is.
        let _ = from.take(MOST_BYTES).read_to_end(&mut bytes);
        let _ = tell.send((is_output, String::from_utf8_lossy(&bytes).into_owned()));
    });
}

/// How it ended; none if it does not within a moment.
fn exit(child: &mut Child) -> Option<std::process::ExitStatus> {
    let step = Duration::from_millis(2);
    for _ in 0..=END.as_millis() / step.as_millis() {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        thread::sleep(step);
    }
    None
}

/// Kills it. One that cannot die yet is left to its own end.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = exit(child);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, limit_ms: u64) -> Result<String, String> {
        let limit = Duration::from_millis(limit_ms);
        run(Path::new("/bin/sh"), &["-c", script], limit)
    }

    #[test]
    fn an_answer_a_failure_and_a_silence_are_told_apart() {
        let out = sh("printf 'a\\nb\\n'; echo x >&2", 60_000);
        assert_eq!(out.as_deref(), Ok("a\nb\n"));
        assert_eq!(sh("echo $LC_ALL", 60_000).as_deref(), Ok("C\n"));
        let failed = sh(
            "echo; echo 'no such pool' >&2; echo more >&2; exit 3",
            60_000,
        );
        assert_eq!(failed.unwrap_err(), "no such pool");
        assert!(sh("exit 3", 60_000).unwrap_err().contains('3'));
        let silent = sh("exec sleep 600", 50).unwrap_err();
        assert_eq!(silent, "no answer within 0.05 s");
        assert!(
            output("no-such-program-at-all", &[])
                .unwrap_err()
                .contains("no program")
        );
    }

    #[test]
    fn more_output_than_a_pipe_holds_does_not_block() {
        let out = sh("head -c 300000 /dev/zero | tr '\\0' x", 60_000).unwrap();
        assert_eq!(out.len(), 300_000);
    }

    #[test]
    fn system_programs_are_found_without_a_path() {
        assert!(find("sh").is_some());
        assert!(!is_program(Path::new("/etc/passwd")));
        assert!(!is_program(Path::new("/etc")));
    }
}
