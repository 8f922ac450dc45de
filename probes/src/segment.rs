//! A WAL segment's making and walking: what prealloc and recycle have in common.

use crate::{
    contract::{Fault, Pulse, Series},
    engine::lap::Lap,
    files::{FILL_BYTES, WalFile, durable_rename, remove_left},
    folder::Folder,
    sys::buffer::Buffer,
};

mod init;
mod weights;

use init::Watch;
pub(crate) use init::posix;
pub use init::{EMULATION_LIMIT_NS, Init, Made};
pub use weights::Weights;

/// Makes segments and walks them with new, incompressible content.
pub struct Maker {
    folder: Folder,
    zeros: Vec<u8>,
    page: Buffer,
    written: u64,
    /// Size of a segment.
    pub segment_bytes: u64,
    /// How much of it is walked.
    pub walked_bytes: u64,
    /// WAL a commit.
    pub commit_bytes: u64,
}

impl Maker {
    /// A maker of segments in `folder`.
    #[must_use]
    pub fn new(
        folder: Folder,
        segment_bytes: u64,
        walked_bytes: u64,
        commit_bytes: u64,
        seed: u64,
    ) -> Self {
        let mut page = Buffer::new(commit_bytes as usize, 4096);
        page.fill_incompressible(seed);
        Self {
            folder,
            zeros: vec![0; FILL_BYTES.min(segment_bytes) as usize],
            page,
            written: 0,
            segment_bytes,
            walked_bytes,
            commit_bytes,
        }
    }

    /// The folder.
    #[must_use]
    pub const fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Creates a segment as the server does, timed as one sample of `leg`: create, init, fsync,
    /// durable rename from `tmp` to `name`.
    ///
    /// # Errors
    /// The call that failed.
    pub fn create_timed(
        &self,
        init: Init,
        tmp: &str,
        name: &str,
        leg: Series,
        lap: &mut Lap<'_>,
    ) -> Result<(), Fault> {
        self.create_bounded(init, tmp, name, leg, lap).map(|_| ())
    }

    /// The same for a method that may be cut short: then there is no sample, and half a file.
    ///
    /// # Errors
    /// The call that failed.
    pub fn create_bounded(
        &self,
        init: Init,
        tmp: &str,
        name: &str,
        leg: Series,
        lap: &mut Lap<'_>,
    ) -> Result<Made, Fault> {
        remove_left(&self.folder, tmp)?;
        lap.leg(leg, 1.0);
        lap.start();
        let file = WalFile::create(&self.folder, tmp)?;
        lap.mark("create");
        let made = self.fill(&file, init, lap)?;
        let Made::Whole(wrote) = made else {
            return Ok(made);
        };
        file.fsync()?;
        file.close()?;
        lap.mark("sync");
        durable_rename(&self.folder, tmp, name)?;
        lap.mark("rename");
        lap.done();
        lap.wrote(wrote);
        // fsync before the rename, twice in it, and the directory.
        lap.synced(4);
        Ok(made)
    }

    /// The same, untimed.
    ///
    /// # Errors
    /// The call that failed.
    pub fn create(&self, init: Init, tmp: &str, name: &str, pulse: &Pulse) -> Result<(), Fault> {
        let file = WalFile::create_anew(&self.folder, tmp)?;
        self.init(&file, init, Watch::Pulse(pulse))?;
        file.fsync()?;
        file.close()?;
        durable_rename(&self.folder, tmp, name)
    }

    /// Walks the segment, one commit after another: pwrite of whole pages, fdatasync. Each commit is
    /// a sample of `leg`. Ends early when the run is interrupted; then false.
    ///
    /// # Errors
    /// The call that failed.
    pub fn walk_timed(
        &mut self,
        file: &WalFile,
        leg: Series,
        weights: Weights,
        lap: &mut Lap<'_>,
    ) -> Result<bool, Fault> {
        let mut at = 0;
        while at < self.walked_bytes {
            if lap.interrupted() {
                return Ok(false);
            }
            lap.leg(leg, weights.at(at));
            let page = self.next_content();
            lap.start();
            file.pwrite_all(page, at)?;
            lap.mark("write");
            file.fdatasync()?;
            lap.mark("sync");
            lap.done();
            lap.wal(self.commit_bytes);
            lap.wrote(self.commit_bytes);
            lap.synced(1);
            at += self.commit_bytes;
        }
        Ok(true)
    }

    /// The same, untimed and with a sync at the end only: it gives a segment its past.
    ///
    /// # Errors
    /// The call that failed.
    pub fn walk(&mut self, file: &WalFile, pulse: &Pulse) -> Result<(), Fault> {
        let mut at = 0;
        while at < self.walked_bytes && !pulse.stopped() {
            let page = self.next_content();
            file.pwrite_all(page, at)?;
            file.fdatasync()?;
            pulse.beat();
            at += self.commit_bytes;
        }
        Ok(())
    }

    /// How the walked part stands for the segment, after an opening of `bytes`.
    #[must_use]
    pub fn weights(&self, bytes: u64) -> Weights {
        Weights::new(self.segment_bytes, self.walked_bytes, bytes)
    }

    /// Share of the segment that is walked.
    #[must_use]
    pub fn walked_pct(&self) -> f64 {
        100.0 * self.walked_bytes as f64 / self.segment_bytes as f64
    }

    fn next_content(&mut self) -> &[u8] {
        self.written += 1;
        self.page.stamp(self.written);
        &self.page
    }
}
