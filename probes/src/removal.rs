//! Takes a scratch folder down: the one place that removes anything from a target.
//!
//! By descriptor and by rule, never by path: actions are undone newest first; regular files
//! with names of ours are unlinked from the folder that is held, and so are empty folders that a
//! dataset was mounted on; the undo file goes last;
//! the folder's name is removed from the parent that is held, if it still means this folder.
//! Whatever else is found stays, keeps the folder, and is told. Nothing here follows a
//! symbolic link, and nothing but an empty folder is ever removed by name.

use std::os::{fd::BorrowedFd, unix::ffi::OsStrExt as _};

use rustix::{
    fs::{AtFlags, Dir, FileType},
    io::Errno,
};

use crate::{
    contract::Fault,
    paths, pause,
    scratch::{folder_is_ours, name_is_ours, run_id_of},
    target::{Id, real_path},
    undo::{self, Undo},
};

/// Passes over the entries: one that removed something is followed by another, since
/// removing may make a directory stream skip entries.
const PASSES: usize = 8;
/// Entries taken in one pass.
const MAX_ENTRIES: usize = 100_000;
/// Foreign entries that are told by name.
const MAX_TOLD: usize = 20;

/// Something that stays, and why.
pub(crate) type Left = (String, String);

/// A folder that is held, by its parent as well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Folder<'a> {
    pub(crate) parent: BorrowedFd<'a>,
    pub(crate) name: &'a str,
    pub(crate) dir: BorrowedFd<'a>,
    pub(crate) id: Id,
    /// Where it was made, should its place no longer be readable.
    pub(crate) path: &'a str,
}

/// Removes the folder and all of ours in it. Empty when nothing is left.
pub(crate) fn take_down(folder: &Folder<'_>, undo: Undo, announce: &dyn Fn(&str)) -> Vec<Left> {
    let mut left = undo_actions(&undo, folder.name);
    let stuck = !left.is_empty();
    let contents = remove_files(folder.dir, announce);
    for name in contents.foreign.iter().take(MAX_TOLD) {
        left.push((
            format!("{}/{name}", folder.place()),
            "walprobe did not make it".to_owned(),
        ));
    }
    if contents.foreign.len() > MAX_TOLD {
        let more = contents.foreign.len() - MAX_TOLD;
        left.push((folder.place(), format!("{more} more files in it")));
    }
    if let Some(fault) = contents.fault {
        left.insert(0, (folder.place(), fault.to_string()));
        return left;
    }
    if stuck {
        left.insert(
            0,
            (folder.place(), "not everything could be undone".to_owned()),
        );
        return left;
    }
    match undo.unlink(folder.dir) {
        Ok(true) => {}
        Ok(false) => {
            let reason = "its undo file was replaced".to_owned();
            left.insert(0, (folder.place(), reason));
            return left;
        }
        Err(fault) => {
            left.insert(0, (folder.place(), fault.to_string()));
            return left;
        }
    }
    // Closed before the folder goes: NFS keeps an open file's entry under another name.
    drop(undo);
    pause::point("removing", announce);
    if !contents.foreign.is_empty() {
        left.insert(0, (folder.place(), "it is not empty".to_owned()));
    } else if let Err(reason) = folder.remove_name() {
        left.insert(0, (folder.place(), reason));
    }
    left
}

impl Folder<'_> {
    /// Where the folder is now.
    pub(crate) fn place(&self) -> String {
        real_path(self.dir).map_or_else(|| self.path.to_owned(), |p| paths::show(&p))
    }

    /// The parent's entry still means this folder.
    pub(crate) fn is_in_place(&self) -> bool {
        rustix::fs::statat(self.parent, self.name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|s| Id::of(&s) == self.id)
    }

    /// Removes the empty folder, if its name still means it.
    pub(crate) fn remove_name(&self) -> Result<(), String> {
        if !self.is_in_place() {
            return if is_removed(self.dir) {
                Ok(())
            } else {
                Err("it was renamed or replaced while it was in use".to_owned())
            };
        }
        match rustix::fs::unlinkat(self.parent, self.name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Err("it is not empty".to_owned()),
            Err(e) => Err(Fault::new("rmdir", e.raw_os_error(), self.name).to_string()),
        }
    }
}

