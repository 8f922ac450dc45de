//! btrfs: copy-on-write, compression, barrier, and all its devices (btrfs(5)).
//!
//! `nodatacow` is a mount option, NOCOW an inode flag that new files inherit from their
//! directory; either lets a file be overwritten in place (until a snapshot shares it). The
//! device number of a subvolume is invented, so members are found by the UUID.

use std::path::{Path, PathBuf};

use super::Subject;
use crate::{
    facts::{Roots, absent, block::Block, devices::by_number, known, place::Place, put},
    report::FactMap,
};

const MOUNTINFO: &str = "/proc/self/mountinfo";

pub(super) fn facts(subject: &Subject<'_>, facts: &mut FactMap) {
    let listed = subject.source(MOUNTINFO);
    let asked = subject.source("FS_IOC_GETFLAGS");
    let has = |name: &str| subject.option(name).is_some();
    put(facts, "fs.barrier", known(!has("nobarrier"), &listed));
    put(
        facts,
        "fs.delalloc",
        known(true, subject.source("filesystem type")),
    );

    let flags = subject.place.held.flags.as_ref();
    put(
        facts,
        "fs.nocow",
        match flags {
            Ok(flags) => known(flags.nocow, &asked),
            Err(why) => absent(&asked, why),
        },
    );
    if has("nodatacow") {
        put(facts, "fs.in_place", known("yes", &listed));
    } else if flags.is_ok_and(|f| f.nocow) {
        put(facts, "fs.in_place", known("yes", &asked));
    }

    let compress = ["compress-force", "compress"]
        .into_iter()
        .find_map(|name| subject.option(name));
    let fact = match (compress, flags) {
        (Some(method), _) if !method.is_empty() => known(method, listed),
        // An inode's flag without the option means the default method.
        (_, Ok(flags)) if flags.compressed => known("zlib", asked),
        _ => known("none", listed),
    };
    put(facts, "fs.compress", fact);
}

/// Every device of the filesystem.
pub(in crate::facts) fn members(place: &Place, roots: &Roots) -> Vec<Block> {
    let by_uuid = place
        .held
        .btrfs_uuid
        .as_ref()
        .map(|uuid| listed(&format!("/sys/fs/btrfs/{uuid}/devices"), roots))
        .filter(|found| !found.is_empty());
    by_uuid.unwrap_or_else(|| by_source(place, roots).into_iter().collect())
}

fn listed(dir: &str, roots: &Roots) -> Vec<Block> {
    let Ok(entries) = std::fs::read_dir(roots.at(dir)) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| Block::at(path)).collect()
}

/// The one device that was mounted, where the UUID cannot be asked.
fn by_source(place: &Place, roots: &Roots) -> Option<Block> {
    let source = &place.mount.as_ref().ok()?.source;
    let answers = roots.held(Path::new(source)).ok()?.statx.ok()?;
    answers
        .is_block_device
        .then(|| by_number(answers.rdev, roots))
        .flatten()
}
