//! What a probe is, and what the engine gives it.
//!
//! The trial marks, the engine reads the clock; comparisons are views on series;
//! preparation is never timed. A probe is one file that implements [`Probe`], one
//! line in the catalogue, one page in `docs/probes/`.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use crate::{
    engine::lap::Lap,
    facts::Facts,
    report::{ColdProof, FaultRecord},
    request::Request,
    scratch::Scratch,
    sys::errno,
};

pub use serde_json::Value;

/// What a comparison compares: `commit`, `create`, `first-pass`, `life`.
pub type Series = &'static str;
/// Where one sample's time went: `write`, `sync`, `rename`.
pub type Phase = &'static str;
/// Further figures of a row; names carry their unit.
pub type Observations = BTreeMap<String, Value>;

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The system call.
    pub call: &'static str,
    /// Its errno.
    pub errno: i32,
    /// The file in the scratch folder.
    pub file: String,
}

impl Fault {
    /// A fault of `call` on `file`.
    #[must_use]
    pub fn new(call: &'static str, errno: i32, file: &str) -> Self {
        Self {
            call,
            errno,
            file: file.to_owned(),
        }
    }

    /// The row's form, with the operation at which it happened.
    #[must_use]
    pub fn record(&self, operation: u64) -> FaultRecord {
        FaultRecord {
            call: self.call.to_owned(),
            errno: self.errno,
            errno_name: errno::name(self.errno),
            operation,
            file: self.file.clone(),
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} of {}: {}",
            self.call,
            self.file,
            std::io::Error::from_raw_os_error(self.errno)
        )
    }
}

/// Why a case ends early. Its row keeps what was measured before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The kernel or the filesystem does not have the call.
    Unsupported(Fault),
    /// A call failed.
    Fault(Fault),
    /// Not measured: reason code and reason.
    Skip(&'static str, String),
    /// A signal, or the parent is gone.
    Interrupted,
    /// walprobe itself is wrong.
    Broken(String),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// What a case cannot do without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Effective user id 0.
    Root,
    /// A way to put files out of the cache.
    ColdHook,
    /// `--fill`.
    Fill,
    /// At least this kernel.
    Kernel(u32, u32),
}

/// One file in the catalogue.
pub trait Probe: Sync {
    /// What it is.
    fn card(&self) -> &'static Card;
    /// Pure: from the request and the facts alone. `--dry-run` and `list` print it.
    fn plan(&self, request: &Request, facts: &Facts) -> Vec<Group>;
    /// Makes the files of one case. Never timed.
    ///
    /// # Errors
    /// Whatever ends the case before it began.
    fn open(&self, case: &Case, lab: &mut Lab<'_>) -> Result<Run, Stop>;
}

/// A probe's entry in lists and help.
#[derive(Debug)]
pub struct Card {
    /// The id used everywhere.
    pub id: &'static str,
    /// The question it answers, as its page's title asks it.
    pub question: &'static str,
    /// What all its cases need.
    pub needs: &'static [Need],
    /// Its page, `docs/probes/ID.md`.
    pub page: &'static str,
}

/// Cases whose blocks alternate in one set of rounds, and the comparisons read off them.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The probe that planned it.
    pub probe: &'static str,
    /// Share of time and budget, relative to the other groups'.
    pub weight: f64,
    /// The cases.
    pub cases: Vec<Case>,
    /// The comparisons.
    pub compare: Vec<Comparison>,
}

