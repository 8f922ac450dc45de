//! The program `zfs`.

use std::{collections::BTreeMap, ffi::OsStr, path::PathBuf, time::Duration};

use crate::{
    contract::{Fault, Pulse},
    program::{Failure, Program, find},
    undo::Undo,
};

/// A property: its value, and where that comes from (`local`, `default`, `inherited from ...`).
pub(super) type Properties = BTreeMap<String, (String, String)>;

/// The program `zfs`.
#[derive(Debug)]
pub(super) struct Zfs {
    path: PathBuf,
    pub(super) limit: Duration,
}

impl Zfs {
    pub(super) fn find(limit: Duration) -> Result<Self, Failure> {
        let path = program("zfs")?;
        Ok(Self { path, limit })
    }

    pub(super) fn ask(&self, words: &[&str], pulse: &Pulse) -> Result<String, Failure> {
        Program::new(&self.path, self.limit)
            .args(words)
            .in_root()
            .not_stopped()
            .run(pulse)
    }

    /// Changes something, the lock of `log` held until it is done.
    pub(super) fn change(&self, words: &[&str], log: &Undo, pulse: &Pulse) -> Result<(), Failure> {
        let lock = log.lock_held().map_err(|e| told(&e))?;
        Program::new(&self.path, self.limit)
            .args(words)
            .stdin(lock)
            .in_root()
            .not_stopped()
            .run(pulse)
            .map(drop)
    }

    pub(super) fn properties(&self, name: &str, pulse: &Pulse) -> Result<Properties, Failure> {
        let words = ["get", "-Hp", "-o", "property,value,source", "all", name];
        let said = self.ask(&words, pulse)?;
        let line = |line: &str| {
            let mut words = line.split('\t').map(str::to_owned);
            Some((words.next()?, (words.next()?, words.next()?)))
        };
        Ok(said.lines().filter_map(line).collect())
    }
}

pub(super) fn program(name: &str) -> Result<PathBuf, Failure> {
    find(OsStr::new(name)).ok_or_else(|| Failure::Told(format!("there is no program {name}")))
}

pub(super) fn told(fault: &Fault) -> Failure {
    Failure::Told(fault.to_string())
}
