//! What the kernel says of an open directory or file, asked once and kept.
//!
//! Everything here comes from the descriptor itself (statx, fstatfs, two ioctls), so that
//! a directory that is moved or mounted over cannot be mistaken for another.

use std::{
    ffi::CStr,
    fs::File,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    path::Path,
};

use rustix::fs::{Dir, Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::roots::why;
use crate::sys::{
    btrfs,
    flags::{self, Flags},
    statx::{self, Answers},
};

/// `f_type` of btrfs.
const BTRFS_MAGIC: u64 = 0x9123_683e;

/// Directory entries looked at for a regular file.
const ENTRIES: usize = 256;

/// See the module docs. Each answer that could not be had is its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// statx of itself.
    pub statx: Result<Answers, String>,
    /// statx of some regular file in it: alignments are told of regular files only.
    #[serde(default)]
    pub file: Option<Answers>,
    /// fstatfs.
    pub space: Result<Space, String>,
    /// Inode flags.
    #[serde(default = "not_recorded")]
    pub flags: Result<Flags, String>,
    /// UUID, on btrfs.
    #[serde(default)]
    pub btrfs_uuid: Option<String>,
    /// Compression that is set on it, on btrfs.
    #[serde(default)]
    pub btrfs_compression: Option<String>,
}

fn not_recorded() -> Result<Flags, String> {
    Err("not recorded".to_owned())
}

/// fstatfs(2) in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// `f_type`.
    pub magic: u64,
    /// `f_bsize`: preferred transfer size.
    pub block_bytes: u64,
    /// `f_frsize`: the unit in which space is counted.
    pub fragment_bytes: u64,
    /// `f_blocks` in bytes.
    pub total_bytes: u64,
    /// `f_bavail` in bytes: free to an ordinary user.
    pub free_bytes: u64,
}

impl Held {
    /// Asks an open directory, and looks for a regular file in it.
    #[must_use]
    pub fn of_dir(dir: BorrowedFd<'_>) -> Self {
        let mut held = Self::of_fd(dir);
        if let Ok(own) = &held.statx {
            held.file = some_file(dir, own);
        }
        held
    }

    /// Asks what is open.
    #[must_use]
    pub fn of_fd(fd: BorrowedFd<'_>) -> Self {
        let mut statx = statx::of_fd(fd).map_err(|e| why("statx", "the descriptor", &e));
        if let Ok(answers) = &mut statx {
            answers.mnt_id = answers.mnt_id.or_else(|| from_fdinfo(fd));
        }
        let space = space(fd).map_err(|e| why("fstatfs", "the descriptor", &e));
        let on_btrfs = space.as_ref().is_ok_and(|s| s.magic == BTRFS_MAGIC);
        Self {
            statx,
            file: None,
            space,
            flags: flags::get(fd).map_err(|e| why("FS_IOC_GETFLAGS", "the descriptor", &e)),
            btrfs_uuid: on_btrfs.then(|| btrfs::uuid(fd).ok()).flatten(),
            btrfs_compression: on_btrfs.then(|| btrfs::compression(fd)).flatten(),
        }
    }

    /// Asks the file at a path, which is opened for it: read-only and only if it is a
    /// regular file or a directory, since opening others can have effects.
    ///
    /// # Errors
    /// The call that failed.
    pub fn of_path(path: &Path) -> Result<Self, String> {
        let name = path.to_string_lossy();
        let answers = statx::of_path(path).map_err(|e| why("statx", &name, &e))?;
        if !(answers.is_file || answers.is_dir) {
            return Ok(Self {
                statx: Ok(answers),
                file: None,
                space: Err("not a file or directory".to_owned()),
                flags: not_recorded(),
                btrfs_uuid: None,
                btrfs_compression: None,
            });
        }
        let file = File::open(path).map_err(|e| why("open", &name, &e))?;
        Ok(Self::of_fd(file.as_fd()))
    }
}

/// `mnt_id` where statx does not tell it: before Linux 5.8 and in some sandboxes.
fn from_fdinfo(fd: BorrowedFd<'_>) -> Option<u64> {
    let path = format!("/proc/self/fdinfo/{}", fd.as_raw_fd());
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("mnt_id:"))?;
    line.trim().parse().ok()
}

fn space(fd: BorrowedFd<'_>) -> io::Result<Space> {
    let statfs = rustix::fs::fstatfs(fd)?;
    let statvfs = rustix::fs::fstatvfs(fd)?;
    Ok(Space {
        magic: statfs.f_type as u64 & 0xffff_ffff,
        block_bytes: statvfs.f_bsize,
        fragment_bytes: statvfs.f_frsize,
        total_bytes: statvfs.f_blocks.saturating_mul(statvfs.f_frsize),
        free_bytes: statvfs.f_bavail.saturating_mul(statvfs.f_frsize),
    })
}

/// A regular file of the directory's own mount, without opening any.
fn some_file(dir: BorrowedFd<'_>, own: &Answers) -> Option<Answers> {
    // Opened anew: the held descriptor's position is not ours to move. Only its owner may
    // leave a directory's time of access alone.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listing = rustix::fs::openat(dir, c".", flags | OFlags::NOATIME, Mode::empty())
        .or_else(|_| rustix::fs::openat(dir, c".", flags, Mode::empty()))
        .ok()?;
    Dir::new(listing)
        .ok()?
        .take(ENTRIES)
        .map_while(Result::ok)
        .filter_map(|entry| answers(dir, entry.file_name()))
        .find(|x| x.is_file && x.mnt_id == own.mnt_id && x.size > 0)
}

fn answers(dir: BorrowedFd<'_>, name: &CStr) -> Option<Answers> {
    statx::of_name(dir, name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_tells_itself_and_a_file_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let held = Held::of_dir(File::open(dir.path()).unwrap().as_fd());
        assert_eq!(held.file, None);
        assert!(held.statx.as_ref().unwrap().is_dir);
        let space = held.space.unwrap();
        assert!(space.free_bytes <= space.total_bytes);
        assert!(space.fragment_bytes > 0);

        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("f"), [1; 777]).unwrap();
        let held = Held::of_dir(File::open(dir.path()).unwrap().as_fd());
        assert_eq!(held.file.unwrap().size, 777);
    }

    #[test]
    fn statx_and_fdinfo_name_the_same_mount() {
        let file = tempfile::tempfile().unwrap();
        let held = Held::of_fd(file.as_fd());
        let id = held.statx.unwrap().mnt_id;
        assert!(id.is_some());
        assert_eq!(from_fdinfo(file.as_fd()), id);
    }

    #[test]
    fn a_device_node_is_not_opened() {
        let held = Held::of_path(Path::new("/dev/null")).unwrap();
        assert!(held.space.is_err());
        assert_eq!(held.statx.unwrap().rdev, (1, 3));
    }
}
