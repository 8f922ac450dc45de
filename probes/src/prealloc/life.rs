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
    segment::{EMULATION_LIMIT_NS, Init, Made, Maker, Weights},
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
        let free_before = match seen {
            Some(_) => free_bytes(&self.maker)?,
            None => 0,
        };
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
        let weights = self.maker.weights(self.maker.commit_bytes);
        if !self.maker.walk_timed(&file, "first-pass", weights, lap)? {
            return Ok(false);
        }
        lap.life("life");
        let length = length.max(self.maker.walked_bytes);
        if let Some(seen) = seen.as_deref_mut() {
            lap.leg("", 0.0);
            self.look(&file, length, free_before, "first-pass", seen)?;
            self.look(&file, length, free_before, "life", seen)?;
        }
        if !self
            .maker
            .walk_timed(&file, "second-pass", Weights::even(0.0), lap)?
        {
            return Ok(false);
        }
        if let Some(seen) = seen {
            lap.leg("", 0.0);
            self.look(&file, length, free_before, "second-pass", seen)?;
            let allocated = inspect::allocated(&file.stat()?);
            inspect::believe(allocated, self.maker.walked_bytes, seen);
        }
        file.close()?;
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::{
        contract::{Case, Clock, Counters, Counts, Hooks, Noise, Pulse, Quiet, Settled},
        engine::case::{BlockPlan, CaseRun, State},
        facts::Facts,
        folder::Folder,
        request::Request,
    };

    /// A world in which a second passes whenever somebody looks at the clock.
    struct Slow(AtomicU64);

    impl Clock for Slow {
        fn now_ns(&self) -> u64 {
            self.0.fetch_add(1_000_000_000, Ordering::Relaxed)
        }
    }

    struct Nothing;

    impl Counters for Nothing {
        fn read(&self) -> Counts {
            Counts::default()
        }
        fn flushes_by_device(&self) -> Vec<(String, u64)> {
            Vec::new()
        }
        fn noise(&self) -> Noise {
            Noise::default()
        }
        fn has_device(&self) -> bool {
            false
        }
    }

    impl Hooks for Nothing {
        fn charge(&mut self, _bytes: u64) -> Result<(), Stop> {
            Ok(())
        }
        fn settle(&mut self) -> Result<Settled, Stop> {
            Ok(Settled::default())
        }
        fn doing(&mut self, _probe: &str, _comparison: &str, _case: &str, _round: u64) {}
    }

    /// One life in the slow world.
    fn lived(init: Init) -> CaseRun {
        let dir = tempfile::tempdir().unwrap();
        let opened = std::fs::File::open(dir.path()).unwrap();
        let folder = Folder::of_test(opened.into());
        let life = Life {
            init,
            tmp: "tmp-life".to_owned(),
            name: "seg-life".to_owned(),
            maker: Maker::new(folder, 16 << 20, 64 << 10, 8192, 1),
            libc: None,
            ending: None,
            inspected: None,
        };
        let mut case = CaseRun::new(Case::default(), State::Active(Box::new(life)));
        let (facts, request, pulse) = (Facts::default(), Request::default(), Pulse::default());
        let clock = Slow(AtomicU64::new(0));
        let mut lab = Lab {
            facts: &facts,
            request: &request,
            scratch: None,
            hooks: &mut Nothing,
            counters: &Nothing,
            clock: &clock,
            pulse: &pulse,
            quiet: Quiet::default(),
            rng: fastrand::Rng::with_seed(1),
        };
        let one = BlockPlan {
            ops: 1,
            ..BlockPlan::default()
        };
        case.block(one, &mut lab);
        let left = std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(left, 0, "half a file is left");
        case
    }

    #[test]
    fn an_emulation_without_end_is_skipped_and_says_how_far_it_came() {
        let case = lived(Init::GlibcEmulation);
        let State::Ended(Stop::Skip("time", reason), 1) = &case.state else {
            panic!("it went on");
        };
        assert!(
            reason.starts_with("the emulation was stopped after 10 s, ")
                && reason.ends_with(" KiB of 16384 KiB done"),
            "{reason}"
        );
        assert_eq!(case.seen[""]["emulation_bounded"], true);
        // Half a segment gives no figure.
        assert!(case.tally.get("create").is_none_or(|t| t.ops == 0));
        assert!(case.tally.get("first-pass").is_none());
    }

    #[test]
    fn what_fills_a_segment_takes_its_time() {
        let case = lived(Init::ZeroFill);
        assert!(case.is_active());
        assert_eq!(case.seen[""]["content_zero"], true);
        assert_eq!(case.seen["create"]["size_bytes"], 16 << 20);
        assert_eq!(case.tally.get("first-pass").map(|t| t.ops), Some(8));
    }
}