impl Group {
    /// A comparison's cases: the name in its rows, and the index in `cases`.
    #[must_use]
    pub fn members<'g>(&'g self, comparison: &'g Comparison) -> Vec<(&'g str, usize)> {
        if comparison.names.is_empty() {
            return self
                .cases
                .iter()
                .enumerate()
                .map(|(at, c)| (c.name.as_str(), at))
                .collect();
        }
        comparison
            .names
            .iter()
            .filter_map(|(name, own)| {
                Some((
                    name.as_str(),
                    self.cases.iter().position(|c| c.name == *own)?,
                ))
            })
            .collect()
    }

    /// The index of the case that a comparison's others are compared with: one of its own, or one
    /// of the group that has its row elsewhere.
    #[must_use]
    pub fn baseline(&self, comparison: &Comparison) -> Option<usize> {
        let baseline = comparison.baseline.as_deref()?;
        self.members(comparison)
            .into_iter()
            .find(|(name, _)| *name == baseline)
            .map(|(_, at)| at)
            .or_else(|| self.cases.iter().position(|c| c.name == baseline))
    }

    /// Rounds that were asked for by number.
    #[must_use]
    pub fn fixed_rounds(&self) -> Option<u64> {
        let rounds = self.cases.iter().map(|c| c.rounds).max();
        rounds.filter(|r| *r > 0)
    }
}

/// One table of the report.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Id within the probe.
    pub id: String,
    /// The series it is read off.
    pub series: Series,
    /// The case the others are compared with.
    pub baseline: Option<String>,
    /// Gets ratios and verdicts, and keeps the group going until they are settled.
    pub judged: bool,
    /// A rule also asks for the 99th percentile of a case that is faster: then the group goes on
    /// until that has operations enough.
    pub tail: bool,
    /// The legs whose counters and bytes the row sums; empty: the series itself.
    pub legs: &'static [Series],
    /// The series of whole lives, removal in; the engine adds deferred cost and gives `total_ratio`.
    pub total: Option<Series>,
    /// Its cases by the row's name and the group's, where two comparisons of a group have different
    /// cases, or the baseline's row stands elsewhere; empty: every case of the group, by its own name.
    pub names: Vec<(String, String)>,
    /// Its cases differ in this number of their `params`: from which on do commits come no faster?
    /// Told as `knee_clients`.
    pub knee: Option<&'static str>,
    /// The series shown as `commits`, `commit_p50_us` and so on among the observations.
    pub detail: Option<Series>,
    /// Rows that are not measured, since another row of the comparison is the same.
    pub same: Vec<Same>,
}

/// A row of a case that is the same as another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Same {
    /// Its name.
    pub name: &'static str,
    /// The row that has the figures.
    pub of: &'static str,
    /// Why it is the same.
    pub why: &'static str,
}

impl Comparison {
    /// A judged comparison of `series` with `baseline`, counters of the series alone.
    #[must_use]
    pub fn judged(id: &str, series: Series, baseline: &str) -> Self {
        Self {
            id: id.to_owned(),
            series,
            baseline: Some(baseline.to_owned()),
            judged: true,
            tail: false,
            legs: &[],
            total: None,
            names: Vec::new(),
            knee: None,
            detail: None,
            same: Vec::new(),
        }
    }

    /// Figures side by side, nothing compared.
    #[must_use]
    pub fn plain(id: &str, series: Series) -> Self {
        Self {
            id: id.to_owned(),
            series,
            baseline: None,
            judged: false,
            tail: false,
            legs: &[],
            total: None,
            names: Vec::new(),
            knee: None,
            detail: None,
            same: Vec::new(),
        }
    }
}

/// One way of doing it.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// Id within its comparisons.
    pub name: String,
    /// What it cannot do without.
    pub needs: Vec<Need>,
    /// What the case is, for `params`.
    pub params: BTreeMap<&'static str, Value>,
    /// A case of its group is to be cold: all files of the group lie where files can be cold.
    pub beside_cold: bool,
    /// Prepare before each operation (cold lives) rather than once a block.
    pub prepare_each_op: bool,
    /// Operations at a block's start that are not counted.
    pub discard_ops: u64,
    /// Most operations a block may have; 0 = no limit.
    pub max_ops: u64,
    /// Exactly so many rounds of one operation, the first one counted too; 0 = as many as it takes.
    pub rounds: u64,
    /// Device bytes one operation writes, charged before they are spent.
    pub op_bytes: u64,
    /// Device bytes one preparation writes.
    pub prepare_bytes: u64,
    /// Largest space its files take.
    pub file_bytes: u64,
    /// Syncs in one operation, preparation included: time for `--dry-run` until calibration knows.
    pub op_syncs: u64,
}

