//! Undoes what a killed run left: `walprobe clean DIR`.
//!
//! A folder is touched only if all of this holds: its name verifies in this directory
//! ([`crate::scratch`]), it is a real directory, private, this user's (root: anybody's),
//! and its undo file names this very folder and is locked by nobody. A folder without an
//! undo file is touched only if it is empty: a run was killed between making the two.
//! Whatever has the form of our names and fails a check stays, with the reason.
//!
//! A run that is just starting may lose its folder to a `clean`: it notices and makes it
//! again ([`crate::scratch`]). Root replays only undo files that root wrote.

use std::{
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::Path,
    time::Duration,
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat},
    io::Errno,
};

use crate::{
    contract::Fault,
    paths,
    removal::{self, Folder, Left},
    scratch,
    target::{self, Id, Refused, Target},
    undo::{Claim, Undo},
};

/// Looks at a folder that is locked: another `clean` has removed it in a moment.
const LOOKS_LOCKED: usize = 10;
/// Looks at a folder that was made, locked or removed while it was looked at.
const LOOKS_CHANGING: usize = 50;
/// Time between looks.
const BETWEEN: Duration = Duration::from_millis(20);

/// What [`clean`] did. Names that do not have the form of a scratch folder's are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanReport {
    /// Folders removed.
    pub removed: Vec<String>,
    /// What stays, and why.
    pub left: Vec<(String, String)>,
    /// Folders of runs that are alive.
    pub running: Vec<String>,
}

/// Removes what dead runs left in a directory.
///
/// # Errors
/// The directory cannot be opened or read.
pub fn clean(dir: &Path) -> Result<CleanReport, Refused> {
    let target = target::hold(dir)?;
    let mut names = names_in(&target).map_err(|e| Refused::errno(target.given(), e))?;
    names.sort();
    let mut report = CleanReport::default();
    for name in names {
        visit(&target, &name, &mut report);
    }
    Ok(report)
}

/// As [`clean`], for the folder of one run only.
///
/// # Errors
/// The directory cannot be opened.
pub fn clean_run(dir: &Path, run_id: &str) -> Result<CleanReport, Refused> {
    let target = target::hold(dir)?;
    let mut report = CleanReport::default();
    if scratch::is_run_id(run_id) {
        let name = scratch::name_for(run_id, target.id.inode);
        visit(&target, &name, &mut report);
    }
    Ok(report)
}

