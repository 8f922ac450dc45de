//! posix_fadvise(2): asks the kernel to drop a file's pages, or to read ahead.
//!
//! `POSIX_FADV_DONTNEED` drops clean pages only (sync first), starts writeback of dirty
//! ones, and leaves partial pages at the ends of the range; on ZFS it does not touch the
//! ARC. It needs no privilege and touches nobody else's pages. `POSIX_FADV_WILLNEED`
//! returns before the pages are read. Success is a claim, not a proof: see `residency`.
//!
//! <https://man7.org/linux/man-pages/man2/posix_fadvise.2.html>

use std::{io, num::NonZeroU64, os::fd::BorrowedFd};

use rustix::fs::Advice;

/// Drops the clean pages of a range; `len` 0 means to the end of the file.
///
/// # Errors
/// As posix_fadvise(2).
pub fn drop_pages(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    Ok(rustix::fs::fadvise(
        fd,
        offset,
        NonZeroU64::new(len),
        Advice::DontNeed,
    )?)
}

/// Starts to read a range; `len` 0 means to the end of the file.
///
/// # Errors
/// As posix_fadvise(2).
pub fn prefetch(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    Ok(rustix::fs::fadvise(
        fd,
        offset,
        NonZeroU64::new(len),
        Advice::WillNeed,
    )?)
}
