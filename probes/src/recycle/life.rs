//! A segment's life: got, walked, let go.

use std::collections::BTreeMap;

use rustix::fs::OFlags;
use serde_json::json;

use crate::{
    cache::child,
    contract::{Case, Fault, Lab, Observations, Series, Stop, Trial},
    engine::lap::Lap,
    files::{WalFile, durable_rename, durable_unlink, remove_left},
    recycle::{
        beside::Reader,
        number,
        olds::Olds,
        walk::{Pattern, Walk},
    },
    report::ColdProof,
    segment::{Init, Maker, Weights},
};

/// One operation is one life. A recycled segment was written before, and goes on to be the old one
/// of a later life.
pub(super) struct Life {
    init: Init,
    /// None: a new segment, made by `init`.
    olds: Option<Olds>,
    /// Beside a new segment: what the drop before each operation is done to.
    dropped: Option<Olds>,
    name: String,
    tmp: String,
    maker: Maker,
    walk: Walk,
    weights: Weights,
    reader: Option<Reader>,
    in_child: bool,
}

impl Life {
    /// Makes the old segments of a recycled life, and what the reader beside it reads.
    pub(super) fn open(case: &Case, init: Option<Init>, lab: &mut Lab<'_>) -> Result<Self, Stop> {
        let walked = number(case, "walked_bytes");
        let (folder, in_child) = child::folder(case, lab)?;
        let maker = Maker::new(
            folder,
            number(case, "segment_bytes"),
            walked,
            number(case, "commit_bytes").max(1),
            lab.request.seed,
        );
        let mut walk = Walk::new(Pattern::of(case), walked, lab.request.seed);
        let reader = match number(case, "reader_file_bytes") {
            0 => None,
            bytes => Some(Reader::open(bytes, lab)?),
        };
        let weights = maker.weights(number(case, "opening_bytes"));
        let cold = case.method().ends_with("@cold");
        let olds = match init {
            Some(_) => None,
            None => {
                let count = number(case, "segments");
                Some(Olds::make(&case.name, count, cold, &maker, &mut walk, lab)?)
            }
        };
        let dropped = match case.params.contains_key("dropped_by") {
            true => Some(Olds::make(&case.name, 1, true, &maker, &mut walk, lab)?),
            false => None,
        };
        Ok(Self {
            init: init.unwrap_or(Init::ZeroFill),
            olds,
            dropped,
            name: format!("seg-recycle-{}", case.name),
            tmp: format!("tmp-recycle-{}", case.name),
            maker,
            walk,
            weights,
            reader,
            in_child,
        })
    }

    fn live(&mut self, lap: &mut Lap<'_>) -> Result<(), Fault> {
        let folder = self.maker.folder();
        match &self.olds {
            None => self
                .maker
                .create_timed(self.init, &self.tmp, &self.name, "get", lap)?,
            Some(olds) => {
                lap.leg("get", 1.0);
                lap.start();
                durable_rename(folder, olds.current(), &self.name)?;
                lap.mark("rename");
                lap.done();
                lap.synced(3);
            }
        }
        let file = WalFile::open(self.maker.folder(), &self.name, OFlags::empty())?;
        let whole = self.walk.timed(&file, "commit", self.weights, lap)?;
        file.close()?;
        if whole {
            lap.life("life");
        }
        lap.leg("remove", 1.0);
        if let Some(olds) = &mut self.olds {
            // Recycling is one rename a life, and `get` was it: this one only turns the segment round.
            lap.leg("", 0.0);
            self.maker.folder().rename(&self.name, olds.current())?;
            olds.pass();
        } else {
            lap.start();
            durable_unlink(self.maker.folder(), &self.name)?;
            lap.mark("unlink");
            lap.done();
            lap.synced(1);
        }
        if whole {
            lap.life("total");
        }
        Ok(())
    }
}

impl Trial for Life {
    fn prepare(&mut self, lab: &mut Lab<'_>) -> Result<Option<ColdProof>, Stop> {
        if self.in_child {
            child::usable(lab)?;
        }
        if let Some(dropped) = &mut self.dropped {
            // The proof is asked for as in the cold case, since its reads warm what they touch.
            dropped.prepare(&mut self.walk, lab)?;
            return Ok(None);
        }
        match &mut self.olds {
            // Beside a reader, what is in the cache is the result.
            Some(olds) if self.reader.is_none() => olds.prepare(&mut self.walk, lab),
            _ => Ok(None),
        }
    }

    fn op(&mut self, lap: &mut Lap<'_>) -> Result<(), Fault> {
        match self.reader.take() {
            None => self.live(lap),
            Some(mut reader) => {
                let outcome = reader.beside(|| self.live(lap));
                self.reader = Some(reader);
                outcome
            }
        }
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
        if let Some(olds) = &self.olds {
            olds.observe(common);
        }
        if let Some(reader) = &mut self.reader {
            reader.observe(common)?;
        }
        Ok(())
    }

    fn close(&mut self, _lab: &mut Lab<'_>) -> Result<(), Stop> {
        // A life that failed has left them.
        for name in [&self.tmp, &self.name] {
            remove_left(self.maker.folder(), name)?;
        }
        for olds in self.olds.iter().chain(&self.dropped) {
            olds.close()?;
        }
        if let Some(reader) = &self.reader {
            reader.close()?;
        }
        Ok(())
    }
}
