//! One segment's life: made, walked, walked again, removed.

use std::collections::BTreeMap;

use rustix::fs::OFlags;
use serde_json::json;

use super::{
    inspect::{self, Seen, free_bytes},
    libc_way::LibcWay,
};
use crate::{
    contract::{Fault, Lab, Observations, Series, Stop, Trial},
    engine::lap::Lap,
    files::WalFile,
    segment::{EMULATION_LIMIT_NS, Init, Made, Maker},
    sys::errno,
};

/// See the module docs. The first life, which calibration does not count, is inspected after each
/// step.
pub(super) struct Life {
    pub(super) init: Init,
    pub(super) tmp: String,
    pub(super) name: String,
    pub(super) maker: Maker,
    /// What was found of the C library, where the method is its own.
    pub(super) libc: Option<LibcWay>,
    /// Why the case ends, to be told once what was seen is told.
    pub(super) ending: Option<Stop>,
    pub(super) inspected: Option<Seen>,
}

/// Why an emulation ends its case.
pub(super) fn too_slow(done: u64, of: u64) -> Stop {
    let reason = format!(
        "the emulation was stopped after {} s, {} KiB of {} KiB done",
        EMULATION_LIMIT_NS / 1_000_000_000,
        done >> 10,
        of >> 10
    );
    Stop::Skip("time", reason)
}

impl Trial for Life {
    fn op(&mut self, lap: &mut Lap<'_>) -> Result<(), Fault> {
        if self.ending.is_some() {
            return Ok(());
        }
        let mut seen = self.inspected.is_none().then(BTreeMap::new);
        let free_before = free_bytes(&self.maker)?;
        let outcome = self.live(lap, seen.as_mut(), free_before);
        lap.leg("", 0.0);
        // Whatever happened, the next life begins without this one's file.
        let removed = self.maker.folder().unlink(&self.name);
        if !matches!(outcome, Ok(true)) {
            let _ = self.maker.folder().unlink(&self.tmp);
        }
        match outcome {
            Ok(true) => {
                removed?;
                self.inspected = self.inspected.take().or(seen);
                Ok(())
            }
            Ok(false) => Ok(()),
            // The method is not there: a result, told with what else was seen.
            Err(fault) if self.inspected.is_none() && errno::is_unsupported(fault.errno) => {
                self.ending = Some(Stop::Unsupported(fault));
                Ok(())
            }
            Err(fault) => Err(fault),
        }
    }

    fn observe(
        &mut self,
        _lab: &mut Lab<'_>,
        seen: &mut BTreeMap<Series, Observations>,
    ) -> Result<(), Stop> {
        if seen.is_empty()
            && let Some(inspected) = &self.inspected
        {
            seen.clone_from(inspected);
        }
        let common = seen.entry("").or_default();
        common.insert("walked_pct".to_owned(), json!(self.maker.walked_pct()));
        if let Some(libc) = &self.libc {
            libc.tell(common);
        }
        match self.ending.take() {
            None => Ok(()),
            Some(stop) => {
                match &stop {
                    Stop::Unsupported(_) => common.insert("supported".to_owned(), json!(false)),
                    _ => common.insert("emulation_bounded".to_owned(), json!(true)),
                };
                Err(stop)
            }
        }
    }
}

impl Life {
    /// False when interrupted or stopped.
    fn live(
        &mut self,
        lap: &mut Lap<'_>,
        mut seen: Option<&mut Seen>,
        free_before: u64,
    ) -> Result<bool, Fault> {
        let made = self
            .maker
            .create_bounded(self.init, &self.tmp, &self.name, "create", lap)?;
        if let Made::Cut(done) = made {
            if !lap.interrupted() {
                self.ending = Some(too_slow(done, self.maker.segment_bytes));
            }
            return Ok(false);
        }
        let file = WalFile::open(self.maker.folder(), &self.name, OFlags::empty())?;
        let length = self.maker.made_bytes(self.init);
        if let Some(seen) = seen.as_deref_mut() {
            lap.leg("", 0.0);
            let gone = free_before.saturating_sub(free_bytes(&self.maker)?);
            inspect::created(&file, length, gone, lap.pulse(), seen)?;
        }
        let weight = self.maker.weight();
        if !self.maker.walk_timed(&file, "first-pass", weight, lap)? {
            return Ok(false);
        }
        lap.life("life");
        let length = length.max(self.maker.walked_bytes);
        if let Some(seen) = seen.as_deref_mut() {
            lap.leg("", 0.0);
            self.look(&file, length, free_before, "first-pass", seen)?;
            self.look(&file, length, free_before, "life", seen)?;
        }
        if !self.maker.walk_timed(&file, "second-pass", 0.0, lap)? {
            return Ok(false);
        }
        if let Some(seen) = seen {
            lap.leg("", 0.0);
            self.look(&file, length, free_before, "second-pass", seen)?;
            let allocated = inspect::allocated(&file.stat()?);
            inspect::believe(allocated, self.maker.walked_bytes, seen);
        }
        Ok(true)
    }

    /// Looks at the walked part, or at the whole segment for the whole life.
    fn look(
        &self,
        file: &WalFile,
        length: u64,
        free_before: u64,
        series: Series,
        seen: &mut Seen,
    ) -> Result<(), Fault> {
        let bytes = if series == "life" {
            self.maker.segment_bytes
        } else {
            self.maker.walked_bytes
        };
        let gone = free_before.saturating_sub(free_bytes(&self.maker)?);
        inspect::step(file, length, bytes, gone, seen.entry(series).or_default())
    }
}
