//! The proof: residency of the file, device reads of its witness.
//!
//! Data and metadata are told apart. That metadata was cold is claimed only where it was seen to
//! be read again: between the drop and the witness's first byte something was read from storage
//! that is no file's data. Nothing read is no proof of the contrary, since inodes share blocks.

use rustix::fs::{Advice, OFlags};

use super::Pair;
use crate::{
    contract::{Lab, Stop},
    facts::{Facts, Family, family},
    files::{PAGE_BYTES, WalFile},
    folder::Folder,
    report::ColdProof,
    sys::residency,
};

/// At most this share of a cold file's pages is resident.
const RESIDENT_PCT: f64 = 1.0;
/// At least this share of the witness's bytes comes from a device.
const WITNESS_PCT: f64 = 90.0;
/// Scattered reads of the witness, a page each.
const WITNESS_READS: u64 = 32;
/// The page cache's unit, in which small files are read whole.
const CACHE_PAGE_BYTES: u64 = 4096;

/// The moment after a drop.
#[derive(Clone, Copy, Debug)]
pub(super) struct After {
    /// What this process had caused to be read from storage.
    own_bytes_read: u64,
    /// File data that was read since, at most.
    data_bytes: u64,
}

impl After {
    pub(super) fn now(lab: &Lab<'_>) -> Self {
        Self {
            own_bytes_read: lab.counters.read().own_bytes_read,
            data_bytes: 0,
        }
    }

    /// File data was read that is not to be taken for metadata.
    pub(super) const fn own_data(&mut self, bytes: u64) {
        self.data_bytes += bytes.next_multiple_of(CACHE_PAGE_BYTES);
    }
}

pub(super) fn prove(
    folder: &Folder,
    pair: Pair<'_>,
    hook: &str,
    after: After,
    lab: &mut Lab<'_>,
) -> Result<ColdProof, Stop> {
    let page_cache = uses_page_cache(lab.facts);
    // Before anything else is opened: a neighbour's inode brings this one's block in.
    let witness = WalFile::open(folder, pair.witness, OFlags::empty())?;
    let opening = lab.counters.read().own_bytes_read;
    let metadata_read = opening.saturating_sub(after.own_bytes_read) > after.data_bytes;
    let mut proof = ColdProof {
        hook: hook.to_owned(),
        // ZFS counts what is read from its own cache as read from storage.
        metadata: if page_cache && metadata_read {
            "cold"
        } else {
            "unknown"
        }
        .to_owned(),
        ..ColdProof::default()
    };
    let mut stands = Vec::new();
    if page_cache {
        let file = WalFile::open(folder, pair.file, OFlags::empty())?;
        if let Ok(r) = residency::resident_pages(file.fd(), pair.bytes) {
            proof.resident_pages = Some(r.resident);
            proof.pages = Some(r.pages);
            proof.residency_by = Some(r.by.to_owned());
            stands.push(r.resident as f64 * 100.0 <= RESIDENT_PCT * r.pages as f64);
        }
    }
    let (asked, read) = read_witness(&witness, pair.lived_bytes, lab)?;
    proof.witness_bytes = Some(asked);
    proof.witness_read_bytes = read;
    if let Some(read) = read {
        stands.push(read as f64 * 100.0 >= WITNESS_PCT * asked as f64);
    }
    proof.data = if read.is_none() && stands.iter().all(|s| *s) {
        "unknown"
    } else if stands.iter().all(|s| *s) {
        "cold"
    } else {
        "not-cold"
    }
    .to_owned();
    Ok(proof)
}

/// Reads pages of the witness in random order, read-ahead off; tells bytes asked for, and bytes
/// that came from storage where they are counted.
fn read_witness(file: &WalFile, bytes: u64, lab: &mut Lab<'_>) -> Result<(u64, Option<u64>), Stop> {
    file.advise(Advice::Random)?;
    let slots = (bytes / PAGE_BYTES).max(1);
    let stride = (slots / WITNESS_READS).max(1);
    let mut places: Vec<u64> = (0..WITNESS_READS.min(slots))
        .map(|n| (n * stride + lab.rng.u64(0..stride)) * PAGE_BYTES)
        .collect();
    lab.rng.shuffle(&mut places);
    let mut page = vec![0; PAGE_BYTES as usize];
    let before = from_storage(lab);
    for &at in &places {
        file.pread_all(&mut page, at)?;
        lab.pulse.beat();
    }
    let read = from_storage(lab)
        .zip(before)
        .map(|(now, before)| now.saturating_sub(before));
    Ok((places.len() as u64 * PAGE_BYTES, read))
}

/// Bytes that this process caused to be read from storage. ZFS counts there what its own cache
/// gave too, and a user-space filesystem nothing: the devices' reads decide, and where they are
/// not known nothing does.
pub(crate) fn from_storage(lab: &Lab<'_>) -> Option<u64> {
    let counts = lab.counters.read();
    if counts_own_reads(lab.facts) {
        Some(counts.own_bytes_read)
    } else {
        lab.counters
            .has_device()
            .then_some(counts.device_bytes_read)
    }
}

/// The kernel charges a process what is read for it, as filesystems submit it. What a program
/// reads for others is charged to that program.
fn counts_own_reads(facts: &Facts) -> bool {
    let kind = facts.text("fs.type").unwrap_or_default();
    uses_page_cache(facts) && family(kind) != Family::UserSpace
}

/// On ZFS the page cache holds no file data that was read by read(2), so residency proves nothing.
pub(crate) fn uses_page_cache(facts: &Facts) -> bool {
    facts.text("fs.type") != Some("zfs")
}
