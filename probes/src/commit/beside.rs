//! What else happens on the filesystem while the clients commit: another file is read at random,
//! written in bulk, or fsynced again and again.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use rustix::{
    fs::{Advice, OFlags},
    io::Errno,
};
use serde_json::{Value, json};

use crate::{
    contract::{Case, Clock, Fault, Lab, Observations, Stop},
    files::{FILL_BYTES, PAGE_BYTES, WalFile},
    folder::Folder,
    request::{Beside, Request},
    sys::{buffer::Buffer, errno, sync_range},
};

/// The file; the cases of a group take turns with it.
const NAME: &str = "file-commit-beside";
/// Its size, where the write budget allows it.
const FILE_BYTES: u64 = 64 << 20;
/// The most of the write budget that the file may take: one part in this.
const SHARE: u64 = 16;
/// Bulk writes of a burst: more would only use up the write budget.
const BULK_WRITES: u64 = 8;
/// Pages written before each fsync, as a checkpoint leaves a few of each file.
const FSYNC_PAGES: u64 = 4;
/// Fsyncs of a burst at most.
const FSYNCS: u64 = 64;
/// Reads after which the file is dropped from the page cache again.
const READS_A_DROP: u64 = 256;

/// Size of the file for a request.
pub(super) fn file_bytes(request: &Request) -> u64 {
    let most = request.budget_bytes / SHARE / FILL_BYTES * FILL_BYTES;
    FILE_BYTES.min(most).max(FILL_BYTES)
}

/// Bytes that a neighbour writes in a burst at most.
pub(super) const fn op_bytes(what: Beside) -> u64 {
    match what {
        Beside::Read => 0,
        Beside::Write => BULK_WRITES * FILL_BYTES,
        Beside::Fsync => FSYNCS * FSYNC_PAGES * PAGE_BYTES,
    }
}

/// See the module docs.
pub(super) struct Neighbour {
    what: Beside,
    folder: Folder,
    file: WalFile,
    bytes: u64,
    rng: fastrand::Rng,
    content: Buffer,
    written: u64,
    at: u64,
    calls: u64,
    done_bytes: u64,
    busy_ns: u64,
    elapsed_ns: u64,
    fault: Option<Fault>,
}

impl Neighbour {
    /// The neighbour that a case's `params` name, if any: its file is fully written.
    pub(super) fn of(case: &Case, lab: &mut Lab<'_>) -> Result<Option<Self>, Stop> {
        let name = case.params.get("beside").and_then(Value::as_str);
        let Some(what) = name.and_then(|n| Beside::ALL.into_iter().find(|b| b.as_str() == n))
        else {
            return Ok(None);
        };
        let bytes = file_bytes(lab.request);
        let folder = lab.scratch()?.folder()?;
        let mut content = Buffer::new(FILL_BYTES as usize, 4096);
        content.fill_incompressible(lab.request.seed);
        let file = match WalFile::open(&folder, NAME, OFlags::empty()) {
            Ok(file) => file,
            Err(fault) if fault.errno == Errno::NOENT.raw_os_error() => {
                make(&folder, bytes, &mut content, lab).inspect_err(|_| {
                    // The next case must not take half a file for a whole one.
                    let _ = folder.unlink(NAME);
                })?
            }
            Err(fault) => return Err(fault.into()),
        };
        Ok(Some(Self {
            what,
            folder,
            file,
            bytes,
            rng: lab.rng.fork(),
            content,
            written: bytes,
            at: 0,
            calls: 0,
            done_bytes: 0,
            busy_ns: 0,
            elapsed_ns: 0,
            fault: None,
        }))
    }

    /// Before a block: nothing of the file is in the page cache where it can be dropped.
    pub(super) fn prepare(&self) -> Result<(), Fault> {
        match self.what {
            Beside::Read => self.file.advise(Advice::DontNeed),
            Beside::Write | Beside::Fsync => Ok(()),
        }
    }

    /// Does `work` while a thread uses the file.
    pub(super) fn beside<T>(&mut self, clock: &dyn Clock, work: impl FnOnce() -> T) -> T {
        let done = AtomicBool::new(false);
        let began = clock.now_ns();
        let outcome = thread::scope(|scope| {
            scope.spawn(|| self.load(clock, &done));
            // A panic of the clients' must not leave the neighbour at work for ever.
            let _end = Ends(&done);
            work()
        });
        self.elapsed_ns += clock.now_ns().saturating_sub(began);
        outcome
    }

