//! fallocate(2), as the raw call and as the C library offers it.
//!
//! [`fallocate`] is the system call: EOPNOTSUPP says that the filesystem cannot. libc's
//! [`posix_fallocate`] is what programs call: glibc then emulates it by writing one byte
//! a block, musl refuses. Whichever libc this program runs on is what is tested.
//! `FALLOC_FL_WRITE_ZEROES` is Linux 6.17.
//!
//! <https://man7.org/linux/man-pages/man2/fallocate.2.html>,
//! <https://man7.org/linux/man-pages/man3/posix_fallocate.3.html>

use std::{io, os::fd::BorrowedFd};

use rustix::fs::FallocateFlags;

/// How a range is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Mode 0: unwritten extents, the file grows.
    Allocate,
    /// `FALLOC_FL_ZERO_RANGE`.
    ZeroRange,
    /// `FALLOC_FL_WRITE_ZEROES`: written extents without moving data, where the device can.
    WriteZeroes,
    /// `FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE`.
    PunchHole,
}

impl Mode {
    const fn flags(self) -> FallocateFlags {
        match self {
            Self::Allocate => FallocateFlags::empty(),
            Self::ZeroRange => FallocateFlags::ZERO_RANGE,
            Self::WriteZeroes => FallocateFlags::from_bits_retain(0x80),
            Self::PunchHole => FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE),
        }
    }
}

/// The system call.
///
/// # Errors
/// As fallocate(2); EOPNOTSUPP where filesystem or kernel cannot.
pub fn fallocate(fd: BorrowedFd<'_>, mode: Mode, offset: u64, len: u64) -> io::Result<()> {
    Ok(rustix::fs::fallocate(fd, mode.flags(), offset, len)?)
}

/// The C library's function, emulation included.
///
/// # Errors
/// The errno that it returns; EFBIG for a range no file can have.
pub fn posix_fallocate(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    let (Ok(offset), Ok(len)) = (offset.try_into(), len.try_into()) else {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    };
    nix::fcntl::posix_fallocate(fd, offset, len)
        .map_err(|errno| io::Error::from_raw_os_error(errno as i32))
}

#[cfg(test)]
mod tests {
    use std::os::{fd::AsFd, unix::fs::MetadataExt};

    use super::*;

    #[test]
    fn both_make_the_file_that_long() {
        for by_libc in [false, true] {
            let file = tempfile::tempfile().unwrap();
            let done = if by_libc {
                posix_fallocate(file.as_fd(), 0, 1 << 20)
            } else {
                fallocate(file.as_fd(), Mode::Allocate, 0, 1 << 20)
            };
            match done {
                Ok(()) => {
                    let meta = file.metadata().unwrap();
                    assert_eq!(meta.len(), 1 << 20);
                    assert!(meta.blocks() > 0);
                }
                Err(e) => assert!(crate::sys::errno::is_unsupported(
                    e.raw_os_error().unwrap_or(0)
                )),
            }
        }
    }

    #[test]
    fn a_read_only_descriptor_is_refused_with_its_errno() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let file = std::fs::File::open(named.path()).unwrap();
        for e in [
            fallocate(file.as_fd(), Mode::Allocate, 0, 4096).unwrap_err(),
            posix_fallocate(file.as_fd(), 0, 4096).unwrap_err(),
        ] {
            assert_eq!(e.raw_os_error(), Some(libc::EBADF));
        }
        let e = posix_fallocate(file.as_fd(), 0, u64::MAX).unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::EFBIG));
    }
}
