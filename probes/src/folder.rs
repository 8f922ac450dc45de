//! The inside of a scratch folder: files by name, relative to a descriptor, never through a link.
//!
//! A handle of its own, so that whoever works on files needs no part in making or removing the
//! folder. Only names that the removal knows as ours can be made. All handles share one
//! descriptor, so that it can be let go while they live: a filesystem with an open descriptor
//! cannot be unmounted. Until it is taken again every call fails with ESTALE.

use std::{
    os::fd::OwnedFd,
    sync::{Arc, PoisonError, RwLock},
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, StatVfs},
    io::Errno,
};

use crate::{contract::Fault, scratch::name_is_ours};

/// A directory's descriptor that can be let go and taken again while handles on it live.
#[derive(Debug)]
pub(crate) struct Anchor(RwLock<Option<Arc<OwnedFd>>>);

impl Anchor {
    pub(crate) fn new(dir: OwnedFd) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Some(Arc::new(dir)))))
    }

    /// The descriptor, held open by whoever has it; ESTALE while it is let go.
    pub(crate) fn get(&self) -> Result<Arc<OwnedFd>, Errno> {
        let held = self.0.read().unwrap_or_else(PoisonError::into_inner);
        held.clone().ok_or(Errno::STALE)
    }

    pub(crate) fn let_go(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn take(&self, dir: OwnedFd) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(dir));
    }
}

/// A handle on the scratch folder's files.
#[derive(Debug)]
pub struct Folder {
    dir: Arc<Anchor>,
    name: String,
    /// The umask takes from 0600, so files need their mode set.
    fix_mode: bool,
}

impl Folder {
    /// A handle on a held directory; `name` is the folder's, for faults.
    pub(crate) fn new(dir: Arc<Anchor>, name: &str, fix_mode: bool) -> Self {
        Self {
            dir,
            name: name.to_owned(),
            fix_mode,
        }
    }

    /// A handle on any directory.
    #[cfg(test)]
    pub(crate) fn of_test(dir: OwnedFd) -> Self {
        Self::new(Anchor::new(dir), "test", false)
    }

    /// Another handle on the same folder.
    ///
    /// # Errors
    /// None today; a handle of another kind may have some.
    pub fn folder(&self) -> Result<Self, Fault> {
        Ok(Self::new(Arc::clone(&self.dir), &self.name, self.fix_mode))
    }

    /// Its descriptor; whoever keeps it keeps the folder from being let go.
    ///
    /// # Errors
    /// ESTALE while the folder is let go.
    pub fn fd(&self) -> Result<Arc<OwnedFd>, Fault> {
        self.held("openat", &self.name)
    }

    pub(crate) const fn anchor(&self) -> &Arc<Anchor> {
        &self.dir
    }

    fn held(&self, call: &'static str, file: &str) -> Result<Arc<OwnedFd>, Fault> {
        self.dir.get().map_err(|e| fault(call, e, file))
    }

    /// fstatvfs of the folder.
    ///
    /// # Errors
    /// The call that failed.
    pub fn statvfs(&self) -> Result<StatVfs, Fault> {
        rustix::fs::fstatvfs(self.held("fstatvfs", &self.name)?)
            .map_err(|e| fault("fstatvfs", e, &self.name))
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
        let dir = self.held("renameat", old)?;
        rustix::fs::renameat(&dir, old, &dir, new).map_err(|e| fault("renameat", e, old))
    }

    /// Removes a file.
    ///
    /// # Errors
    /// The call that failed; EINVAL for a name that is not ours.
    pub fn unlink(&self, name: &str) -> Result<(), Fault> {
        if !name_is_ours(name) {
            return Err(fault("unlinkat", Errno::INVAL, name));
        }
        rustix::fs::unlinkat(self.held("unlinkat", name)?, name, AtFlags::empty())
            .map_err(|e| fault("unlinkat", e, name))
    }

    /// fsync of the folder.
    ///
    /// # Errors
    /// The call that failed.
    pub fn sync_dir(&self) -> Result<(), Fault> {
        rustix::fs::fsync(self.held("fsync", &self.name)?)
            .map_err(|e| fault("fsync", e, &self.name))
    }

    /// syncfs of the folder's filesystem.
    ///
    /// # Errors
    /// The call that failed.
    pub fn syncfs(&self) -> Result<(), Fault> {
        rustix::fs::syncfs(self.held("syncfs", &self.name)?)
            .map_err(|e| fault("syncfs", e, &self.name))
    }

    fn open(&self, name: &str, flags: OFlags) -> Result<OwnedFd, Fault> {
        if !name_is_ours(name) {
            return Err(fault("openat", Errno::INVAL, name));
        }
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let dir = self.held("openat", name)?;
        rustix::io::retry_on_intr(|| rustix::fs::openat(&dir, name, flags, mode))
            .map_err(|e| fault("openat", e, name))
    }
}

/// A fault of `call` on `file`.
pub(crate) fn fault(call: &'static str, errno: Errno, file: &str) -> Fault {
    Fault::new(call, errno.raw_os_error(), file)
}