impl Case {
    /// What it does: its `method` parameter, where its name is another, else its name.
    #[must_use]
    pub fn method(&self) -> &str {
        let method = self.params.get("method").and_then(Value::as_str);
        method.unwrap_or(&self.name)
    }
}

/// What `open` hands the engine to drive.
pub enum Run {
    /// Rounds of blocks.
    Alone(Box<dyn Trial>),
    /// Once: no rounds, no ratio, observations only.
    Once(Box<dyn Study>),
}

/// One case, driven operation by operation.
pub trait Trial: Send {
    /// Never timed: make, warm, or drop files. `Some` where the case claims cold; no proof, no claim.
    ///
    /// # Errors
    /// Whatever ends the case.
    fn prepare(&mut self, _lab: &mut Lab<'_>) -> Result<Option<ColdProof>, Stop> {
        Ok(None)
    }

    /// One operation: a commit, a write, or a segment's life in several legs.
    ///
    /// # Errors
    /// The call that failed.
    fn op(&mut self, lap: &mut Lap<'_>) -> Result<(), Fault>;

    /// Never timed, after a block: sizes, extents, residency. `series` is each series the case feeds.
    ///
    /// # Errors
    /// Whatever ends the case.
    fn observe(
        &mut self,
        _lab: &mut Lab<'_>,
        _seen: &mut BTreeMap<Series, Observations>,
    ) -> Result<(), Stop> {
        Ok(())
    }

    /// Never timed, after the last block: close and remove the case's files.
    ///
    /// # Errors
    /// The call that failed; the scratch folder's removal deals with what is left.
    fn close(&mut self, _lab: &mut Lab<'_>) -> Result<(), Stop> {
        Ok(())
    }
}

/// A case that is done once. It fills its figures itself.
pub trait Study: Send {
    /// Runs it; `lap` counts operations, syncs and bytes.
    ///
    /// # Errors
    /// Whatever ends the case.
    fn run(
        &mut self,
        lab: &mut Lab<'_>,
        lap: &mut Lap<'_>,
        seen: &mut Observations,
    ) -> Result<(), Stop>;
}

/// The monotonic clock. A fake target brings its own.
pub trait Clock: Sync {
    /// Nanoseconds since some fixed moment.
    fn now_ns(&self) -> u64;
}

/// Totals since boot or start; differences are what counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes read from the filesystem's own devices.
    pub device_bytes_read: u64,
    /// Bytes written to them.
    pub device_bytes_written: u64,
    /// Write requests, flushes not among them.
    pub device_writes: u64,
    /// Flush requests.
    pub flushes: u64,
    /// Flush requests of the devices further down.
    pub lower_flushes: u64,
    /// Bytes this process caused to be read from storage.
    pub own_bytes_read: u64,
    /// Bytes this process caused to be sent to storage.
    pub own_bytes_written: u64,
}

impl Counts {
    /// `self - earlier`, field by field; a counter that went backwards counts 0.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            device_bytes_read: self
                .device_bytes_read
                .saturating_sub(earlier.device_bytes_read),
            device_bytes_written: self
                .device_bytes_written
                .saturating_sub(earlier.device_bytes_written),
            device_writes: self.device_writes.saturating_sub(earlier.device_writes),
            flushes: self.flushes.saturating_sub(earlier.flushes),
            lower_flushes: self.lower_flushes.saturating_sub(earlier.lower_flushes),
            own_bytes_read: self.own_bytes_read.saturating_sub(earlier.own_bytes_read),
            own_bytes_written: self
                .own_bytes_written
                .saturating_sub(earlier.own_bytes_written),
        }
    }

    /// Adds `more` to `self`, field by field.
    pub const fn add(&mut self, more: &Self) {
        self.device_bytes_read += more.device_bytes_read;
        self.device_bytes_written += more.device_bytes_written;
        self.device_writes += more.device_writes;
        self.flushes += more.flushes;
        self.lower_flushes += more.lower_flushes;
        self.own_bytes_read += more.own_bytes_read;
        self.own_bytes_written += more.own_bytes_written;
    }
}

