//! The report's data types: all that the measuring half and the talking half share.
//!
//! No logic beyond (de)serialisation and look-up. The JSON form is described in
//! `docs/format.md`, key by key. Times are integer nanoseconds inside and
//! microseconds with at most three decimals outside; `null` means "does not
//! apply or not known".

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The schema number written to every report.
pub const SCHEMA: u32 = 1;

/// A duration: integer nanoseconds in memory, microseconds in JSON and CSV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Us(
    /// Nanoseconds.
    pub u64,
);

impl Us {
    /// The value in microseconds, as it is written.
    #[must_use]
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1_000.0
    }
}

impl Serialize for Us {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_us())
    }
}

impl<'de> Deserialize<'de> for Us {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let us = f64::deserialize(deserializer)?;
        if !(0.0..=1.0e15).contains(&us) {
            return Err(serde::de::Error::custom(format!(
                "{us} is not a duration in microseconds"
            )));
        }
        Ok(Self((us * 1_000.0).round() as u64))
    }
}

/// A whole run: one document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: u32,
    /// Twelve characters, unique to the run; also part of the scratch folder's name.
    pub run_id: String,
    /// The program.
    pub tool: Tool,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// RFC 3339, UTC; null while running.
    pub finished_at: Option<String>,
    /// How the run ended.
    pub ended_by: EndedBy,
    /// Seed of every random choice.
    pub seed: u64,
    /// `quick`, `normal` or `thorough`.
    pub profile: String,
    /// Seconds allowed for each directory.
    pub time_limit_s: f64,
    /// Device bytes allowed for each directory.
    pub write_budget_bytes: u64,
    /// Coverage of each interval (0.997).
    pub interval_level: f64,
    /// The machine.
    pub host: Host,
    /// One entry a directory.
    pub targets: Vec<Target>,
    /// The margins that the verdicts used.
    pub margins: Margins,
}

/// The program that wrote the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `walprobe`.
    pub name: String,
    /// Package version.
    pub version: String,
    /// The command line.
    pub argv: Vec<String>,
}

/// Why the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndedBy {
    /// Everything planned was tried.
    #[serde(rename = "done")]
    Done,
    /// Interrupted by SIGINT.
    #[serde(rename = "SIGINT")]
    Sigint,
    /// Interrupted by SIGTERM.
    #[serde(rename = "SIGTERM")]
    Sigterm,
    /// Interrupted by SIGHUP.
    #[serde(rename = "SIGHUP")]
    Sighup,
    /// The write budget was spent.
    #[serde(rename = "budget")]
    Budget,
    /// The time limit was reached.
    #[serde(rename = "time")]
    Time,
    /// walprobe itself failed.
    #[serde(rename = "error")]
    Error,
}

/// The machine that was measured on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Host name; null with `--anonymous`.
    pub name: Option<String>,
    /// `host.*` facts.
    pub facts: FactMap,
}

/// Facts by their dotted name.
pub type FactMap = BTreeMap<String, Fact>;

/// One thing known without measuring, and where it was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// String, number or boolean; null when it could not be read.
    pub value: Value,
    /// The file, call or program it was read from.
    pub source: String,
    /// Why `value` is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// One directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Target {
    /// The directory as resolved.
    pub dir: String,
    /// Whether it could be measured.
    pub status: TargetStatus,
    /// Why not, when `status` is not ok.
    pub reason: Option<String>,
    /// Bytes written to the target by the run.
    pub bytes_written: u64,
    /// Paths that could not be removed.
    pub left_behind: Vec<String>,
    /// Everything but `host.*`.
    pub facts: FactMap,
    /// The device stack, the filesystem's own devices first.
    pub devices: Vec<Device>,
    /// Whether a sync reaches the device.
    pub durability: Durability,
    /// One row a planned case.
    pub rows: Vec<Row>,
    /// What follows for settings.
    pub findings: Vec<Finding>,
    /// Settings about which nothing can be said.
    pub not_tested: Vec<NotTested>,
}

/// How a directory fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetStatus {
    /// Measured.
    #[default]
    Ok,
    /// Stopped by a fault.
    Fault,
    /// Not measured.
    Skipped,
}

