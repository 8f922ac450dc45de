//! Cache-drop hooks, and the proof that a file is cold.
//!
//! A claim of cold rests on two things, both asked before the operation: how much of the file is
//! resident in the page cache (cachestat(2) or mincore(2)), and whether scattered reads of a
//! *witness* come from the device. The witness is a sister file made the same way, dropped by the
//! same call and not opened since. Without a proof there is no claim. What an operation itself
//! reads is a result, never a ground.

use rustix::fs::{Advice, OFlags};

use crate::{
    contract::{Lab, Stop},
    facts::Facts,
    files::{PAGE_BYTES, WalFile},
    folder::Folder,
    pause,
    report::ColdProof,
    request::DropCaches,
    sys::residency,
};

/// At most this share of a cold file's pages is resident.
const RESIDENT_PCT: f64 = 1.0;
/// At least this share of the witness's bytes comes from a device.
const WITNESS_PCT: f64 = 90.0;
/// Scattered reads of the witness, a page each.
const WITNESS_READS: u64 = 32;
/// A page may be held for a moment by somebody else: the drop is tried again.
const DROPS: usize = 3;

/// A file that is to be cold, and its witness.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The file that will be overwritten.
    pub file: &'a str,
    /// Its sister.
    pub witness: &'a str,
    /// Size of each.
    pub bytes: u64,
}

/// The hook that a request comes down to.
#[must_use]
pub const fn hook(asked: DropCaches) -> DropCaches {
    match asked {
        DropCaches::Auto | DropCaches::Fadvise => DropCaches::Fadvise,
        DropCaches::None => DropCaches::None,
    }
}

/// Drops the pair by `hook` and proves what came of it.
///
/// # Errors
/// The call that failed.
pub fn drop_and_prove(
    folder: &Folder,
    pair: Pair<'_>,
    hook: DropCaches,
    lab: &mut Lab<'_>,
) -> Result<ColdProof, Stop> {
    if hook == DropCaches::Fadvise {
        for _ in 0..DROPS {
            for name in [pair.file, pair.witness] {
                let file = WalFile::open(folder, name, OFlags::empty())?;
                // Dirty pages are not dropped.
                file.fsync()?;
                file.advise(Advice::DontNeed)?;
                pause::here("dropping");
                lab.pulse.beat();
            }
            let file = WalFile::open(folder, pair.file, OFlags::empty())?;
            if residency::resident_pages(file.fd(), pair.bytes).is_ok_and(|r| r.resident == 0) {
                break;
            }
        }
    }
    prove(folder, pair, hook, lab)
}

fn prove(
    folder: &Folder,
    pair: Pair<'_>,
    hook: DropCaches,
    lab: &mut Lab<'_>,
) -> Result<ColdProof, Stop> {
    let mut proof = ColdProof {
        hook: hook.as_str().to_owned(),
        metadata: "unknown".to_owned(),
        ..ColdProof::default()
    };
    let mut stands = Vec::new();
    if uses_page_cache(lab.facts) {
        let file = WalFile::open(folder, pair.file, OFlags::empty())?;
        if let Ok(r) = residency::resident_pages(file.fd(), pair.bytes) {
            proof.resident_pages = Some(r.resident);
            proof.pages = Some(r.pages);
            proof.residency_by = Some(r.by.to_owned());
            stands.push(r.resident as f64 * 100.0 <= RESIDENT_PCT * r.pages as f64);
        }
    }
    let (asked, read) = read_witness(folder, pair, lab)?;
    proof.witness_bytes = Some(asked);
    proof.witness_read_bytes = Some(read);
    let witnessed = read as f64 * 100.0 >= WITNESS_PCT * asked as f64;
    stands.push(witnessed);
    proof.data = if stands.iter().all(|s| *s) {
        "cold"
    } else {
        "not-cold"
    }
    .to_owned();
    Ok(proof)
}

/// Reads pages of the witness in random order, read-ahead off; tells bytes asked for and bytes that
/// this process caused to be read from storage.
fn read_witness(folder: &Folder, pair: Pair<'_>, lab: &mut Lab<'_>) -> Result<(u64, u64), Stop> {
    let file = WalFile::open(folder, pair.witness, OFlags::empty())?;
    file.advise(Advice::Random)?;
    let slots = (pair.bytes / PAGE_BYTES).max(1);
    let stride = (slots / WITNESS_READS).max(1);
    let mut places: Vec<u64> = (0..WITNESS_READS.min(slots))
        .map(|n| (n * stride + lab.rng.u64(0..stride)) * PAGE_BYTES)
        .collect();
    lab.rng.shuffle(&mut places);
    let mut page = vec![0; PAGE_BYTES as usize];
    let before = lab.counters.read().own_bytes_read;
    for &at in &places {
        file.pread_all(&mut page, at)?;
        lab.pulse.beat();
    }
    let read = lab.counters.read().own_bytes_read - before;
    Ok((places.len() as u64 * PAGE_BYTES, read))
}

/// On ZFS the page cache holds no file data that was read by read(2), so residency proves nothing.
fn uses_page_cache(facts: &Facts) -> bool {
    facts.text("fs.type") != Some("zfs")
}

/// Reads the whole file, so that it is warm; tells the resident share, where it can be asked.
///
/// # Errors
/// The call that failed.
pub fn warm(folder: &Folder, name: &str, bytes: u64, lab: &Lab<'_>) -> Result<Option<f64>, Stop> {
    let file = WalFile::open(folder, name, OFlags::empty())?;
    let mut piece = vec![0; crate::files::FILL_BYTES.min(bytes) as usize];
    let mut at = 0;
    while at < bytes {
        let part = (bytes - at).min(piece.len() as u64) as usize;
        file.pread_all(&mut piece[..part], at)?;
        at += part as u64;
        lab.pulse.beat();
    }
    if !uses_page_cache(lab.facts) {
        return Ok(None);
    }
    Ok(residency::resident_pages(file.fd(), bytes)
        .ok()
        .map(|r| 100.0 * r.resident as f64 / r.pages.max(1) as f64))
}
