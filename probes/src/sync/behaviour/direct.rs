//! Does O_DIRECT really pass the page cache by? An open that succeeds proves nothing: a filesystem
//! may take the flag and write through its cache all the same (btrfs for files with checksums).
//!
//! Two signs of a page that went through the cache: it is there afterwards, or it was made dirty
//! meanwhile (`nr_dirtied` of `/proc/vmstat`, which also shows pages that were thrown out again).

use rustix::fs::OFlags;
use serde_json::{Value, json};

use crate::{
    contract::{Lab, Observations, Stop, Study},
    engine::lap::Lap,
    files::WalFile,
    folder::Folder,
    sys::{advise, buffer::Buffer, errno, residency, statx},
};

/// Bytes a write.
const WRITE_BYTES: u64 = 4096;
/// Enough that what the host's processors have not yet added to the counter is a small part.
pub(super) const WRITES: u64 = 1024;
/// What is written.
pub(super) const BYTES: u64 = WRITES * WRITE_BYTES;
/// Others make pages dirty too: the smallest of so many growths counts.
const TRIES: u64 = 3;

/// See the module docs.
pub(super) struct DirectReal {
    pub(super) folder: Folder,
}

/// What direct writes turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Real,
    Buffered,
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

/// The pages there after a plain write, after direct writes, and those made dirty by the latter.
/// Where a plain write leaves no page, the filesystem has a cache of its own that nobody can ask.
fn kind(plain: Option<u64>, direct: Option<u64>, dirtied: Option<u64>) -> Kind {
    let (Some(1..), Some(direct)) = (plain, direct) else {
        return Kind::Unknown;
    };
    if direct > 0 || dirtied.is_some_and(|pages| pages >= WRITES / 2) {
        Kind::Buffered
    } else if dirtied.is_some() {
        Kind::Real
    } else {
        Kind::Unknown
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
        let file = WalFile::create(&self.folder, name)?;
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
        match self.write(name, &mut content, lap) {
            Ok(dirtied) => {
                let resident = resident(&file);
                let kind = kind(plain, resident, dirtied);
                put("direct", json!(kind.as_str()));
                put("write_bytes", json!(WRITE_BYTES));
                put("resident_pages", json!(resident));
                put("dirtied_pages", json!(dirtied));
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

impl DirectReal {
    /// Writes the file directly, several times; the smallest growth of the host's dirtied pages.
    fn write(&self, name: &str, content: &mut Buffer, lap: &Lap<'_>) -> Result<Option<u64>, Stop> {
        let direct = WalFile::open(&self.folder, name, OFlags::DIRECT)?;
        let mut least: Option<u64> = None;
        for n in 0..TRIES {
            let before = dirtied();
            self.pass(&direct, n, content, lap)?;
            let grown = dirtied()
                .zip(before)
                .map(|(now, then)| now.saturating_sub(then));
            least = least.map_or(grown, |least| grown.map(|grown| grown.min(least)));
            if least.is_none_or(|pages| pages < WRITES / 2) {
                break;
            }
        }
        Ok(least)
    }

    fn pass(
        &self,
        direct: &WalFile,
        n: u64,
        content: &mut Buffer,
        lap: &Lap<'_>,
    ) -> Result<(), Stop> {
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
}

fn resident(file: &WalFile) -> Option<u64> {
    let seen = residency::resident_pages(file.fd(), BYTES).ok()?;
    Some(seen.resident)
}

/// Pages that the host has made dirty since it started.
fn dirtied() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/vmstat").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("nr_dirtied "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_stay_or_were_dirty_went_through_the_cache() {
        let all = Some(WRITES);
        assert_eq!(kind(all, Some(0), Some(3)), Kind::Real);
        assert_eq!(kind(all, all, Some(3)), Kind::Buffered);
        assert_eq!(kind(all, Some(0), all), Kind::Buffered);
    }

    #[test]
    fn what_cannot_be_asked_is_unknown() {
        // A cache of the filesystem's own: plain writes leave no page either.
        assert_eq!(kind(Some(0), Some(0), Some(0)), Kind::Unknown);
        assert_eq!(kind(None, None, Some(0)), Kind::Unknown);
        assert_eq!(kind(Some(WRITES), Some(0), None), Kind::Unknown);
    }

    #[test]
    fn a_plain_write_makes_pages_dirty() {
        let Some(before) = dirtied() else {
            eprintln!("skipped: no /proc/vmstat here");
            return;
        };
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x"), vec![1; BYTES as usize]).unwrap();
        let grown = dirtied().unwrap() - before;
        // tmpfs does not count its pages as dirtied.
        let tmpfs = rustix::fs::statfs(dir.path()).unwrap().f_type == 0x0102_1994;
        assert!(tmpfs || grown >= WRITES / 2, "{grown}");
    }
}
