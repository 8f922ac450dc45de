//! The device stack as a graph: who bears a cache, and what lies below whom.
//!
//! Partitions, LVM, dm, dm-crypt and md hand flushes on and (in current kernels) do not
//! count them; what they lie on is asked instead. A loop device is different: its cache is
//! the page cache of the filesystem below it, whatever its queue says.

use std::collections::BTreeSet;

use crate::{facts::Facts, report::Device};

/// Hands flushes on without a cache of its own.
pub(super) fn is_transparent(device: &Device) -> bool {
    matches!(
        device.kind.as_str(),
        "partition" | "lvm" | "crypt" | "dm" | "md"
    ) || (device.kind == "other" && !device.leaf)
}

/// A file that a pool uses as a device.
pub(super) fn is_file(device: &Device) -> bool {
    device.kind == "other" && device.backing.is_some()
}

/// A journal or log on a device of its own: it takes part where metadata must be written,
/// so not in a sync of data that lie where they lay. A pool's log has a group.
pub(super) fn is_journal(device: &Device) -> bool {
    device.group.is_none() && matches!(device.role.as_deref(), Some("journal" | "log"))
}

/// Claims that a completed write is on the medium.
pub(super) fn is_write_through(device: &Device) -> bool {
    device.kind != "loop" && device.write_cache.as_deref() == Some("write through")
}

/// The devices directly below one; each once.
pub(super) fn below<'a>(facts: &'a Facts, name: &str) -> Vec<&'a Device> {
    let mut seen = BTreeSet::new();
    facts
        .devices
        .iter()
        .filter(|d| d.above.as_deref() == Some(name) && seen.insert(d.name.as_str()))
        .collect()
}

/// One of the filesystem's own devices, or the disk of a partition that is: what the row's
/// own counters are of.
pub(super) fn is_own(facts: &Facts, device: &Device) -> bool {
    facts
        .devices
        .iter()
        .filter(|d| d.name == device.name)
        .any(|d| {
            let Some(above) = d.above.as_deref() else {
                return true;
            };
            facts
                .own_devices()
                .any(|own| own.name == above && own.kind == "partition")
        })
}

/// The filesystem's own devices that take its data, or what the transparent ones among them
/// lie on. `counts` tells whether a device has counted a flush.
pub(super) fn own_bearers<'a>(facts: &'a Facts, counts: &dyn Fn(&str) -> bool) -> Vec<&'a Device> {
    let own = facts.own_devices().filter(|d| !is_journal(d)).collect();
    bearers(facts, own, counts)
}

/// The same of its journals.
pub(super) fn journal_bearers<'a>(
    facts: &'a Facts,
    counts: &dyn Fn(&str) -> bool,
) -> Vec<&'a Device> {
    let own = facts.own_devices().filter(|d| is_journal(d)).collect();
    bearers(facts, own, counts)
}

/// There, and not found: see `facts::devices`.
pub(super) fn is_unseen(device: &Device) -> bool {
    is_journal(device) && device.kind == "other" && device.name.ends_with("-journal")
}

/// These devices, or what the transparent ones among them lie on.
pub(super) fn bearers<'a>(
    facts: &'a Facts,
    start: Vec<&'a Device>,
    counts: &dyn Fn(&str) -> bool,
) -> Vec<&'a Device> {
    let mut found: Vec<&Device> = Vec::new();
    let mut visited = BTreeSet::new();
    let mut todo = start;
    while let Some(device) = todo.pop() {
        if !visited.insert(device.name.as_str()) {
            continue;
        }
        let lower = below(facts, &device.name);
        // Of several paths to a disk one takes the flush: asked one by one, the others fail.
        let one_of_them = lower.iter().any(|d| d.group.is_some()) && !is_file(device);
        if is_transparent(device) && !counts(&device.name) && !lower.is_empty() && !one_of_them {
            todo.extend(lower);
        } else {
            found.push(device);
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Every device that nothing is known to lie below; each once.
pub(super) fn leaves(facts: &Facts) -> Vec<&Device> {
    let mut seen = BTreeSet::new();
    facts
        .devices
        .iter()
        .filter(|d| d.leaf && seen.insert(d.name.as_str()))
        .collect()
}

/// Only disks with a name of their own and partitions of them, and one rotates.
pub(super) fn is_physical_rotating(facts: &Facts) -> bool {
    let plain = |d: &Device| {
        matches!(d.kind.as_str(), "disk" | "partition")
            && d.is_virtual == Some(false)
            && d.model.is_some()
    };
    facts.text("host.virtual") == Some("no")
        && !facts.devices.is_empty()
        && facts.devices.iter().all(plain)
        && facts.devices.iter().any(|d| d.rotational == Some(true))
}

/// `vda`, `sda and sdb`.
pub(super) fn names(devices: &[&Device]) -> String {
    let names: Vec<&str> = devices.iter().map(|d| d.name.as_str()).collect();
    match names.as_slice() {
        [] => "no device".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// `/sys/block/sda/stat, /sys/block/sdb/stat`.
pub(super) fn stat_files(devices: &[&Device]) -> String {
    let files: Vec<String> = devices
        .iter()
        .map(|d| format!("/sys/block/{}/stat", d.name))
        .collect();
    files.join(", ")
}
