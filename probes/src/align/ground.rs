//! The cold file that all cases write to, its witness, and the places in it.
//!
//! A place is a stretch of [`Shape::stride`] bytes, at least as long as any record, so that no
//! write brings in what another one needs. Each place is handed out once; when they run out, the
//! file is dropped and proven cold anew. One drop serves many cases: where a drop is dear (the
//! export of a pool, a program of the user's) each case could not have its own.
//!
//! What is read for the file's map and for the allocation of new blocks is no part of a write:
//! after each drop the map is walked (SEEK_HOLE) and one whole place that nobody else gets is
//! written over, and what that reads is told apart.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::{Advice, OFlags, SeekFrom, seek};

use crate::{
    align::number,
    cache::{self, Pair},
    contract::{Case, Lab, Stop},
    facts::{Facts, Family, family},
    files::WalFile,
    folder::Folder,
    report::{Cold, ColdProof},
    sys::buffer::Buffer,
};

const FILE: &str = "file-align";
const WITNESS: &str = "witness-align";
/// No record is larger, unless the filesystem says so.
const LEAST_STRIDE: u64 = 1 << 20;
/// Enough for the witness's scattered reads.
const WITNESS_BYTES: u64 = 2 << 20;
/// The file is not larger than this, unless three places are.
const MOST_BYTES: u64 = 64 << 20;

/// How large the file is and how it is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Length of a place.
    pub(super) stride: u64,
    /// Places to write to; one more is kept for the filesystem's own reads.
    pub(super) places: u64,
}

impl Shape {
    /// For so many places between two drops, fewer where they are long.
    pub(super) fn new(places: u64, facts: &Facts) -> Self {
        let record = facts.number("zfs.recordsize_bytes").unwrap_or(0);
        let stride = LEAST_STRIDE.max(record);
        let most = (MOST_BYTES / stride).saturating_sub(1).max(2);
        Self {
            stride,
            places: places.clamp(1, most),
        }
    }

    fn of(case: &Case) -> Self {
        Self {
            stride: number(case, "stride_bytes").max(1),
            places: number(case, "places").max(1),
        }
    }

    const fn bytes(&self) -> u64 {
        self.stride * (self.places + 1)
    }

    fn witness_bytes(&self) -> u64 {
        WITNESS_BYTES.max(self.stride)
    }

    /// The file and its witness.
    pub(super) fn all_bytes(&self) -> u64 {
        self.bytes() + self.witness_bytes()
    }

    /// What handing out so many places costs besides the writes: their part of a drop.
    pub(super) const fn drop_bytes(&self, places: u64) -> u64 {
        self.stride * places / self.places
    }
}

/// The file, made once and removed with its last user.
pub(super) struct Ground {
    folder: Folder,
    shape: Shape,
    /// A place's worth of content.
    content: Buffer,
    written: u64,
    /// Places not handed out since the last drop.
    left: Vec<u64>,
    proof: ColdProof,
    /// Why no drop can be had; it is not tried again.
    refused: Option<Stop>,
    metadata_read: Option<u64>,
}

/// One ground, many users.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<Ground>>);

/// Places that are cold, and the proof.
pub(super) struct Handed {
    /// Where each begins.
    pub(super) places: Vec<u64>,
    /// Of the drop that they come from.
    pub(super) proof: ColdProof,
}

type Known = (String, Weak<Mutex<Ground>>);

/// The grounds in use, by scratch folder: a probe has no other way to share among its cases.
static GROUNDS: Mutex<Vec<Known>> = Mutex::new(Vec::new());

