//! What the user asked for, as the measuring half needs it: the one input of a worker.

use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};

/// How much to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Judged comparisons and the settings' own cases.
    Quick,
    /// All but the extras.
    #[default]
    Normal,
    /// Everything, segments walked whole.
    Thorough,
}

impl Profile {
    /// Seconds allowed for each directory.
    #[must_use]
    pub const fn seconds(self) -> f64 {
        match self {
            Self::Quick => 20.0,
            Self::Normal => 90.0,
            Self::Thorough => 600.0,
        }
    }

    /// Device bytes allowed for each directory.
    #[must_use]
    pub const fn budget_bytes(self) -> u64 {
        match self {
            Self::Quick => 1 << 30,
            Self::Normal => 2 << 30,
            Self::Thorough => 16 << 30,
        }
    }

    /// As written on the command line and in the report.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Normal => "normal",
            Self::Thorough => "thorough",
        }
    }
}

/// How old segments are put out of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DropCaches {
    /// The strongest that hurts nobody else.
    #[default]
    Auto,
    /// Nothing is dropped.
    None,
    /// `posix_fadvise(POSIX_FADV_DONTNEED)` after a sync.
    Fadvise,
}

impl DropCaches {
    /// As written on the command line and in `cold_proof.hook`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Fadvise => "fadvise",
        }
    }
}

/// One directory's worth of work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The directory as given.
    pub dir: String,
    /// Twelve characters, unique to the run.
    pub run_id: String,
    /// Probes to run, by id; durability always comes first.
    pub probes: Vec<String>,
    /// Id patterns to keep; empty keeps all.
    pub only: Vec<String>,
    /// Id patterns to leave out.
    pub skip: Vec<String>,
    /// How much to measure.
    pub profile: Profile,
    /// Seconds allowed.
    pub time_s: f64,
    /// Device bytes allowed.
    pub budget_bytes: u64,
    /// Seed of every random choice.
    pub seed: u64,
    /// Cache-drop hook.
    pub drop_caches: DropCaches,
    /// Bytes of WAL a commit, where the case does not name a size.
    pub commit_bytes: Option<u64>,
    /// Segment size (16 MiB).
    pub segment_bytes: u64,
    /// Syncs of the durability check; none leaves the number to the probe.
    #[serde(default)]
    pub syncs: Option<u64>,
    /// Go on where a directory looks like a live pg_wal or data directory.
    pub force: bool,
    /// Print the plan, create nothing.
    pub dry_run: bool,
    /// Seconds after which a call counts as never answering.
    pub op_timeout_s: f64,
}

/// Id patterns: `*` does not cross `/`; a pattern without `/` matches a probe or a case.
#[derive(Debug, Default)]
pub struct Selection {
    only: Vec<(bool, GlobMatcher)>,
    skip: Vec<(bool, GlobMatcher)>,
}

impl Selection {
    /// Compiles the patterns.
    ///
    /// # Errors
    /// The pattern that is not a glob, with the reason.
    pub fn new(only: &[String], skip: &[String]) -> Result<Self, String> {
        Ok(Self {
            only: compile(only)?,
            skip: compile(skip)?,
        })
    }

    /// Whether `PROBE/COMPARISON/CASE` is wanted.
    #[must_use]
    pub fn wants(&self, probe: &str, comparison: &str, case: &str) -> bool {
        let id = format!("{probe}/{comparison}/{case}");
        let prefix = format!("{probe}/{comparison}");
        let hit = |(whole, glob): &(bool, GlobMatcher)| {
            if *whole {
                glob.is_match(&id) || glob.is_match(&prefix)
            } else {
                glob.is_match(probe) || glob.is_match(case)
            }
        };
        (self.only.is_empty() || self.only.iter().any(hit)) && !self.skip.iter().any(hit)
    }
}

fn compile(patterns: &[String]) -> Result<Vec<(bool, GlobMatcher)>, String> {
    patterns
        .iter()
        .map(|p| {
            GlobBuilder::new(p)
                .literal_separator(true)
                .build()
                .map(|g| (p.contains('/'), g.compile_matcher()))
                .map_err(|e| format!("{p}: {}", e.kind()))
        })
        .collect()
}
