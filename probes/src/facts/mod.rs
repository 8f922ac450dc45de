//! What can be known without writing: each file reads, none judges.
use std::collections::BTreeMap;

use crate::report::{Device, Fact, FactMap};

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
