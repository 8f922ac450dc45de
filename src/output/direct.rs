//! Outputs that are written as they are: character devices, FIFOs, descriptors of ours.
//!
//! What a path leads to is looked at before it is opened. Whoever does not read cannot keep
//! us: a write that makes no progress is given up, at once after a signal.

use std::{
    fs::{self, File, Metadata},
    io,
    os::{fd::AsRawFd as _, unix::fs::FileTypeExt as _},
    path::Path,
    process,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags, open},
    io::{Errno, write as write_some},
};

use super::file::not_a_place;
use crate::clock::Stopwatch;

/// How long nothing may be taken of what is written.
const NO_PROGRESS: Duration = Duration::from_secs(10);
/// How often signals are looked at.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// The descriptor of this process that a path stands for, as `/dev/stdout` or `/dev/fd/63`.
pub(super) fn descriptor(given: &Path) -> Option<i32> {
    let mut path = std::path::absolute(given).ok()?;
    // Other paths may lie on a filesystem that does not answer.
    if !path.starts_with("/dev") && !path.starts_with("/proc") {
        return None;
    }
    let own = Path::new("/proc").join(process::id().to_string());
    for _ in 0..8 {
        let parent = path.parent()?.canonicalize().ok()?;
        if parent.starts_with(&own) && parent.file_name()? == "fd" {
            return path.file_name()?.to_str()?.parse().ok();
        }
        path = parent.join(fs::read_link(&path).ok()?);
    }
    None
}

/// What an open descriptor leads to, if it can be written.
pub(super) fn check(descriptor: i32) -> io::Result<Metadata> {
    let metadata = fs::metadata(format!("/proc/self/fd/{descriptor}"))?;
    let kind = metadata.file_type();
    if !kind.is_fifo() && !kind.is_char_device() && !kind.is_file() {
        return Err(io::Error::other(not_a_place(kind)));
    }
    // Opened for reading only, it is an input of somebody's.
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}"))?;
    let flags = info.lines().find_map(|l| l.strip_prefix("flags:"));
    match flags.and_then(|f| u32::from_str_radix(f.trim(), 8).ok()) {
        Some(flags) if flags & 3 != 0 => Ok(metadata),
        _ => Err(io::Error::other("it is not open for writing")),
    }
}

/// Writes `text` to `path`; a regular file only as `descriptor`, at its end. `stop`: give up.
pub(super) fn write(
    path: &Path,
    descriptor: bool,
    text: &str,
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    let found = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let found = File::from(found);
    let kind = found.metadata()?.file_type();
    let mut flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    if kind.is_file() && descriptor {
        flags |= OFlags::APPEND;
    } else if kind.is_file() {
        return Err(io::Error::other("it was replaced by a file during the run"));
    } else if !kind.is_fifo() && !kind.is_char_device() {
        return Err(io::Error::other(not_a_place(kind)));
    }
    // What was looked at, whatever has the name by now.
    let out = open(
        format!("/proc/self/fd/{}", found.as_raw_fd()),
        flags,
        Mode::empty(),
    )?;
    let mut rest = text.as_bytes();
    let mut waited = Stopwatch::start();
    while !rest.is_empty() {
        match write_some(&out, rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                rest = &rest[written..];
                waited = Stopwatch::start();
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::new(&out, PollFlags::OUT)], Some(&TICK));
            }
            Err(e) => return Err(e.into()),
        }
        if !rest.is_empty() && stop() {
            return Err(io::Error::other("interrupted: nobody reads it"));
        }
        if waited.lived() > NO_PROGRESS {
            let message = format!("nobody read it for {} s", NO_PROGRESS.as_secs());
            return Err(io::Error::other(message));
        }
    }
    Ok(())
}
