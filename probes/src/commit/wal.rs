//! The log on the target: a fully written segment, walked as XLogWrite does.
//!
//! A group's records are written in whole 8 KiB pages, from the page in which the first of them
//! begins; the tail page is written again with the next group. Where the segment ends it is begun
//! again, as the next one.

use rustix::io::Errno;

use crate::{
    contract::{Fault, Lab, Pulse, Stop},
    files::{FILL_BYTES, WalFile},
    folder::Folder,
    sync::{
        pattern::Pattern,
        way::{Way, Writer},
    },
    sys::buffer::Buffer,
};

use super::group::{Log, Wrote};

/// The segment; the cases of a group take turns with it.
const NAME: &str = "seg-commit";
/// Bytes a write at most.
const WRITE_BYTES: u64 = 1 << 20;
/// Memory alignment that every device's direct I/O takes.
const MEMORY_ALIGN: usize = 4096;

/// See the module docs.
pub(super) struct Segment {
    writer: Writer,
    way: Way,
    commit_bytes: u64,
    file_bytes: u64,
    insert_at: u64,
    content: Buffer,
    written: u64,
    folder: Folder,
}

impl Segment {
    /// Makes the segment, unless another case did, and opens it in the case's way.
    ///
    /// # Errors
    /// Whatever ends the case before it began.
    pub(super) fn open(
        way: Way,
        commit_bytes: u64,
        file_bytes: u64,
        lab: &mut Lab<'_>,
    ) -> Result<Self, Stop> {
        let folder = lab.scratch()?.folder()?;
        match WalFile::open(&folder, NAME, rustix::fs::OFlags::empty()) {
            Ok(_) => {}
            Err(fault) if fault.errno == Errno::NOENT.raw_os_error() => {
                lab.hooks.charge(file_bytes)?;
                if let Err(fault) = make(&folder, file_bytes, lab.pulse) {
                    // The next case must not take half a segment for a whole one.
                    let _ = folder.unlink(NAME);
                    return Err(fault.into());
                }
            }
            Err(fault) => return Err(fault.into()),
        }
        let writer = WalFile::open(&folder, NAME, way.flags())
            .and_then(|file| Writer::new(file, way))
            .map_err(|fault| way.refused(fault))?;
        let mut content = Buffer::new(WRITE_BYTES.min(file_bytes) as usize, MEMORY_ALIGN);
        content.fill_incompressible(lab.request.seed);
        Ok(Self {
            writer,
            way,
            commit_bytes,
            file_bytes,
            insert_at: 0,
            content,
            written: 0,
            folder,
        })
    }

    /// Removes the file, unless another case did.
    ///
    /// # Errors
    /// The call that failed.
    pub(super) fn remove(&self) -> Result<(), Fault> {
        match self.folder.unlink(NAME) {
            Err(fault) if fault.errno != Errno::NOENT.raw_os_error() => Err(fault),
            _ => Ok(()),
        }
    }
}

fn make(folder: &Folder, bytes: u64, pulse: &Pulse) -> Result<(), Fault> {
    let file = WalFile::create(folder, NAME)?;
    file.zero_fill(bytes, &vec![0; FILL_BYTES as usize], pulse)?;
    file.fsync()
}

impl Log for Segment {
    fn write(&mut self, records: u64) -> Result<Wrote, Fault> {
        let group = Pattern::Commit {
            bytes: records * self.commit_bytes,
        };
        let (mut offset, length) = group.next(&mut self.insert_at, self.file_bytes);
        let end = offset + length;
        let mut writes = 0;
        self.written += 1;
        self.content.stamp(self.written);
        while offset < end {
            let part = (end - offset).min(self.content.len() as u64);
            self.writer.write(&self.content[..part as usize], offset)?;
            offset += part;
            writes += 1;
        }
        Ok(Wrote {
            bytes: length,
            syncs: self.way.syncs(writes),
        })
    }

    fn sync(&mut self) -> Result<(), Fault> {
        self.writer.sync().map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(folder: &Folder, commit_bytes: u64) -> Segment {
        const BYTES: u64 = 256 << 10;
        make(folder, BYTES, &Pulse::default()).unwrap();
        let way = Way::parse("fdatasync").unwrap();
        let file = WalFile::open(folder, NAME, way.flags()).unwrap();
        let mut content = Buffer::new(32 << 10, MEMORY_ALIGN);
        content.fill_incompressible(7);
        Segment {
            writer: Writer::new(file, way).unwrap(),
            way,
            commit_bytes,
            file_bytes: BYTES,
            insert_at: 0,
            content,
            written: 0,
            folder: folder.folder().unwrap(),
        }
    }

    fn folder(dir: &tempfile::TempDir) -> Folder {
        Folder::of_test(std::fs::File::open(dir.path()).unwrap().into())
    }

    #[test]
    fn a_group_is_written_in_whole_pages_from_its_first_records_page() {
        let dir = tempfile::tempdir().unwrap();
        let mut segment = segment(&folder(&dir), 512);
        let mut bytes = |records| segment.write(records).unwrap();
        assert_eq!((bytes(1).bytes, bytes(15).bytes), (8192, 8192));
        // The page is full; the next group begins in the next one, and goes on into a third.
        assert_eq!(bytes(17).bytes, 2 * 8192);
        assert_eq!(
            bytes(1),
            Wrote {
                bytes: 8192,
                syncs: 1
            }
        );
        assert_eq!(segment.insert_at, 34 * 512);
    }

    #[test]
    fn a_large_group_is_written_in_pieces_and_stays_in_the_segment() {
        let dir = tempfile::tempdir().unwrap();
        let mut segment = segment(&folder(&dir), 60_000);
        for _ in 0..20 {
            assert!(segment.write(3).unwrap().bytes >= 180_000);
            segment.sync().unwrap();
            assert!(segment.insert_at <= segment.file_bytes);
        }
        let length = std::fs::metadata(dir.path().join(NAME)).unwrap().len();
        assert_eq!(length, segment.file_bytes);
        // Each of these writes syncs by itself.
        segment.way = Way::parse("open_datasync").unwrap();
        assert!(segment.write(3).unwrap().syncs >= 180_000 >> 15);
        segment.remove().unwrap();
        segment.remove().unwrap();
    }
}
