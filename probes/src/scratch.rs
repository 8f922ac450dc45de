//! The scratch folder: made exclusively, held by descriptor, locked, removed by its own rules.
//!
//! Its name is tied to the directory it was made in (`scratch/name.rs`). It is mode 0700 and
//! this user's, its files are 0600, whatever the umask. Everything in it is reached through
//! the descriptor, so a folder or a parent that is renamed meanwhile does no harm. Dropping
//! a [`Scratch`] removes it, in a panic too; after a SIGKILL [`clean`](crate::clean::clean) does.

use std::{
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags},
    io::Errno,
};

use crate::{
    contract::Fault,
    folder::{Anchor, Folder, fault},
    paths, pause,
    pocket::dataset::Slot,
    removal,
    target::{Id, Refused, Target},
    undo::{Made, Undo},
};

/// Times a folder is made again because a `clean` took it for a dead one before it was locked.
const ATTEMPTS: u32 = 100;

mod let_go;
mod name;
#[cfg(test)]
mod tests;

pub use name::{
    DATASET_PREFIX, FILE_PREFIXES, folder_is_ours, is_run_id, name_for, name_is_ours, run_id_of,
};

/// A scratch folder that this process made and holds.
#[derive(Debug)]
pub struct Scratch {
    /// Its absolute path, for messages only: files are opened relative to a descriptor.
    pub path: String,
    /// Where its parent was found.
    parent_path: PathBuf,
    parent: Arc<Anchor>,
    run_id: String,
    name: String,
    /// The device's number may change when it is let go and taken again.
    id: Mutex<Id>,
    /// Taken by the removal.
    undo: Option<Undo>,
    files: Folder,
    /// What cold cases live in where the folder itself cannot be dropped from the cache.
    cold: Slot,
}

impl Scratch {
    /// Makes the folder in a target.
    ///
    /// # Errors
    /// The call that failed, or a filesystem that keeps no owner, permissions or locks.
    /// Nothing is left, or the message names it.
    pub fn create(target: &Target, run_id: &str) -> Result<Self, Refused> {
        Self::create_with(target, run_id, &|_| ())
    }

    /// As [`Scratch::create`]; `announce` hears of a pause that a test asked for.
    ///
    /// # Errors
    /// As [`Scratch::create`].
    pub fn create_with(
        target: &Target,
        run_id: &str,
        announce: &dyn Fn(&str),
    ) -> Result<Self, Refused> {
        if !is_run_id(run_id) {
            let why = format!("{} is not a run id", paths::show_bytes(run_id.as_bytes()));
            return Err(Refused::new(target.given(), why, None));
        }
        let name = name_for(run_id, target.id.inode);
        for attempt in 0..ATTEMPTS {
            match rustix::fs::mkdirat(&target.dir, &name, Mode::RWXU) {
                Ok(()) => {}
                // The `clean` that took our last one is still at it.
                Err(Errno::EXIST) if attempt > 0 => {
                    std::thread::sleep(Duration::from_millis(5) * attempt.min(20));
                    continue;
                }
                Err(Errno::EXIST) => {
                    return Err(Refused::new(
                        target.given(),
                        format_args!("{name} is there already"),
                        Some("walprobe clean tells what it is"),
                    ));
                }
                Err(e) => return Err(Refused::errno(target.given(), e)),
            }
            pause::point("creating", announce);
            if let Some(scratch) = Self::furnish(target, &name, run_id, announce)? {
                pause::point("creating", announce);
                return Ok(scratch);
            }
        }
        Err(Refused::new(
            target.given(),
            format_args!("another walprobe removes {name} whenever it is made"),
            Some("wait for the other one to end, then run walprobe clean"),
        ))
    }

