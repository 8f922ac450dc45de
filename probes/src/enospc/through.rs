//! Segments that were prepared are written through on the full disk, commit by commit; and what was
//! acknowledged is read back.

use rustix::{
    fs::{Advice, OFlags},
    io::Errno,
};

use crate::{
    contract::{Fault, Lab, Stop},
    files::{PAGE_BYTES, WalFile},
    folder::Folder,
    sys::{
        buffer::{Buffer, stamp},
        errno,
    },
};

/// A page of a commit that was acknowledged.
#[derive(Clone, Copy, Debug)]
struct Acked {
    segment: usize,
    offset: u64,
    counter: u64,
}

/// The first call that failed.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) fault: Fault,
    /// Its place in what was to be written, all segments one after another.
    pub(super) at_bytes: u64,
    /// What the next sync of the same descriptor said; none where there was no descriptor any more.
    pub(super) second_sync: Option<String>,
}

/// The outcome of a call as the report has it: `ok`, or the errno's name.
pub(super) fn answer<T>(outcome: &Result<T, Fault>) -> String {
    match outcome {
        Ok(_) => "ok".to_owned(),
        Err(fault) => errno::name(fault.errno),
    }
}

/// Writes segments in commits whose content is known.
pub(super) struct Writer {
    page: Buffer,
    counter: u64,
    segment_bytes: u64,
    acked: Vec<Acked>,
    commits: u64,
    commit_bytes: u64,
}

impl Writer {
    /// A writer of `commit_bytes`, whole pages, between two syncs.
    pub(super) fn new(segment_bytes: u64, commit_bytes: u64, seed: u64) -> Self {
        // Eight writes a commit.
        let unit = (commit_bytes / 8)
            .next_multiple_of(PAGE_BYTES)
            .max(PAGE_BYTES);
        let mut page = Buffer::new(unit as usize, 4096);
        page.fill_incompressible(seed);
        Self {
            page,
            counter: 0,
            segment_bytes,
            acked: Vec::new(),
            commits: 0,
            commit_bytes: commit_bytes.max(unit),
        }
    }

    /// Commits that were acknowledged.
    pub(super) fn commits(&self) -> u64 {
        self.commits
    }

    /// Bytes of them.
    pub(super) fn acked_bytes(&self) -> u64 {
        self.acked.len() as u64 * self.page.len() as u64
    }

    /// Forgets what an earlier pass wrote.
    pub(super) fn forget(&mut self) {
        self.acked.clear();
        self.commits = 0;
    }

    /// Walks the segments as XLogWrite does: pages, fdatasync, and close when one is full; to the first
    /// call that fails. `until` ends it without a failure.
    ///
    /// # Errors
    /// The run must end, or the time is over.
    pub(super) fn walk(
        &mut self,
        folder: &Folder,
        names: &[String],
        until: u64,
        lab: &Lab<'_>,
    ) -> Result<Option<Failure>, Stop> {
        for (segment, name) in names.iter().enumerate() {
            let file = match WalFile::open(folder, name, OFlags::empty()) {
                Ok(file) => file,
                Err(fault) => return Ok(Some(self.failure(fault, segment, 0, None))),
            };
            let mut offset = 0;
            while offset < self.segment_bytes {
                if lab.pulse.stopped() {
                    return Err(Stop::Interrupted);
                }
                if lab.clock.now_ns() > until {
                    return Err(slow(self.acked_bytes()));
                }
                let end = (offset + self.commit_bytes).min(self.segment_bytes);
                let mut commit = Vec::new();
                let mut done = Ok(());
                while offset < end && done.is_ok() {
                    self.counter += 1;
                    self.page.stamp(self.counter);
                    done = file.pwrite_all(&self.page, offset);
                    if done.is_ok() {
                        let counter = self.counter;
                        commit.push(Acked {
                            segment,
                            offset,
                            counter,
                        });
                        offset += self.page.len() as u64;
                    }
                }
                let done = done.and_then(|()| file.fdatasync());
                lab.pulse.beat();
                if let Err(fault) = done {
                    let second = answer(&file.fdatasync());
                    return Ok(Some(self.failure(fault, segment, offset, Some(second))));
                }
                self.acked.append(&mut commit);
                self.commits += 1;
            }
            if let Err(fault) = file.close() {
                return Ok(Some(self.failure(fault, segment, offset, None)));
            }
        }
        Ok(None)
    }

    fn failure(
        &self,
        fault: Fault,
        segment: usize,
        offset: u64,
        second_sync: Option<String>,
    ) -> Failure {
        Failure {
            fault,
            at_bytes: segment as u64 * self.segment_bytes + offset,
            second_sync,
        }
    }

    /// Acknowledged commits of which not all is there; `uncached` asks for what the device has.
    ///
    /// # Errors
    /// A file that cannot be opened, or the run must end.
    pub(super) fn lost(
        &mut self,
        folder: &Folder,
        names: &[String],
        uncached: bool,
        lab: &Lab<'_>,
    ) -> Result<u64, Stop> {
        let mut lost = std::collections::BTreeSet::new();
        let mut read = vec![0; self.page.len()];
        for (segment, name) in names.iter().enumerate() {
            if !self.acked.iter().any(|a| a.segment == segment) {
                continue;
            }
            let file = WalFile::open(folder, name, OFlags::empty())?;
            if uncached {
                file.advise(Advice::DontNeed)?;
            }
            for acked in self.acked.iter().filter(|a| a.segment == segment) {
                if lab.pulse.stopped() {
                    return Err(Stop::Interrupted);
                }
                stamp(&mut self.page, acked.counter);
                let same = match file.pread_all(&mut read, acked.offset) {
                    Ok(()) => read[..] == self.page[..],
                    Err(e) if e.errno == Errno::IO.raw_os_error() => false,
                    Err(e) => return Err(e.into()),
                };
                if !same {
                    lost.insert((segment, acked.offset / self.commit_bytes));
                }
                lab.pulse.beat();
            }
        }
        Ok(lost.len() as u64)
    }
}

/// The case has had its time; what was done stays in its row.
pub(super) fn slow(bytes: u64) -> Stop {
    Stop::Skip(
        "time",
        format!("it got slower and slower: {bytes} bytes were written when its time was over"),
    )
}
