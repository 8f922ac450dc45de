//! pwritev2(2) with `RWF_DSYNC`: one durable write through a descriptor opened without O_DSYNC.
//!
//! Linux 4.7; an older kernel, and a filesystem without it, answers EOPNOTSUPP.
//!
//! <https://man7.org/linux/man-pages/man2/pwritev2.2.html>

use std::{
    io::{self, IoSlice},
    os::fd::BorrowedFd,
};

use rustix::io::ReadWriteFlags;

/// Writes at `offset`; what it wrote is durable as after fdatasync.
///
/// # Errors
/// As pwritev2(2).
pub fn pwrite_dsync(fd: BorrowedFd<'_>, data: &[u8], offset: u64) -> io::Result<usize> {
    Ok(rustix::io::pwritev2(
        fd,
        &[IoSlice::new(data)],
        offset,
        ReadWriteFlags::DSYNC,
    )?)
}

#[cfg(test)]
mod tests {
    use std::os::{fd::AsFd, unix::fs::FileExt};

    use super::*;

    #[test]
    fn the_flag_is_the_kernels() {
        assert_eq!(
            ReadWriteFlags::DSYNC.bits(),
            libc::RWF_DSYNC.cast_unsigned()
        );
    }

    #[test]
    fn it_writes_where_it_is_told() {
        let file = tempfile::tempfile().unwrap();
        match pwrite_dsync(file.as_fd(), b"abc", 5) {
            Ok(n) => {
                assert_eq!(n, 3);
                let mut back = [0; 3];
                file.read_exact_at(&mut back, 5).unwrap();
                assert_eq!(&back, b"abc");
            }
            Err(e) => assert!(crate::sys::errno::is_unsupported(
                e.raw_os_error().unwrap_or(0)
            )),
        }
    }
}
