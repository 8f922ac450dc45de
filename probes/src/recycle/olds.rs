//! Old segments: files that have lived, and are put out of the cache or into it before each use.

use rustix::fs::OFlags;
use serde_json::json;

use crate::{
    cache::{self, Pair, child},
    contract::{Fault, Lab, Observations, Stop},
    files::WalFile,
    folder::Folder,
    recycle::walk::Walk,
    report::ColdProof,
    request::DropCaches,
    segment::{Init, Maker},
};

/// A case's old segments, used in turns, and their witness.
pub(super) struct Olds {
    folder: Folder,
    names: Vec<String>,
    /// A sister of theirs that nobody opens but the proof; none where nothing claims to be cold.
    witness: Option<String>,
    bytes: u64,
    lived_bytes: u64,
    turn: usize,
    warm_pct: Option<f64>,
}

impl Olds {
    /// An old segment is one that has lived: made as the server makes it, walked in the
    /// comparison's own pattern with incompressible content, settled. The witness is its sister.
    pub(super) fn make(
        case: &str,
        count: u64,
        cold: bool,
        maker: &Maker,
        walk: &mut Walk,
        lab: &mut Lab<'_>,
    ) -> Result<Self, Stop> {
        let names: Vec<String> = (0..count.max(1))
            .map(|n| format!("old-recycle-{case}-{n}"))
            .collect();
        let witness = cold.then(|| format!("witness-recycle-{case}"));
        let tmp = format!("tmp-recycle-{case}");
        for name in names.iter().chain(&witness) {
            if lab.pulse.stopped() {
                return Err(Stop::Interrupted);
            }
            lab.hooks.charge(maker.segment_bytes + maker.walked_bytes)?;
            maker.create(Init::ZeroFill, &tmp, name, lab.pulse)?;
            live(maker.folder(), name, walk, lab)?;
        }
        lab.hooks.settle()?;
        Ok(Self {
            folder: maker.folder().folder()?,
            names,
            witness,
            bytes: maker.segment_bytes,
            lived_bytes: maker.walked_bytes,
            turn: 0,
            warm_pct: None,
        })
    }

    /// The one whose turn it is.
    pub(super) fn current(&self) -> &str {
        &self.names[self.turn]
    }

    /// The next one's turn.
    pub(super) const fn pass(&mut self) {
        self.turn = (self.turn + 1) % self.names.len();
    }

    /// The turn of the one before.
    pub(super) const fn back(&mut self) {
        self.turn = (self.turn + self.names.len() - 1) % self.names.len();
    }

    /// Puts the current one into the state that the case claims, and proves a claim of cold.
    pub(super) fn prepare(
        &mut self,
        walk: &mut Walk,
        lab: &mut Lab<'_>,
    ) -> Result<Option<ColdProof>, Stop> {
        let Some(witness) = &self.witness else {
            self.warm(lab)?;
            return Ok(None);
        };
        let hook = cache::hook(lab.request.drop_caches);
        if hook == DropCaches::None {
            // The user asked for no drop: say truly how warm it is.
            cache::warm(&self.folder, self.current(), self.bytes, lab)?;
        }
        let pair = Pair {
            file: self.current(),
            witness,
            bytes: self.bytes,
            lived_bytes: self.lived_bytes,
        };
        if child::is_needed(lab.request, lab.facts) {
            return child::live_and_prove(&self.folder, pair, lab, |lab| {
                for name in [pair.file, pair.witness] {
                    live(&self.folder, name, walk, lab)?;
                }
                if lab.pulse.stopped() {
                    return Err(Stop::Interrupted);
                }
                Ok(())
            })
            .map(Some);
        }
        cache::drop_and_prove(&self.folder, pair, hook, lab).map(Some)
    }

    /// Reads the current one back.
    pub(super) fn warm(&mut self, lab: &Lab<'_>) -> Result<(), Stop> {
        let pct = cache::warm(&self.folder, self.current(), self.bytes, lab)?;
        self.warm_pct = match (self.warm_pct, pct) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Ok(())
    }

    /// The least resident share of warm ones.
    pub(super) fn observe(&self, seen: &mut Observations) {
        if let Some(pct) = self.warm_pct {
            seen.insert(
                "warm_resident_pct".to_owned(),
                json!((pct * 100.0).round() / 100.0),
            );
        }
    }

    /// Removes them.
    pub(super) fn close(&self) -> Result<(), Stop> {
        for name in self.names.iter().chain(&self.witness) {
            self.folder.unlink(name)?;
        }
        Ok(())
    }
}

/// Walks a file, untimed.
fn live(folder: &Folder, name: &str, walk: &mut Walk, lab: &Lab<'_>) -> Result<(), Fault> {
    let in_place = lab.facts.text("fs.in_place") == Some("yes");
    let file = WalFile::open(folder, name, OFlags::empty())?;
    walk.untimed(&file, in_place, lab.pulse)?;
    file.close()
}
