//! Commits alone, into a segment of which only the past differs: new, or old and warm or cold.

use std::collections::BTreeMap;

use rustix::fs::{Advice, OFlags};
use serde_json::json;

use crate::{
    contract::{Case, Fault, Lab, Observations, Series, Stop, Trial},
    engine::lap::Lap,
    files::WalFile,
    recycle::{
        number,
        olds::Olds,
        walk::{Pattern, Walk},
    },
    report::ColdProof,
    segment::{Init, Maker},
};

/// Commits into the segment before the prefetched one, while that is read ahead.
const AHEAD: Series = "ahead";

/// What is written to.
enum Target {
    /// A new, zero-filled segment, made before each operation.
    New {
        name: String,
        tmp: String,
        made: bool,
    },
    /// An old one that is read back before.
    Warm(Olds),
    /// An old one out of the cache.
    Cold(Olds),
    /// The same, asked for (POSIX_FADV_WILLNEED) while the one before it is written.
    Prefetched(Olds),
}

/// One operation is one walk over the segment.
pub(super) struct Overwrite {
    target: Target,
    maker: Maker,
    walk: Walk,
}

impl Overwrite {
    /// Makes the old segments.
    pub(super) fn open(case: &Case, lab: &mut Lab<'_>) -> Result<Self, Stop> {
        let (segment, walked) = (number(case, "file_bytes"), number(case, "walked_bytes"));
        let commit = number(case, "commit_bytes").max(1);
        let seed = lab.request.seed;
        let maker = Maker::new(lab.scratch()?.folder()?, segment, walked, commit, seed);
        let mut walk = Walk::new(Pattern::of(case), walked, seed);
        let mut olds = |least: u64, lab: &mut Lab<'_>| {
            let count = number(case, "segments").max(least);
            Olds::make(&case.name, count, true, &maker, &mut walk, lab)
        };
        let target = match case.name.as_str() {
            "new" => Target::New {
                name: "seg-recycle-new".to_owned(),
                tmp: "tmp-recycle-new".to_owned(),
                made: false,
            },
            "warm" => Target::Warm(olds(1, lab)?),
            "cold" => Target::Cold(olds(1, lab)?),
            "cold-prefetched" => Target::Prefetched(olds(2, lab)?),
            other => return Err(Stop::Broken(format!("no case {other}"))),
        };
        Ok(Self {
            target,
            maker,
            walk,
        })
    }
}

impl Trial for Overwrite {
    fn prepare(&mut self, lab: &mut Lab<'_>) -> Result<Option<ColdProof>, Stop> {
        match &mut self.target {
            Target::New { name, tmp, made } => {
                let folder = self.maker.folder();
                if std::mem::take(made) {
                    folder.unlink(name)?;
                }
                self.maker.create(Init::ZeroFill, tmp, name, lab.pulse)?;
                *made = true;
                lab.hooks.settle()?;
                Ok(None)
            }
            Target::Warm(olds) => {
                olds.prepare(lab)?;
                olds.warm(lab)?;
                Ok(None)
            }
            Target::Cold(olds) => olds.prepare(lab),
            Target::Prefetched(olds) => {
                olds.pass();
                let next = olds.prepare(lab)?;
                olds.back();
                let mut proof = olds.prepare(lab)?;
                if let (Some(proof), Some(next)) = (&mut proof, &next) {
                    proof.add(next);
                }
                Ok(proof)
            }
        }
    }

    fn op(&mut self, lap: &mut Lap<'_>) -> Result<(), Fault> {
        let folder = self.maker.folder();
        let open = |name: &str| WalFile::open(folder, name, OFlags::empty());
        let file = match &mut self.target {
            Target::New { name, .. } => open(name)?,
            Target::Warm(olds) | Target::Cold(olds) => {
                let file = open(olds.current())?;
                olds.pass();
                file
            }
            Target::Prefetched(olds) => {
                let first = open(olds.current())?;
                olds.pass();
                let next = open(olds.current())?;
                olds.pass();
                lap.leg(AHEAD, 0.0);
                next.advise(Advice::WillNeed)?;
                if !self.walk.timed(&first, AHEAD, 0.0, lap)? {
                    return Ok(());
                }
                first.close()?;
                next
            }
        };
        self.walk.timed(&file, "commit", 1.0, lap)?;
        lap.leg("", 0.0);
        file.close()
    }

    fn observe(
        &mut self,
        _lab: &mut Lab<'_>,
        seen: &mut BTreeMap<Series, Observations>,
    ) -> Result<(), Stop> {
        let common = seen.entry("").or_default();
        common.insert("walked_pct".to_owned(), json!(self.maker.walked_pct()));
        if let Target::Warm(olds) = &self.target {
            olds.observe(common);
        }
        Ok(())
    }

    fn close(&mut self, _lab: &mut Lab<'_>) -> Result<(), Stop> {
        match &self.target {
            Target::New { name, made, .. } => {
                if *made {
                    self.maker.folder().unlink(name)?;
                }
                Ok(())
            }
            Target::Warm(olds) | Target::Cold(olds) | Target::Prefetched(olds) => olds.close(),
        }
    }
}
