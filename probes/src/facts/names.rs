//! The closed list of facts: every name a report may have.
//!
//! Each name says of which filesystems it can be read, so that a fact that does not apply
//! says so and is told apart from one that could not be read.

use super::{absent, fs::family, put};
use crate::report::FactMap;

/// Facts about the host.
pub const HOST: &[&str] = &[
    "host.kernel",
    "host.cpus",
    "host.memory_bytes",
    "host.cgroup_memory_bytes",
    "host.cgroup_io",
    "host.dirty_ratio",
    "host.virtual",
    "host.container",
    "host.preload",
    "host.timer_ns",
    "host.clocksource",
    "host.libc",
];

/// Facts about the target, and the filesystem that has them (empty: every one).
pub const TARGET: &[(&str, &str)] = &[
    ("target.path", ""),
    ("mount.id", ""),
    ("mount.point", ""),
    ("mount.source", ""),
    ("mount.options", ""),
    ("fs.type", ""),
    ("fs.magic", ""),
    ("fs.subtype", ""),
    ("fs.block_bytes", ""),
    ("fs.fragment_bytes", ""),
    ("fs.total_bytes", ""),
    ("fs.free_bytes", ""),
    ("fs.in_place", ""),
    ("fs.journal_mode", "ext4"),
    ("fs.barrier", ""),
    ("fs.delalloc", ""),
    ("fs.nocow", "btrfs"),
    ("fs.compress", "btrfs"),
    ("statx.blksize_bytes", ""),
    ("statx.dio_mem_align_bytes", ""),
    ("statx.dio_offset_align_bytes", ""),
    ("statx.atomic_write_max_bytes", ""),
    ("overlay.upper", "overlay"),
    ("overlay.volatile", "overlay"),
    ("nfs.version", "NFS"),
    ("nfs.hard", "NFS"),
    ("nfs.sync", "NFS"),
    ("cifs.version", "CIFS"),
    ("cifs.cache", "CIFS"),
    ("cifs.strict_sync", "CIFS"),
    ("9p.cache", "9p"),
    ("9p.transport", "9p"),
    ("zfs.dataset", "ZFS"),
    ("zfs.recordsize_bytes", "ZFS"),
    ("zfs.compression", "ZFS"),
    ("zfs.sync", "ZFS"),
    ("zfs.logbias", "ZFS"),
    ("zfs.primarycache", "ZFS"),
    ("zfs.special_small_blocks_bytes", "ZFS"),
    ("zfs.direct", "ZFS"),
    ("zfs.version", "ZFS"),
    ("zfs.vdevs", "ZFS"),
    ("zfs.arc_bytes", "ZFS"),
    ("zfs.arc_max_bytes", "ZFS"),
];

/// Adds what no reader has put: it does not apply, or nobody can read it.
pub(super) fn fill(facts: &mut FactMap) {
    let text = |name: &str| {
        let fact = facts.get(name)?;
        fact.value.as_str().map(str::to_owned)
    };
    let kind = text("fs.type");
    let subtype = text("fs.subtype");
    for &(name, only) in TARGET {
        if facts.contains_key(name) {
            continue;
        }
        let applies = [kind.as_deref(), subtype.as_deref()]
            .into_iter()
            .flatten()
            .any(|kind| family(kind).name() == only);
        let (source, why) = match kind.as_deref() {
            None => ("filesystem type", "filesystem type not known".to_owned()),
            Some(_) if !only.is_empty() && !applies => ("filesystem type", format!("not {only}")),
            Some(kind) => ("filesystem type", format!("not known of {kind}")),
        };
        put(facts, name, absent(source, why));
    }
}