impl Shared {
    /// The run's ground, made by the first case that asks.
    pub(super) fn of(case: &Case, lab: &mut Lab<'_>) -> Result<Self, Stop> {
        let kind = lab.facts.text("fs.type").unwrap_or("");
        if family(kind) == Family::Memory {
            let why = format!(
                "{kind} keeps its files in memory: there is no storage that a write could read first"
            );
            return Err(Stop::Skip("filesystem", why));
        }
        let key = lab.scratch()?.path.clone();
        let mut grounds = GROUNDS.lock().unwrap_or_else(PoisonError::into_inner);
        grounds.retain(|(_, ground)| ground.strong_count() > 0);
        let known = grounds.iter().find(|(path, _)| *path == key);
        if let Some(ground) = known.and_then(|(_, ground)| ground.upgrade()) {
            return Ok(Self(ground));
        }
        let ground = Arc::new(Mutex::new(Ground::make(Shape::of(case), lab)?));
        grounds.push((key, Arc::downgrade(&ground)));
        Ok(Self(ground))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Ground> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ground {
    fn make(shape: Shape, lab: &mut Lab<'_>) -> Result<Self, Stop> {
        lab.hooks.charge(shape.all_bytes())?;
        let mut content = Buffer::new(shape.stride as usize, 4096);
        content.fill_incompressible(lab.request.seed);
        let mut ground = Self {
            folder: lab.scratch()?.folder()?,
            shape,
            content,
            written: 0,
            left: Vec::new(),
            proof: ColdProof::default(),
            refused: None,
            metadata_read: None,
        };
        // From here on the ground removes what it made, whole or not.
        ground.fill(FILE, shape.bytes(), lab)?;
        ground.fill(WITNESS, shape.witness_bytes(), lab)?;
        lab.hooks.settle()?;
        Ok(ground)
    }

    /// Writes a file whole, in writes as long as a place.
    fn fill(&mut self, name: &str, bytes: u64, lab: &Lab<'_>) -> Result<(), Stop> {
        let file = WalFile::create(&self.folder, name)?;
        for n in 0..bytes / self.shape.stride {
            if lab.pulse.stopped() {
                return Err(Stop::Interrupted);
            }
            self.rewrite(&file, n * self.shape.stride)?;
            lab.pulse.beat();
        }
        Ok(file.fsync()?)
    }

    /// Writes one whole place.
    fn rewrite(&mut self, file: &WalFile, place: u64) -> Result<(), Stop> {
        self.written += 1;
        self.content.stamp(self.written);
        Ok(file.pwrite_all(&self.content, place)?)
    }

    /// `count` places that are cold; fewer where the file has fewer. No proof, no places.
    pub(super) fn take(&mut self, count: u64, lab: &mut Lab<'_>) -> Result<Handed, Stop> {
        if let Some(stop) = &self.refused {
            return Err(stop.clone());
        }
        let count = count.min(self.shape.places) as usize;
        if self.left.len() < count {
            self.left.clear();
            if let Err(stop) = self.drop_and_prove(lab) {
                if matches!(stop, Stop::Skip(..)) {
                    self.refused = Some(stop.clone());
                }
                return Err(stop);
            }
        }
        Ok(Handed {
            places: self.left.split_off(self.left.len() - count),
            proof: self.proof.clone(),
        })
    }

    fn drop_and_prove(&mut self, lab: &mut Lab<'_>) -> Result<(), Stop> {
        let pair = Pair {
            file: FILE,
            witness: WITNESS,
            bytes: self.shape.bytes(),
            lived_bytes: self.shape.witness_bytes(),
        };
        let hook = cache::hook(lab.request.drop_caches);
        let proof = cache::drop_and_prove(&self.folder, pair, hook, lab)?;
        if proof.verdict() != Cold::Proven {
            return Err(Stop::Skip("not-proven-cold", why_not(&proof)));
        }
        self.proof = proof;
        self.read_metadata(lab)?;
        self.left = (1..=self.shape.places)
            .map(|n| n * self.shape.stride)
            .collect();
        lab.rng.shuffle(&mut self.left);
        Ok(())
    }

    /// Has the filesystem read what it needs besides data.
    fn read_metadata(&mut self, lab: &mut Lab<'_>) -> Result<(), Stop> {
        let before = cache::from_storage(lab);
        let file = self.open()?;
        // Where there is no SEEK_HOLE the map is read by the writes, and counted with them.
        match seek(file.fd(), SeekFrom::Hole(0)) {
            Ok(_) => {}
            Err(e) if crate::sys::errno::is_unsupported(e.raw_os_error()) => {}
            Err(rustix::io::Errno::INVAL) => {}
            Err(e) => return Err(file.fault("lseek", e.raw_os_error()).into()),
        }
        self.rewrite(&file, 0)?;
        lab.pulse.beat();
        lab.hooks.settle()?;
        self.metadata_read = since(before, lab);
        Ok(())
    }

    /// The file, read-ahead off.
    pub(super) fn open(&self) -> Result<WalFile, Stop> {
        let file = WalFile::open(&self.folder, FILE, OFlags::empty())?;
        file.advise(Advice::Random)?;
        Ok(file)
    }

    /// Somewhere in a place: at a multiple of `bytes`, or at an odd byte.
    pub(super) fn spot(&self, place: u64, bytes: u64, odd: bool, lab: &mut Lab<'_>) -> u64 {
        let stride = self.shape.stride;
        let within = if odd {
            lab.rng.u64(0..stride - bytes) | 1
        } else {
            lab.rng.u64(0..stride / bytes) * bytes
        };
        place + within
    }

    /// Bytes that the filesystem's own needs made the last drop read.
    pub(super) const fn metadata_read(&self) -> Option<u64> {
        self.metadata_read
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        for name in [FILE, WITNESS] {
            // What cannot be removed here, or was never made, is the scratch folder's business.
            let _ = self.folder.unlink(name);
        }
    }
}

/// Bytes read from storage since `before`.
pub(super) fn since(before: Option<u64>, lab: &Lab<'_>) -> Option<u64> {
    Some(cache::from_storage(lab)?.saturating_sub(before?))
}

/// On ZFS part of a write's work is done when its transaction group is: its reads are counted too.
pub(super) fn settle_where_late(lab: &mut Lab<'_>) -> Result<(), Stop> {
    if cache::uses_page_cache(lab.facts) {
        return Ok(());
    }
    lab.hooks.settle().map(|_| ())
}

fn why_not(proof: &ColdProof) -> String {
    let asked = proof.witness_bytes.unwrap_or(0);
    let read = match proof.witness_read_bytes {
        Some(read) => format!("{read} of {asked} bytes of the witness came from storage"),
        None => "nobody counts what is read from storage here".to_owned(),
    };
    let resident = match (proof.resident_pages, proof.pages) {
        (Some(resident), Some(pages)) => format!("{resident} of {pages} pages are in the cache, "),
        _ => String::new(),
    };
    let hook = &proof.hook;
    format!("the file was not shown to be out of the cache ({hook}): {resident}{read}")
}
