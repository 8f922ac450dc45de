//! What statx(2) says of a file beyond stat(2): mount, direct I/O alignment, atomic writes.
//!
//! `STATX_MNT_ID` since Linux 5.8, `STATX_DIOALIGN` 6.1, `STATX_WRITE_ATOMIC` 6.11. A
//! kernel or filesystem that cannot answer leaves the bit out of `stx_mask`; ext4, XFS and
//! btrfs answer the latter two for regular files only. An alignment of 0 means that direct
//! I/O is not supported, an atomic unit of 0 that no write is atomic.
//!
//! <https://man7.org/linux/man-pages/man2/statx.2.html>

use std::{ffi::CStr, io, os::fd::BorrowedFd, path::Path};

use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags};
use serde::{Deserialize, Serialize};

/// `STATX_WRITE_ATOMIC`, which rustix does not name yet.
const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x1_0000);

/// The answers; `None` where the bit was absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answers {
    /// The mount's id in `/proc/self/mountinfo`.
    pub mnt_id: Option<u64>,
    /// Device of the filesystem: major, minor. btrfs has an invented one for each subvolume.
    pub dev: (u32, u32),
    /// Device that a device node names.
    pub rdev: (u32, u32),
    /// Inode number.
    pub ino: u64,
    /// Length.
    pub size: u64,
    /// A regular file.
    pub is_file: bool,
    /// A directory.
    pub is_dir: bool,
    /// A block device.
    pub is_block_device: bool,
    /// `st_blksize`.
    pub blksize: u32,
    /// Alignment of a direct transfer's memory, of its offset and length.
    pub dio_align: Option<(u32, u32)>,
    /// Smallest and largest atomic write.
    pub atomic_write: Option<(u32, u32)>,
}

/// Asks about an open file or directory.
///
/// # Errors
/// As statx(2).
pub fn of_fd(fd: BorrowedFd<'_>) -> io::Result<Answers> {
    ask(fd, c"", AtFlags::EMPTY_PATH)
}

/// Asks about a name in a directory; a symbolic link is not followed.
///
/// # Errors
/// As statx(2).
pub fn of_name(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<Answers> {
    ask(dir, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT)
}

/// Asks about a path; symbolic links are followed.
///
/// # Errors
/// As statx(2).
pub fn of_path(path: &Path) -> io::Result<Answers> {
    let x = rustix::fs::statx(CWD, path, AtFlags::NO_AUTOMOUNT, mask())?;
    Ok(answers(&x))
}

const fn mask() -> StatxFlags {
    StatxFlags::BASIC_STATS
        .union(StatxFlags::MNT_ID)
        .union(StatxFlags::DIOALIGN)
        .union(WRITE_ATOMIC)
}

fn ask(fd: BorrowedFd<'_>, name: &CStr, flags: AtFlags) -> io::Result<Answers> {
    let x = rustix::fs::statx(fd, name, flags, mask())?;
    Ok(answers(&x))
}

fn answers(x: &Statx) -> Answers {
    let has = |bit: StatxFlags| x.stx_mask & bit.bits() != 0;
    let kind = FileType::from_raw_mode(u32::from(x.stx_mode));
    Answers {
        mnt_id: has(StatxFlags::MNT_ID).then_some(x.stx_mnt_id),
        dev: (x.stx_dev_major, x.stx_dev_minor),
        rdev: (x.stx_rdev_major, x.stx_rdev_minor),
        ino: x.stx_ino,
        size: x.stx_size,
        is_file: kind == FileType::RegularFile,
        is_dir: kind == FileType::Directory,
        is_block_device: kind == FileType::BlockDevice,
        blksize: x.stx_blksize,
        dio_align: has(StatxFlags::DIOALIGN)
            .then_some((x.stx_dio_mem_align, x.stx_dio_offset_align)),
        atomic_write: has(WRITE_ATOMIC)
            .then_some((x.stx_atomic_write_unit_min, x.stx_atomic_write_unit_max)),
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::CString, io::Write, os::fd::AsFd};

    use super::*;

    #[test]
    fn descriptor_name_and_path_agree() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = std::fs::File::create(dir.path().join("a")).unwrap();
        file.write_all(&[1; 5000]).unwrap();
        let by_fd = of_fd(file.as_fd()).unwrap();
        let held = std::fs::File::open(dir.path()).unwrap();
        let by_name = of_name(held.as_fd(), &CString::new("a").unwrap()).unwrap();
        let by_path = of_path(&dir.path().join("a")).unwrap();
        assert_eq!(by_fd, by_name);
        assert_eq!(by_fd, by_path);
        assert!(by_fd.is_file && !by_fd.is_dir);
        assert_eq!(by_fd.size, 5000);
        assert!(by_fd.blksize.is_power_of_two());
        assert!(by_fd.mnt_id.is_some());
    }

    #[test]
    fn a_link_is_followed_by_path_only() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("l")).unwrap();
        let held = std::fs::File::open(dir.path()).unwrap();
        let link = of_name(held.as_fd(), c"l").unwrap();
        assert!(!link.is_dir && !link.is_file);
        assert!(of_path(&dir.path().join("l")).unwrap().is_dir);
    }

    #[test]
    fn an_error_keeps_its_errno() {
        let e = of_path(Path::new("/nonexistent/x")).unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::ENOENT));
    }
}
