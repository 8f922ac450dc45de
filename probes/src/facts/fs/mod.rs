//! What is peculiar to a filesystem, one file each, and the family a type belongs to.
//!
//! The facts are those of the filesystem where a sync ends; below an overlay their
//! source says so.

use std::fmt::Write as _;

use super::{
    Roots, absent, known,
    place::{Layers, Place},
    put,
};
use crate::report::{Device, FactMap};

pub(super) mod btrfs;
pub(super) mod ext4;
mod memory;
mod nfs;
pub(super) mod overlay;
pub(super) mod pool;
mod shares;
pub(super) mod xfs;
mod zfs;

/// What filesystem types have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// ext2, ext3 and ext4, all served by one driver.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// OpenZFS.
    Zfs,
    /// In memory: gone with the power.
    Memory,
    /// Hands everything to another filesystem.
    Overlay,
    /// NFS: the server decides.
    Nfs,
    /// Another machine decides.
    Network,
    /// A program decides.
    UserSpace,
    /// Any other.
    Other,
}

impl Family {
    /// As people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "XFS",
            Self::Btrfs => "btrfs",
            Self::Zfs => "ZFS",
            Self::Memory => "memory",
            Self::Overlay => "overlay",
            Self::Nfs => "NFS",
            Self::Network => "network",
            Self::UserSpace => "user space",
            Self::Other => "other",
        }
    }
}

/// The family of a type as mountinfo spells it, with or without subtype.
#[must_use]
pub fn family(fs_type: &str) -> Family {
    match fs_type.split('.').next().unwrap_or(fs_type) {
        "ext4" | "ext3" | "ext2" => Family::Ext4,
        "xfs" => Family::Xfs,
        "btrfs" => Family::Btrfs,
        "zfs" => Family::Zfs,
        "tmpfs" | "ramfs" | "devtmpfs" | "rootfs" | "hugetlbfs" => Family::Memory,
        "overlay" => Family::Overlay,
        "nfs" | "nfs4" => Family::Nfs,
        "cifs" | "smb3" | "9p" | "virtiofs" | "ceph" | "afs" | "lustre" | "beegfs" | "gpfs"
        | "vboxsf" | "prl_fs" | "pvfs2" | "coda" => Family::Network,
        "fuse" | "fuseblk" => Family::UserSpace,
        _ => Family::Other,
    }
}

/// The filesystem whose peculiarities are read.
pub(super) struct Subject<'a> {
    /// Where it is.
    pub(super) place: &'a Place,
    /// Its type.
    pub(super) kind: &'a str,
    /// Kernel name of its first device.
    pub(super) device: Option<&'a str>,
    /// Where to read.
    pub(super) roots: &'a Roots,
    /// Said after each source: empty, or of which layer it is.
    note: &'a str,
}

impl Subject<'_> {
    /// A source, with the layer it is of.
    pub(super) fn source(&self, of: &str) -> String {
        format!("{of}{}", self.note)
    }

    /// A mount option's value, empty where it has none.
    pub(super) fn option(&self, name: &str) -> Option<String> {
        self.place.mount.as_ref().ok()?.super_option(name)
    }
}

/// All facts that depend on the type.
pub(super) fn facts(layers: &Layers, devices: &[Device], roots: &Roots, facts: &mut FactMap) {
    overlay::facts(layers, facts);
    if let Some(why) = &layers.broken {
        for name in [
            "fs.in_place",
            "fs.journal_mode",
            "fs.barrier",
            "fs.delalloc",
        ] {
            put(facts, name, absent("upper layer", why));
        }
        return;
    }
    let place = layers.last();
    let Some(kind) = place.fs_type() else { return };
    let mut note = String::new();
    if layers.iter().count() > 1 {
        // Writing to a String cannot fail.
        let _ = write!(note, " of the upper layer, {kind}");
    }
    let subject = Subject {
        place,
        kind,
        device: devices.first().map(|d| d.name.as_str()),
        roots,
        note: &note,
    };
    put(
        facts,
        "fs.in_place",
        known(in_place(kind), subject.source("filesystem type")),
    );
    match family(kind) {
        Family::Ext4 => ext4::facts(&subject, facts),
        Family::Xfs => xfs::facts(&subject, facts),
        Family::Btrfs => btrfs::facts(&subject, facts),
        Family::Memory => memory::facts(&subject, facts),
        Family::Nfs => nfs::facts(&subject, facts),
        Family::Zfs => zfs::facts(&subject, facts),
        Family::Network => match kind {
            "cifs" | "smb3" => shares::cifs(&subject, facts),
            "9p" => shares::p9(&subject, facts),
            _ => {}
        },
        _ => {}
    }
}

/// Whether overwriting goes to the same place and so needs no new space.
fn in_place(kind: &str) -> &'static str {
    match family(kind) {
        Family::Ext4 | Family::Xfs | Family::Memory => "yes",
        // btrfs::facts knows better where copy-on-write is off.
        Family::Btrfs | Family::Zfs => "no",
        _ => match kind {
            "jfs" | "vfat" | "msdos" | "exfat" | "ocfs2" | "gfs2" => "yes",
            "nilfs2" => "no",
            _ => "unknown",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_their_families() {
        for (kind, is) in [
            ("ext3", Family::Ext4),
            ("fuse.sshfs", Family::UserSpace),
            ("fuseblk", Family::UserSpace),
            ("fusectl", Family::Other),
            ("nfs4", Family::Nfs),
            ("virtiofs", Family::Network),
            ("ramfs", Family::Memory),
            ("squashfs", Family::Other),
        ] {
            assert_eq!(family(kind), is, "{kind}");
        }
    }

    #[test]
    fn in_place_is_claimed_where_it_is_known() {
        for (kind, is) in [
            ("ext4", "yes"),
            ("xfs", "yes"),
            ("btrfs", "no"),
            ("zfs", "no"),
            ("tmpfs", "yes"),
            ("nfs4", "unknown"),
            ("f2fs", "unknown"),
            ("bcachefs", "unknown"),
        ] {
            assert_eq!(in_place(kind), is, "{kind}");
        }
    }
}
