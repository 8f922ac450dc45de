#![expect(unsafe_code, reason = "FS_IOC_FIEMAP has no safe wrapper")]
//! A file's extents: `FS_IOC_FIEMAP` (Documentation/filesystems/fiemap.rst).
//!
//! Figures are clipped to the file's size: XFS preallocates behind it. The map is asked
//! with `FIEMAP_FLAG_SYNC`, which writes dirty pages out first, so that delayed allocation
//! is over; what is still delayed is counted apart. btrfs reports one extent for each
//! 128 KiB of compressed data; ZFS, tmpfs and most network filesystems answer EOPNOTSUPP.
//!
//! <https://docs.kernel.org/filesystems/fiemap.html>

use std::{io, os::fd::BorrowedFd};

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// Extents asked for in one call.
const BATCH: usize = 128;

const FLAG_SYNC: u32 = 1;
const EXTENT_LAST: u32 = 0x1;
const EXTENT_DELALLOC: u32 = 0x4;
const EXTENT_ENCODED: u32 = 0x8;
const EXTENT_UNWRITTEN: u32 = 0x800;
const EXTENT_SHARED: u32 = 0x2000;

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` without its array.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Header {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

#[repr(C)]
struct Map {
    header: Header,
    extents: [Extent; BATCH],
}

/// The number's size field is that of the header alone.
const FIEMAP: Opcode = opcode::read_write::<Header>(b'f', 11);

const _: () = assert!(size_of::<Extent>() == 56);
const _: () = assert!(size_of::<Header>() == 32);
const _: () = assert!(size_of::<Map>() == 32 + 56 * BATCH);

/// A file's extents within its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extents {
    /// Extents, as the filesystem reports them.
    pub count: u64,
    /// Bytes that some extent covers; the rest are holes.
    pub mapped_bytes: u64,
    /// Bytes of them that are allocated and read as zeros: the first write changes metadata.
    pub unwritten_bytes: u64,
    /// Bytes of them whose place is not decided yet.
    pub delalloc_bytes: u64,
    /// Bytes of them that are stored compressed or encrypted.
    pub encoded_bytes: u64,
    /// Bytes of them that another file or snapshot refers to.
    pub shared_bytes: u64,
}

impl Extents {
    /// Share of the file's `size_bytes` in unwritten extents; none for an empty file.
    #[must_use]
    pub fn unwritten_pct(&self, size_bytes: u64) -> Option<f64> {
        (size_bytes > 0).then(|| self.unwritten_bytes as f64 * 100.0 / size_bytes as f64)
    }

    fn add(&mut self, extent: &Extent, size_bytes: u64) {
        let end = extent.logical.saturating_add(extent.length).min(size_bytes);
        let bytes = end.saturating_sub(extent.logical);
        if bytes == 0 {
            return;
        }
        let marked = |flag| if extent.flags & flag != 0 { bytes } else { 0 };
        self.count += 1;
        self.mapped_bytes += bytes;
        self.unwritten_bytes += marked(EXTENT_UNWRITTEN);
        self.delalloc_bytes += marked(EXTENT_DELALLOC);
        self.encoded_bytes += marked(EXTENT_ENCODED);
        self.shared_bytes += marked(EXTENT_SHARED);
    }
}

/// Maps the first `size_bytes` of a file: pass its size.
///
/// # Errors
/// EOPNOTSUPP or ENOTTY where the filesystem cannot tell.
pub fn extents(fd: BorrowedFd<'_>, size_bytes: u64) -> io::Result<Extents> {
    collect(size_bytes, |start| ask(fd, start, size_bytes - start))
}

/// Asks from `start` on until `size_bytes` or the last extent, a batch at a time.
fn collect(
    size_bytes: u64,
    mut ask: impl FnMut(u64) -> io::Result<Vec<Extent>>,
) -> io::Result<Extents> {
    let mut sum = Extents::default();
    let mut start = 0;
    while start < size_bytes {
        let batch = ask(start)?;
        let Some(last) = batch.last() else { break };
        for extent in &batch {
            sum.add(extent, size_bytes);
        }
        let next = last.logical.saturating_add(last.length);
        // A map that does not advance would be asked for ever.
        if last.flags & EXTENT_LAST != 0 || next <= start {
            break;
        }
        start = next;
    }
    Ok(sum)
}

fn ask(fd: BorrowedFd<'_>, start: u64, length: u64) -> io::Result<Vec<Extent>> {
    let mut map = Box::new(Map {
        header: Header {
            start,
            length,
            flags: FLAG_SYNC,
            extent_count: BATCH as u32,
            ..Header::default()
        },
        extents: [Extent::default(); BATCH],
    });
    // SAFETY: the kernel reads and writes one header and at most `extent_count` extents,
    // which `Map` has room for; every bit pattern of them is valid.
    unsafe { ioctl(fd, Updater::<FIEMAP, Map>::new(&mut map)) }?;
    let mapped = (map.header.mapped_extents as usize).min(BATCH);
    Ok(map.extents[..mapped].to_vec())
}

#[cfg(test)]
mod tests {
    use std::{
        os::{fd::AsFd, unix::fs::FileExt},
        path::Path,
    };

    use super::*;

    fn extent(logical: u64, length: u64, flags: u32) -> Extent {
        Extent {
            logical,
            length,
            flags,
            ..Extent::default()
        }
    }

    #[test]
    fn what_lies_behind_the_size_is_not_counted() {
        let mut calls = 0;
        let sum = collect(10_000, |start| {
            calls += 1;
            assert_eq!(start, if calls == 1 { 0 } else { 8192 });
            Ok(if calls == 1 {
                vec![extent(0, 4096, 0), extent(4096, 4096, EXTENT_UNWRITTEN)]
            } else {
                vec![
                    extent(8192, 65_536, EXTENT_UNWRITTEN | EXTENT_DELALLOC),
                    extent(1 << 20, 4096, EXTENT_UNWRITTEN | EXTENT_LAST),
                ]
            })
        })
        .unwrap();
        assert_eq!(calls, 2);
        assert_eq!(
            sum,
            Extents {
                count: 3,
                mapped_bytes: 10_000,
                unwritten_bytes: 4096 + 1808,
                delalloc_bytes: 1808,
                ..Extents::default()
            }
        );
        let pct = sum.unwritten_pct(10_000).unwrap();
        assert!((pct - 59.04).abs() < 1e-9);
        assert_eq!(sum.unwritten_pct(0), None);
    }

    #[test]
    fn a_map_that_does_not_advance_ends() {
        let sum = collect(10_000, |_| Ok(vec![extent(0, 0, 0)])).unwrap();
        assert_eq!(sum, Extents::default());
    }

    /// A file with a written block in every second place, on a filesystem that maps.
    #[test]
    fn more_extents_than_one_call_returns() {
        let Some(file) = mapped_file() else { return };
        let blocks = 2 * BATCH as u64 + 7;
        for i in 0..blocks {
            file.write_all_at(&[7; 4096], i * 8192).unwrap();
        }
        let size = file.metadata().unwrap().len();
        let sum = extents(file.as_fd(), size).unwrap();
        assert_eq!(sum.count, blocks);
        assert_eq!(sum.mapped_bytes, blocks * 4096);
        assert_eq!(sum.unwritten_bytes, 0);
        assert_eq!(sum.delalloc_bytes, 0);
    }

    #[test]
    fn fallocated_space_is_unwritten_until_written() {
        let Some(file) = mapped_file() else { return };
        let size = 1 << 20;
        let mode = crate::sys::fallocate::Mode::Allocate;
        crate::sys::fallocate::fallocate(file.as_fd(), mode, 0, size).unwrap();
        let sum = extents(file.as_fd(), size).unwrap();
        assert_eq!(sum.unwritten_bytes, size);
        assert_eq!(sum.mapped_bytes, size);
        file.write_all_at(&[7; 65_536], 0).unwrap();
        let sum = extents(file.as_fd(), size).unwrap();
        assert_eq!(sum.unwritten_bytes, size - 65_536);
        assert_eq!(extents(file.as_fd(), 0).unwrap(), Extents::default());
    }

    #[test]
    fn a_filesystem_that_cannot_tell_says_so() {
        let shm = Path::new("/dev/shm");
        let Ok(file) = tempfile::tempfile_in(shm) else {
            eprintln!("skipped: no tmpfs at /dev/shm");
            return;
        };
        let e = extents(file.as_fd(), 4096).unwrap_err();
        assert!(crate::sys::errno::is_unsupported(e.raw_os_error().unwrap()));
    }

    fn mapped_file() -> Option<std::fs::File> {
        let file = tempfile::tempfile().unwrap();
        match extents(file.as_fd(), 4096) {
            Ok(_) => Some(file),
            Err(e) => {
                eprintln!("skipped: the temporary directory's filesystem has no fiemap: {e}");
                None
            }
        }
    }
}
