//! Commits alone, into a segment of which only the past differs: new, or old and warm or cold.

use std::collections::BTreeMap;

use rustix::fs::{Advice, OFlags};
use serde_json::json;

use crate::{
    cache::child,
    contract::{Case, Fault, Lab, Observations, Series, Stop, Trial},
    engine::lap::Lap,
    files::WalFile,
    recycle::{
        number,
        olds::Olds,
        walk::{Pattern, Walk},
    },
    report::ColdProof,
    segment::{Init, Maker, Weights},
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
        /// What the drop before each is done to, where there is one.
        dropped: Option<Olds>,
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
    in_child: bool,
}

impl Overwrite {
    /// Makes the old segments.
    pub(super) fn open(case: &Case, lab: &mut Lab<'_>) -> Result<Self, Stop> {
        let (segment, walked) = (number(case, "file_bytes"), number(case, "walked_bytes"));
        let commit = number(case, "commit_bytes").max(1);
        let seed = lab.request.seed;
        let (folder, in_child) = child::folder(case, lab)?;
        let maker = Maker::new(folder, segment, walked, commit, seed);
        let mut walk = Walk::new(Pattern::of(case), walked, seed);
        let mut olds = |least: u64, lab: &mut Lab<'_>| {
            let count = number(case, "segments").max(least);
            Olds::make(&case.name, count, true, &maker, &mut walk, lab)
        };
        let target = match case.method() {
            "new" => Target::New {
                name: format!("seg-recycle-{}", case.name),
                tmp: format!("tmp-recycle-{}", case.name),
                made: false,
                dropped: match case.params.contains_key("dropped_by") {
                    true => Some(olds(1, lab)?),
                    false => None,
                },
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
            in_child,
        })
    }
}

impl Trial for Overwrite {
    fn prepare(&mut self, lab: &mut Lab<'_>) -> Result<Option<ColdProof>, Stop> {
        if self.in_child {
            child::usable(lab)?;
        }
        let walk = &mut self.walk;
        match &mut self.target {
            Target::New {
                name,
                tmp,
                made,
                dropped,
            } => {
                let folder = self.maker.folder();
                if std::mem::take(made) {
                    folder.unlink(name)?;
                }
                if let Some(dropped) = dropped {
                    dropped.prepare(walk, lab)?;
                }
                self.maker.create(Init::ZeroFill, tmp, name, lab.pulse)?;
                *made = true;
                lab.hooks.settle()?;
                Ok(None)
            }
            Target::Warm(olds) => {
                olds.prepare(walk, lab)?;
                olds.warm(lab)?;
                Ok(None)
            }
            Target::Cold(olds) => olds.prepare(walk, lab),
            Target::Prefetched(olds) => {
                olds.pass();
                let next = olds.prepare(walk, lab)?;
                olds.back();
                let mut proof = olds.prepare(walk, lab)?;
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
                if !self.walk.timed(&first, AHEAD, Weights::even(0.0), lap)? {
                    return Ok(());
                }
                first.close()?;
                next
            }
        };
        self.walk.timed(&file, "commit", Weights::even(1.0), lap)?;
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
        if self.in_child {
            common.insert("child_dataset".to_owned(), json!(true));
        }
        if let Target::Warm(olds) = &self.target {
            olds.observe(common);
        }
        Ok(())
    }

    fn close(&mut self, _lab: &mut Lab<'_>) -> Result<(), Stop> {
        match &self.target {
            Target::New {
                name,
                made,
                dropped,
                ..
            } => {
                if *made {
                    self.maker.folder().unlink(name)?;
                }
                dropped.as_ref().map_or(Ok(()), Olds::close)
            }
            Target::Warm(olds) | Target::Cold(olds) | Target::Prefetched(olds) => olds.close(),
        }
    }
}
