//! Letting go of a scratch folder so that its filesystem can be unmounted, and taking it again.
//!
//! Between the two this process holds no descriptor on the filesystem, and the undo file says who
//! let it go. The folder is found again by the path at which its parent was opened, and must be
//! the same: its name verifies in that parent, its inode, owner and mode are as before, and the
//! token in its undo file is ours. A folder that does not come back stays let go; the removal
//! looks for it once more.

use std::{os::fd::AsFd as _, path::PathBuf, sync::PoisonError};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags},
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
        self.is_found_by_path()?;
        self.undo().let_go()?;
        self.files.anchor().let_go();
        self.parent.let_go();
        Ok(())
    }

    /// The directory is there, on the same filesystem, and no such folder in it.
    pub(super) fn is_gone(&self) -> bool {
        let before = *self.id.lock().unwrap_or_else(PoisonError::into_inner);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let Ok(parent) = rustix::fs::openat(CWD, &self.parent_path, flags, Mode::empty()) else {
            return false;
        };
        let same = rustix::fs::fstat(&parent).is_ok_and(|s| {
            s.st_dev == before.device && name_for(&self.run_id, s.st_ino) == self.name
        });
        let named = rustix::fs::statat(&parent, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        same && named.is_err_and(|e| e == Errno::NOENT)
    }

    /// A path that is too long, or leads elsewhere by now, would not lead back.
    fn is_found_by_path(&self) -> Result<(), Fault> {
        let told =
            |call, e: Errno| Fault::new(call, e.raw_os_error(), &paths::show(&self.parent_path));
        let held = self.parent.get().map_err(|e| told("openat", e))?;
        let held = rustix::fs::fstat(&held).map_err(|e| told("fstat", e))?;
        let named = rustix::fs::stat(&self.parent_path).map_err(|e| told("stat", e))?;
        if (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino) {
            Ok(())
        } else {
            Err(told("stat", Errno::STALE))
        }
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
            && stat.st_uid == rustix::process::geteuid().as_raw();
        if !same {
            return Err(format!("{} is another folder now", paths::show(&place)));
        }
        if stat.st_mode & 0o777 != 0o700 {
            let mode = stat.st_mode & 0o777;
            return Err(format!(
                "{} has mode {mode:04o} now and is no longer private",
                paths::show(&place)
            ));
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

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use crate::{clean::clean, scratch::Scratch, target, undo::Action};

    const RUN: &str = "01JDW3K9ZQ4T";

    fn scratch(dir: &Path) -> Scratch {
        Scratch::create(&target::hold(dir).unwrap(), RUN).unwrap()
    }

    /// Descriptors of this process that lead into a folder.
    fn held(dir: &Path) -> usize {
        let links = fs::read_dir("/proc/self/fd").unwrap().flatten();
        links
            .filter_map(|fd| fs::read_link(fd.path()).ok())
            .filter(|to| to.starts_with(dir))
            .count()
    }

    /// The one folder that `clean` leaves because its run lives.
    fn running(dir: &Path) -> String {
        let report = clean(dir).unwrap();
        assert!(
            report.removed.is_empty() && report.left.is_empty(),
            "{report:?}"
        );
        report.running.join(" ")
    }

    #[test]
    fn nothing_is_held_meanwhile_and_clean_sees_that_the_run_lives() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        let scratch = scratch(&path);
        let handle = scratch.folder().unwrap();
        let undo = scratch.place().join("undo");
        let before = fs::read(&undo).unwrap();
        for _ in 0..3 {
            scratch.let_go().unwrap();
            assert_eq!(held(&path), 0);
            assert_eq!(handle.syncfs().unwrap_err().errno, libc::ESTALE);
            assert_eq!(running(&path), scratch.path);
            scratch.take_again().unwrap();
            handle.syncfs().unwrap();
            assert_eq!(
                fs::read(&undo).unwrap(),
                before,
                "the line is cut off again"
            );
            assert_eq!(running(&path), scratch.path);
        }
        assert!(scratch.remove().is_empty());
        assert!(fs::read_dir(&path).unwrap().next().is_none());
    }

    #[test]
    fn the_line_of_a_dead_process_keeps_nobody_from_cleaning() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = scratch(dir.path());
        scratch.let_go().unwrap();
        let undo = scratch.place().join("undo");
        // The same process number, used by another process.
        let text = fs::read_to_string(&undo).unwrap();
        let at = text.find("\"started_ticks\":").unwrap() + 16;
        fs::write(&undo, format!("{}9{}", &text[..at], &text[at..])).unwrap();
        assert!(scratch.take_again().is_err(), "it is not what was let go");
        let folder = scratch.path.clone();
        std::mem::forget(scratch);
        assert_eq!(clean(dir.path()).unwrap().removed, [folder]);
    }

    #[test]
    fn another_folder_is_not_taken_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut scratch = scratch(dir.path());
        scratch.let_go().unwrap();
        let place = scratch.place();
        let away = dir.path().join("away");
        fs::rename(&place, &away).unwrap();
        assert!(scratch.take_again().unwrap_err().contains("No such file"));
        // A copy has all but the inode.
        fs::create_dir(&place).unwrap();
        fs::copy(away.join("undo"), place.join("undo")).unwrap();
        assert!(scratch.take_again().is_err());
        // A look-alike of the file in the true folder, with another token.
        fs::remove_file(place.join("undo")).unwrap();
        fs::remove_dir(&place).unwrap();
        fs::rename(&away, &place).unwrap();
        let undo = place.join("undo");
        let text = fs::read_to_string(&undo).unwrap();
        let Some(Action::LetGo { token, .. }) = scratch.undo().outstanding().pop() else {
            panic!("nothing is announced");
        };
        fs::write(&undo, text.replace(&token, &token.replace(|_| true, "0"))).unwrap();
        assert!(scratch.take_again().is_err());
        assert_eq!(scratch.take_down(&|_| ()), [scratch.path.clone()]);
        assert!(place.exists(), "what is not known to be ours stays");
    }

    #[test]
    fn a_folder_that_comes_back_late_is_removed_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = scratch(dir.path());
        scratch.let_go().unwrap();
        assert!(scratch.remove().is_empty());
        assert!(fs::read_dir(dir.path()).unwrap().next().is_none());
    }
}
