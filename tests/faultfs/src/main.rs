//! `walprobe-faultfs SCRIPT MOUNTPOINT [DEVICE]`: mounts the filesystem and serves it until
//! its standard input ends, then prints what was counted.

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use walprobe_faultfs::{Faultfs, Script};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("walprobe-faultfs: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let (script, point, device) = match arguments.as_slice() {
        [script, point] => (script, point, None),
        [script, point, device] => (script, point, Some(Path::new(device))),
        _ => return Err("usage: walprobe-faultfs SCRIPT MOUNTPOINT [DEVICE]".to_owned()),
    };
    let path = Path::new(script);
    let say = |error: &dyn std::fmt::Display| format!("{}:{error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| say(&error))?;
    let script = Script::parse(&text).map_err(|error| say(&error))?;
    let mounted = Faultfs::mount(script, Path::new(point), device)?;
    // Whatever comes from there: only its end counts.
    let mut ignored = Vec::new();
    std::io::stdin()
        .read_to_end(&mut ignored)
        .map_err(|error| format!("standard input: {error}"))?;
    eprint!("{}", mounted.counts().text());
    mounted.unmount()
}
