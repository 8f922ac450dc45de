#![expect(unsafe_code, reason = "sync_file_range has no safe wrapper")]
//! sync_file_range(2): writeback without durability. Neither metadata nor the device's cache is
//! flushed; PostgreSQL uses it as a hint (`pg_flush_data`), never for a commit.
//!
//! <https://man7.org/linux/man-pages/man2/sync_file_range.2.html>

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

/// Writes a range back and waits for it.
///
/// # Errors
/// As sync_file_range(2): ESPIPE where the file is none that has pages, ENOSYS.
pub fn write_and_wait(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    let (Ok(offset), Ok(len)) = (offset.try_into(), len.try_into()) else {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    };
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: plain numbers and an open descriptor.
    let answer = unsafe { libc::sync_file_range(fd.as_raw_fd(), offset, len, flags) };
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    #[test]
    fn a_file_is_taken_and_a_pipe_refused() {
        let file = tempfile::tempfile().unwrap();
        if let Err(e) = super::write_and_wait(file.as_fd(), 0, 4096) {
            assert!(crate::sys::errno::is_unsupported(
                e.raw_os_error().unwrap_or(0)
            ));
            eprintln!("skipped: no sync_file_range here");
            return;
        }
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        let e = super::write_and_wait(reader.as_fd(), 0, 4096).unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::ESPIPE));
    }
}
