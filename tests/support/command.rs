//! Runs a system program (mkfs, mount, losetup) and says what went wrong.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use crate::means;

/// Runs a program to its end; its stdout, without the last line feed.
///
/// # Errors
/// The program is not there, or it failed: the command line and its stderr.
pub fn run<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> Result<String, String> {
    // An absolute path: administration programs are often outside an ordinary PATH.
    let path = means::tool(program).map_err(|_| format!("no program {program}"))?;
    let output = Command::new(path)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned());
    }
    let line: Vec<_> = arguments
        .iter()
        .map(|argument| argument.as_ref().to_string_lossy())
        .collect();
    Err(format!(
        "{program} {}: {}: {}",
        line.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr).trim_end()
    ))
}
