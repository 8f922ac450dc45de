//! The device stack: from the filesystem's own devices down to the leaves.
//!
//! A partition leads to its disk, dm and md to their slaves, a loop device to the
//! filesystem of its backing file and on to that one's devices, a file that a pool is made
//! of likewise. Each edge has an entry: a disk below two partitions is listed below each.
//! The first device below another follows it directly, so a partition's disk is the next
//! entry.

use std::path::Path;

use super::{
    Roots,
    block::Block,
    fs::{Family, btrfs, ext4, family, pool, xfs},
    loops,
    place::{Layers, Place},
};
use crate::report::Device;

/// Deeper stacks are cut off; the last device is then no leaf.
const MOST_DEPTH: usize = 24;

/// Entries in all.
const MOST_DEVICES: usize = 512;

/// A device as a part of what lies on it.
#[derive(Clone, Debug)]
pub(super) struct Member {
    what: What,
    role: Option<&'static str>,
    group: Option<String>,
}

#[derive(Clone, Debug)]
enum What {
    Block(Block),
    /// The path of a file that a pool uses as a device.
    File(String),
    /// A device that is there and cannot be found, under a name of ours.
    Unseen(String),
}

impl From<Block> for Member {
    fn from(block: Block) -> Self {
        Self {
            what: What::Block(block),
            role: None,
            group: None,
        }
    }
}

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
pub(super) fn own(layers: &Layers, roots: &Roots) -> Vec<Member> {
    if layers.broken.is_some() {
        return Vec::new();
    }
    of_place(layers.last(), roots)
}

fn of_place(place: &Place, roots: &Roots) -> Vec<Member> {
    let kind = place.fs_type().map_or(Family::Other, family);
    if kind == Family::Btrfs {
        let members = btrfs::members(place, roots);
        return members.into_iter().map(Member::from).collect();
    }
    if kind == Family::Zfs {
        return of_pool(place, roots);
    }
    let Ok(answers) = &place.held.statx else {
        return Vec::new();
    };
    let Some(block) = by_number(answers.dev, roots) else {
        return Vec::new();
    };
    if kind == Family::Ext4 {
        return with_journal(block, roots);
    }
    let mut own = vec![Member::from(block)];
    if kind == Family::Xfs {
        own.extend(xfs::log_device(place, roots).map(|block| Member {
            role: Some("log"),
            ..Member::from(block)
        }));
    }
    own
}

/// A device, and that of the journal where an ext4 on it keeps that elsewhere.
pub(super) fn with_journal(block: Block, roots: &Roots) -> Vec<Member> {
    let journal = ext4::journal_device(&block.name, roots).map(|found| Member {
        what: match found {
            Ok(block) => What::Block(block),
            Err(_) => What::Unseen(format!("{}-journal", block.name)),
        },
        role: Some("journal"),
        group: None,
    });
    std::iter::once(Member::from(block))
        .chain(journal)
        .collect()
}

/// Why there are none stands in the fact `zfs.vdevs`.
fn of_pool(place: &Place, roots: &Roots) -> Vec<Member> {
    let leaves = pool::leaves(place, roots).unwrap_or_default();
    leaves
        .into_iter()
        .filter_map(|leaf| {
            let answers = roots
                .held(Path::new(&leaf.path))
                .and_then(|held| held.statx);
            let what = match answers {
                Ok(answers) if answers.is_file => What::File(leaf.path),
                Ok(answers) => What::Block(by_number(answers.rdev, roots)?),
                // A container may have no node for it, and yet see it in sysfs.
                Err(_) => {
                    let name = leaf.path.strip_prefix("/dev/")?;
                    What::Block(Block::at(&roots.at(&format!("/sys/class/block/{name}")))?)
                }
            };
            Some(Member {
                what,
                role: leaf.role,
                group: Some(leaf.group),
            })
        })
        .collect()
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
    fn all(&mut self, members: Vec<Member>, above: Option<&str>) {
        for member in members {
            self.one(member, above);
        }
    }

    fn one(&mut self, member: Member, above: Option<&str>) {
        let name = match &member.what {
            What::Block(block) => block.name.clone(),
            What::File(path) | What::Unseen(path) => path.clone(),
        };
        if self.trail.contains(&name) || self.found.len() >= MOST_DEVICES {
            return;
        }
        let (described, below) = match member.what {
            What::Block(block) => self.block(&block),
            What::File(path) => self.file(path),
            What::Unseen(name) => (unseen(name), Vec::new()),
        };
        self.found.push(Device {
            above: above.map(str::to_owned),
            role: member.role.map(str::to_owned),
            group: member.group,
            leaf: below.is_empty(),
            ..described
        });
        if self.trail.len() + 1 < MOST_DEPTH {
            self.trail.push(name.clone());
            self.all(below, Some(&name));
            self.trail.pop();
        }
    }

    fn block(&self, block: &Block) -> (Device, Vec<Member>) {
        let mut device = block.describe(self.on_virtual_machine);
        let below = if block.is_partition() {
            block.parent().map(Member::from).into_iter().collect()
        } else if block.is_loop() {
            let backing = loops::backing(block, self.roots);
            device.backing = backing.path;
            device.backing_fs = backing.fs_type;
            backing.devices
        } else {
            let paths = block.paths();
            if paths.is_empty() {
                block.slaves().into_iter().map(Member::from).collect()
            } else {
                let path = |block: Block| Member {
                    group: Some(block.name.clone()),
                    ..Member::from(block)
                };
                paths.into_iter().map(path).collect()
            }
        };
        (device, below)
    }

    fn file(&self, path: String) -> (Device, Vec<Member>) {
        let layers = self.roots.held(Path::new(&path));
        let layers = layers.map(|held| Layers::of(held, self.roots)).ok();
        let device = Device {
            name: path.clone(),
            kind: "other".to_owned(),
            is_virtual: Some(false),
            backing: Some(path),
            backing_fs: layers.as_ref().and_then(loops::type_of),
            ..Device::default()
        };
        let below = layers.map(|layers| own(&layers, self.roots));
        (device, below.unwrap_or_default())
    }
}

/// Nothing is known of it, and so nothing is claimed.
fn unseen(name: String) -> Device {
    Device {
        name,
        kind: "other".to_owned(),
        is_virtual: Some(false),
        ..Device::default()
    }
}