/// One block device of the stack below a filesystem.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// Kernel name, as `loop0`.
    pub name: String,
    /// The device above it; null for the filesystem's own.
    pub above: Option<String>,
    /// `disk`, `partition`, `loop`, `lvm`, `md`, `crypt`, `dm`, `other`.
    pub kind: String,
    /// `log`, `special`, `dedup`, or null for a device without a special part.
    pub role: Option<String>,
    /// Of devices with a group, one group takes each write; null: every device takes its part.
    pub group: Option<String>,
    /// RAID level of an md device.
    pub level: Option<String>,
    /// Nothing of the stack is known to lie below it.
    pub leaf: bool,
    /// `write back`, `write through`, or null when unreadable.
    pub write_cache: Option<String>,
    /// Forced unit access is used by the kernel.
    pub fua: Option<bool>,
    /// Says that it rotates.
    pub rotational: Option<bool>,
    /// A virtual disk: what lies below cannot be seen.
    #[serde(rename = "virtual")]
    pub is_virtual: Option<bool>,
    /// Backing file of a loop device.
    pub backing: Option<String>,
    /// The type of the filesystem that the backing file lies on.
    pub backing_fs: Option<String>,
    /// Active I/O scheduler.
    pub scheduler: Option<String>,
    /// Logical block size.
    pub logical_block_bytes: Option<u64>,
    /// Physical block size.
    pub physical_block_bytes: Option<u64>,
    /// Largest atomic write.
    pub atomic_write_max_bytes: Option<u64>,
    /// Vendor's model string.
    pub model: Option<String>,
}

/// The durability verdict and what it rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Durability {
    /// The verdict of the worst layer.
    pub verdict: DurabilityVerdict,
    /// Settings may be recommended on this target.
    pub may_recommend: bool,
    /// One sentence for people.
    pub text: String,
    /// What speaks for, against, and what limits the verdict.
    pub grounds: Vec<Ground>,
}

/// Whether a sync reaches the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DurabilityVerdict {
    /// Each sync sent a flush.
    FlushesSeen,
    /// Every leaf claims a write-through cache.
    NoFlushNeeded,
    /// A write-back device got no flush.
    NoFlushSeen,
    /// Known to lose acknowledged data.
    NotDurable,
    /// Cannot be told from here.
    NotProvable,
    /// Nobody asked.
    #[default]
    NotTested,
}

impl DurabilityVerdict {
    /// As written in JSON and CSV.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FlushesSeen => "flushes-seen",
            Self::NoFlushNeeded => "no-flush-needed",
            Self::NoFlushSeen => "no-flush-seen",
            Self::NotDurable => "not-durable",
            Self::NotProvable => "not-provable",
            Self::NotTested => "not-tested",
        }
    }

    /// Settings may be recommended under this verdict.
    #[must_use]
    pub const fn may_recommend(self) -> bool {
        matches!(self, Self::FlushesSeen | Self::NoFlushNeeded)
    }
}

/// One ground of the durability verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ground {
    /// From the closed list of `docs/format.md`.
    pub id: String,
    /// `for`, `against` or `limits`.
    pub weight: Weight,
    /// What was seen.
    pub value: Value,
    /// Unit of `value`.
    pub unit: Option<String>,
    /// Where it was read.
    pub source: String,
    /// JSON pointer to the figure, where it stands in the report.
    pub evidence: Option<String>,
}

/// Which way a ground speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Speaks for durability.
    For,
    /// Speaks against it.
    Against,
    /// Bounds what can be said.
    Limits,
}

