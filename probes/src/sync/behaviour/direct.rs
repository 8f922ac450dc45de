//! Does O_DIRECT really pass the page cache by? An open that succeeds proves nothing: a filesystem
//! may take the flag and write through its cache all the same (btrfs for files with checksums).
//!
//! A page that went through the cache is there afterwards, or was there for as long as its writeback
//! took: btrfs throws it out again. So another thread looks on while the writes are made.
//!
//! A filesystem with a cache of its own (ZFS) leaves no page in any case. There the devices tell: what
//! was written past a cache has reached them when the call returns, without a sync.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

use rustix::fs::OFlags;
use serde_json::{Value, json};

use crate::{
    contract::{Lab, Observations, Stop, Study},
    engine::lap::Lap,
    files::{PAGE_BYTES, WalFile},
    folder::Folder,
    sys::{advise, buffer::Buffer, errno, residency, statx},
};

/// Bytes a write: a page of WAL.
pub(crate) const WRITE_BYTES: u64 = PAGE_BYTES;
/// Writes of a pass.
pub(in crate::sync) const WRITES: u64 = 64;
/// What is written.
pub(in crate::sync) const BYTES: u64 = WRITES * WRITE_BYTES;
/// Looks that make "no page was ever there" believable: on average one a write.
const LEAST_LOOKS: u64 = WRITES;
/// Passes until there were that many.
const MOST_PASSES: u64 = 32;
/// A cache that is written back by a timer (ZFS: 5 s) has not begun to when a pass took no longer.
const BEFORE_WRITEBACK_NS: u64 = 2_000_000_000;

/// See the module docs.
pub(in crate::sync) struct DirectReal {
    pub(in crate::sync) folder: Folder,
}

/// What direct writes turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// They pass the page cache by.
    Real,
    /// They go through it.
    Buffered,
    /// Nobody can tell.
    Unknown,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Buffered => "buffered",
            Self::Unknown => "unknown",
        }
    }
}

/// What was seen of the file's pages while it was written directly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Most pages there at a time.
    most: u64,
    /// How often somebody looked.
    looks: u64,
    /// What the devices wrote until the last write returned; none where that cannot be known.
    device_bytes: Option<u64>,
}

/// From the pages that were there after plain writes, and what was seen of direct ones. Where plain
/// writes leave no page, the filesystem has a cache of its own, and the devices must tell.
const fn kind(plain: Option<u64>, direct: Seen) -> Kind {
    match plain {
        None | Some(0) => match direct.device_bytes {
            Some(bytes) if bytes >= BYTES => Kind::Real,
            Some(bytes) if bytes < BYTES / 4 => Kind::Buffered,
            _ => Kind::Unknown,
        },
        Some(_) if direct.most > 0 => Kind::Buffered,
        Some(_) if direct.looks >= LEAST_LOOKS => Kind::Real,
        Some(_) => Kind::Unknown,
    }
}

impl Study for DirectReal {
    fn run(
        &mut self,
        lab: &mut Lab<'_>,
        lap: &mut Lap<'_>,
        seen: &mut Observations,
    ) -> Result<(), Stop> {
        let name = "file-direct";
        let file = WalFile::create_anew(&self.folder, name)?;
        file.zero_fill(BYTES, &vec![0; BYTES as usize], lab.pulse)?;
        file.fsync()?;
        let plain = resident(&file);
        let _ = advise::drop_pages(file.fd(), 0, 0);
        if let Ok(answers) = statx::of_fd(file.fd()) {
            let of = |part: fn((u32, u32)) -> u32| json!(answers.dio_align.map(part));
            seen.insert("statx_dio_mem_align_bytes".to_owned(), of(|a| a.0));
            seen.insert("statx_dio_offset_align_bytes".to_owned(), of(|a| a.1));
        }
        let mut put = |name: &str, value: Value| seen.insert(name.to_owned(), value);
        let mut content = Buffer::new(WRITE_BYTES as usize, WRITE_BYTES as usize);
        content.fill_incompressible(lab.request.seed);
        match write(&self.folder, name, &file, &mut content, lab, lap) {
            Ok(direct) => {
                put("direct", json!(kind(plain, direct).as_str()));
                put("most_resident_pages", json!(direct.most));
                put("looks", json!(direct.looks));
                put("device_bytes", json!(direct.device_bytes));
            }
            Err(Stop::Fault(fault)) => {
                put("direct", json!("refused"));
                put("fails_call", json!(fault.call));
                put("fails_errno", json!(errno::name(fault.errno)));
            }
            Err(stop) => return Err(stop),
        }
        drop(file);
        Ok(self.folder.unlink(name)?)
    }
}

