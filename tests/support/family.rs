//! Processes and who started them, from `/proc`.
//!
//! A process is known by its id and its start time, so that a later process with the same id is
//! never taken for it: only what a test started is ever killed.

use std::fs;

use rustix::process::{Pid, Signal};

/// A process, told from a later one with the same id by its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// Its id.
    pub id: u32,
    started: u64,
}

impl Process {
    /// It is there and not a zombie.
    #[must_use]
    pub fn lives(self) -> bool {
        Stat::read(self.id)
            .is_some_and(|stat| stat.started == self.started && !"ZX".contains(stat.state))
    }

    /// SIGKILL, if it is still the same process.
    pub fn kill(self) {
        if self.lives()
            && let Some(pid) = pid(self.id)
        {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }

    /// All living processes below a process, whoever started them.
    #[must_use]
    pub fn descendants_of(root: u32) -> Vec<Self> {
        let table: Vec<_> = fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(|id| Some((id, Stat::read(id)?)))
            .collect();
        let mut found: Vec<Self> = Vec::new();
        let mut parents = vec![root];
        while let Some(parent) = parents.pop() {
            for (id, stat) in table.iter().filter(|(_, stat)| stat.parent == parent) {
                parents.push(*id);
                found.push(Self {
                    id: *id,
                    started: stat.started,
                });
            }
        }
        found
    }
}

struct Stat {
    state: char,
    parent: u32,
    started: u64,
}

impl Stat {
    /// `/proc/PID/stat`: the name in parentheses may hold anything, so the fields are
    /// counted from the last parenthesis.
    fn read(id: u32) -> Option<Self> {
        let line = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let fields: Vec<_> = line.rsplit_once(')')?.1.split_whitespace().collect();
        Some(Self {
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

pub(crate) fn pid(id: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(id).ok()?)
}
