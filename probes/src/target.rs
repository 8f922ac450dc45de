//! The directory to be measured: opened once, held by descriptor, refused where it must not be used.
//!
//! A symbolic link given by the user is followed once, when the directory is opened; from
//! then on everything goes by descriptor, whatever happens to the name. Refusals come
//! before anything is made. What `open` cannot know (a quota, a filesystem that keeps no
//! permissions) is found by making the scratch folder, which refuses in the same form.

use std::{
    io,
    os::{
        fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        Access, AtFlags, CWD, Mode, OFlags, Stat, StatVfsMountFlags, StatxAttributes, StatxFlags,
    },
    io::Errno,
};

use crate::{contract::Fault, paths, pgdir, request::Request};

/// Free space that is never asked for: this share of the filesystem, or [`KEEP_BYTES`] where that is less.
const KEEP_SHARE: u64 = 20;
/// See [`KEEP_SHARE`].
const KEEP_BYTES: u64 = 64 << 20;
/// Files that a run may hold at one time, the folder and its undo file among them.
const KEEP_FILES: u64 = 64;

/// Why a directory is not used. Nothing was left in it, or `message` says what.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// `cannot use /mnt/x: Read-only file system (os error 30)`.
    pub message: String,
    /// What to do, where it is known.
    pub hint: Option<String>,
}

impl Refused {
    /// A refusal of the directory shown as `dir`.
    pub(crate) fn new(dir: &str, why: impl std::fmt::Display, hint: Option<&str>) -> Self {
        Self {
            message: format!("cannot use {dir}: {why}"),
            hint: hint.map(str::to_owned),
        }
    }

    /// A call on the directory itself failed.
    pub(crate) fn errno(dir: &str, errno: Errno) -> Self {
        Self::new(dir, io::Error::from(errno), hint(errno))
    }

    /// A call on something in the directory failed.
    pub(crate) fn fault(dir: &str, fault: &Fault) -> Self {
        Self::new(dir, fault, hint(Errno::from_raw_os_error(fault.errno)))
    }
}

fn hint(errno: Errno) -> Option<&'static str> {
    match errno {
        Errno::NOENT => Some("make the directory first, and check that its filesystem is mounted"),
        Errno::NOTDIR => Some("give a directory on the filesystem to be measured"),
        Errno::ROFS => Some("give a directory on a filesystem that is mounted read-write"),
        Errno::ACCESS => Some("run as the directory's owner, or give a directory that is yours"),
        Errno::PERM => Some("the directory may be immutable or append-only: see lsattr -d"),
        Errno::NOSPC => Some("free some space or inodes on that filesystem"),
        Errno::DQUOT => Some("free some of your quota on that filesystem"),
        Errno::NOLCK | Errno::NOSYS | Errno::OPNOTSUPP => {
            Some("walprobe needs a filesystem with directories, permissions and flock")
        }
        _ => None,
    }
}

/// Which inode something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl Id {
    pub(crate) const fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}

/// A directory that may be used.
#[derive(Debug)]
pub struct Target {
    /// The directory.
    pub dir: OwnedFd,
    /// Its real path when it was opened, for facts and messages.
    pub path: PathBuf,
    /// The path as given, for messages.
    given: String,
    pub(crate) id: Id,
}

/// Opens the directory of a request and checks that it may be used. Makes nothing.
///
/// # Errors
/// Not there, not a directory, read-only, not writable, or it looks like a live server's
/// and `force` is not set.
pub fn open(request: &Request) -> Result<Target, Refused> {
    let target = hold(&paths::from_request(&request.dir))?;
    target.check_writable()?;
    if !request.force
        && let Some(signs) = pgdir::signs(&target.dir, &target.path)
    {
        return Err(Refused::new(
            &target.given,
            format_args!("it looks like {signs}"),
            Some("give another directory on the same filesystem, or --force to use this one"),
        ));
    }
    Ok(target)
}

/// Opens and holds a directory that is only looked at, or cleaned.
///
/// # Errors
/// Not there, not a directory, or not readable.
pub fn hold(path: &Path) -> Result<Target, Refused> {
    let given = paths::show(path);
    let refuse = |e| Refused::errno(&given, e);
    // O_DIRECTORY is checked before a FIFO or a device is opened; O_NONBLOCK is for
    // filesystems that do their own opening.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let dir = rustix::io::retry_on_intr(|| rustix::fs::openat(CWD, path, flags, Mode::empty()))
        .map_err(refuse)?;
    let stat = rustix::fs::fstat(&dir).map_err(refuse)?;
    if stat.st_nlink == 0 {
        return Err(refuse(Errno::NOENT));
    }
    let real = real_path(dir.as_fd())
        .or_else(|| std::path::absolute(path).ok())
        .unwrap_or_else(|| path.to_owned());
    Ok(Target {
        dir,
        path: real,
        given,
        id: Id::of(&stat),
    })
}

