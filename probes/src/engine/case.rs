//! One case under way: its trial, what it has yielded, and how it ended.

use std::collections::BTreeMap;

use crate::{
    contract::{
        Case, Counts, Fault, Lab, Noise, Observations, Quiet, Series, Settled, Stop, Trial,
    },
    engine::{lap::Lap, tally::Tally},
    report::ColdProof,
};

/// Where a case stands.
pub enum State {
    /// It can be driven on.
    Active(Box<dyn Trial>),
    /// It ended early, at this operation (0 = in preparation).
    Ended(Stop, u64),
    /// It was done once and is finished.
    Finished,
}

/// What a case left to be written after its blocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deferred {
    /// Round of the block.
    pub round: u64,
    /// Operations of the block.
    pub ops: u64,
    /// Time until the device was idle.
    pub ns: u64,
    /// Device bytes written meanwhile.
    pub bytes: u64,
}

/// A case under way.
pub struct CaseRun {
    /// What it is.
    pub case: Case,
    /// Where it stands.
    pub state: State,
    /// What it has yielded.
    pub tally: Tally,
    /// Observations by series; those under `""` belong to every row of the case.
    pub seen: BTreeMap<Series, Observations>,
    /// The proofs of its cold claims, added up.
    pub proof: Option<ColdProof>,
    /// One entry a block.
    pub deferred: Vec<Deferred>,
    /// Operations done, calibration's among them.
    pub ops_done: u64,
    /// Time its measured blocks took on the wall.
    pub wall_ns: u64,
    /// What the host did meanwhile.
    pub noise: Noise,
    /// Settlings, and the sum of the rates of those in which the device never became idle.
    settled: (u64, Quiet),
}

/// One block to drive.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockPlan {
    /// Operations to count.
    pub ops: u64,
    /// Operations before them that are not counted.
    pub discard: u64,
    /// Round number.
    pub round: u64,
    /// Place within the round.
    pub order: u64,
}

/// What a block cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockCost {
    /// All of it.
    pub wall_ns: u64,
    /// The counted operations, their own preparation included.
    pub ops_ns: u64,
    /// What the counters moved, settling included.
    pub moved: Counts,
    /// Every operation was done.
    pub whole: bool,
}

impl CaseRun {
    /// A case that `trial` drives.
    #[must_use]
    pub fn new(case: Case, state: State) -> Self {
        Self {
            case,
            state,
            tally: Tally::default(),
            seen: BTreeMap::new(),
            proof: None,
            deferred: Vec::new(),
            ops_done: 0,
            wall_ns: 0,
            noise: Noise::default(),
            settled: (0, Quiet::default()),
        }
    }

    /// Takes what a settling after a block or a study told.
    pub(super) fn settled(&mut self, told: &Settled) {
        let (count, sum) = &mut self.settled;
        *count += 1;
        sum.write_bytes_per_s += told.busy.write_bytes_per_s;
        sum.flushes_per_s += told.busy.flushes_per_s;
    }

    /// What others did to the device between the blocks, per second.
    #[must_use]
    pub fn busy(&self) -> Quiet {
        let (count, sum) = self.settled;
        let count = count.max(1) as f64;
        Quiet {
            write_bytes_per_s: sum.write_bytes_per_s / count,
            flushes_per_s: sum.flushes_per_s / count,
        }
    }