/// What the host did to us: totals since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noise {
    /// Processor time stolen by the hypervisor, all processors together.
    pub steal_ms: u64,
    /// Time this control group was throttled by a processor limit.
    pub throttled_us: u64,
}

/// Reads the counters. A fake target brings its own.
pub trait Counters: Sync {
    /// Totals now.
    fn read(&self) -> Counts;
    /// Flush requests of every device of the stack that counts them, by name.
    fn flushes_by_device(&self) -> Vec<(String, u64)>;
    /// What the host did to us so far.
    fn noise(&self) -> Noise;
    /// Block-device counters exist for this filesystem.
    fn has_device(&self) -> bool;
}

/// What a settled block left to be written after it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settled {
    /// Time the settling took.
    pub ns: u64,
    /// Device bytes it wrote.
    pub device_bytes: u64,
    /// The device became idle within the bound.
    pub idle: bool,
    /// What moved per second in the later half of a wait in which it did not: by then our own
    /// writes are through. Zero where it became idle.
    pub busy: Quiet,
}

/// What a worker's threads share: the wish to stop, and the sign that calls return.
#[derive(Debug, Default)]
pub struct Pulse {
    stop: AtomicBool,
    beats: AtomicU64,
}

impl Pulse {
    /// The run must end: a signal, or the parent is gone.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the run must end.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// A call returned.
    pub fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// Calls returned so far.
    #[must_use]
    pub fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }
}

/// What the engine needs of the world besides clock and counters.
pub trait Hooks {
    /// Takes bytes off the write budget.
    ///
    /// # Errors
    /// [`Stop::Skip`] with `budget` when they are not there.
    fn charge(&mut self, bytes: u64) -> Result<(), Stop>;
    /// Flushes the scratch filesystem and waits until the device is idle, bounded.
    ///
    /// # Errors
    /// The call that failed.
    fn settle(&mut self) -> Result<Settled, Stop>;
    /// Announces what is done next, for progress and the watchdog.
    fn doing(&mut self, probe: &str, comparison: &str, case: &str, round: u64);
}

/// Rates of the filesystem's own devices while we do nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quiet {
    /// Bytes written per second.
    pub write_bytes_per_s: f64,
    /// Flushes per second.
    pub flushes_per_s: f64,
}

/// What a trial may do outside the clock: scratch files, the hooks, the seed.
pub struct Lab<'a> {
    /// What is known of the target.
    pub facts: &'a Facts,
    /// What was asked for.
    pub request: &'a Request,
    /// The scratch folder; a fake target has none.
    pub scratch: Option<&'a Scratch>,
    /// Budget, settling, interruption.
    pub hooks: &'a mut dyn Hooks,
    /// Device and process counters.
    pub counters: &'a dyn Counters,
    /// The clock, for the engine and bounded waits; probes mark instead.
    pub clock: &'a dyn Clock,
    /// The wish to stop, and the watchdog's pulse.
    pub pulse: &'a Pulse,
    /// What the devices did while we did nothing, per second.
    pub quiet: Quiet,
    /// Random choices.
    pub rng: fastrand::Rng,
}

impl Lab<'_> {
    /// The scratch folder.
    ///
    /// # Errors
    /// [`Stop::Broken`] on a fake target.
    pub fn scratch(&self) -> Result<&Scratch, Stop> {
        self.scratch
            .ok_or_else(|| Stop::Broken("this case needs a scratch folder".to_owned()))
    }
}