/// No name refers to the directory any more. Some filesystems keep a link count; then
/// `/proc` tells, unless a folder has been named as `/proc` tells it.
fn is_removed(dir: BorrowedFd<'_>) -> bool {
    let Ok(stat) = rustix::fs::fstat(dir) else {
        return false;
    };
    stat.st_nlink == 0
        || real_path(dir).is_some_and(|path| {
            path.as_os_str().as_bytes().ends_with(b" (deleted)")
                && rustix::fs::lstat(&path).map(|s| Id::of(&s)) != Ok(Id::of(&stat))
        })
}

fn undo_actions(undo: &Undo, folder: &str) -> Vec<Left> {
    let mut left = Vec::new();
    let run_id = run_id_of(folder).unwrap_or_default();
    for action in undo.outstanding().iter().rev() {
        match action.undo(run_id) {
            // Not noted: undone again should this process be killed now.
            Ok(()) => drop(undo.did_undo(action)),
            Err(reason) => left.push((format!("{action:?}"), reason)),
        }
    }
    left
}

#[derive(Default)]
struct Contents {
    /// What stays, as text.
    foreign: Vec<String>,
    /// The last file of ours that could not be removed, or the folder not be read.
    fault: Option<Fault>,
}

/// Removes the regular files of ours from a folder.
fn remove_files(dir: BorrowedFd<'_>, announce: &dyn Fn(&str)) -> Contents {
    let mut contents = Contents::default();
    for _ in 0..PASSES {
        contents = Contents::default();
        let mut removed = false;
        let entries = match entries(dir) {
            Ok(entries) => entries,
            Err(e) => {
                contents.fault = Some(Fault::new("getdents64", e.raw_os_error(), "."));
                return contents;
            }
        };
        for entry in entries {
            match remove_file(dir, &entry) {
                Ok(Removed::Yes) => {
                    removed = true;
                    pause::point("removing", announce);
                }
                Ok(Removed::Keep) => {}
                Ok(Removed::Foreign) => contents.foreign.push(paths::show_bytes(&entry)),
                Err(fault) => contents.fault = Some(fault),
            }
        }
        if !removed {
            break;
        }
    }
    contents
}

enum Removed {
    Yes,
    Keep,
    Foreign,
}

fn remove_file(dir: BorrowedFd<'_>, entry: &[u8]) -> Result<Removed, Fault> {
    let Some(name) = std::str::from_utf8(entry).ok() else {
        return Ok(Removed::Foreign);
    };
    if name == undo::NAME {
        return Ok(Removed::Keep);
    }
    if folder_is_ours(name) {
        return remove_point(dir, name);
    }
    if !name_is_ours(name) {
        return Ok(Removed::Foreign);
    }
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(s) if FileType::from_raw_mode(s.st_mode) == FileType::RegularFile => {}
        Ok(_) => return Ok(Removed::Foreign),
        Err(Errno::NOENT) => return Ok(Removed::Keep),
        Err(e) => return Err(Fault::new("fstatat", e.raw_os_error(), name)),
    }
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) => Ok(Removed::Yes),
        Err(Errno::NOENT) => Ok(Removed::Keep),
        Err(e) => Err(Fault::new("unlinkat", e.raw_os_error(), name)),
    }
}

/// Removes the empty folder that a dataset was mounted on. One that is still mounted is busy; what
/// is in one was not made by walprobe. Nothing is ever looked for inside.
fn remove_point(dir: BorrowedFd<'_>, name: &str) -> Result<Removed, Fault> {
    match rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR) {
        Ok(()) => Ok(Removed::Yes),
        Err(Errno::NOENT) => Ok(Removed::Keep),
        Err(Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) => Ok(Removed::Foreign),
        Err(e) => Err(Fault::new("rmdir", e.raw_os_error(), name)),
    }
}

/// Names in a directory, at most [`MAX_ENTRIES`].
pub(crate) fn entries(dir: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
        if names.len() >= MAX_ENTRIES {
            break;
        }
    }
    Ok(names)
}
