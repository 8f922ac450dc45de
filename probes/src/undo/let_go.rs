//! Letting the lock go while the run lives, and taking it again.
//!
//! A cache-drop hook may unmount the filesystem, which it cannot while a descriptor is open. The
//! line written before names the process: whoever finds the file without a lock meanwhile sees
//! that its run lives. Its token, known to nobody else, tells afterwards that the file is the
//! same one. The line is cut off again, so that the file does not grow.

use std::{
    os::fd::{BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    fs::{FileType, FlockOperation, Mode, OFlags},
    io::Errno,
};

use super::{Action, NAME, Undo, fault, is_entry, lines, read_all};
use crate::{contract::Fault, target::Id};

/// A `clean` that looks at the file holds its lock for a moment.
const LOCK_TRIES: u32 = 100;
/// Time between tries.
const BETWEEN: Duration = Duration::from_millis(20);

impl Action {
    /// A line for a folder that this process lets go.
    fn let_go() -> Self {
        Self::LetGo {
            token: format!("{:032x}", fastrand::u128(..)),
            pid: std::process::id(),
            started_ticks: started_ticks(std::process::id()).unwrap_or(0),
            boot_id: lines::boot_id(),
        }
    }

    /// The folder was let go by a process that lives.
    pub(super) fn is_somebodys(&self) -> bool {
        match self {
            Self::LetGo {
                pid,
                started_ticks: started,
                boot_id,
                ..
            } => *boot_id == lines::boot_id() && started_ticks(*pid) == Some(*started),
            _ => false,
        }
    }
}

impl Undo {
    /// Announces that this process lets the folder go, then closes the file and with it the lock.
    pub(crate) fn let_go(&self) -> Result<(), Fault> {
        self.will(Action::let_go())?;
        self.log().file = None;
        Ok(())
    }

    /// Opens, checks and locks the file again; what was read of it.
    pub(crate) fn take_again(
        &self,
        dir: BorrowedFd<'_>,
        run_id: &str,
        folder_inode: u64,
    ) -> Result<u64, String> {
        let mut log = self.log();
        let (file, id) = open(dir, log.id.inode)?;
        let bytes = read_all(&file)?;
        let (len, outstanding) = lines::parse(&bytes, run_id, folder_inode)?;
        if (len, &outstanding) != (log.len, &log.outstanding) {
            return Err("its undo file is not the one that was let go".to_owned());
        }
        if let Some(last @ Action::LetGo { .. }) = outstanding.last() {
            let line = lines::line(&lines::Told::Will(last)).len() as u64;
            rustix::fs::ftruncate(&file, len - line)
                .and_then(|()| rustix::fs::fdatasync(&file))
                .map_err(|e| fault("ftruncate", e).to_string())?;
            log.len -= line;
            log.outstanding.pop();
        }
        log.file = Some(file);
        log.id = id;
        drop(log);
        Ok(bytes.len() as u64)
    }
}

/// The device's number may be another after a new mount, the inode's may not.
fn open(dir: BorrowedFd<'_>, inode: u64) -> Result<(OwnedFd, Id), String> {
    let told = |call, e| fault(call, e).to_string();
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file =
        rustix::fs::openat(dir, NAME, flags, Mode::empty()).map_err(|e| told("openat", e))?;
    let mut tries = 0;
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(Errno::WOULDBLOCK) if tries < LOCK_TRIES => tries += 1,
            Err(e) => return Err(told("flock", e)),
        }
        std::thread::sleep(BETWEEN);
    }
    let stat = rustix::fs::fstat(&file).map_err(|e| told("fstat", e))?;
    let id = Id::of(&stat);
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !regular || id.inode != inode || !is_entry(dir, id) {
        return Err("its undo file was replaced".to_owned());
    }
    Ok((file, id))
}

/// When a process was started, in clock ticks since boot (proc_pid_stat(5), field 22); none where
/// there is no such process.
fn started_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything, blanks and parentheses too.
    let (_, after_name) = stat.rsplit_once(") ")?;
    let state = after_name.split(' ').next()?;
    if state == "Z" {
        return None;
    }
    after_name.split(' ').nth(19)?.parse().ok()
}
