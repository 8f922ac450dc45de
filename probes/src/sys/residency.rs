#![expect(unsafe_code, reason = "cachestat and mincore have no safe wrappers")]
//! How much of a file is in the page cache: cachestat(2), else mmap(2) and mincore(2).
//!
//! cachestat is Linux 6.5; it refuses with EPERM a file that the caller could not write,
//! as mincore answers "all resident" for one (since 5.2): ask about files of our own.
//! Mapping a file brings no page in. Filesystems with a cache of their own (ZFS) answer
//! "not resident" for a file that was just read: there, neither proves anything.
//!
//! <https://docs.kernel.org/mm/cachestat.html> (absent from man-pages for long),
//! <https://man7.org/linux/man-pages/man2/mincore.2.html>

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
    ptr,
};

use rustix::mm::{MapFlags, ProtFlags};

/// The call's number, the same on every architecture; libc does not name it everywhere.
const SYS_CACHESTAT: libc::c_long = 451;

/// Largest range that is mapped at a time.
const WINDOW_BYTES: u64 = 64 << 20;

/// Pages of a file in the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// Pages that are there.
    pub resident: u64,
    /// Pages asked about.
    pub pages: u64,
    /// `cachestat` or `mincore`.
    pub by: &'static str,
}

/// Asks about the first `len_bytes` of a file. Where cachestat sees no page, mincore is asked as
/// well: an overlay's own inode never has any, the file below it does, and only a mapping shows it.
///
/// # Errors
/// What mincore's attempt answered, when cachestat was refused too.
pub fn resident_pages(fd: BorrowedFd<'_>, len_bytes: u64) -> io::Result<Residency> {
    match by_cachestat(fd, len_bytes) {
        Ok(none) if none.resident == 0 => Ok(by_mincore(fd, len_bytes)
            .ok()
            .filter(|seen| seen.resident > 0)
            .unwrap_or(none)),
        Ok(some) => Ok(some),
        Err(_) => by_mincore(fd, len_bytes),
    }
}

/// Asks cachestat alone.
///
/// # Errors
/// ENOSYS before Linux 6.5, EPERM for a file that is not ours.
pub fn by_cachestat(fd: BorrowedFd<'_>, len_bytes: u64) -> io::Result<Residency> {
    #[repr(C)]
    struct Range {
        off: u64,
        len: u64,
    }
    #[repr(C)]
    #[derive(Default)]
    struct Stat {
        cache: u64,
        dirty: u64,
        writeback: u64,
        evicted: u64,
        recently_evicted: u64,
    }
    let by = "cachestat";
    // A length of 0 would mean "to the end".
    if len_bytes == 0 {
        return Ok(Residency {
            resident: 0,
            pages: 0,
            by,
        });
    }
    let range = Range {
        off: 0,
        len: len_bytes,
    };
    let mut stat = Stat::default();
    // SAFETY: both pointers are to live structures of the kernel's layout, one read, one
    // written; every bit pattern of `Stat` is valid.
    let answer = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            fd.as_raw_fd(),
            &raw const range,
            &raw mut stat,
            0u32,
        )
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    let pages = len_bytes.div_ceil(page_bytes());
    Ok(Residency {
        // Large folios can reach beyond the range.
        resident: stat.cache.min(pages),
        pages,
        by,
    })
}

/// Asks mincore alone.
///
/// # Errors
/// As mmap(2) and mincore(2).
pub fn by_mincore(fd: BorrowedFd<'_>, len_bytes: u64) -> io::Result<Residency> {
    let mut sum = Residency {
        resident: 0,
        pages: 0,
        by: "mincore",
    };
    let mut offset = 0;
    while offset < len_bytes {
        let len = WINDOW_BYTES.min(len_bytes - offset);
        let pages = len.div_ceil(page_bytes());
        sum.resident += window(fd, offset, len as usize, pages as usize)?;
        sum.pages += pages;
        offset += len;
    }
    Ok(sum)
}