    fn load(&mut self, clock: &dyn Clock, done: &AtomicBool) {
        let began = clock.now_ns();
        let mut left = match self.what {
            Beside::Read => u64::MAX,
            Beside::Write => BULK_WRITES,
            Beside::Fsync => FSYNCS,
        };
        while left > 0 && self.fault.is_none() && !done.load(Ordering::Relaxed) {
            match self.once() {
                Ok(bytes) => {
                    self.calls += 1;
                    self.done_bytes += bytes;
                }
                Err(fault) => self.fault = Some(fault),
            }
            left -= 1;
        }
        self.busy_ns += clock.now_ns().saturating_sub(began);
    }

    /// One read, one bulk write that is sent on its way, or a few pages and their fsync.
    fn once(&mut self) -> Result<u64, Fault> {
        let page = self.rng.u64(0..self.bytes / PAGE_BYTES) * PAGE_BYTES;
        match self.what {
            Beside::Read => {
                if self.calls.is_multiple_of(READS_A_DROP) {
                    self.file.advise(Advice::DontNeed)?;
                }
                self.file
                    .pread_all(&mut self.content[..PAGE_BYTES as usize], page)?;
                Ok(PAGE_BYTES)
            }
            Beside::Write => {
                self.stamp();
                self.file.pwrite_all(&self.content, self.at)?;
                self.send()?;
                self.at = (self.at + FILL_BYTES) % self.bytes;
                Ok(FILL_BYTES)
            }
            Beside::Fsync => {
                self.stamp();
                for _ in 0..FSYNC_PAGES {
                    let at = self.rng.u64(0..self.bytes / PAGE_BYTES) * PAGE_BYTES;
                    self.file
                        .pwrite_all(&self.content[..PAGE_BYTES as usize], at)?;
                }
                self.file.fsync()?;
                Ok(FSYNC_PAGES * PAGE_BYTES)
            }
        }
    }

    fn stamp(&mut self) {
        self.written += 1;
        self.content.stamp(self.written);
    }

    /// Has what was written go to the device now, as the server does (pg_flush_data); where the
    /// filesystem has no such call, it goes when the kernel sends it.
    fn send(&self) -> Result<(), Fault> {
        match sync_range::write_and_wait(self.file.fd(), self.at, FILL_BYTES) {
            Ok(()) => Ok(()),
            Err(error) => match error.raw_os_error().unwrap_or(libc::EIO) {
                errno if errno::is_unsupported(errno) => Ok(()),
                errno => Err(self.file.fault("sync_file_range", errno)),
            },
        }
    }

    /// The call of its own that failed.
    pub(super) fn fault(&mut self) -> Option<Fault> {
        self.fault.take()
    }

    /// `beside_*`, of all bursts so far.
    pub(super) fn observe(&self, seen: &mut Observations) {
        let mut put = |name: &str, value: Value| seen.insert(name.to_owned(), value);
        put("beside_calls", json!(self.calls));
        put("beside_bytes", json!(self.done_bytes));
        if self.calls > 0 {
            let mean = self.busy_ns as f64 / self.calls as f64 / 1e3;
            put("beside_mean_us", json!((mean * 1e3).round() / 1e3));
        }
        if self.elapsed_ns > 0 {
            let pct = 100.0 * self.busy_ns as f64 / self.elapsed_ns as f64;
            put(
                "beside_busy_pct",
                json!((pct.min(100.0) * 10.0).round() / 10.0),
            );
        }
    }

    /// Removes the file, unless another case did.
    pub(super) fn remove(&self) -> Result<(), Fault> {
        match self.folder.unlink(NAME) {
            Err(fault) if fault.errno != Errno::NOENT.raw_os_error() => Err(fault),
            _ => Ok(()),
        }
    }
}

/// Ends the neighbour's work when it goes.
struct Ends<'d>(&'d AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn make(
    folder: &Folder,
    bytes: u64,
    content: &mut Buffer,
    lab: &mut Lab<'_>,
) -> Result<WalFile, Stop> {
    lab.hooks.charge(bytes)?;
    let file = WalFile::create(folder, NAME)?;
    let mut at = 0;
    while at < bytes {
        if lab.pulse.stopped() {
            return Err(Stop::Interrupted);
        }
        content.stamp(at);
        file.pwrite_all(content, at)?;
        at += FILL_BYTES;
        lab.pulse.beat();
    }
    file.fsync()?;
    Ok(file)
}
