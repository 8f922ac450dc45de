//! What can be known without writing: each file reads, none judges.
//!
//! The held descriptor leads: statx names its mount, mountinfo says what that is, and
//! sysfs what lies below; nothing is looked up by path that the descriptor can answer. An
//! overlay hands every sync to its upper layer, so the specifics and the device stack are
//! the upper layer's. Every name of [`names`] has a fact: one that cannot be read has a
//! null value and says why.

use std::{collections::BTreeMap, os::fd::BorrowedFd};

use serde_json::Value;

use crate::report::{Device, Fact, FactMap};

mod block;
mod cgroup;
mod devices;
mod fs;
mod held;
mod host;
mod loops;
pub mod mountinfo;
pub mod mountstats;
pub mod names;
mod place;
pub mod preload;
mod program;
mod roots;
mod space;
mod virtualised;

pub use block::{counts_no_flushes, in_memory as is_memory_device};
pub use fs::{Family, family};
pub use held::{Held, Space};
pub use roots::Roots;
pub use space::of_file;

use place::Layers;

/// Facts of one target.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// `host.*` facts.
    pub host: FactMap,
    /// All others.
    pub target: FactMap,
    /// The device stack, the filesystem's own devices first.
    pub devices: Vec<Device>,
}

impl Facts {
    /// A fact's text, where it is one.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.value.as_str()
    }

    /// A fact's number, where it is one.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.value.as_u64()
    }

    /// A fact's yes or no, where it is one.
    #[must_use]
    pub fn truth(&self, name: &str) -> Option<bool> {
        self.get(name)?.value.as_bool()
    }

    /// A fact by its dotted name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Fact> {
        let map: &BTreeMap<String, Fact> = if name.starts_with("host.") {
            &self.host
        } else {
            &self.target
        };
        map.get(name)
    }

    /// The filesystem's own devices: those with nothing above them.
    pub fn own_devices(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().filter(|d| d.above.is_none())
    }
}

/// Reads all facts of an open directory; `path` is its resolved path, for the report only.
#[must_use]
pub fn read(dir: BorrowedFd<'_>, path: &str, roots: &Roots) -> Facts {
    read_held(Held::of_dir(dir), path, roots)
}

/// The same, where the descriptor's answers are given: recorded ones, in tests.
#[must_use]
pub fn read_held(held: Held, path: &str, roots: &Roots) -> Facts {
    let layers = Layers::of(held, roots);
    let host = host::read(roots);
    let on_virtual_machine = host
        .get("host.virtual")
        .and_then(|f| f.value.as_str())
        .is_none_or(|v| v != "no");
    let devices = devices::stack(&layers, on_virtual_machine, roots);

    let mut target = FactMap::new();
    put(&mut target, "target.path", known(path, "command line"));
    place::facts(layers.top(), &mut target);
    space::facts(layers.top(), &mut target);
    fs::facts(&layers, &devices, roots, &mut target);
    names::fill(&mut target);
    Facts {
        host,
        target,
        devices,
    }
}

/// A fact that could be read.
fn known(value: impl Into<Value>, source: impl Into<String>) -> Fact {
    Fact {
        value: value.into(),
        source: source.into(),
        why: None,
    }
}

/// A fact that could not be read, or that does not apply.
fn absent(source: impl Into<String>, why: impl Into<String>) -> Fact {
    Fact {
        value: Value::Null,
        source: source.into(),
        why: Some(why.into()),
    }
}

/// Either, from a reading.
fn either<T: Into<Value>>(read: Result<T, String>, source: &str) -> Fact {
    match read {
        Ok(value) => known(value, source),
        Err(why) => absent(source, why),
    }
}

fn put(facts: &mut FactMap, name: &str, fact: Fact) {
    facts.insert(name.to_owned(), fact);
}
