//! The inside of a scratch folder: files by name, relative to a descriptor, never through a link.
//!
//! A handle of its own, so that whoever works on files needs no part in making or removing the
//! folder. Only names that the removal knows as ours can be made.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::{
    fs::{AtFlags, Mode, OFlags, StatVfs},
    io::Errno,
};

use crate::{contract::Fault, scratch::name_is_ours};

/// A handle on the scratch folder's files.
#[derive(Debug)]
pub struct Folder {
    dir: OwnedFd,
    name: String,
    /// The umask takes from 0600, so files need their mode set.
    fix_mode: bool,
}

impl Folder {
    /// A handle by a descriptor of its own; `name` is the folder's, for faults.
    ///
    /// # Errors
    /// fcntl failed.
    pub(crate) fn new(dir: BorrowedFd<'_>, name: &str, fix_mode: bool) -> Result<Self, Fault> {
        Ok(Self {
            dir: rustix::io::fcntl_dupfd_cloexec(dir, 0).map_err(|e| fault("fcntl", e, name))?,
            name: name.to_owned(),
            fix_mode,
        })
    }

    /// Another handle on the same folder.
    ///
    /// # Errors
    /// fcntl failed.
    pub fn folder(&self) -> Result<Self, Fault> {
        Self::new(self.dir.as_fd(), &self.name, self.fix_mode)
    }

    /// fstatvfs of the folder.
    ///
    /// # Errors
    /// The call that failed.
    pub fn statvfs(&self) -> Result<StatVfs, Fault> {
        rustix::fs::fstatvfs(&self.dir).map_err(|e| fault("fstatvfs", e, &self.name))
    }

    /// Makes a file, exclusively, mode 0600.
    ///
    /// # Errors
    /// The call that failed; EINVAL for a name that is not ours.
    pub fn create_file(&self, name: &str, flags: OFlags) -> Result<OwnedFd, Fault> {
        let file = self.open(name, flags | OFlags::CREATE | OFlags::EXCL)?;
        if self.fix_mode {
            rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)
                .map_err(|e| fault("fchmod", e, name))?;
        }
        Ok(file)
    }

    /// Opens a file that is there.
    ///
    /// # Errors
    /// The call that failed; EINVAL for a name that is not ours or flags that would make one.
    pub fn open_file(&self, name: &str, flags: OFlags) -> Result<OwnedFd, Fault> {
        if flags.intersects(OFlags::CREATE | OFlags::TMPFILE) {
            return Err(fault("openat", Errno::INVAL, name));
        }
        self.open(name, flags)
    }

    /// Renames a file, over another one if that is there.
    ///
    /// # Errors
    /// The call that failed; EINVAL for a name that is not ours.
    pub fn rename(&self, old: &str, new: &str) -> Result<(), Fault> {
        if !name_is_ours(old) || !name_is_ours(new) {
            return Err(fault("renameat", Errno::INVAL, old));
        }
        rustix::fs::renameat(&self.dir, old, &self.dir, new).map_err(|e| fault("renameat", e, old))
    }

    /// Removes a file.
    ///
    /// # Errors
    /// The call that failed; EINVAL for a name that is not ours.
    pub fn unlink(&self, name: &str) -> Result<(), Fault> {
        if !name_is_ours(name) {
            return Err(fault("unlinkat", Errno::INVAL, name));
        }
        rustix::fs::unlinkat(&self.dir, name, AtFlags::empty())
            .map_err(|e| fault("unlinkat", e, name))
    }

    /// fsync of the folder.
    ///
    /// # Errors
    /// The call that failed.
    pub fn sync_dir(&self) -> Result<(), Fault> {
        rustix::fs::fsync(&self.dir).map_err(|e| fault("fsync", e, &self.name))
    }

    /// syncfs of the folder's filesystem.
    ///
    /// # Errors
    /// The call that failed.
    pub fn syncfs(&self) -> Result<(), Fault> {
        rustix::fs::syncfs(&self.dir).map_err(|e| fault("syncfs", e, &self.name))
    }

    fn open(&self, name: &str, flags: OFlags) -> Result<OwnedFd, Fault> {
        if !name_is_ours(name) {
            return Err(fault("openat", Errno::INVAL, name));
        }
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::io::retry_on_intr(|| rustix::fs::openat(&self.dir, name, flags, mode))
            .map_err(|e| fault("openat", e, name))
    }
}

/// A fault of `call` on `file`.
pub(crate) fn fault(call: &'static str, errno: Errno, file: &str) -> Fault {
    Fault::new(call, errno.raw_os_error(), file)
}
