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
    /// `/proc/sys/vm/drop_caches`: everything of the whole host.
    System,
    /// Export and import of the ZFS pool.
    Zfs,
}

impl DropCaches {
    /// Every way, as help lists them.
    pub const ALL: [Self; 5] = [
        Self::Auto,
        Self::None,
        Self::Fadvise,
        Self::System,
        Self::Zfs,
    ];

    /// As written on the command line and in `cold_proof.hook`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Fadvise => "fadvise",
            Self::System => "system",
            Self::Zfs => "zfs",
        }
    }
}

/// What another thread does to the filesystem while a case is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Beside {
    /// Reads a file at random.
    Read,
    /// Writes a file in bulk.
    Write,
    /// Writes a few pages of a file and fsyncs it, again and again.
    Fsync,
}

impl Beside {
    /// All of it, as help lists it.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Fsync];

    /// As written on the command line and in `params`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Fsync => "fsync",
        }
    }
}

/// One directory's worth of work.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    /// The user's own cache-drop program and its arguments, in place of `drop_caches`.
    #[serde(default)]
    pub drop_caches_cmd: Option<Vec<String>>,
    /// What another thread does to the same filesystem meanwhile.
    #[serde(default)]
    pub beside: Option<Beside>,
    /// commit: how many clients commit beside each other; none leaves the numbers to the probe.
    #[serde(default)]
    pub clients: Option<Vec<u64>>,
    /// prealloc/cycles: how often a file is made, as in test_fallocate.
    #[serde(default)]
    pub cycles: Option<u64>,
    /// prealloc/cycles: how often each file is rewritten.
    #[serde(default)]
    pub rewrites: Option<u64>,
    /// Old segments that recycling takes turns with; none leaves the number to the probe.
    #[serde(default)]
    pub segments: Option<u64>,
    /// Bytes of WAL a commit, where the case does not name a size.
    pub commit_bytes: Option<u64>,
    /// Segment size (16 MiB).
    pub segment_bytes: u64,
    /// Syncs of the durability check; none leaves the number to the probe.
    #[serde(default)]
    pub syncs: Option<u64>,
    /// The target's own filesystem may be filled.
    #[serde(default)]
    pub fill: bool,
    /// Go on where a directory looks like a live pg_wal or data directory.
    pub force: bool,
    /// Print the plan, create nothing.
    pub dry_run: bool,
    /// Seconds after which a call counts as never answering.
    pub op_timeout_s: f64,
}

/// Id patterns: `*` does not cross `/`; a pattern without `/` matches a probe, a comparison or a case.
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
        let hit = |p: &(bool, GlobMatcher)| matches(p, probe, comparison, case);
        (self.only.is_empty() || self.only.iter().any(hit))
            && self.not_skipped(probe, comparison, case)
    }

    /// Whether no `skip` pattern names it.
    #[must_use]
    pub fn not_skipped(&self, probe: &str, comparison: &str, case: &str) -> bool {
        !self
            .skip
            .iter()
            .any(|p| matches(p, probe, comparison, case))
    }
}

fn matches((whole, glob): &(bool, GlobMatcher), probe: &str, comparison: &str, case: &str) -> bool {
    if *whole {
        glob.is_match(format!("{probe}/{comparison}/{case}"))
            || glob.is_match(format!("{probe}/{comparison}"))
    } else {
        [probe, comparison, case]
            .iter()
            .any(|part| glob.is_match(part))
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

#[cfg(test)]
mod tests {
    use super::Selection;

    fn only(pattern: &str) -> Selection {
        Selection::new(&[pattern.to_owned()], &[]).unwrap()
    }

    #[test]
    fn a_star_does_not_cross_a_slash() {
        assert!(only("sync/*").wants("sync", "commit", "fsync"));
        assert!(only("sync/*/f*").wants("sync", "commit", "fsync"));
        assert!(!only("sync/*/f*").wants("sync", "commit", "open_sync"));
        assert!(!only("*/fsync").wants("sync", "commit", "fsync"));
    }

    #[test]
    fn a_pattern_without_a_slash_is_a_probe_a_comparison_or_a_case() {
        assert!(only("recycle").wants("recycle", "life", "new+zero"));
        assert!(only("new+*").wants("recycle", "life", "new+zero"));
        assert!(only("life").wants("recycle", "life", "new+zero"));
        assert!(!only("life").wants("recycle", "life-cold", "new+zero"));
    }

    #[test]
    fn skip_wins_over_only() {
        let s = Selection::new(&["sync".into()], &["sync/commit/fsync".into()]).unwrap();
        assert!(s.wants("sync", "commit", "fdatasync"));
        assert!(!s.wants("sync", "commit", "fsync"));
        assert!(!s.not_skipped("sync", "commit", "fsync"));
    }

    #[test]
    fn a_bad_pattern_is_named() {
        assert!(
            Selection::new(&["a[".into()], &[])
                .unwrap_err()
                .starts_with("a[: ")
        );
    }
}