/// Writes the file directly: once so that no page of its making is left, then watched.
fn write(
    folder: &Folder,
    name: &str,
    file: &WalFile,
    content: &mut Buffer,
    lab: &mut Lab<'_>,
    lap: &mut Lap<'_>,
) -> Result<Seen, Stop> {
    let direct = WalFile::open(folder, name, OFlags::DIRECT)?;
    pass(&direct, 0, content, lap)?;
    // Nothing older is on its way to the devices.
    lab.hooks.settle()?;
    let before = lab.counters.read();
    lap.start();
    let known = lab.counters.has_device();
    let (over, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(file, &over, &looks));
        let mut outcome = pass(&direct, 1, content, lap);
        let wrote = lab.counters.read().since(&before).device_bytes_written;
        let in_time = lap.since_mark_ns() < BEFORE_WRITEBACK_NS;
        // On a busy machine the one who looks gets no turn for a while.
        for n in 2..MOST_PASSES {
            if outcome.is_err() || looks.load(Ordering::Relaxed) >= LEAST_LOOKS {
                break;
            }
            outcome = pass(&direct, n, content, lap);
        }
        over.store(true, Ordering::Relaxed);
        let mut seen = watcher.join().unwrap_or_default();
        // What stays need not be caught in the act.
        seen.most = seen.most.max(resident(file).unwrap_or(0));
        seen.device_bytes = (known && in_time).then_some(wrote);
        outcome.map(|()| seen)
    })
}

/// What direct writes to a file turn out to be. It has to be fully written and synced just now, at
/// least [`BYTES`] long; its pages are dropped.
///
/// # Errors
/// The call that failed.
pub(crate) fn watched(
    folder: &Folder,
    name: &str,
    file: &WalFile,
    lab: &mut Lab<'_>,
    lap: &mut Lap<'_>,
) -> Result<Kind, Stop> {
    let plain = resident(file);
    let _ = advise::drop_pages(file.fd(), 0, 0);
    let mut content = Buffer::new(WRITE_BYTES as usize, WRITE_BYTES as usize);
    content.fill_incompressible(lab.request.seed);
    Ok(kind(
        plain,
        write(folder, name, file, &mut content, lab, lap)?,
    ))
}

fn pass(direct: &WalFile, n: u64, content: &mut Buffer, lap: &Lap<'_>) -> Result<(), Stop> {
    for at in 0..WRITES {
        if lap.interrupted() {
            return Err(Stop::Interrupted);
        }
        content.stamp(n * WRITES + at + 1);
        direct.pwrite_all(content, at * WRITE_BYTES)?;
        lap.pulse().beat();
    }
    Ok(())
}

/// Looks at the file's pages until the writes are over.
fn watch(file: &WalFile, over: &AtomicBool, looks: &AtomicU64) -> Seen {
    let mut seen = Seen::default();
    while !over.load(Ordering::Relaxed) {
        let Some(pages) = resident(file) else { break };
        seen.most = seen.most.max(pages);
        seen.looks += 1;
        looks.store(seen.looks, Ordering::Relaxed);
    }
    seen
}

fn resident(file: &WalFile) -> Option<u64> {
    let seen = residency::resident_pages(file.fd(), BYTES).ok()?;
    Some(seen.resident)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seen(most: u64, looks: u64) -> Seen {
        Seen {
            most,
            looks,
            device_bytes: None,
        }
    }

    #[test]
    fn where_no_page_is_kept_the_devices_tell() {
        let wrote = |device_bytes| Seen {
            device_bytes,
            ..seen(0, 1000)
        };
        for plain in [None, Some(0)] {
            assert_eq!(kind(plain, wrote(Some(BYTES + 4096))), Kind::Real);
            assert_eq!(kind(plain, wrote(Some(0))), Kind::Buffered);
            assert_eq!(kind(plain, wrote(Some(BYTES / 2))), Kind::Unknown);
            assert_eq!(kind(plain, wrote(None)), Kind::Unknown);
        }
        // Where pages are kept they decide: a cache may be written through.
        let through = Seen {
            device_bytes: Some(BYTES),
            ..seen(1, 1000)
        };
        assert_eq!(kind(Some(WRITES), through), Kind::Buffered);
    }

    #[test]
    fn a_page_that_was_ever_there_went_through_the_cache() {
        let all = Some(WRITES);
        assert_eq!(kind(all, seen(0, 1000)), Kind::Real);
        assert_eq!(kind(all, seen(1, 1000)), Kind::Buffered);
        assert_eq!(kind(all, seen(WRITES, 1)), Kind::Buffered);
    }

    #[test]
    fn what_cannot_be_asked_is_unknown() {
        // A cache of the filesystem's own: plain writes leave no page either.
        assert_eq!(kind(Some(0), seen(0, 1000)), Kind::Unknown);
        assert_eq!(kind(None, seen(0, 1000)), Kind::Unknown);
        assert_eq!(kind(Some(WRITES), seen(0, 3)), Kind::Unknown);
    }
}
