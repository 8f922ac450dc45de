//! One filesystem's state, and what becomes of each call: the script's order, or the work.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::io::Errno;

use crate::disk::Disk;
use crate::script::{Call, Fault, Full, Script};
use crate::tree::Tree;

/// Why a call has no answer of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Errno(Errno),
    Hang,
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

/// What was counted since the mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls of each kind, those that were refused too.
    pub calls: BTreeMap<Call, u64>,
    /// Records read because a part of one was to be written or read, and it was cold.
    pub record_reads: u64,
    /// Of these, for a write.
    pub record_reads_for_write: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Flushes sent, or that would have been on a device.
    pub flushes: u64,
    /// Calls that have no answer yet and get none.
    pub hanging: u64,
}

impl Counts {
    /// Calls of one kind.
    #[must_use]
    pub fn of(&self, call: Call) -> u64 {
        self.calls.get(&call).copied().unwrap_or(0)
    }

    /// One a line: a name, a blank, a number.
    #[must_use]
    pub fn text(&self) -> String {
        let calls = self.calls.iter().map(|(call, n)| (call.name(), *n));
        let more = [
            ("record-reads", self.record_reads),
            ("record-reads-for-write", self.record_reads_for_write),
            ("written-bytes", self.written_bytes),
            ("flushes", self.flushes),
            ("hanging", self.hanging),
        ];
        let lines: Vec<_> = calls
            .chain(more)
            .map(|(name, number)| format!("{name} {number}\n"))
            .collect();
        lines.concat()
    }
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) script: Script,
    pub(crate) tree: Tree,
    pub(crate) disk: Disk,
    pub(crate) counts: Counts,
    pub(crate) is_read_only: bool,
    /// What the call now costs.
    owed: Duration,
}

impl State {
    pub(crate) fn new(script: Script, disk: Disk) -> Self {
        Self {
            script,
            tree: Tree::new(),
            disk,
            counts: Counts::default(),
            is_read_only: false,
            owed: Duration::ZERO,
        }
    }

    /// Counts a call and does what the script says of it. True: a write is to be short.
    pub(crate) fn begin(&mut self, call: Call) -> Result<bool, Refused> {
        let number = self.counts.calls.entry(call).or_default();
        *number += 1;
        let number = *number;
        let due = self
            .script
            .faults
            .iter()
            .find(|(of, when, _)| *of == call && when.holds(number));
        match due.map(|(.., fault)| *fault) {
            Some(Fault::Hang) => {
                self.counts.hanging += 1;
                return Err(Refused::Hang);
            }
            Some(Fault::Errno(errno)) => return Err(errno.into()),
            Some(Fault::ReadOnly) => self.is_read_only = true,
            Some(Fault::Short) | None => {}
        }
        if self.is_read_only && call.changes() {
            return Err(Errno::ROFS.into());
        }
        self.owed += self.script.price(call, 0);
        Ok(matches!(due, Some((.., Fault::Short))))
    }

    /// What is to be paid before the answer.
    pub(crate) fn owed(&mut self) -> Duration {
        std::mem::take(&mut self.owed)
    }

    /// Reads the cold records of a range.
    fn warm_up(&mut self, file: u64, at: u64, len: u64, is_write: bool) -> Result<(), Errno> {
        let record_bytes = self.script.record_bytes;
        let cold = self
            .tree
            .image(file)?
            .warm_up(at, len, record_bytes, is_write);
        for record in cold {
            self.counts.record_reads += 1;
            self.counts.record_reads_for_write += u64::from(is_write);
            self.owed += self.script.price(Call::RecordRead, record_bytes);
            self.disk.read(&record).map_err(errno)?;
        }
        Ok(())
    }

    pub(crate) fn read(&mut self, file: u64, at: u64, len: u64) -> Result<Vec<u8>, Errno> {
        self.warm_up(file, at, len, false)?;
        Ok(self.tree.image(file)?.read(at, len).to_vec())
    }

    pub(crate) fn write(&mut self, file: u64, at: u64, data: &[u8]) -> Result<(), Errno> {
        self.warm_up(file, at, data.len() as u64, true)?;
        let late = self.script.full != Full::Write;
        let per_mib = self.script.price(Call::Write, data.len() as u64);
        self.owed += per_mib.saturating_sub(self.script.price(Call::Write, 0));
        self.counts.written_bytes += data.len() as u64;
        let image = self.tree.image(file)?;
        image.write(at, data, &mut self.disk, late)?;
        self.tree.node(file)?.changed = std::time::SystemTime::now();
        Ok(())
    }

    pub(crate) fn allocate(&mut self, file: u64, at: u64, len: u64) -> Result<(), Errno> {
        let late = self.script.full != Full::Write;
        let image = self.tree.image(file)?;
        image.allocate(at, len, &mut self.disk, late)
    }

    pub(crate) fn truncate(&mut self, file: u64, len: u64) -> Result<(), Errno> {
        self.tree.image(file)?.truncate(len, &mut self.disk)
    }

    /// A sync of a file, unless it is a lie.
    pub(crate) fn sync(&mut self, file: u64, call: Call) -> Result<(), Errno> {
        if self.script.full == Full::Sync {
            self.complain_once(file)?;
        }
        let image = self.tree.image(file)?;
        if self.script.lies.contains(&call) {
            return Ok(());
        }
        let dirty_bytes = image.dirty_bytes();
        let per_mib = self.script.price(call, dirty_bytes);
        self.owed += per_mib.saturating_sub(self.script.price(call, 0));
        image.sync(&self.disk).map_err(errno)?;
        self.counts.flushes += 1;
        self.disk.flush().map_err(errno)
    }

    pub(crate) fn sync_names(&mut self, folder: u64) -> Result<(), Errno> {
        if self.script.lies.contains(&Call::Fsyncdir) {
            return Ok(());
        }
        self.tree.sync_names(folder)?;
        self.counts.flushes += 1;
        self.disk.flush().map_err(errno)
    }

    pub(crate) fn close(&mut self, file: u64) -> Result<(), Errno> {
        if self.script.full == Full::Close {
            self.complain_once(file)?;
        }
        Ok(())
    }

    /// That there was no room is told once, as Linux tells an error of writeback.
    fn complain_once(&mut self, file: u64) -> Result<(), Errno> {
        let image = self.tree.image(file)?;
        if !image.is_homeless() {
            return Ok(());
        }
        image.give_up_homeless();
        Err(Errno::NOSPC)
    }

    /// Blocks in all and free, as statfs(2) shows them.
    pub(crate) fn room(&self) -> (u64, u64) {
        let (all, free) = (self.disk.blocks(), self.disk.free());
        self.script.shown_bytes.map_or((all, free), |shown| {
            let shown = shown / crate::disk::BLOCK_BYTES;
            (shown, shown.saturating_sub(all - free))
        })
    }

    pub(crate) fn drop_caches(&mut self) {
        self.tree.images().for_each(crate::image::Image::cool);
    }
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
