//! tmpfs, ramfs and their kin: no device, no journal, nothing that a sync could reach.

use super::Subject;
use crate::{
    facts::{absent, put},
    report::FactMap,
};

pub(super) fn facts(subject: &Subject<'_>, facts: &mut FactMap) {
    for name in ["fs.barrier", "fs.delalloc"] {
        let why = format!("{} has no device", subject.kind);
        put(facts, name, absent(subject.source("filesystem type"), why));
    }
}
