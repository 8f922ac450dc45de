//! The smallest write that needs no read first: a short sweep of one or two writes a size, and what
//! the filesystem says of itself beside it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    align::{
        ground::{Shape, Shared, settle_where_late, since},
        plan::{self, RECORD, SIZES},
    },
    cache,
    contract::{Case, Lab, Observations, Stop, Study},
    engine::lap::Lap,
    files::WalFile,
    sys::{btrfs, buffer::Buffer},
};

/// From this size on one write has to do.
const LARGE_BYTES: u64 = 256 << 10;

const fn writes(bytes: u64) -> u64 {
    if bytes < LARGE_BYTES { 2 } else { 1 }
}

/// Places that the whole of it takes, and bytes that it writes.
pub(super) const PLACES: u64 = sum(false);
const WRITTEN_BYTES: u64 = sum(true);

const fn sum(bytes: bool) -> u64 {
    let (mut at, mut all) = (0, 0);
    while at < SIZES.len() {
        let size = SIZES[at].1;
        all += writes(size) * if bytes { size } else { 1 };
        at += 1;
    }
    all
}

/// The case.
pub(super) fn case(shape: &Shape) -> Case {
    let mut params = BTreeMap::from_iter(plan::params(shape));
    params.insert("writes", json!(PLACES));
    Case {
        name: RECORD.to_owned(),
        params,
        op_bytes: WRITTEN_BYTES + shape.drop_bytes(PLACES),
        op_syncs: 3,
        ..Case::default()
    }
}

/// What writes of one size made be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tried {
    bytes: u64,
    writes: u64,
    read: u64,
}

impl Tried {
    /// A write to part of a record reads all of it, at least twice the write's own bytes. What is
    /// read besides (a block of the map, another program's read) is far less than half of them.
    const fn reads_first(self) -> bool {
        self.read * 2 >= self.bytes * self.writes
    }
}

/// The smallest size that reads nothing first, nor any larger one; none where the largest does.
/// In order of size.
fn record_bytes(tried: &[Tried]) -> Option<u64> {
    let without = tried.iter().rev().take_while(|t| !t.reads_first());
    without.last().map(|t| t.bytes)
}

/// See the module docs.
pub(super) struct Record {
    ground: Shared,
    written_bytes: u64,
}

impl Record {
    pub(super) fn open(case: &Case, lab: &mut Lab<'_>) -> Result<Self, Stop> {
        Ok(Self {
            ground: Shared::of(case, lab)?,
            written_bytes: case.op_bytes,
        })
    }
}

impl Study for Record {
    fn run(
        &mut self,
        lab: &mut Lab<'_>,
        lap: &mut Lap<'_>,
        seen: &mut Observations,
    ) -> Result<(), Stop> {
        lab.hooks.charge(self.written_bytes)?;
        let mut ground = self.ground.lock();
        let mut tried = Vec::new();
        let mut proof = None;
        for (n, (_, bytes)) in SIZES.into_iter().enumerate() {
            if lap.interrupted() {
                return Err(Stop::Interrupted);
            }
            let mut content = Buffer::new(bytes as usize, 4096);
            content.fill_incompressible(lab.request.seed.wrapping_add(n as u64 + 1));
            let handed = ground.take(writes(bytes), lab)?;
            let file = ground.open()?;
            let before = cache::from_storage(lab);
            for (n, &place) in handed.places.iter().enumerate() {
                content.stamp(n as u64 + 1);
                file.pwrite_all(&content, ground.spot(place, bytes, false, lab))?;
                lap.pulse().beat();
            }
            settle_where_late(lab)?;
            let read = since(before, lab).ok_or_else(|| {
                let why = "nobody counts what is read from storage here".to_owned();
                Stop::Skip("not-proven-cold", why)
            })?;
            tried.push(Tried {
                bytes,
                writes: handed.places.len() as u64,
                read,
            });
            proof = Some(handed.proof);
        }
        let mut put = |name: &str, value: Value| seen.insert(name.to_owned(), value);
        let record = record_bytes(&tried);
        put("record_bytes", json!(record));
        put("read_bytes_by_write_bytes", json!(by_size(&tried)));
        put("metadata_read_bytes", json!(ground.metadata_read()));
        if let Some(proof) = proof {
            put("cold", json!(proof.verdict().as_str()));
            put("cold_hook", json!(proof.hook));
        }
        said(&ground.open()?, record, lab, &mut put)
    }
}

/// What the filesystem says, and whether it is true.
fn said(
    file: &WalFile,
    record: Option<u64>,
    lab: &Lab<'_>,
    put: &mut dyn FnMut(&str, Value) -> Option<Value>,
) -> Result<(), Stop> {
    let blksize = u64::try_from(file.stat()?.st_blksize).ok();
    put("st_blksize_bytes", json!(blksize));
    put("f_bsize_bytes", json!(file.statvfs()?.f_bsize));
    if let Some(bytes) = lab.facts.number("zfs.recordsize_bytes") {
        put("zfs_recordsize_bytes", json!(bytes));
    }
    if let Ok(bytes) = btrfs::sector_bytes(file.fd()) {
        put("btrfs_sector_bytes", json!(bytes));
    }
    let agrees = record.zip(blksize).map(|(record, said)| record == said);
    put("agrees", json!(agrees));
    Ok(())
}

/// Bytes read for each write of a size, as `512:4096 1024:4096`.
fn by_size(tried: &[Tried]) -> String {
    let each = tried
        .iter()
        .map(|t| format!("{}:{}", t.bytes, t.read / t.writes.max(1)));
    each.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads for each of two writes, by size from 512 on.
    fn record_of(reads: &[u64]) -> Option<u64> {
        let tried: Vec<Tried> = SIZES
            .iter()
            .zip(reads)
            .map(|(&(_, bytes), read)| Tried {
                bytes,
                writes: 2,
                read: 2 * read,
            })
            .collect();
        record_bytes(&tried)
    }

    #[test]
    fn the_smallest_size_without_a_read_is_the_record() {
        assert_eq!(record_of(&[4096, 4096, 4096, 0, 0, 0]), Some(4096));
        assert_eq!(record_of(&[1024, 0, 0, 0, 0]), Some(1024));
        assert_eq!(record_of(&[0; 12]), Some(512));
        let large = [131_072; 8];
        assert_eq!(record_of(&[&large[..], &[0; 4]].concat()), Some(131_072));
        assert_eq!(record_of(&[1 << 21; 12]), None);
    }

    #[test]
    fn what_is_read_besides_makes_no_record() {
        // A block of the map beside each write of a size that is a record and more.
        let data = [8192, 8192, 8192, 8192, 0, 0, 0];
        let besides = data.map(|read| read + 2048);
        assert_eq!(record_of(&besides), Some(8192));
        // A size that reads nothing below one that does is no record.
        assert_eq!(record_of(&[0, 4096, 4096, 0, 0]), Some(4096));
    }

    #[test]
    fn all_places_and_bytes_are_counted() {
        assert_eq!(PLACES, 9 * 2 + 3);
        let (small, large) = (512 * 511, 7 * LARGE_BYTES);
        assert_eq!(WRITTEN_BYTES, 2 * small + large);
    }
}
