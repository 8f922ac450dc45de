//! btrfs: copy-on-write, compression, barrier, and all its devices (btrfs(5)).
//!
//! `nodatacow` is a mount option, NOCOW an inode flag that new files inherit from their
//! directory; either lets a file be overwritten in place (until a snapshot shares it), and
//! such a file is not compressed. A directory mounted `nodatacow` has no flag itself. The
//! device number of a subvolume is invented, so members are found by the UUID.

use std::path::{Path, PathBuf};

use super::Subject;
use crate::{
    facts::{Roots, absent, block::Block, devices::by_number, known, place::Place, put},
    report::FactMap,
    sys::flags::Flags,
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

    let told = Told {
        nodatacow: has("nodatacow"),
        compress: subject.option("compress"),
        force: subject.option("compress-force"),
        flags: subject.place.held.flags.as_ref().ok(),
        property: subject.place.held.btrfs_compression.as_deref(),
    };
    let source = |by| match by {
        By::Mount => &listed,
        By::Inode => &asked,
    };
    match (told.nocow(), &subject.place.held.flags) {
        (Some((nocow, by)), _) => {
            put(facts, "fs.nocow", known(nocow, source(by)));
            if nocow {
                put(facts, "fs.in_place", known("yes", source(by)));
            }
        }
        (None, Err(why)) => put(facts, "fs.nocow", absent(&asked, why)),
        (None, Ok(_)) => {}
    }
    let (method, by) = told.compress();
    put(facts, "fs.compress", known(method, source(by)));
}

/// What the mount and the directory say of new files.
#[derive(Debug, Default)]
struct Told<'a> {
    nodatacow: bool,
    compress: Option<String>,
    force: Option<String>,
    flags: Option<&'a Flags>,
    property: Option<&'a str>,
}

/// Which of the two decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Mount,
    Inode,
}

impl Told<'_> {
    /// None where nothing tells.
    fn nocow(&self) -> Option<(bool, By)> {
        match self.flags {
            _ if self.nodatacow => Some((true, By::Mount)),
            flags => flags.map(|flags| (flags.nocow, By::Inode)),
        }
    }

    /// In the order in which the kernel decides (`inode_need_compress`, `compress_file_range`).
    fn compress(&self) -> (String, By) {
        let none = "none".to_owned();
        if let Some((true, by)) = self.nocow() {
            return (none, by);
        }
        let flag = |of: fn(&Flags) -> bool| self.flags.is_some_and(of);
        if self.force.is_none() && flag(|flags| flags.incompressible) {
            return (none, By::Inode);
        }
        if let Some(method) = self.property.filter(|method| !method.is_empty()) {
            return (method.to_owned(), By::Inode);
        }
        let mounted = self.force.as_ref().or(self.compress.as_ref());
        match mounted.filter(|method| !method.is_empty()) {
            Some(method) => (method.clone(), By::Mount),
            // The flag without a method means the default one.
            None if flag(|flags| flags.compressed) => ("zlib".to_owned(), By::Inode),
            None => (none, By::Mount),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Flags = Flags {
        nocow: false,
        compressed: false,
        incompressible: false,
    };

    fn mounted(compress: &str) -> Told<'static> {
        Told {
            compress: Some(compress.to_owned()),
            flags: Some(&PLAIN),
            ..Told::default()
        }
    }

    fn method(told: &Told<'_>) -> String {
        told.compress().0
    }

    #[test]
    fn the_mount_option_needs_no_flag() {
        let told = Told {
            nodatacow: true,
            flags: Some(&PLAIN),
            ..Told::default()
        };
        assert_eq!(told.nocow(), Some((true, By::Mount)));
        assert_eq!(told.compress(), ("none".to_owned(), By::Mount));
        assert_eq!(mounted("zstd:3").nocow(), Some((false, By::Inode)));
        assert_eq!(Told::default().nocow(), None);
    }

    #[test]
    fn what_is_not_copied_is_not_compressed() {
        let flags = Flags {
            nocow: true,
            compressed: true,
            ..PLAIN
        };
        let told = Told {
            flags: Some(&flags),
            property: Some("lzo"),
            ..mounted("zstd:3")
        };
        assert_eq!(told.compress(), ("none".to_owned(), By::Inode));
    }

    #[test]
    fn the_directory_says_more_than_the_mount() {
        assert_eq!(method(&mounted("zstd:3")), "zstd:3");
        let not = Flags {
            incompressible: true,
            ..PLAIN
        };
        let told = Told {
            flags: Some(&not),
            ..mounted("zstd:3")
        };
        assert_eq!(told.compress(), ("none".to_owned(), By::Inode));
        let forced = Told {
            force: Some("lzo".to_owned()),
            ..told
        };
        assert_eq!(method(&forced), "lzo");
        let compressed = Flags {
            compressed: true,
            ..PLAIN
        };
        let told = Told {
            flags: Some(&compressed),
            property: Some("lzo"),
            ..mounted("zstd:3")
        };
        assert_eq!(method(&told), "lzo");
        let told = Told {
            flags: Some(&compressed),
            ..Told::default()
        };
        assert_eq!(told.compress(), ("zlib".to_owned(), By::Inode));
    }
}
