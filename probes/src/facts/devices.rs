//! The device stack: from the filesystem's own devices down to the leaves.
//!
//! A partition leads to its disk, dm and md to their slaves, a loop device to the
//! filesystem of its backing file and on to that one's devices. Each edge has an entry: a
//! disk below two partitions is listed below each. The first device below another follows
//! it directly, so a partition's disk is the next entry.

use super::{
    Roots,
    block::Block,
    fs::{Family, btrfs, family, xfs},
    loops,
    place::{Layers, Place},
};
use crate::report::Device;

/// Deeper stacks are cut off; the last device is then no leaf.
const MOST_DEPTH: usize = 24;

/// Entries in all.
const MOST_DEVICES: usize = 512;

/// The stack below the place where a sync ends.
pub(super) fn stack(layers: &Layers, on_virtual_machine: bool, roots: &Roots) -> Vec<Device> {
    let mut walk = Walk {
        on_virtual_machine,
        roots,
        trail: Vec::new(),
        found: Vec::new(),
    };
    walk.all(own(layers, roots), None);
    walk.found
}

/// The devices that a filesystem lies on; none for one that has none or hides them.
pub(super) fn own(layers: &Layers, roots: &Roots) -> Vec<Block> {
    if layers.broken.is_some() {
        return Vec::new();
    }
    of_place(layers.last(), roots)
}

fn of_place(place: &Place, roots: &Roots) -> Vec<Block> {
    let kind = place.fs_type().map_or(Family::Other, family);
    if kind == Family::Btrfs {
        return btrfs::members(place, roots);
    }
    let Ok(answers) = &place.held.statx else {
        return Vec::new();
    };
    let mut own: Vec<Block> = by_number(answers.dev, roots).into_iter().collect();
    if kind == Family::Xfs {
        own.extend(xfs::log_device(place, roots));
    }
    own
}

/// A block device by its number; none for the invented ones of major 0.
pub(super) fn by_number((major, minor): (u32, u32), roots: &Roots) -> Option<Block> {
    if major == 0 {
        return None;
    }
    Block::at(&roots.at(&format!("/sys/dev/block/{major}:{minor}")))
}

struct Walk<'a> {
    on_virtual_machine: bool,
    roots: &'a Roots,
    /// Names from the top to here: a device below itself would never end.
    trail: Vec<String>,
    found: Vec<Device>,
}

impl Walk<'_> {
    fn all(&mut self, blocks: Vec<Block>, above: Option<&str>) {
        for block in blocks {
            self.one(&block, above);
        }
    }

    fn one(&mut self, block: &Block, above: Option<&str>) {
        if self.trail.contains(&block.name) || self.found.len() >= MOST_DEVICES {
            return;
        }
        let mut device = block.describe(self.on_virtual_machine);
        device.above = above.map(str::to_owned);
        let below = if block.is_partition() {
            block.parent().into_iter().collect()
        } else if block.is_loop() {
            let backing = loops::backing(block, self.roots);
            device.backing = backing.path;
            device.backing_fs = backing.fs_type;
            backing.devices
        } else {
            block.slaves()
        };
        device.leaf = below.is_empty();
        self.found.push(device);
        if self.trail.len() + 1 < MOST_DEPTH {
            self.trail.push(block.name.clone());
            self.all(below, Some(&block.name));
            self.trail.pop();
        }
    }
}
