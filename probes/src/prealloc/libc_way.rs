//! What this C library's posix_fallocate does on this filesystem: passes the system call on,
//! emulates it by writing, or refuses.
//!
//! Two witnesses: the errno of the raw call on a file of its own, and the write calls that the
//! kernel counts for this thread (`syscw` of proc_pid_io(5)) while the library is at it.

use crate::{
    contract::{Fault, Lab, Observations, Stop},
    files::{FILL_BYTES, WalFile},
    folder::Folder,
    segment::{Init, posix},
    sys::{
        errno,
        fallocate::{Mode, fallocate},
    },
};
use serde_json::json;

/// The ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The system call.
    Native,
    /// Written by the library.
    Emulated,
    /// Its errno is the caller's.
    Refused,
}

impl Way {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Emulated => "emulated",
            Self::Refused => "refused",
        }
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub(super) struct LibcWay {
    /// The way.
    way: Way,
    /// Why it was refused.
    refusal: Option<Fault>,
    /// The raw call's errno.
    raw: Option<i32>,
    /// Write calls counted meanwhile; none where the kernel does not count them.
    writes: Option<u64>,
}

/// Finds the way where a method is the C library's, and has it go by pieces where it emulates.
pub(super) fn settle(
    init: Init,
    folder: &Folder,
    lab: &mut Lab<'_>,
) -> Result<(Init, Option<LibcWay>), Stop> {
    let Init::PosixFallocate { .. } = init else {
        return Ok((init, None));
    };
    let libc = find(folder, "tmp-prealloc-libc", lab)?;
    let piecewise = libc.way == Way::Emulated;
    Ok((Init::PosixFallocate { piecewise }, Some(libc)))
}

/// Tries both on files of their own.
fn find(folder: &Folder, name: &str, lab: &mut Lab<'_>) -> Result<LibcWay, Stop> {
    lab.hooks.charge(2 * FILL_BYTES)?;
    let raw = on_new_file(folder, name, |file| {
        match fallocate(file.fd(), Mode::Allocate, 0, FILL_BYTES) {
            Ok(()) => Ok(None),
            Err(e) => {
                let errno = e.raw_os_error().unwrap_or(libc::EIO);
                if errno::is_unsupported(errno) {
                    Ok(Some(errno))
                } else {
                    Err(file.fault("fallocate", errno))
                }
            }
        }
    })?;
    let (outcome, writes) = on_new_file(folder, name, |file| {
        let before = write_calls();
        let outcome = posix(file, 0, FILL_BYTES);
        let writes = write_calls()
            .zip(before)
            .map(|(after, before)| after - before);
        Ok((outcome, writes))
    })?;
    let refusal = outcome.err();
    if let Some(fault) = refusal.as_ref().filter(|f| !refused(f.errno)) {
        return Err(fault.clone().into());
    }
    Ok(LibcWay {
        way: judge(raw, refusal.is_some(), writes),
        refusal,
        raw,
        writes,
    })
}

/// An answer about the call, not about the disk. EINVAL: "not supported by the underlying
/// filesystem" (posix_fallocate(3)).
const fn refused(errno: i32) -> bool {
    errno::is_unsupported(errno) || errno == libc::EINVAL
}

/// What was seen counts; without the kernel's count, the raw call's answer stands for it.
fn judge(raw: Option<i32>, refused: bool, writes: Option<u64>) -> Way {
    match (refused, writes) {
        (true, _) => Way::Refused,
        (false, Some(0)) => Way::Native,
        (false, Some(_)) => Way::Emulated,
        (false, None) if raw.is_none() => Way::Native,
        (false, None) => Way::Emulated,
    }
}

impl LibcWay {
    /// What a refusal makes of a case.
    pub(super) fn refusal(&self) -> Option<Stop> {
        self.refusal.clone().map(Stop::Unsupported)
    }

    /// Adds it to what belongs to every row of the case.
    pub(super) fn tell(&self, seen: &mut Observations) {
        let raw = self.raw.map_or_else(|| "ok".to_owned(), errno::name);
        seen.insert("libc_way".to_owned(), json!(self.way.as_str()));
        seen.insert("native".to_owned(), json!(self.way == Way::Native));
        seen.insert("raw_fallocate".to_owned(), json!(raw));
        if let Some(writes) = self.writes {
            seen.insert("libc_write_calls".to_owned(), json!(writes));
        }
    }
}

fn on_new_file<T>(
    folder: &Folder,
    name: &str,
    work: impl FnOnce(&WalFile) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let file = WalFile::create_anew(folder, name)?;
    let outcome = work(&file).and_then(|value| file.close().map(|()| value));
    let removed = folder.unlink(name);
    let value = outcome?;
    removed?;
    Ok(value)
}

/// Write calls of this thread so far.
fn write_calls() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    let count = text.lines().find_map(|l| l.strip_prefix("syscw: "))?;
    count.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_counts_more_than_what_was_answered() {
        let no = Some(libc::EOPNOTSUPP);
        assert_eq!(judge(None, false, Some(0)), Way::Native);
        assert_eq!(judge(no, false, Some(256)), Way::Emulated);
        assert_eq!(judge(None, false, Some(256)), Way::Emulated);
        assert_eq!(judge(None, false, None), Way::Native);
        assert_eq!(judge(no, false, None), Way::Emulated);
        assert_eq!(judge(no, true, Some(0)), Way::Refused);
    }

    #[test]
    fn the_kernel_counts_this_thread_s_writes() {
        let Some(before) = write_calls() else {
            eprintln!("skipped: the_kernel_counts_this_thread_s_writes: no /proc/thread-self/io");
            return;
        };
        let file = tempfile::tempfile().unwrap();
        for at in 0..7 {
            rustix::io::pwrite(&file, b"x", at).unwrap();
        }
        assert_eq!(write_calls(), Some(before + 7));
    }
}
