//! One test at a time uses loop devices, on the whole machine.
//!
//! Flushes are counted on a device and the devices below it, so that two tests
//! that count must not run together: not two threads, not two test binaries, not
//! two working copies. A file lock under `/tmp` orders them all; it ends with the
//! process that holds it.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

const PATH: &str = "/tmp/walprobe-test-devices.lock";

/// Held while a trial uses devices.
#[derive(Debug)]
pub struct DeviceLock {
    _file: File,
}

impl DeviceLock {
    /// Waits until no other test uses loop devices.
    ///
    /// # Errors
    /// The lock file cannot be opened.
    pub fn acquire() -> Result<Self, String> {
        let file = open().map_err(|error| format!("cannot open {PATH}: {error}"))?;
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            eprintln!("waiting for another test that uses loop devices ({PATH})");
            loop {
                match rustix::fs::flock(&file, FlockOperation::LockExclusive) {
                    Ok(()) => break,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(format!("cannot lock {PATH}: {error}")),
                }
            }
        }
        Ok(Self { _file: file })
    }
}

/// Opens the lock file, whoever made it, and follows no link.
fn open() -> Result<File, Errno> {
    let path = Path::new(PATH);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    loop {
        match rustix::fs::open(path, flags, Mode::empty()) {
            Err(Errno::NOENT) => {}
            opened => return opened.map(File::from),
        }
        // In two steps: in a sticky folder, O_CREAT on another user's file is refused.
        match rustix::fs::open(
            path,
            flags | OFlags::CREATE | OFlags::EXCL,
            Mode::from_raw_mode(0o644),
        ) {
            Err(Errno::EXIST) => {}
            opened => return opened.map(File::from),
        }
    }
}
