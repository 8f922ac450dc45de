//! PostgreSQL versions: which of them has a setting.
//!
//! A setting that came with a minor version of several branches lists one entry a branch
//! (`16.12, 17.8, 18.2`): a branch in the list has it from that minor version on, a branch
//! newer than all of them has it, any other has not.

use std::{fmt, str::FromStr};

use walprobe_probes::report::Report;

/// Settings that not every supported version has, and the first that has them.
const SINCE: &[(&str, &str)] = &[
    ("file_extend_method", "16.12, 17.8, 18.2"),
    ("wal_init_zero", "12"),
    ("wal_recycle", "12"),
];

/// The first version that has the setting; `None` where every supported one has it.
#[must_use]
pub fn since(setting: &str) -> Option<&'static str> {
    SINCE
        .iter()
        .find(|(name, _)| *name == setting)
        .map(|(_, since)| *since)
}

/// A version of PostgreSQL; without a minor version, the newest of its branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    major: u32,
    minor: u32,
}

impl Version {
    /// Whether a setting that came `since` then is there.
    #[must_use]
    pub fn has(self, since: &str) -> bool {
        let entries: Vec<Self> = since
            .split(',')
            .filter_map(|entry| {
                let entry = entry.trim();
                let (major, minor) = entry.split_once('.').unwrap_or((entry, "0"));
                Some(Self {
                    major: major.parse().ok()?,
                    minor: minor.parse().ok()?,
                })
            })
            .collect();
        match entries.iter().find(|entry| entry.major == self.major) {
            Some(entry) => self.minor >= entry.minor,
            None => entries.iter().all(|entry| entry.major < self.major),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.minor == u32::MAX {
            write!(f, "{}", self.major)
        } else {
            write!(f, "{}.{}", self.major, self.minor)
        }
    }
}

impl FromStr for Version {
    type Err = String;

    /// `16`, `16.12`, `9.6`, `19beta1` (a version before its branch's first minor release).
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is not a PostgreSQL version such as 16 or 16.12");
        let released = ["devel", "alpha", "beta", "rc"]
            .iter()
            .find_map(|mark| text.split_once(mark))
            .map(|(major, _)| major);
        if let Some(major) = released {
            let major = major.parse().map_err(|_| wrong())?;
            return Ok(Self { major, minor: 0 });
        }
        // 9.6.24: before version 10 the branch is the first two numbers.
        let mut parts = text.split('.').map(str::parse::<u32>);
        let major = parts.next().and_then(Result::ok).ok_or_else(wrong)?;
        let minor = match parts.next() {
            None => u32::MAX,
            Some(minor) => minor.map_err(|_| wrong())?,
        };
        let more = parts
            .next()
            .is_some_and(|part| part.is_err() || major >= 10);
        if major == 0 || more || parts.next().is_some() {
            return Err(wrong());
        }
        Ok(Self { major, minor })
    }
}

/// Leaves out what a server of this version does not have.
pub fn for_version(report: &mut Report, version: Version) {
    let has = |since: Option<&str>| since.is_none_or(|since| version.has(since));
    for target in &mut report.targets {
        target.findings.retain(|f| has(f.since.as_deref()));
        target.not_tested.retain(|not| {
            let setting = not.setting.split('@').next().unwrap_or_default();
            has(since(setting))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(version: &str, since: &str) -> bool {
        version.parse::<Version>().expect("a version").has(since)
    }

    #[test]
    fn one_branch() {
        assert!(!has("11.22", "12"));
        assert!(!has("9.6.24", "12"));
        assert!(has("12", "12") && has("12.0", "12") && has("18.3", "12"));
        assert!(has("19beta1", "12"));
    }

    #[test]
    fn several_branches() {
        let since = "16.12, 17.8, 18.2";
        for version in ["16.12", "16", "17.8", "18.2", "19.0", "19beta1"] {
            assert!(has(version, since), "{version}");
        }
        for version in ["15.99", "15", "16.11", "17.7", "18.1", "18rc1"] {
            assert!(!has(version, since), "{version}");
        }
    }

    #[test]
    fn what_is_no_version() {
        for text in [
            "", "x", "16.", "16.x", "16.1.2", "0", "-1", "16 ", "9.6.1.1", "betax",
        ] {
            assert!(text.parse::<Version>().is_err(), "{text:?}");
        }
    }
}
