//! The log on the target: a fully written segment, walked as XLogWrite does.
//!
//! A group's records are written in whole 8 KiB pages, from the page in which the first of them
//! begins; the tail page is written again with the next group. Where the segment ends it is begun
//! again, as the next one.

use rustix::io::Errno;

use crate::{
    contract::{Fault, Lab, Stop},
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
                let file = WalFile::create(&folder, NAME)?;
                file.zero_fill(file_bytes, &vec![0; FILL_BYTES as usize], lab.pulse)?;
                file.fsync()?;
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
