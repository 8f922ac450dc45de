//! What a loop device lies on: its backing file, that file's filesystem and its devices.
//!
//! The driver turns a flush into an fsync of the backing file, so the stack goes on below
//! it. `/sys/block/loopN/loop/backing_file` is a path that may be deleted, or mean another
//! file in this mount namespace: what is found there must be long enough for the device
//! and, where the device may be asked, be the very inode it names. A file that is out of
//! sight may still be known by the device of its filesystem; else the loop device is a leaf.

use std::path::Path;

use super::{
    Roots,
    block::Block,
    devices::{Member, by_number, own, with_journal},
    fs::overlay,
    mountinfo,
    place::Layers,
};
use crate::sys::loopdev;

/// See the module docs; empty where nothing can be found.
#[derive(Debug, Default)]
pub(super) struct Backing {
    /// The file's path as sysfs tells it.
    pub(super) path: Option<String>,
    /// Type of the filesystem where its sync ends, see [`type_of`].
    pub(super) fs_type: Option<String>,
    /// That filesystem's devices.
    pub(super) devices: Vec<Member>,
}

pub(super) fn backing(block: &Block, roots: &Roots) -> Backing {
    let path = block.attribute("loop/backing_file");
    let asked = roots
        .is_live()
        .then(|| loopdev::backing(&roots.at(&format!("/dev/{}", block.name))).ok())
        .flatten();
    let at_path = path
        .as_deref()
        .and_then(|path| at_path(block, Path::new(path), asked, roots));
    let found = at_path.or_else(|| asked.and_then(|(dev, _)| by_device(dev, roots)));
    Backing {
        path,
        ..found.unwrap_or_default()
    }
}

fn at_path(
    block: &Block,
    path: &Path,
    asked: Option<((u32, u32), u64)>,
    roots: &Roots,
) -> Option<Backing> {
    let held = roots.held(path).ok()?;
    let answers = held.statx.clone().ok()?;
    if answers.is_block_device {
        return Some(Backing {
            devices: by_number(answers.rdev, roots)
                .map(Member::from)
                .into_iter()
                .collect(),
            ..Backing::default()
        });
    }
    let offset = block.attribute("loop/offset")?.parse::<u64>().ok()?;
    let same = match asked {
        Some((dev, inode)) => (dev, inode) == (answers.dev, answers.ino),
        None => answers.size >= offset.saturating_add(block.bytes()?),
    };
    if !answers.is_file || !same {
        return None;
    }
    let layers = Layers::of(held, roots);
    Some(Backing {
        path: None,
        fs_type: type_of(&layers),
        devices: own(&layers, roots),
    })
}

/// The filesystem of a file that has no path here: told by a mount of it that can still be
/// reached, else by its number alone.
fn by_device(dev: (u32, u32), roots: &Roots) -> Option<Backing> {
    let mounts = mountinfo::parse(&roots.bytes("/proc/self/mountinfo").ok()?);
    let mut listed = mounts
        .into_iter()
        .filter(|mount| mount.dev == dev)
        .peekable();
    let fs_type = listed.peek().map(|mount| mount.fs_type.clone());
    for mount in listed {
        let Ok(held) = roots.held(&mount.point) else {
            continue;
        };
        let layers = Layers::of(held, roots);
        // What is found there may have been mounted over it.
        if layers.top().mount.as_ref().is_ok_and(|m| m.id == mount.id) {
            return Some(Backing {
                path: None,
                fs_type: type_of(&layers),
                devices: own(&layers, roots),
            });
        }
    }
    let devices = by_number(dev, roots).map(|block| with_journal(block, roots));
    (fs_type.is_some() || devices.is_some()).then(|| Backing {
        path: None,
        fs_type,
        devices: devices.unwrap_or_default(),
    })
}

/// The type of the filesystem where a sync ends: an overlay's upper layer's. An overlay
/// that swallows syncs is `overlay volatile`, one whose upper layer is not known `overlay`.
pub(super) fn type_of(layers: &Layers) -> Option<String> {
    if layers.iter().any(overlay::is_volatile) {
        return Some("overlay volatile".to_owned());
    }
    layers.last().fs_type().map(str::to_owned)
}
