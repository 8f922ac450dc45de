//! What a worker tells its parent, one JSON object a line.
//!
//! The parent builds the report from these alone, so whatever a worker has told
//! survives its death. A row told again replaces the earlier one of the same
//! `(probe, comparison, case)`.

use serde::{Deserialize, Serialize};

use crate::report::{Device, Durability, FactMap, FaultRecord, Row};

/// One case that will have a row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedCase {
    /// Probe id.
    pub probe: String,
    /// Comparison id.
    pub comparison: String,
    /// Case id.
    pub case: String,
    /// The case it is compared with.
    pub baseline: Option<String>,
    /// The series the row's figures are of.
    #[serde(default)]
    pub series: Option<String>,
    /// What the case is.
    #[serde(default)]
    pub params: std::collections::BTreeMap<String, serde_json::Value>,
    /// Index of the group whose blocks alternate with it.
    pub group: usize,
    /// Index of the case in its group: rows with the same one are views on the same operations.
    #[serde(default)]
    pub index: usize,
    /// Estimated bytes to write.
    pub bytes: u64,
    /// Estimated seconds.
    pub seconds: f64,
    /// Largest space taken at one time.
    pub file_bytes: u64,
    /// Not measured, since another row is the same: why. Its row is complete as planned.
    #[serde(default)]
    pub same_as: Option<String>,
}

/// A worker's message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The target cannot be used; nothing was created.
    Refused {
        /// `cannot use /mnt/x: Read-only file system (os error 30)`.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// The scratch folder exists from here on.
    Scratch {
        /// Its absolute path.
        path: String,
    },
    /// What is known without measuring.
    Facts {
        /// The directory as resolved.
        dir: String,
        /// `host.*` facts.
        host: FactMap,
        /// All others.
        target: FactMap,
        /// The device stack.
        devices: Vec<Device>,
    },
    /// Every case that will have a row.
    Plan {
        /// In report order.
        cases: Vec<PlannedCase>,
    },
    /// The worker is about to do something for this case.
    Doing {
        /// Probe id.
        probe: String,
        /// Comparison id of the group's first comparison.
        comparison: String,
        /// Case id.
        case: String,
        /// Round, from 0.
        round: u64,
    },
    /// Sent about every second while calls return; silence means that one does not.
    Alive {
        /// Bytes written so far.
        bytes_written: u64,
    },
    /// Rows, whole or so far.
    Rows {
        /// Later ones replace earlier ones.
        rows: Vec<Row>,
        /// They are final: worth saving.
        done: bool,
    },
    /// The durability verdict.
    Durability {
        /// Grounds' evidence points into this target's rows by `/rows/...`, without the target's prefix.
        durability: Durability,
    },
    /// For people, on stderr.
    Note {
        /// One line.
        text: String,
    },
    /// A test asked for a pause here (builds with debug assertions only).
    Paused {
        /// Name of the point.
        point: String,
    },
    /// The last message.
    Done {
        /// Bytes written to the target.
        bytes_written: u64,
        /// Paths that could not be removed.
        left_behind: Vec<String>,
        /// The target could not be measured to the end, and why.
        fault: Option<String>,
        /// The call that told so.
        #[serde(default)]
        failed: Option<FaultRecord>,
        /// `time` or `budget` when that ended it.
        ended_by: Option<String>,
    },
}
