//! Letting go of a scratch folder so that its filesystem can be unmounted, and taking it again.
//!
//! Between the two this process holds no descriptor on the filesystem, and the undo file says who
//! let it go. The folder is found again by the path at which its parent was opened, and must be
//! the same: its name verifies in that parent, its inode, owner and mode are as before, and the
//! token in its undo file is ours. A folder that does not come back stays let go; the removal
//! looks for it once more.

use std::{os::fd::AsFd as _, path::PathBuf, sync::PoisonError};

use rustix::{
    fs::{CWD, Mode, OFlags},
    io::Errno,
};

use super::{Scratch, name_for};
use crate::{contract::Fault, paths, target::Id};

impl Scratch {
    /// The folder's path, for programs that must be told one.
    #[must_use]
    pub fn place(&self) -> PathBuf {
        self.parent_path.join(&self.name)
    }

    /// Whether it is let go.
    pub(crate) fn is_let_go(&self) -> bool {
        self.files.anchor().get().is_err()
    }

    /// Closes every descriptor of the run on the folder and its parent, the lock too.
    ///
    /// # Errors
    /// The call that failed; nothing was let go.
    pub(crate) fn let_go(&self) -> Result<(), Fault> {
        self.undo().let_go()?;
        self.files.anchor().let_go();
        self.parent.let_go();
        Ok(())
    }

    /// Finds, checks, opens and locks it again; the bytes that were read of its undo file.
    ///
    /// # Errors
    /// Why it is not there, or not the same.
    pub(crate) fn take_again(&self) -> Result<u64, String> {
        let told = |call: &str, e: Errno, path: &std::path::Path| {
            let error = std::io::Error::from(e);
            format!("{call} of {}: {error}", paths::show(path))
        };
        let place = self.place();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let parent = rustix::fs::openat(CWD, &self.parent_path, flags, Mode::empty())
            .map_err(|e| told("openat", e, &self.parent_path))?;
        let parent_inode = rustix::fs::fstat(&parent)
            .map_err(|e| told("fstat", e, &self.parent_path))?
            .st_ino;
        let flags = flags | OFlags::NOFOLLOW;
        let dir = rustix::fs::openat(&parent, &self.name, flags, Mode::empty())
            .map_err(|e| told("openat", e, &place))?;
        let stat = rustix::fs::fstat(&dir).map_err(|e| told("fstat", e, &place))?;
        let before = *self.id.lock().unwrap_or_else(PoisonError::into_inner);
        let same = name_for(&self.run_id, parent_inode) == self.name
            && stat.st_ino == before.inode
            && stat.st_uid == rustix::process::geteuid().as_raw()
            && stat.st_mode & 0o777 == 0o700;
        if !same {
            return Err(format!("{} is another folder now", paths::show(&place)));
        }
        let read = self
            .undo()
            .take_again(dir.as_fd(), &self.run_id, before.inode)
            .map_err(|why| format!("{}: {why}", paths::show(&place)))?;
        *self.id.lock().unwrap_or_else(PoisonError::into_inner) = Id::of(&stat);
        self.parent.take(parent);
        self.files.anchor().take(dir);
        Ok(read)
    }
}