    /// It can be driven on.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        matches!(self.state, State::Active(_))
    }

    /// Forgets what calibration yielded, but not what it observed.
    pub fn forget(&mut self) {
        self.tally = Tally::default();
        self.proof = None;
        self.deferred.clear();
        self.wall_ns = 0;
        self.noise = Noise::default();
        self.settled = (0, Quiet::default());
    }

    /// Drives one block. A stop ends the case; what was measured before stays.
    pub fn block(&mut self, plan: BlockPlan, lab: &mut Lab<'_>) -> BlockCost {
        let State::Active(trial) = &mut self.state else {
            return BlockCost::default();
        };
        let mut work = Work {
            trial: trial.as_mut(),
            each: self.case.prepare_each_op,
            proof: &mut self.proof,
            ops_done: &mut self.ops_done,
            ops_ns: 0,
            whole: false,
        };
        let before = lab.counters.read();
        let noise_before = lab.counters.noise();
        let from = lab.clock.now_ns();
        let outcome = work.drive(plan, &mut self.tally, lab);
        let (ops_ns, whole) = (work.ops_ns, work.whole);
        let measured_until = lab.clock.now_ns();
        let outcome = outcome.and_then(|()| {
            let State::Active(trial) = &mut self.state else {
                return Ok(());
            };
            trial.observe(lab, &mut self.seen)
        });
        let outcome = outcome.and_then(|()| self.tally.agrees().map_err(Stop::Broken));
        // Part of a block is told, but never compared.
        self.tally.end_block(plan.round, plan.order, from, whole);
        if whole {
            self.wall_ns += measured_until - from;
            let noise = lab.counters.noise();
            self.noise.steal_ms += noise.steal_ms.saturating_sub(noise_before.steal_ms);
            self.noise.throttled_us += noise.throttled_us.saturating_sub(noise_before.throttled_us);
        }
        // A failed case is settled too: its writeback must not land in its neighbour.
        let settled = lab.hooks.settle();
        if let Ok(told) = &settled {
            self.settled(told);
        }
        if let (Ok(settled), true) = (&settled, whole) {
            self.deferred.push(Deferred {
                round: plan.round,
                ops: plan.ops,
                ns: settled.ns,
                bytes: settled.device_bytes,
            });
        }
        if let Err(stop) = outcome.and(settled.map(|_| ())) {
            let operation = self.ops_done;
            // Its files would take room from the others; the fault that counts is the first.
            if let (State::Active(trial), true) = (&mut self.state, stop != Stop::Interrupted) {
                let _ = trial.close(lab);
            }
            self.end(stop, operation);
        }
        BlockCost {
            wall_ns: lab.clock.now_ns() - from,
            ops_ns,
            moved: lab.counters.read().since(&before),
            whole,
        }
    }

    /// Ends the case early. An interruption is the run's end, not the case's.
    pub fn end(&mut self, stop: Stop, operation: u64) {
        if stop != Stop::Interrupted {
            self.state = State::Ended(stop, operation);
        }
    }

    /// Closes the trial and removes its files.
    pub fn close(&mut self, lab: &mut Lab<'_>) {
        if let State::Active(trial) = &mut self.state
            && let Err(stop) = trial.close(lab)
        {
            let operation = self.ops_done;
            self.end(stop, operation);
        }
    }
}

/// The borrowed parts of a case while a block runs.
struct Work<'a> {
    trial: &'a mut dyn Trial,
    each: bool,
    proof: &'a mut Option<ColdProof>,
    ops_done: &'a mut u64,
    ops_ns: u64,
    whole: bool,
}

impl Work<'_> {
    fn drive(&mut self, plan: BlockPlan, tally: &mut Tally, lab: &mut Lab<'_>) -> Result<(), Stop> {
        if !self.each {
            self.prepare(lab)?;
        }
        let mut lap = Lap::new(lab.clock, lab.counters, lab.pulse, tally);
        if plan.discard > 0 {
            lap.record(false);
            for _ in 0..plan.discard {
                self.op(&mut lap)?;
            }
            lap.record(true);
        }
        let from = lab.clock.now_ns();
        lap.begin_block();
        let outcome = self.ops(plan.ops, &mut lap, lab);
        lap.end_block();
        self.ops_ns = lab.clock.now_ns() - from;
        self.whole = outcome.is_ok() && !lab.pulse.stopped();
        outcome
    }

    fn ops(&mut self, ops: u64, lap: &mut Lap<'_>, lab: &mut Lab<'_>) -> Result<(), Stop> {
        for _ in 0..ops {
            if lab.pulse.stopped() {
                return Err(Stop::Interrupted);
            }
            if self.each {
                lap.end_block();
                self.prepare(lab)?;
                lap.begin_block();
            }
            self.op(lap)?;
        }
        Ok(())
    }

    fn prepare(&mut self, lab: &mut Lab<'_>) -> Result<(), Stop> {
        if let Some(proof) = self.trial.prepare(lab)? {
            match self.proof {
                Some(sum) => sum.add(&proof),
                None => *self.proof = Some(proof),
            }
        }
        Ok(())
    }

    fn op(&mut self, lap: &mut Lap<'_>) -> Result<(), Stop> {
        lap.begin_op();
        *self.ops_done += 1;
        self.trial.op(lap).map_err(stop_of)
    }
}

/// A call that is not there is told apart from one that failed.
#[must_use]
pub fn stop_of(fault: Fault) -> Stop {
    if crate::sys::errno::is_unsupported(fault.errno) {
        Stop::Unsupported(fault)
    } else {
        Stop::Fault(fault)
    }
}
