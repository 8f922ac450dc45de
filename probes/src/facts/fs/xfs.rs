//! XFS: metadata journal, always with barriers (`nobarrier` went with Linux 4.19), always
//! with delayed allocation; its log may lie on a device of its own (xfs(5), `logdev`).

use std::path::Path;

use super::Subject;
use crate::{
    facts::{Roots, block::Block, devices::by_number, known, place::Place, put},
    report::FactMap,
};

pub(super) fn facts(subject: &Subject<'_>, facts: &mut FactMap) {
    let by_type = subject.source("filesystem type");
    let barrier = match subject.option("nobarrier") {
        Some(_) => known(false, subject.source("/proc/self/mountinfo")),
        None => known(true, &by_type),
    };
    put(facts, "fs.barrier", barrier);
    put(facts, "fs.delalloc", known(true, by_type));
}

/// The device of an external log: a sync flushes it too.
pub(in crate::facts) fn log_device(place: &Place, roots: &Roots) -> Option<Block> {
    let path = place.mount.as_ref().ok()?.super_option("logdev")?;
    let answers = roots.held(Path::new(&path)).ok()?.statx.ok()?;
    answers
        .is_block_device
        .then(|| by_number(answers.rdev, roots))
        .flatten()
}
