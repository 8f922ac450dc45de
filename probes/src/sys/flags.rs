//! Inode flags: `FS_IOC_GETFLAGS` (ioctl_iflags(2)).
//!
//! Reads only. btrfs sets `NOCOW` where a file overwrites in place, and new files
//! inherit it from their directory; filesystems without such flags answer ENOTTY.
//!
//! <https://man7.org/linux/man-pages/man2/ioctl_iflags.2.html>

use std::{io, os::fd::BorrowedFd};

use rustix::fs::IFlags;
use serde::{Deserialize, Serialize};

/// The flags that matter for writing in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flags {
    /// `FS_NOCOW_FL`: overwrites go to the same place.
    pub nocow: bool,
    /// `FS_COMPR_FL`: content is compressed.
    pub compressed: bool,
    /// `FS_NOCOMP_FL`: content is not compressed.
    #[serde(default)]
    pub incompressible: bool,
}

/// `FS_NOCOMP_FL` of `linux/fs.h`.
const NOCOMP: u32 = 0x400;

/// Reads the flags of an open file or directory.
///
/// # Errors
/// ENOTTY or EOPNOTSUPP where the filesystem has no such flags.
pub fn get(fd: BorrowedFd<'_>) -> io::Result<Flags> {
    let flags = rustix::fs::ioctl_getflags(fd)?;
    Ok(Flags {
        nocow: flags.contains(IFlags::NOCOW),
        compressed: flags.contains(IFlags::COMPRESSED),
        incompressible: flags.bits() & NOCOMP != 0,
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_plain_file_has_none_or_the_filesystem_has_no_flags() {
        let file = tempfile::tempfile().unwrap();
        match get(file.as_fd()) {
            Ok(flags) => assert_eq!(flags, Flags::default()),
            Err(e) => assert!(crate::sys::errno::is_unsupported(
                e.raw_os_error().unwrap_or(0)
            )),
        }
    }

    #[test]
    fn a_pipe_has_no_flags() {
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        let e = get(reader.as_fd()).unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::ENOTTY));
    }
}