fn window(fd: BorrowedFd<'_>, offset: u64, len: usize, pages: usize) -> io::Result<u64> {
    let mut seen = vec![0u8; pages];
    // SAFETY: a new mapping at a place of the kernel's choice, never read or written here.
    let at = unsafe {
        rustix::mm::mmap(
            ptr::null_mut(),
            len,
            ProtFlags::READ,
            MapFlags::SHARED,
            fd,
            offset,
        )
    }?;
    // SAFETY: `at` is the mapping of `len` bytes above; `seen` has a byte for each page.
    let answer = unsafe { libc::mincore(at, len, seen.as_mut_ptr()) };
    let failed = (answer != 0).then(io::Error::last_os_error);
    // SAFETY: unmaps exactly that mapping, to which no reference exists.
    unsafe { rustix::mm::munmap(at, len) }?;
    match failed {
        Some(e) => Err(e),
        None => Ok(seen.iter().filter(|&&byte| byte & 1 != 0).count() as u64),
    }
}

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use std::os::{fd::AsFd, unix::fs::FileExt};

    use super::*;

    const PAGES: u64 = 300;

    fn written() -> std::fs::File {
        let file = tempfile::tempfile().unwrap();
        let page = vec![7; page_bytes() as usize];
        for i in 0..PAGES {
            file.write_all_at(&page, i * page_bytes()).unwrap();
        }
        file
    }

    #[test]
    fn both_ways_see_what_was_just_written_and_what_was_dropped() {
        let file = written();
        let len = PAGES * page_bytes() - 1;
        for ask in [by_cachestat, by_mincore] {
            let warm = match ask(file.as_fd(), len) {
                Ok(seen) => seen,
                Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => {
                    eprintln!("skipped: this kernel has no cachestat");
                    continue;
                }
                Err(e) => panic!("{e}"),
            };
            assert_eq!((warm.resident, warm.pages), (PAGES, PAGES), "{}", warm.by);
        }
        file.sync_all().unwrap();
        crate::sys::advise::drop_pages(file.as_fd(), 0, 0).unwrap();
        let magic = rustix::fs::fstatfs(&file).unwrap().f_type;
        if magic == 0x0102_1994 {
            eprintln!("skipped: nothing can be dropped from tmpfs");
            return;
        }
        let cold = by_mincore(file.as_fd(), len).unwrap();
        assert_eq!((cold.resident, cold.pages), (0, PAGES));
        if let Ok(seen) = by_cachestat(file.as_fd(), len) {
            assert_eq!((seen.resident, seen.pages), (0, PAGES));
        }
        // One page read back makes at least that page, and read-ahead, resident.
        file.read_exact_at(&mut [0], 0).unwrap();
        let seen = resident_pages(file.as_fd(), page_bytes()).unwrap();
        assert_eq!((seen.resident, seen.pages), (1, 1));
    }

    #[test]
    fn prefetch_brings_pages_in() {
        let file = written();
        file.sync_all().unwrap();
        crate::sys::advise::drop_pages(file.as_fd(), 0, 0).unwrap();
        crate::sys::advise::prefetch(file.as_fd(), 0, PAGES * page_bytes()).unwrap();
        let seen = resident_pages(file.as_fd(), PAGES * page_bytes()).unwrap();
        assert!(seen.resident > 0);
    }

    #[test]
    fn an_empty_range_has_no_pages() {
        let file = written();
        for ask in [by_cachestat, by_mincore, resident_pages] {
            let seen = ask(file.as_fd(), 0).unwrap();
            assert_eq!((seen.resident, seen.pages), (0, 0));
        }
    }

    #[test]
    fn a_range_longer_than_a_window_is_asked_in_parts() {
        let file = written();
        let len = WINDOW_BYTES + 3 * page_bytes();
        file.set_len(len).unwrap();
        let seen = by_mincore(file.as_fd(), len).unwrap();
        assert_eq!(seen.pages, len / page_bytes());
        assert_eq!(seen.resident, PAGES);
        file.write_all_at(&[7], WINDOW_BYTES).unwrap();
        let seen = by_mincore(file.as_fd(), len).unwrap();
        assert_eq!(seen.resident, PAGES + 1);
    }

    #[test]
    fn a_pipe_cannot_be_mapped() {
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        // cachestat says 0 of 1, which is true.
        let e = by_mincore(reader.as_fd(), 4096).unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::ENODEV));
    }
}
