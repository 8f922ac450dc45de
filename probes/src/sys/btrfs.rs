#![expect(unsafe_code, reason = "BTRFS_IOC_FS_INFO has no safe wrapper")]
//! Which btrfs a descriptor lies on, and its sector size: `BTRFS_IOC_FS_INFO` (linux/btrfs.h); and the compression
//! that is set on it, which new files inherit: the attribute `btrfs.compression`
//! (btrfs-property(8)).
//!
//! A subvolume's device number is invented and the mount's source may since have been
//! replaced; the filesystem's UUID leads to all its members in `/sys/fs/btrfs`. Needs no
//! privilege. Other filesystems answer ENOTTY.

use std::{fmt::Write as _, io, os::fd::BorrowedFd};

use rustix::ioctl::{Getter, ioctl, opcode};

/// `struct btrfs_ioctl_fs_info_args`: its first fields and its size.
#[repr(C)]
struct FsInfo {
    max_id: u64,
    num_devices: u64,
    fsid: [u8; 16],
    nodesize: u32,
    sectorsize: u32,
    rest: [u8; 984],
}

const GET: rustix::ioctl::Opcode = opcode::read::<FsInfo>(0x94, 31);

/// The filesystem's UUID, as `/sys/fs/btrfs` spells it.
///
/// # Errors
/// ENOTTY where the descriptor is not on btrfs.
pub fn uuid(fd: BorrowedFd<'_>) -> io::Result<String> {
    info(fd).map(|info| spell(&info.fsid))
}

/// The unit in which data is written, in bytes; a kernel before 3.15 answers 0.
///
/// # Errors
/// ENOTTY where the descriptor is not on btrfs.
pub fn sector_bytes(fd: BorrowedFd<'_>) -> io::Result<u32> {
    info(fd).map(|info| info.sectorsize)
}

fn info(fd: BorrowedFd<'_>) -> io::Result<FsInfo> {
    // SAFETY: the kernel writes one `btrfs_ioctl_fs_info_args`, whose size is in the
    // opcode and asserted below; every bit pattern is a valid `FsInfo`.
    Ok(unsafe { ioctl(fd, Getter::<GET, FsInfo>::new()) }?)
}

/// The compression that is set on a file or directory; none where none is, or it cannot be read.
#[must_use]
pub fn compression(fd: BorrowedFd<'_>) -> Option<String> {
    let mut method = [0; 32];
    let len = rustix::fs::fgetxattr(fd, c"btrfs.compression", &mut method).ok()?;
    String::from_utf8(method.get(..len)?.to_vec()).ok()
}

fn spell(fsid: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (i, byte) in fsid.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

const _: () = assert!(size_of::<FsInfo>() == 1024);

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn uuids_are_spelt_as_in_sysfs() {
        let mut fsid = [0; 16];
        for (i, byte) in fsid.iter_mut().enumerate() {
            *byte = u8::try_from(i * 16 + 1).unwrap();
        }
        assert_eq!(spell(&fsid), "01112131-4151-6171-8191-a1b1c1d1e1f1");
    }

    #[test]
    fn a_pipe_is_not_on_btrfs() {
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        assert_eq!(
            uuid(reader.as_fd()).unwrap_err().raw_os_error(),
            Some(libc::ENOTTY)
        );
    }
}
