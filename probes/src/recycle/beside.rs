//! A reader beside the writer: random reads of a file about as large as the cache, to see what dead
//! WAL in the cache does to everybody else.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::{
    fs::OFlags,
    io::{Errno, ReadWriteFlags},
};
use serde_json::{Value, json};

use crate::{
    contract::{Clock as _, Fault, Lab, Observations, Stop},
    engine::clock::Monotonic,
    facts::Facts,
    files::{FILL_BYTES, PAGE_BYTES, WalFile},
    folder::Folder,
    request::Request,
    stats::histogram::Histogram,
    sys::buffer::{Buffer, stamp},
};

/// The file that is read; the cases of a comparison share it.
const NAME: &str = "file-recycle-reader";
/// The most of the write budget, and of the free space, that the file may take: one part in this.
const SHARE: u64 = 4;
/// Below this a file says nothing of a cache.
const LEAST_BYTES: u64 = 64 << 20;
/// Reads that are needed for a 99th percentile.
const P99_READS: u64 = 1_000;

/// How large the file is: as large as the memory that may hold it, at most a quarter of the write
/// budget and of the free space.
pub(super) fn file_bytes(request: &Request, facts: &Facts) -> u64 {
    let fact = |name: &str| facts.number(name).filter(|n| *n > 0);
    [
        fact("host.memory_bytes"),
        fact("host.cgroup_memory_bytes"),
        fact("fs.free_bytes").map(|n| n / SHARE),
        Some(request.budget_bytes / SHARE),
    ]
    .into_iter()
    .flatten()
    .min()
    .unwrap_or(LEAST_BYTES)
    .max(LEAST_BYTES)
        / FILL_BYTES
        * FILL_BYTES
}

/// The reader's file and what reading it was like.
pub(super) struct Reader {
    folder: Folder,
    file: WalFile,
    bytes: u64,
    rng: fastrand::Rng,
    times: Histogram,
    hits: u64,
    /// The filesystem cannot say whether a page is in the cache.
    blind: bool,
    fault: Option<Fault>,
}

impl Reader {
    /// Makes the file, unless another case did, and reads it into the cache as far as that goes.
    pub(super) fn open(bytes: u64, lab: &mut Lab<'_>) -> Result<Self, Stop> {
        let folder = lab.scratch()?.folder()?;
        let file = match WalFile::open(&folder, NAME, OFlags::empty()) {
            Ok(file) => file,
            Err(fault) if fault.errno == Errno::NOENT.raw_os_error() => make(&folder, bytes, lab)?,
            Err(fault) => return Err(fault.into()),
        };
        Ok(Self {
            folder,
            file,
            bytes,
            rng: lab.rng.fork(),
            times: Histogram::new(),
            hits: 0,
            blind: false,
            fault: None,
        })
    }

    /// Does `work` while a thread reads.
    pub(super) fn beside<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| self.read(&done));
            let outcome = work();
            done.store(true, Ordering::Relaxed);
            outcome
        })
    }

    fn read(&mut self, done: &AtomicBool) {
        let clock = Monotonic::new();
        let mut page = vec![0; PAGE_BYTES as usize];
        while !done.load(Ordering::Relaxed) && self.fault.is_none() {
            let at = self.rng.u64(0..self.bytes / PAGE_BYTES) * PAGE_BYTES;
            let from = clock.now_ns();
            match self.read_cached(&mut page, at) {
                Some(true) => self.hits += 1,
                Some(false) => self.fault = self.file.pread_all(&mut page, at).err(),
                None => {
                    self.blind = true;
                    self.fault = self.file.pread_all(&mut page, at).err();
                }
            }
            self.times.record(clock.now_ns() - from);
        }
    }

    /// Reads a page if it is in the cache; none where the filesystem cannot tell.
    fn read_cached(&self, page: &mut [u8], at: u64) -> Option<bool> {
        if self.blind {
            return None;
        }
        let slices = &mut [std::io::IoSliceMut::new(page)];
        match rustix::io::preadv2(self.file.fd(), slices, at, ReadWriteFlags::NOWAIT) {
            Ok(read) => Some(read as u64 == PAGE_BYTES),
            Err(Errno::AGAIN | Errno::INTR) => Some(false),
            Err(_) => None,
        }
    }

    /// `reader_*`, of all operations so far.
    pub(super) fn observe(&mut self, seen: &mut Observations) -> Result<(), Stop> {
        if let Some(fault) = self.fault.take() {
            return Err(fault.into());
        }
        let reads = self.times.count();
        let us = |quantile: f64| json!(self.times.quantile_ns(quantile) as f64 / 1e3);
        let mut put = |name: &str, value: Value| seen.insert(name.to_owned(), value);
        put("reader_file_bytes", json!(self.bytes));
        put("reader_reads", json!(reads));
        if reads > 0 {
            put("reader_p50_us", us(0.50));
        }
        let enough = reads >= P99_READS;
        put("reader_p99_us", if enough { us(0.99) } else { Value::Null });
        let pct = 100.0 * self.hits as f64 / reads.max(1) as f64;
        let known = !self.blind && reads > 0;
        put(
            "reader_hit_pct",
            if known {
                json!((pct * 100.0).round() / 100.0)
            } else {
                Value::Null
            },
        );
        Ok(())
    }

    /// Removes the file, unless another case did.
    pub(super) fn close(&self) -> Result<(), Stop> {
        match self.folder.unlink(NAME) {
            Err(fault) if fault.errno != Errno::NOENT.raw_os_error() => Err(fault.into()),
            _ => Ok(()),
        }
    }
}

fn make(folder: &Folder, bytes: u64, lab: &mut Lab<'_>) -> Result<WalFile, Stop> {
    lab.hooks.charge(bytes)?;
    let file = WalFile::create(folder, NAME)?;
    let mut content = Buffer::new(FILL_BYTES as usize, 4096);
    content.fill_incompressible(lab.request.seed);
    let mut at = 0;
    while at < bytes {
        if lab.pulse.stopped() {
            return Err(Stop::Interrupted);
        }
        stamp(&mut content, at);
        file.pwrite_all(&content, at)?;
        at += FILL_BYTES;
        lab.pulse.beat();
    }
    file.fsync()?;
    lab.hooks.settle()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Fact;

    fn sized(memory: u64, cgroup: Option<u64>, budget: u64) -> u64 {
        let mut facts = Facts::default();
        let mut put = |name: &str, value: u64| {
            facts.host.insert(
                name.to_owned(),
                Fact {
                    value: json!(value),
                    source: "test".to_owned(),
                    why: None,
                },
            );
        };
        put("host.memory_bytes", memory);
        if let Some(bytes) = cgroup {
            put("host.cgroup_memory_bytes", bytes);
        }
        let request = Request {
            budget_bytes: budget,
            ..Request::default()
        };
        file_bytes(&request, &facts)
    }

    #[test]
    fn the_file_is_as_large_as_the_memory_and_the_budget_allow() {
        assert_eq!(sized(1 << 30, None, 16 << 30), 1 << 30);
        assert_eq!(sized(64 << 30, None, 16 << 30), 4 << 30);
        assert_eq!(sized(64 << 30, Some(256 << 20), 2 << 30), 256 << 20);
        assert_eq!(sized(64 << 30, None, 1 << 20), LEAST_BYTES);
    }
}