/// Names with the form of a scratch folder's, however many other entries there are.
fn names_in(target: &Target) -> Result<Vec<String>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(&target.dir)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().to_str()
            && scratch::run_id_of(name).is_some()
        {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// How one look at a name ended.
enum Look {
    Removed,
    Left(Vec<Left>),
    Running,
    Gone,
    Again,
}

fn visit(target: &Target, name: &str, report: &mut CleanReport) {
    let path = paths::show(&target.path.join(name));
    let (mut locked, mut changing) = (0, 0);
    let last = loop {
        let seen = look(target, name, &path)
            .unwrap_or_else(|reason| Look::Left(vec![(path.clone(), reason)]));
        match seen {
            Look::Running if locked < LOOKS_LOCKED => locked += 1,
            Look::Again if changing < LOOKS_CHANGING => changing += 1,
            _ => break seen,
        }
        std::thread::sleep(BETWEEN);
    };
    match last {
        Look::Removed => report.removed.push(path),
        Look::Left(left) => report.left.extend(left),
        Look::Running => report.running.push(path),
        Look::Gone => {}
        Look::Again => report.left.push((path, "it keeps changing".to_owned())),
    }
}

/// Looks at a name that has the form and removes its folder if all checks hold; or why not.
fn look(target: &Target, name: &str, path: &str) -> Result<Look, String> {
    let Some(run_id) = scratch::run_id_of(name) else {
        return Ok(Look::Gone);
    };
    if scratch::name_for(run_id, target.id.inode) != name {
        return Err(
            "its name does not verify here: walprobe did not make it in this directory".to_owned(),
        );
    }
    let Some((handle, stat)) = open_checked(target, name)? else {
        return Ok(Look::Gone);
    };
    let folder = |dir| Folder {
        parent: target.dir.as_fd(),
        name,
        dir,
        id: Id::of(&stat),
        path,
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = match rustix::fs::openat(&handle, ".", flags, Mode::empty()) {
        Ok(dir) => dir,
        Err(Errno::NOENT) => return Ok(Look::Gone),
        // An odd umask took the owner's rights, and the run was killed right there: if the
        // folder is empty, its name is all there is to remove.
        Err(Errno::ACCESS) if remove_dir(&folder(handle.as_fd())).is_ok() => {
            return Ok(Look::Removed);
        }
        Err(e) => return Err(fault("openat", e, name)),
    };
    let folder = folder(dir.as_fd());
    match Undo::claim(folder.dir, run_id, folder.id, stat.st_uid) {
        Claim::Absent => remove_empty(&folder),
        Claim::Running => Ok(Look::Running),
        Claim::Again => Ok(Look::Again),
        Claim::Foreign(reason) => Err(reason),
        Claim::Dead(undo) => {
            if !undo.outstanding().is_empty() && undo.owner() != rustix::process::geteuid().as_raw()
            {
                let owner = undo.owner();
                return Err(format!(
                    "run walprobe clean as user id {owner}, who made it"
                ));
            }
            let left = removal::take_down(&folder, undo, &|_| ());
            Ok(if left.is_empty() {
                Look::Removed
            } else {
                Look::Left(left)
            })
        }
    }
}

/// Holds the folder by a descriptor that opens nothing; none where it is gone, or why it is not ours.
fn open_checked(target: &Target, name: &str) -> Result<Option<(OwnedFd, Stat)>, String> {
    match rustix::fs::statat(&target.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(s) => match FileType::from_raw_mode(s.st_mode) {
            FileType::Directory => {}
            FileType::Symlink => return Err("it is a symbolic link".to_owned()),
            _ => return Err("it is not a directory".to_owned()),
        },
        Err(Errno::NOENT) => return Ok(None),
        Err(e) => return Err(fault("fstatat", e, name)),
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = match rustix::fs::openat(&target.dir, name, flags, Mode::empty()) {
        Ok(handle) => handle,
        Err(Errno::NOENT) => return Ok(None),
        Err(e) => return Err(fault("openat", e, name)),
    };
    let stat = rustix::fs::fstat(&handle).map_err(|e| fault("fstat", e, name))?;
    let me = rustix::process::geteuid();
    if stat.st_dev != target.id.device {
        return Err("another filesystem is mounted on it".to_owned());
    }
    if stat.st_uid != me.as_raw() && !me.is_root() {
        return Err(format!("it belongs to user id {}", stat.st_uid));
    }
    // Less than 0700 is a run that was killed before it had corrected an odd umask.
    if stat.st_mode & 0o077 != 0 {
        let mode = stat.st_mode & 0o777;
        return Err(format!("its mode is {mode:04o}, walprobe's is 0700"));
    }
    Ok(Some((handle, stat)))
}

/// A run was killed between making the folder and making its undo file, or between removing them.
fn remove_empty(folder: &Folder<'_>) -> Result<Look, String> {
    let is_empty = |dir: BorrowedFd<'_>| removal::entries(dir).map(|e| e.is_empty());
    if !is_empty(folder.dir).map_err(|e| fault("getdents64", e, folder.name))? {
        let undo = rustix::fs::statat(folder.dir, crate::undo::NAME, AtFlags::SYMLINK_NOFOLLOW);
        return if undo.is_ok() {
            Ok(Look::Again)
        } else {
            Err("it is not empty and has no undo file".to_owned())
        };
    }
    match remove_dir(folder) {
        Ok(()) => Ok(Look::Removed),
        // Another `clean` was faster, or a run that is just starting has made its undo file.
        Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(Look::Again),
        Err(e) => Err(fault("rmdir", e, folder.name)),
    }
}

/// Removes the folder's name if it means the folder, and the folder is empty.
fn remove_dir(folder: &Folder<'_>) -> Result<(), Errno> {
    if !folder.is_in_place() {
        return Err(Errno::NOENT);
    }
    rustix::fs::unlinkat(folder.parent, folder.name, AtFlags::REMOVEDIR)
}

fn fault(call: &'static str, errno: Errno, name: &str) -> String {
    Fault::new(call, errno.raw_os_error(), name).to_string()
}
