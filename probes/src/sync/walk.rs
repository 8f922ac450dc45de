//! One case of writes made durable: the writes its pattern says, in its way.

use crate::{
    contract::{Case, Fault, Lab, Stop, Trial},
    engine::lap::Lap,
    files::{FILL_BYTES, WalFile},
    folder::Folder,
    sys::buffer::Buffer,
};

use super::{
    pattern::Pattern,
    way::{Way, Writer},
};

/// Memory alignment that every device's direct I/O takes.
const MEMORY_ALIGN: usize = 4096;

/// See the module docs.
pub(super) struct Walk {
    /// None once it is closed.
    writer: Option<Writer>,
    way: Way,
    pattern: Pattern,
    folder: Folder,
    name: String,
    file_bytes: u64,
    insert_at: u64,
    content: Buffer,
    written: u64,
}

impl Walk {
    /// Makes the file, fully written and synced, and opens it in the case's way.
    ///
    /// # Errors
    /// Whatever ends the case before it began.
    pub(super) fn open(
        case: &Case,
        way: Way,
        pattern: Pattern,
        lab: &mut Lab<'_>,
    ) -> Result<Self, Stop> {
        let file_bytes = case.file_bytes;
        lab.hooks.charge(file_bytes)?;
        let folder = lab.scratch()?.folder()?;
        let name = format!("seg-sync-{}", case.name);
        if let Err(fault) = make(&folder, &name, file_bytes, lab) {
            // The next case needs the room; the fault that counts is the first.
            let _ = folder.unlink(&name);
            return Err(fault.into());
        }
        let mut content = Buffer::new(pattern.most_bytes() as usize, MEMORY_ALIGN);
        content.fill_incompressible(lab.request.seed);
        let mut writer = WalFile::open(&folder, &name, way.flags())
            .and_then(|file| Writer::new(file, way))
            .map_err(|fault| way.refused(fault))?;
        if way.may_be_missing() {
            let mut at = 0;
            let (offset, length) = pattern.next(&mut at, file_bytes);
            writer
                .write(&content[..length as usize], offset)
                .map_err(|fault| way.refused(fault))?;
        }
        Ok(Self {
            writer: Some(writer),
            way,
            pattern,
            folder,
            name,
            file_bytes,
            insert_at: 0,
            content,
            written: 0,
        })
    }
}

/// Fully written and synced.
fn make(folder: &Folder, name: &str, bytes: u64, lab: &Lab<'_>) -> Result<(), Fault> {
    let file = WalFile::create_anew(folder, name)?;
    file.zero_fill(bytes, &vec![0; FILL_BYTES as usize], lab.pulse)?;
    file.fsync()?;
    file.close()
}

impl Trial for Walk {
    fn op(&mut self, lap: &mut Lap<'_>) -> Result<(), Fault> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        let (offset, length) = self.pattern.next(&mut self.insert_at, self.file_bytes);
        let writes = self.pattern.writes();
        let all = length * writes;
        self.written += 1;
        self.content.stamp(self.written);
        lap.leg("commit", 1.0);
        lap.start();
        let calls = self.content[..all as usize].chunks_exact(length as usize);
        for (call, data) in (0..).zip(calls) {
            writer.write(data, offset + call * length)?;
        }
        lap.mark("write");
        if writer.sync()? {
            lap.mark("sync");
        }
        lap.done();
        lap.wal(self.pattern.wal_bytes());
        lap.wrote(all);
        lap.synced(self.way.syncs(writes));
        Ok(())
    }

    fn close(&mut self, _lab: &mut Lab<'_>) -> Result<(), Stop> {
        let closed = self.writer.take().map_or(Ok(()), Writer::close);
        self.folder.unlink(&self.name)?;
        Ok(closed?)
    }
}
