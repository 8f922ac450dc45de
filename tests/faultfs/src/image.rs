//! A file's content twice: as it is, and as an honoured sync has left it.

use std::collections::BTreeSet;

use rustix::io::Errno;

use crate::disk::{BLOCK_BYTES, Disk};

/// No file is longer, since content is kept in memory.
const LONGEST_BYTES: u64 = 1 << 30;

/// A file's content.
#[derive(Debug, Default)]
pub(crate) struct Image {
    live: Vec<u8>,
    /// None until a sync was honoured.
    durable: Option<Vec<u8>>,
    /// Where each block lies.
    places: Vec<Option<u32>>,
    /// Blocks that no honoured sync has seen since they were written.
    dirty: BTreeSet<usize>,
    /// Blocks that were written though there was no room.
    homeless: BTreeSet<usize>,
    /// The shortest that it was since the last honoured sync.
    shortest: usize,
    /// Records in the program's own cache.
    warm: BTreeSet<u64>,
}

impl Image {
    pub(crate) fn len(&self) -> u64 {
        self.live.len() as u64
    }

    pub(crate) fn allocated_bytes(&self) -> u64 {
        self.places.iter().flatten().count() as u64 * BLOCK_BYTES
    }

    /// What a crash would leave.
    pub(crate) fn durable(&self) -> Vec<u8> {
        self.durable.clone().unwrap_or_default()
    }

    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.dirty.len() as u64 * BLOCK_BYTES
    }

    pub(crate) fn is_homeless(&self) -> bool {
        !self.homeless.is_empty()
    }

    /// Nothing of it is in the program's cache any more.
    pub(crate) fn cool(&mut self) {
        self.warm.clear();
    }

    /// Cold records of a range that are on the disk, each with its blocks; they are warm then.
    /// A record that is written whole is not read.
    pub(crate) fn warm_up(
        &mut self,
        at: u64,
        len: u64,
        record_bytes: u64,
        is_write: bool,
    ) -> Vec<Vec<u32>> {
        let end = (at + len).min(if is_write { u64::MAX } else { self.len() });
        if len == 0 || at >= end {
            return Vec::new();
        }
        let mut read = Vec::new();
        for record in at / record_bytes..=(end - 1) / record_bytes {
            let from = record * record_bytes;
            let to = from + record_bytes;
            let is_whole = is_write && at <= from && end >= to.min(self.len().max(from + 1));
            if !self.warm.insert(record) || is_whole {
                continue;
            }
            let first = (from / BLOCK_BYTES) as usize;
            let last = (to.div_ceil(BLOCK_BYTES) as usize).min(self.places.len());
            let on_disk: Vec<u32> = (first..last)
                .filter(|block| !self.dirty.contains(block))
                .filter_map(|block| self.places[block])
                .collect();
            if !on_disk.is_empty() {
                read.push(on_disk);
            }
        }
        read
    }

    pub(crate) fn read(&self, at: u64, len: u64) -> &[u8] {
        let from = at.min(self.len()) as usize;
        let to = at.saturating_add(len).min(self.len()) as usize;
        &self.live[from..to]
    }

    /// Writes; what finds no room is kept without a place if `late`.
    pub(crate) fn write(
        &mut self,
        at: u64,
        data: &[u8],
        disk: &mut Disk,
        late: bool,
    ) -> Result<(), Errno> {
        let end = at + data.len() as u64;
        if end > LONGEST_BYTES {
            return Err(Errno::FBIG);
        }
        self.allocate(at, data.len() as u64, disk, late)?;
        if end > self.len() {
            self.live.resize(end as usize, 0);
        }
        self.live[at as usize..end as usize].copy_from_slice(data);
        self.dirty.extend(blocks(at, data.len() as u64));
        Ok(())
    }

    /// Takes room for a range; of what fails nothing is taken.
    pub(crate) fn allocate(
        &mut self,
        at: u64,
        len: u64,
        disk: &mut Disk,
        late: bool,
    ) -> Result<(), Errno> {
        if at + len > LONGEST_BYTES {
            return Err(Errno::FBIG);
        }
        let range = blocks(at, len);
        if self.places.len() < range.end {
            self.places.resize(range.end, None);
        }
        let missing: Vec<usize> = range
            .filter(|block| self.places[*block].is_none() && !self.homeless.contains(block))
            .collect();
        if missing.len() as u64 > disk.free() && !late {
            return Err(Errno::NOSPC);
        }
        for block in missing {
            self.places[block] = disk.allocate();
            if self.places[block].is_none() {
                self.homeless.insert(block);
            }
        }
        Ok(())
    }

    pub(crate) fn truncate(&mut self, len: u64, disk: &mut Disk) -> Result<(), Errno> {
        if len > LONGEST_BYTES {
            return Err(Errno::FBIG);
        }
        let keep = len.div_ceil(BLOCK_BYTES) as usize;
        if self.places.len() > keep {
            self.places
                .drain(keep..)
                .flatten()
                .for_each(|block| disk.release(block));
        }
        self.live.resize(len as usize, 0);
        self.shortest = self.shortest.min(len as usize);
        self.dirty.retain(|block| *block < keep);
        self.homeless.retain(|block| *block < keep);
        Ok(())
    }

    /// What was written without room is given up: zeros are there.
    pub(crate) fn give_up_homeless(&mut self) {
        for block in std::mem::take(&mut self.homeless) {
            let from = block * BLOCK_BYTES as usize;
            let to = (from + BLOCK_BYTES as usize).min(self.live.len());
            self.live[from..to].fill(0);
            self.dirty.remove(&block);
        }
    }

    /// Makes it durable as it is; with the write to the disk below.
    pub(crate) fn sync(&mut self, disk: &Disk) -> std::io::Result<()> {
        let durable = self.durable.get_or_insert_default();
        durable.truncate(self.shortest);
        self.shortest = self.live.len();
        durable.resize(self.live.len(), 0);
        let mut out = Vec::with_capacity(self.dirty.len());
        for block in std::mem::take(&mut self.dirty) {
            let from = block * BLOCK_BYTES as usize;
            let to = (from + BLOCK_BYTES as usize).min(self.live.len());
            durable[from..to].copy_from_slice(&self.live[from..to]);
            if let Some(place) = self.places[block] {
                out.push((place, &self.live[from..to]));
            }
        }
        disk.write(&out)
    }

    pub(crate) fn release(&mut self, disk: &mut Disk) {
        self.places
            .drain(..)
            .flatten()
            .for_each(|block| disk.release(block));
    }
}

fn blocks(at: u64, len: u64) -> std::ops::Range<usize> {
    let end = (at + len).div_ceil(BLOCK_BYTES);
    (at / BLOCK_BYTES) as usize..end as usize
}