    /// Opens, checks and locks the folder just made; none where a `clean` was faster.
    fn furnish(
        target: &Target,
        name: &str,
        run_id: &str,
        announce: &dyn Fn(&str),
    ) -> Result<Option<Self>, Refused> {
        // Before the folder is known to be ours only an empty one is removed.
        let give_up = |why: Why| {
            let removed = rustix::fs::unlinkat(&target.dir, name, AtFlags::REMOVEDIR);
            why.refuse(target, name, removed.err().filter(|e| *e != Errno::NOENT))
        };
        let parent = match rustix::io::fcntl_dupfd_cloexec(&target.dir, 0) {
            Ok(parent) => parent,
            Err(e) => return Err(give_up(Why::call("fcntl", e))),
        };
        let (dir, id) = match open_made(target, name) {
            Ok(Some(made)) => made,
            Ok(None) => return Ok(None),
            Err(why) => return Err(give_up(why)),
        };
        let undo = match Undo::create(dir.as_fd(), announce) {
            Ok(Made::Locked(undo)) => undo,
            Ok(Made::Gone) => return Ok(None),
            Err(fault) => return Err(give_up(Why::Fault(fault))),
        };
        pause::point("creating", announce);
        let files = Folder::new(Anchor::new(dir), name, undo.umask_takes());
        let begun = undo.begin(run_id, id.inode);
        let mut scratch = Self {
            path: paths::show(&target.path.join(name)),
            parent_path: target.path.clone(),
            parent: Anchor::new(parent),
            run_id: run_id.to_owned(),
            name: name.to_owned(),
            id: Mutex::new(id),
            undo: Some(undo),
            files,
            cold: Slot::default(),
        };
        match begun {
            Ok(()) if scratch.is_in_place() => Ok(Some(scratch)),
            Ok(()) => {
                // Held and locked, yet no longer at its name: somebody else renamed it.
                let left = scratch.take_down(&|_| ());
                let why = Why::Other("the folder just made was renamed", None);
                Err(why.refuse_left(target, &left))
            }
            Err(fault) => {
                let left = scratch.take_down(&|_| ());
                Err(Why::Fault(fault).refuse_left(target, &left))
            }
        }
    }

    /// The undo file, for whatever is made outside plain files.
    ///
    /// # Panics
    /// Never: it is there until the folder is removed.
    #[must_use]
    pub fn undo(&self) -> &Undo {
        self.undo.as_ref().expect("held until removal")
    }

    /// Removes the folder and all of ours in it; what is left behind, by path.
    #[must_use = "what is left behind must be told"]
    pub fn remove(self) -> Vec<String> {
        self.remove_with(&|_| ())
    }

    /// As [`Scratch::remove`]; `announce` hears of a pause that a test asked for.
    #[must_use = "what is left behind must be told"]
    pub fn remove_with(mut self, announce: &dyn Fn(&str)) -> Vec<String> {
        self.take_down(announce)
    }

    /// The run's id.
    pub(crate) fn run_id(&self) -> &str {
        &self.run_id
    }

    /// As it is after a SIGKILL: the undo file is closed, and nothing will be undone.
    #[cfg(test)]
    pub(crate) fn without_undo(mut self) -> Self {
        self.undo = None;
        self
    }

    /// The umask takes from a file's 0600.
    pub(crate) fn umask_takes(&self) -> bool {
        self.undo.as_ref().is_some_and(Undo::umask_takes)
    }

    /// The place for the dataset of its cold cases.
    pub(crate) const fn cold(&self) -> &Slot {
        &self.cold
    }

    fn is_in_place(&self) -> bool {
        self.standing(|folder| folder.is_in_place())
            .unwrap_or(false)
    }