/// One case of one comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// Probe id.
    pub probe: String,
    /// Comparison id.
    pub comparison: String,
    /// Case id.
    pub case: String,
    /// The case it is compared with; null where nothing is compared.
    pub baseline: Option<String>,
    /// The series the figures are of.
    pub series: Option<String>,
    /// What the case was, so that two reports can be told comparable.
    pub params: BTreeMap<String, Value>,
    /// How it went.
    pub status: RowStatus,
    /// From the closed list of `docs/format.md`; null when ok.
    pub reason_code: Option<String>,
    /// For people.
    pub reason: Option<String>,
    /// The call that failed.
    pub fault: Option<FaultRecord>,
    /// Operations measured.
    pub ops: u64,
    /// Rounds measured.
    pub rounds: u64,
    /// `ops` over the sum of their times; in commit over wall time.
    pub ops_per_sec: Option<f64>,
    /// Mean time of an operation.
    pub mean_us: Option<Us>,
    /// Standard deviation of an operation.
    pub stddev_us: Option<Us>,
    /// Median.
    pub p50_us: Option<Us>,
    /// 95th percentile.
    pub p95_us: Option<Us>,
    /// 99th percentile; null under 1,000 operations.
    pub p99_us: Option<Us>,
    /// 99.9th percentile; null under 10,000 operations.
    pub p999_us: Option<Us>,
    /// Exact maximum.
    pub max_us: Option<Us>,
    /// Time over the baseline's time.
    pub ratio: Option<f64>,
    /// Interval of `ratio`, lower end.
    pub ratio_low: Option<f64>,
    /// Interval of `ratio`, upper end.
    pub ratio_high: Option<f64>,
    /// Median over the baseline's median.
    pub p50_ratio: Option<f64>,
    /// Its interval, lower end.
    pub p50_ratio_low: Option<f64>,
    /// Its interval, upper end.
    pub p50_ratio_high: Option<f64>,
    /// 99th percentile over the baseline's.
    pub p99_ratio: Option<f64>,
    /// Its interval, lower end.
    pub p99_ratio_low: Option<f64>,
    /// Its interval, upper end.
    pub p99_ratio_high: Option<f64>,
    /// Null where the comparison is not judged or the baseline has no figure.
    pub verdict: Option<Verdict>,
    /// WAL volume of the measured operations.
    pub wal_bytes: Option<u64>,
    /// Bytes handed to the kernel by the measured operations.
    pub bytes_written: Option<u64>,
    /// Bytes this process caused to be read from storage.
    pub own_bytes_read: Option<u64>,
    /// Bytes written to the filesystem's own devices.
    pub device_bytes_written: Option<u64>,
    /// Bytes read from the filesystem's own devices.
    pub device_bytes_read: Option<u64>,
    /// Syncs asked for, O_DSYNC and O_SYNC writes included.
    pub syncs: Option<u64>,
    /// Flushes the filesystem's own devices counted.
    pub flushes: Option<u64>,
    /// `flushes` over `ops`.
    pub flushes_per_op: Option<f64>,
    /// Whether a cold claim was proven; null where it does not apply.
    pub cold: Option<Cold>,
    /// What the claim rests on.
    pub cold_proof: Option<ColdProof>,
    /// Extents of the file, clipped to its size.
    pub extents: Option<u64>,
    /// Share of the file in unwritten extents, clipped to its size.
    pub unwritten_pct: Option<f64>,
    /// Space the file holds.
    pub allocated_bytes: Option<u64>,
    /// Where an operation's time went.
    pub phases: BTreeMap<String, PhaseFigures>,
    /// Further figures; names carry their unit.
    pub observations: BTreeMap<String, Value>,
    /// What casts doubt on the row.
    pub doubts: Vec<Doubt>,
    /// Distribution of the operations' times.
    pub histogram: Option<HistogramFigures>,
    /// One entry a block.
    pub blocks: Option<BlockFigures>,
    /// One entry a second in which operations ended.
    pub per_second: Option<PerSecond>,
}

/// How a case went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowStatus {
    /// Measured.
    #[default]
    Ok,
    /// The filesystem or kernel refuses the call as not supported.
    Unsupported,
    /// A call failed, or never answered.
    Fault,
    /// Planned and not measured.
    Skipped,
}

impl RowStatus {
    /// As written in JSON and CSV.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unsupported => "unsupported",
            Self::Fault => "fault",
            Self::Skipped => "skipped",
        }
    }
}

/// What a comparison says of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is what the others are compared with.
    Baseline,
    /// Takes less time.
    Faster,
    /// Takes more time.
    Slower,
    /// The same within the tie margin.
    Tie,
    /// Cannot be told from what was measured.
    Inconclusive,
}

impl Verdict {
    /// As written in JSON and CSV.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Tie => "tie",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// Whether a file was shown to be out of every cache we can ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cold {
    /// Shown.
    Proven,
    /// Shown not to be.
    NotCold,
    /// Could not be asked.
    Unknown,
}

impl Cold {
    /// As written in JSON and CSV.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::NotCold => "not-cold",
            Self::Unknown => "unknown",
        }
    }
}

/// What a cold claim rests on; sums over the row's blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ColdProof {
    /// `none`, `fadvise`, `system`, `zfs`, `cmd`.
    pub hook: String,
    /// `cold`, `not-cold` or `unknown`.
    pub data: String,
    /// The same of metadata.
    pub metadata: String,
    /// Pages still in the page cache; null where residency is not believed.
    pub resident_pages: Option<u64>,
    /// Pages asked about.
    pub pages: Option<u64>,
    /// `cachestat`, `mincore`, or null.
    pub residency_by: Option<String>,
    /// Bytes read of the witness file.
    pub witness_bytes: Option<u64>,
    /// Bytes of them that came from a device.
    pub witness_read_bytes: Option<u64>,
}

impl ColdProof {
    /// Adds another block's proof: sums of counts, the worse of the statements.
    pub fn add(&mut self, more: &Self) {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        self.resident_pages = sum(self.resident_pages, more.resident_pages);
        self.pages = sum(self.pages, more.pages);
        self.witness_bytes = sum(self.witness_bytes, more.witness_bytes);
        self.witness_read_bytes = sum(self.witness_read_bytes, more.witness_read_bytes);
        self.data = worse(&self.data, &more.data);
        self.metadata = worse(&self.metadata, &more.metadata);
    }

    /// The verdict on the data: a claim is proven only if every block's was.
    #[must_use]
    pub fn verdict(&self) -> Cold {
        match self.data.as_str() {
            "cold" => Cold::Proven,
            "not-cold" => Cold::NotCold,
            _ => Cold::Unknown,
        }
    }
}

