//! Is fsync through another descriptor honoured? The server writes WAL in one process and may sync
//! it in another; pg_test_fsync asks the same.

use rustix::fs::OFlags;
use serde_json::{Value, json};

use crate::{
    contract::{Counts, Lab, Observations, Stop, Study},
    engine::lap::Lap,
    files::{PAGE_BYTES, WalFile},
    folder::Folder,
};

use super::{SERIES, WRITES, prepared};

/// Writes through one descriptor and fsync through another, beside both through the same one.
pub(super) struct OtherDescriptor {
    pub(super) folder: Folder,
}

impl Study for OtherDescriptor {
    fn run(
        &mut self,
        lab: &mut Lab<'_>,
        lap: &mut Lap<'_>,
        seen: &mut Observations,
    ) -> Result<(), Stop> {
        let name = "file-descriptor";
        let (writer, mut page) = prepared(&self.folder, name, lab)?;
        let other = WalFile::open(&self.folder, name, OFlags::empty())?;
        let mut moved = [Counts::default(); 2];
        let mut elapsed_ns = [0; 2];
        for (half, syncer) in [&writer, &other].into_iter().enumerate() {
            // The first half is the yardstick, and no figure of this row.
            let through_other = half == 1;
            lap.leg(if through_other { SERIES } else { "" }, 1.0);
            let (before, from_ns) = (lab.counters.read(), lab.clock.now_ns());
            for n in 0..WRITES {
                if lap.interrupted() {
                    return Err(Stop::Interrupted);
                }
                page.stamp(half as u64 * WRITES + n + 1);
                lap.start();
                writer.pwrite_all(&page, n * PAGE_BYTES)?;
                lap.mark("write");
                syncer.fsync()?;
                lap.mark("sync");
                if through_other {
                    lap.done();
                    lap.wrote(PAGE_BYTES);
                    lap.synced(1);
                }
            }
            elapsed_ns[half] = lab.clock.now_ns() - from_ns;
            moved[half] = lab.counters.read().since(&before);
        }
        lap.leg("", 0.0);
        let mut put = |name: &str, value: Value| seen.insert(name.to_owned(), value);
        let mean_us = |ns: u64| json!((ns / WRITES) as f64 / 1e3);
        put("same_mean_us", mean_us(elapsed_ns[0]));
        put("other_mean_us", mean_us(elapsed_ns[1]));
        if lab.counters.has_device() {
            let per_sync = |n: u64| json!((100.0 * n as f64 / WRITES as f64).round() / 100.0);
            put("same_flushes_per_op", per_sync(moved[0].flushes));
            put("other_flushes_per_op", per_sync(moved[1].flushes));
            put("honoured", json!(honoured(&moved[0], &moved[1])));
        }
        drop((writer, other));
        Ok(self.folder.unlink(name)?)
    }
}

/// What was written through one descriptor went to the device, and was flushed there as far as a sync
/// through the same descriptor flushes; nothing is said where that one moves nothing either.
fn honoured(same: &Counts, other: &Counts) -> Option<bool> {
    // One in ten may be seen late, or was merged with another's.
    let enough = |seen: u64, wanted: u64| seen * 10 >= wanted * 9;
    let all = WRITES * PAGE_BYTES;
    if !enough(same.device_bytes_written, all) {
        return None;
    }
    // The same descriptor's fsync may flush twice where the modification time moves.
    let flushes = same.flushes.min(WRITES);
    Some(enough(other.device_bytes_written, all) && enough(other.flushes, flushes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pages: u64, flushes: u64) -> Counts {
        Counts {
            device_bytes_written: pages * PAGE_BYTES,
            flushes,
            ..Counts::default()
        }
    }

    #[test]
    fn bytes_and_flushes_must_both_arrive() {
        let same = counts(WRITES, WRITES + 3);
        assert_eq!(honoured(&same, &counts(WRITES, WRITES)), Some(true));
        assert_eq!(honoured(&same, &counts(0, 0)), Some(false));
        assert_eq!(honoured(&same, &counts(WRITES, 0)), Some(false));
        assert_eq!(honoured(&same, &counts(0, WRITES)), Some(false));
        // Barriers off: no flush either way, and still the bytes tell.
        assert_eq!(honoured(&counts(WRITES, 0), &counts(WRITES, 0)), Some(true));
        assert_eq!(honoured(&counts(0, 0), &counts(0, 0)), None);
    }
}