    /// Does something with the folder as it is held; ESTALE where it is let go.
    fn standing<T>(&self, then: impl FnOnce(&removal::Folder<'_>) -> T) -> Result<T, Errno> {
        let (parent, dir) = (self.parent.get()?, self.files.anchor().get()?);
        Ok(then(&removal::Folder {
            parent: parent.as_fd(),
            name: &self.name,
            dir: dir.as_fd(),
            id: *self.id.lock().unwrap_or_else(PoisonError::into_inner),
            path: &self.path,
        }))
    }

    fn take_down(&mut self, announce: &dyn Fn(&str)) -> Vec<String> {
        if self.undo.is_none() {
            return Vec::new();
        }
        self.cold.let_go();
        // It may have come back late.
        let lost = self.is_let_go() && self.take_again().is_err();
        if lost && self.is_gone() {
            self.undo = None;
            return Vec::new();
        }
        let Some(undo) = self.undo.take().filter(|_| !lost) else {
            return vec![self.path.clone()];
        };
        match self.standing(|folder| removal::take_down(folder, undo, announce)) {
            Ok(left) => left.into_iter().map(|(path, _)| path).collect(),
            Err(_) => vec![self.path.clone()],
        }
    }
}

/// Files are made and opened through the folder's handle.
impl std::ops::Deref for Scratch {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.files
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.take_down(&|_| ());
    }
}

/// Why a folder just made is not used.
enum Why {
    Fault(Fault),
    Other(&'static str, Option<&'static str>),
}

impl Why {
    fn call(call: &'static str, errno: Errno) -> Self {
        Self::Fault(fault(call, errno, "the folder just made"))
    }

    fn refuse(self, target: &Target, name: &str, not_removed: Option<Errno>) -> Refused {
        let left: Vec<String> = not_removed
            .map(|_| paths::show(&target.path.join(name)))
            .into_iter()
            .collect();
        self.refuse_left(target, &left)
    }

    fn refuse_left(self, target: &Target, left: &[String]) -> Refused {
        let mut refused = match self {
            Self::Fault(fault) => Refused::fault(target.given(), &fault),
            Self::Other(why, hint) => Refused::new(target.given(), why, hint),
        };
        if let Some(first) = left.first() {
            refused.message.push_str("; left behind: ");
            refused.message.push_str(first);
        }
        refused
    }
}

/// Opens the folder just made and checks that it is: ours, private, empty, a directory.
/// None where it is gone.
fn open_made(target: &Target, name: &str) -> Result<Option<(OwnedFd, Id)>, Why> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = match rustix::fs::openat(&target.dir, name, flags | OFlags::PATH, Mode::empty()) {
        Ok(handle) => handle,
        Err(Errno::NOENT) => return Ok(None),
        Err(e) => return Err(Why::call("openat", e)),
    };
    let stat = rustix::fs::fstat(&handle).map_err(|e| Why::call("fstat", e))?;
    if stat.st_uid != rustix::process::geteuid().as_raw() || stat.st_dev != target.id.device {
        return Err(Why::Other(
            "a folder just made in it belongs to another user or device",
            Some(
                "the filesystem maps owners (NFS with root_squash, sshfs): run as the directory's owner",
            ),
        ));
    }
    let dir = match open_readable(handle.as_fd()) {
        Ok(dir) => dir,
        Err(Errno::NOENT) => return Ok(None),
        Err(e) => return Err(Why::call("openat", e)),
    };
    let mode = |dir: &OwnedFd| rustix::fs::fstat(dir).map(|s| s.st_mode & 0o777);
    if mode(&dir) != Ok(0o700) {
        // A umask that takes from the owner. It may also be a filesystem that keeps no modes.
        let _ = rustix::fs::fchmod(&dir, Mode::RWXU);
        if mode(&dir) != Ok(0o700) {
            return Err(Why::Other(
                "it keeps no permissions: a folder cannot be made private",
                Some("walprobe, as a database server, needs a filesystem with permissions"),
            ));
        }
    }
    match removal::entries(dir.as_fd()) {
        Ok(entries) if entries.is_empty() => Ok(Some((dir, Id::of(&stat)))),
        Ok(_) => Err(Why::Other("a folder just made in it is not empty", None)),
        Err(e) => Err(Why::call("getdents64", e)),
    }
}

/// A readable descriptor of a directory held by `O_PATH`, also where a umask took its bits.
fn open_readable(handle: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(handle, ".", flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            // The link leads to the very inode, whatever its name means by now.
            let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
            rustix::fs::chmodat(CWD, link, Mode::RWXU, AtFlags::empty())?;
            rustix::fs::openat(handle, ".", flags, Mode::empty())
        }
        other => other,
    }
}