fn worse(a: &str, b: &str) -> String {
    let rank = |s: &str| match s {
        "cold" => 0,
        "unknown" => 1,
        _ => 2,
    };
    if rank(a) >= rank(b) { a } else { b }.to_owned()
}

/// A call that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FaultRecord {
    /// The system call.
    pub call: String,
    /// Its errno; 0 when it never answered.
    pub errno: i32,
    /// Its name, as `EINVAL`.
    pub errno_name: String,
    /// The operation of the case, from 1; 0 in preparation.
    pub operation: u64,
    /// The file in the scratch folder.
    pub file: String,
}

/// Times of one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseFigures {
    /// Mean.
    pub mean_us: Us,
    /// Median.
    pub p50_us: Us,
    /// 99th percentile; null under 1,000 operations.
    pub p99_us: Option<Us>,
    /// Exact maximum.
    pub max_us: Us,
}

/// Something that casts doubt on a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Doubt {
    /// From the closed list of `docs/format.md`.
    pub code: String,
    /// How much.
    pub value: Option<f64>,
    /// Unit of `value`.
    pub unit: Option<String>,
    /// For people.
    pub text: String,
}

/// A log-bucketed histogram: counts of samples at most `upper_us`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistogramFigures {
    /// Upper bounds, ascending.
    pub upper_us: Vec<Us>,
    /// Samples in each bucket.
    pub count: Vec<u64>,
}

/// The measured blocks, in the order they ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockFigures {
    /// Round number, from 0.
    pub round: Vec<u64>,
    /// Place within the round, from 0.
    pub order: Vec<u64>,
    /// Start, milliseconds since the target's measurements began.
    pub at_ms: Vec<u64>,
    /// Operations.
    pub ops: Vec<u64>,
    /// Mean time of an operation.
    pub mean_us: Vec<Us>,
}

/// Figures for each second in which operations ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PerSecond {
    /// Second since the case's first measured block.
    pub t: Vec<u64>,
    /// Operations.
    pub ops: Vec<u64>,
    /// Least time.
    pub min_us: Vec<Us>,
    /// Greatest time.
    pub max_us: Vec<Us>,
    /// Sum of times.
    pub sum_us: Vec<f64>,
    /// Sum of squared times.
    pub sumsq_us2: Vec<f64>,
}

/// What follows for one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The setting, with `@ROLE` where the role is not any.
    pub id: String,
    /// The rule that says so.
    pub rule: String,
    /// The setting.
    pub setting: String,
    /// `any`, `primary` or `standby`.
    pub role: String,
    /// What to set; null only where `action` is inform.
    pub value: Option<String>,
    /// The server's default.
    pub default: Option<String>,
    /// `keep`, `change` or `inform`.
    pub action: String,
    /// `info`, `advice`, `warning` or `critical`.
    pub level: String,
    /// `high`, `medium` or `low`.
    pub confidence: String,
    /// First PostgreSQL version that has the setting; null for every supported one.
    pub since: Option<String>,
    /// What was measured.
    pub seen: String,
    /// What that means for PostgreSQL.
    pub means: String,
    /// What to set or keep.
    pub advice: String,
    /// What it costs.
    pub cost: Option<String>,
    /// When it applies.
    pub applies_when: String,
    /// When it does not.
    pub not_when: String,
    /// How to go back.
    pub undo: Option<String>,
    /// Size of the effect; null only where `action` is inform.
    pub effect: Option<Effect>,
    /// The figures it rests on; never empty.
    pub evidence: Vec<Evidence>,
}

/// Size of an effect, as a ratio of times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The comparison it is read off.
    pub of: String,
    /// Estimate.
    pub ratio: f64,
    /// Interval, lower end.
    pub low: f64,
    /// Interval, upper end.
    pub high: f64,
    /// Ratio of the 99th percentiles.
    pub p99_ratio: Option<f64>,
}

/// A figure of the report, by JSON pointer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// RFC 6901 pointer from the document's root.
    pub pointer: String,
    /// What it resolves to.
    pub value: Value,
}

/// A setting about which nothing can be said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotTested {
    /// The setting, with `@ROLE` where the role is not any.
    pub setting: String,
    /// From the closed list of reason codes.
    pub reason_code: String,
    /// For people.
    pub reason: String,
    /// The command that would tell.
    pub hint: Option<String>,
}

/// Margins of verdicts and recommendations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Margins {
    /// Least estimated difference for `faster` and `slower`.
    pub differ: f64,
    /// A tie's interval lies within 1/(1+tie) to 1+tie.
    pub tie: f64,
    /// A non-default value needs its interval's near end beyond this.
    pub action: f64,
}

impl Default for Margins {
    fn default() -> Self {
        Self {
            differ: 0.03,
            tie: 0.05,
            action: 0.10,
        }
    }
}
