//! The undo file: whose folder this is, that its run is alive, and what to undo if it dies.
//!
//! `undo` in the scratch folder is locked (flock) by the run for its whole life; the kernel
//! drops the lock with the process, however it ends. It holds lines (`undo/lines.rs`): whose
//! it is, then one for each thing that is made outside plain files, written *before* it is
//! made. Each line is on the disk (fdatasync) before the caller goes on. Plain files need
//! no line: removal knows them by name.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Mutex,
};

use rustix::{
    fs::{AtFlags, FileType, FlockOperation, Mode, OFlags},
    io::Errno,
};

use crate::{contract::Fault, pause, target::Id};

pub use lines::Action;
use lines::Told;

mod let_go;
mod lines;
#[cfg(test)]
mod tests;

/// The undo file's name in the scratch folder.
pub const NAME: &str = "undo";
/// An undo file is never longer.
const MAX_BYTES: u64 = 1 << 20;

/// An undo file that this process made or claimed, and holds locked.
#[derive(Debug)]
pub struct Undo {
    owner: u32,
    umask_takes: bool,
    log: Mutex<Log>,
}

#[derive(Debug)]
struct Log {
    /// None while the folder is let go.
    file: Option<OwnedFd>,
    id: Id,
    /// Length up to the last whole line.
    len: u64,
    /// A write failed and something may stand behind `len`.
    torn: bool,
    /// Announced and not undone, oldest first.
    outstanding: Vec<Action>,
}

/// What became of making an undo file.
pub(crate) enum Made {
    /// It is ours and locked.
    Locked(Undo),
    /// Somebody cleaned the folder away before it was locked.
    Gone,
}

/// What an undo file that was found says.
pub(crate) enum Claim {
    /// There is none.
    Absent,
    /// A live process holds it.
    Running,
    /// It went away while it was looked at.
    Again,
    /// It does not belong to this folder, or cannot be read: why.
    Foreign(String),
    /// Its run is dead; the lock is ours.
    Dead(Undo),
}