/// Where a descriptor's directory is now; none without `/proc`, or when it was removed.
pub(crate) fn real_path(dir: BorrowedFd<'_>) -> Option<PathBuf> {
    if rustix::fs::fstat(dir).ok()?.st_nlink == 0 {
        return None;
    }
    let link = format!("/proc/self/fd/{}", dir.as_raw_fd());
    let path = rustix::fs::readlinkat(CWD, link, Vec::new()).ok()?;
    let path = PathBuf::from(std::ffi::OsString::from_vec(path.into_bytes()));
    path.is_absolute().then_some(path)
}

impl Target {
    /// The real path as text, for reports and messages.
    #[must_use]
    pub fn path_text(&self) -> String {
        paths::show(&self.path)
    }

    /// The path as it was given, for messages.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// Space that this user may take, by `f_bavail` and `f_frsize`; none where the
    /// filesystem does not say (tmpfs without a limit, some FUSE filesystems).
    ///
    /// # Errors
    /// statvfs failed.
    pub fn free_bytes(&self) -> Result<Option<u64>, Refused> {
        let vfs = self.statvfs()?;
        Ok((vfs.f_blocks != 0).then(|| vfs.f_bavail.saturating_mul(vfs.f_frsize)))
    }

    /// Refuses where files of `need_bytes` in all would leave too little room for others.
    ///
    /// Kept free: 5% of the filesystem, at most 64 MiB. The least of the two, because 5%
    /// of a large filesystem is more than a run ever takes, and 64 MiB of a small one is
    /// most of it. The blocks that only root may take (`f_bfree - f_bavail`) do not count,
    /// for root neither. Whatever a filesystem needs beyond its files' sizes (new copies
    /// while old ones are still pinned) belongs in `need_bytes`.
    ///
    /// # Errors
    /// Too little space, or too few inodes.
    pub fn check_space(&self, need_bytes: u64) -> Result<(), Refused> {
        let vfs = self.statvfs()?;
        let total = vfs.f_blocks.saturating_mul(vfs.f_frsize);
        let free = vfs.f_bavail.saturating_mul(vfs.f_frsize);
        if total != 0 {
            let keep = (total / KEEP_SHARE).min(KEEP_BYTES);
            if free < need_bytes.saturating_add(keep) {
                return Err(Refused::new(
                    &self.given,
                    format_args!(
                        "{} free, {} needed and {} to be kept free",
                        Size(free),
                        Size(need_bytes),
                        Size(keep)
                    ),
                    Some("free some space, or ask for less: --segment-size, --only"),
                ));
            }
        }
        // Filesystems that make inodes as they go (btrfs) say 0 of 0.
        if vfs.f_files != 0 && vfs.f_favail < KEEP_FILES {
            return Err(Refused::new(
                &self.given,
                format_args!("{} inodes free, {KEEP_FILES} needed", vfs.f_favail),
                Some("remove some files on that filesystem"),
            ));
        }
        Ok(())
    }

    fn statvfs(&self) -> Result<rustix::fs::StatVfs, Refused> {
        rustix::fs::fstatvfs(&self.dir).map_err(|e| Refused::errno(&self.given, e))
    }

    fn check_writable(&self) -> Result<(), Refused> {
        let refuse = |e| Refused::errno(&self.given, e);
        if self.statvfs()?.f_flag.contains(StatVfsMountFlags::RDONLY) {
            return Err(refuse(Errno::ROFS));
        }
        // What is made in an append-only directory cannot be removed again.
        if let Ok(x) = rustix::fs::statx(&self.dir, "", AtFlags::EMPTY_PATH, StatxFlags::TYPE)
            && x.stx_attributes.contains(StatxAttributes::APPEND)
        {
            return Err(Refused::new(
                &self.given,
                "it is append-only: nothing made in it could be removed again",
                Some("chattr -a the directory, or give another one"),
            ));
        }
        let access = Access::WRITE_OK | Access::EXEC_OK;
        match rustix::fs::accessat(&self.dir, ".", access, AtFlags::EACCESS) {
            // Not asked, or (EPERM) perhaps a filter of system calls: making the folder tells.
            Ok(()) | Err(Errno::NOSYS) => Ok(()),
            Err(Errno::PERM)
                if rustix::fs::accessat(&self.dir, ".", access, AtFlags::empty()).is_ok() =>
            {
                Ok(())
            }
            Err(e) => Err(refuse(e)),
        }
    }
}

/// Bytes for people.
struct Size(u64);

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mib = self.0 as f64 / f64::from(1 << 20);
        if mib < 1.0 {
            write!(f, "{} bytes", self.0)
        } else if mib < 10_240.0 {
            write!(f, "{mib:.1} MiB")
        } else {
            write!(f, "{:.1} GiB", mib / 1024.0)
        }
    }
}
