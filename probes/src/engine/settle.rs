//! What makes a filesystem write out what it put off.
//!
//! syncfs(2) does, but on ZFS, where it commits no more than the intent log: the blocks follow with
//! their transaction group, up to `zfs_txg_timeout` (5 s) later, and would land in a neighbour's
//! block. `zpool sync POOL` (zpool-sync(8), for everybody) ends the group at once. Without it the
//! group's state is read off the pool's kstat `txgs` until it is committed.

use std::{ffi::OsStr, path::PathBuf, time::Duration};

use crate::{
    contract::{Clock, Pulse, Stop},
    facts::Facts,
    program::{Failure, Program, find},
};

/// `zpool sync` waits for two groups; on a slow pool a large one takes its time.
const SYNC_LIMIT: Duration = Duration::from_secs(60);
/// Without it: three groups, each begun after 5 s by itself.
const GROUP_LIMIT_NS: u64 = 20_000_000_000;
const STEP: Duration = Duration::from_millis(50);

/// What has to be done besides syncfs.
#[derive(Debug, Default)]
pub enum WriteOut {
    /// Nothing.
    #[default]
    Syncfs,
    /// The pool's transaction group has to end.
    Pool {
        /// Its name.
        name: String,
        /// The program `zpool`, where there is one.
        zpool: Option<PathBuf>,
        /// The kstat.
        groups: PathBuf,
    },
}

impl WriteOut {
    /// What the target's filesystem needs.
    #[must_use]
    pub fn of(facts: &Facts) -> Self {
        let dataset = facts.text("zfs.dataset");
        match (facts.text("fs.type"), dataset) {
            (Some("zfs"), Some(dataset)) => {
                let name = dataset.split(['/', '@']).next().unwrap_or(dataset);
                Self::Pool {
                    name: name.to_owned(),
                    zpool: find(OsStr::new("zpool")),
                    groups: PathBuf::from(format!("/proc/spl/kstat/zfs/{name}/txgs")),
                }
            }
            _ => Self::Syncfs,
        }
    }

    /// Has it written; false where that cannot be known.
    ///
    /// # Errors
    /// The run is to end.
    pub fn finish(&self, clock: &dyn Clock, pulse: &Pulse) -> Result<bool, Stop> {
        let Self::Pool {
            name,
            zpool,
            groups,
        } = self
        else {
            return Ok(true);
        };
        if let Some(zpool) = zpool {
            let sync = Program::new(zpool, SYNC_LIMIT).args(["sync", name]);
            match sync.in_root().run(pulse) {
                Ok(_) => return Ok(true),
                Err(Failure::Interrupted) => return Err(Stop::Interrupted),
                // Perhaps a version without the command, or no /dev/zfs here.
                Err(Failure::Told(_)) => {}
            }
        }
        let read = || std::fs::read_to_string(groups).unwrap_or_default();
        let Some(open) = open_group(&read()) else {
            return Ok(false);
        };
        let from = clock.now_ns();
        while clock.now_ns() - from < GROUP_LIMIT_NS {
            if is_committed(&read(), open) {
                return Ok(true);
            }
            if pulse.stopped() {
                return Err(Stop::Interrupted);
            }
            pulse.beat();
            std::thread::sleep(STEP);
        }
        Ok(false)
    }
}

/// Number and state of each group: a line of the kstat is `txg birth state ...`.
fn groups(text: &str) -> impl Iterator<Item = (u64, &str)> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?.parse().ok()?, words.nth(1)?))
    })
}

/// The group that takes what is written now.
fn open_group(text: &str) -> Option<u64> {
    groups(text)
        .filter(|(_, state)| *state == "O")
        .map(|(group, _)| group)
        .max()
}

/// A group is committed, or so old that it is not listed any more.
fn is_committed(text: &str, wanted: u64) -> bool {
    let listed = groups(text).find(|(group, _)| *group == wanted);
    match listed {
        Some((_, state)) => state == "C",
        None => groups(text).any(|(group, _)| group > wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{engine::clock::Monotonic, report::Fact};
    use serde_json::json;

    const TXGS: &str = "\
21 0 0x01 100 11200 5010000000 60000000000
txg      birth            state ndirty       nread        nwritten     reads    writes   otime        qtime        wtime        stime
41       59000000000      C     0            0            0            0        0        5100000      2000         1000         90000
42       59100000000      C     131072       0            262144       0        12       5100000      2000         1000         90000
43       59200000000      S     0            0            0            0        0        5100000      2000         1000         0
44       59300000000      O     0            0            0            0        0        0            0            0            0
";

    #[test]
    fn a_group_is_over_when_it_is_committed() {
        assert_eq!(open_group(TXGS), Some(44));
        assert!(!is_committed(TXGS, 44));
        assert!(!is_committed(TXGS, 43));
        assert!(is_committed(TXGS, 42));
        // The list holds the last ones only.
        assert!(is_committed(TXGS, 7));
        assert!(!is_committed("", 7));
        assert_eq!(open_group(""), None);
    }

    fn facts(kind: &str) -> Facts {
        let mut facts = Facts::default();
        for (name, value) in [("fs.type", kind), ("zfs.dataset", "tank/db/wal")] {
            let fact = Fact {
                value: json!(value),
                source: "test".to_owned(),
                why: None,
            };
            facts.target.insert(name.to_owned(), fact);
        }
        facts
    }

    #[test]
    fn only_zfs_needs_more_than_syncfs() {
        assert!(matches!(WriteOut::of(&facts("ext4")), WriteOut::Syncfs));
        match WriteOut::of(&facts("zfs")) {
            WriteOut::Pool { name, groups, .. } => {
                assert_eq!(name, "tank");
                assert_eq!(groups, PathBuf::from("/proc/spl/kstat/zfs/tank/txgs"));
            }
            WriteOut::Syncfs => panic!("a pool has transaction groups"),
        }
    }

    #[test]
    fn without_the_program_the_groups_are_read() -> std::io::Result<()> {
        let file = tempfile::NamedTempFile::new()?;
        let of = |zpool: Option<PathBuf>| WriteOut::Pool {
            name: "tank".to_owned(),
            zpool,
            groups: file.path().to_owned(),
        };
        let (clock, pulse) = (Monotonic::new(), Pulse::default());
        // It ends with 1: the kstat decides, and that one is empty.
        let failing = of(Some(PathBuf::from("/bin/false")));
        assert!(matches!(failing.finish(&clock, &pulse), Ok(false)));
        assert!(matches!(
            of(Some(PathBuf::from("/bin/true"))).finish(&clock, &pulse),
            Ok(true)
        ));

        std::fs::write(file.path(), TXGS)?;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                let later = TXGS.replace("O    ", "C    ");
                std::fs::write(file.path(), later)
            });
            let from = clock.now_ns();
            assert!(matches!(of(None).finish(&clock, &pulse), Ok(true)));
            assert!(clock.now_ns() - from >= 150_000_000);
        });
        Ok(())
    }
}