impl Undo {
    /// Makes and locks the file. Nothing is in it until [`Undo::begin`].
    pub(crate) fn create(dir: BorrowedFd<'_>, announce: &dyn Fn(&str)) -> Result<Made, Fault> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let opened = rustix::io::retry_on_intr(|| rustix::fs::openat(dir, NAME, flags, mode));
        let file = match opened {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Made::Gone),
            Err(e) => return Err(fault("openat", e)),
        };
        pause::point("creating", announce);
        match Self::lock_new(dir, &file) {
            Ok(Some(stat)) => Ok(Made::Locked(Self {
                owner: stat.st_uid,
                umask_takes: mode_is_off(&stat),
                log: Mutex::new(Log {
                    file: Some(file),
                    id: Id::of(&stat),
                    len: 0,
                    torn: false,
                    outstanding: Vec::new(),
                }),
            })),
            Ok(None) => Ok(Made::Gone),
            Err(e) => {
                // The folder is private: this is the file just made.
                let _ = rustix::fs::unlinkat(dir, NAME, AtFlags::empty());
                Err(e)
            }
        }
    }

    fn lock_new(dir: BorrowedFd<'_>, file: &OwnedFd) -> Result<Option<rustix::fs::Stat>, Fault> {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(e) => return Err(fault("flock", e)),
        }
        let stat = rustix::fs::fstat(file).map_err(|e| fault("fstat", e))?;
        if !is_entry(dir, Id::of(&stat)) {
            return Ok(None);
        }
        if mode_is_off(&stat) {
            rustix::fs::fchmod(file, Mode::RUSR | Mode::WUSR).map_err(|e| fault("fchmod", e))?;
        }
        Ok(Some(stat))
    }

    /// Writes the header.
    pub(crate) fn begin(&self, run_id: &str, folder_inode: u64) -> Result<(), Fault> {
        self.append(&mut self.log(), lines::header(run_id, folder_inode))
    }

    /// Opens and locks the undo file of a folder that was found.
    pub(crate) fn claim(dir: BorrowedFd<'_>, run_id: &str, folder: Id, folder_owner: u32) -> Claim {
        // Looked at before it is opened: opening a device may do things.
        match rustix::fs::statat(dir, NAME, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(s) if FileType::from_raw_mode(s.st_mode) != FileType::RegularFile => {
                return Claim::Foreign("its undo file is not a regular file".to_owned());
            }
            Ok(s) if s.st_uid != folder_owner => {
                return Claim::Foreign("its undo file belongs to another user".to_owned());
            }
            Ok(_) => {}
            Err(Errno::NOENT) => return Claim::Absent,
            Err(e) => return Claim::Foreign(fault("fstatat", e).to_string()),
        }
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(dir, NAME, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Claim::Again,
            Err(e) => return Claim::Foreign(fault("openat", e).to_string()),
        };
        Self::claim_opened(dir, file, run_id, folder.inode)
    }

    fn claim_opened(dir: BorrowedFd<'_>, file: OwnedFd, run_id: &str, folder_inode: u64) -> Claim {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Claim::Running,
            Err(e) => return Claim::Foreign(fault("flock", e).to_string()),
        }
        let stat = match rustix::fs::fstat(&file) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => stat,
            _ => return Claim::Foreign("its undo file is not a regular file".to_owned()),
        };
        if !is_entry(dir, Id::of(&stat)) {
            return Claim::Again;
        }
        let bytes = match read_all(&file) {
            Ok(bytes) => bytes,
            Err(reason) => return Claim::Foreign(reason),
        };
        match lines::parse(&bytes, run_id, folder_inode) {
            // Its run has let it go for a moment and lives.
            Ok((_, outstanding)) if outstanding.iter().any(Action::is_somebodys) => Claim::Running,
            Ok((len, outstanding)) => Claim::Dead(Self {
                owner: stat.st_uid,
                umask_takes: false,
                log: Mutex::new(Log {
                    file: Some(file),
                    id: Id::of(&stat),
                    len,
                    torn: true,
                    outstanding,
                }),
            }),
            Err(reason) => Claim::Foreign(reason),
        }
    }

    /// Announces something outside plain files. Make it only after this has succeeded.
    ///
    /// # Errors
    /// The call that failed; nothing must be made.
    pub fn will(&self, action: Action) -> Result<(), Fault> {
        let mut log = self.log();
        self.append(&mut log, lines::line(&Told::Will(&action)))?;
        log.outstanding.push(action);
        Ok(())
    }

    /// Notes that it was undone.
    ///
    /// # Errors
    /// The call that failed; it will be undone again, which does no harm.
    pub fn did_undo(&self, action: &Action) -> Result<(), Fault> {
        let mut log = self.log();
        self.append(&mut log, lines::line(&Told::Undone(action)))?;
        lines::strike(&mut log.outstanding, action);
        Ok(())
    }

    /// Another descriptor of the locked file: who has it holds the lock, though this process dies.
    ///
    /// # Errors
    /// The call that failed; ESTALE while the folder is let go.
    pub(crate) fn lock_held(&self) -> Result<OwnedFd, Fault> {
        let log = self.log();
        let file = log
            .file
            .as_ref()
            .ok_or_else(|| fault("fcntl", Errno::STALE))?;
        rustix::io::fcntl_dupfd_cloexec(file, 0).map_err(|e| fault("fcntl", e))
    }

    /// What was announced and not undone, oldest first.
    #[must_use]
    pub fn outstanding(&self) -> Vec<Action> {
        self.log().outstanding.clone()
    }

    /// The file was not made with mode 0600: the umask takes from the owner.
    pub(crate) const fn umask_takes(&self) -> bool {
        self.umask_takes
    }

    /// The file's owner.
    pub(crate) const fn owner(&self) -> u32 {
        self.owner
    }

    /// Removes the file. False where the name is no longer this file's.
    pub(crate) fn unlink(&self, dir: BorrowedFd<'_>) -> Result<bool, Fault> {
        match rustix::fs::statat(dir, NAME, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if Id::of(&stat) == self.log().id => {
                rustix::fs::unlinkat(dir, NAME, AtFlags::empty())
                    .map(|()| true)
                    .map_err(|e| fault("unlinkat", e))
            }
            Ok(_) => Ok(false),
            Err(Errno::NOENT) => Ok(true),
            Err(e) => Err(fault("fstatat", e)),
        }
    }

    fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn append(&self, log: &mut Log, text: String) -> Result<(), Fault> {
        if log.len + text.len() as u64 > MAX_BYTES {
            return Err(fault("pwrite", Errno::FBIG));
        }
        let Some(file) = &log.file else {
            return Err(fault("pwrite", Errno::STALE));
        };
        if log.torn {
            rustix::fs::ftruncate(file, log.len).map_err(|e| fault("ftruncate", e))?;
            log.torn = false;
        }
        if let Err(e) = write_at(file, log.len, text.as_bytes()) {
            log.torn = rustix::fs::ftruncate(file, log.len).is_err();
            return Err(e);
        }
        log.len += text.len() as u64;
        Ok(())
    }
}

fn write_at(file: &OwnedFd, mut at: u64, mut bytes: &[u8]) -> Result<(), Fault> {
    while !bytes.is_empty() {
        match rustix::io::retry_on_intr(|| rustix::io::pwrite(file, bytes, at)) {
            Ok(0) => return Err(fault("pwrite", Errno::NOSPC)),
            Ok(n) => {
                bytes = &bytes[n..];
                at += n as u64;
            }
            Err(e) => return Err(fault("pwrite", e)),
        }
    }
    rustix::fs::fdatasync(file).map_err(|e| fault("fdatasync", e))
}

fn fault(call: &'static str, errno: Errno) -> Fault {
    Fault::new(call, errno.raw_os_error(), NAME)
}

const fn mode_is_off(made: &rustix::fs::Stat) -> bool {
    made.st_mode & 0o7777 != 0o600
}

/// The folder's `undo` is this very file.
fn is_entry(dir: BorrowedFd<'_>, id: Id) -> bool {
    rustix::fs::statat(dir, NAME, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|s| Id::of(&s) == id)
}

fn read_all(file: impl AsFd) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match rustix::io::retry_on_intr(|| {
            rustix::io::pread(&file, &mut buffer, bytes.len() as u64)
        }) {
            Ok(0) => return Ok(bytes),
            Ok(n) => bytes.extend_from_slice(&buffer[..n]),
            Err(e) => return Err(fault("pread", e).to_string()),
        }
        if bytes.len() as u64 > MAX_BYTES {
            return Err("its undo file is too long to be walprobe's".to_owned());
        }
    }
}
