//! One block device, from its directory in sysfs.
//!
//! A partition has no queue of its own: its attributes are its disk's. `write_cache` is
//! the kernel's setting, by which it decides whether to send flushes; an administrator can
//! set it against the device's word, so a cache that either calls write back is reported
//! as that (Documentation/ABI/stable/sysfs-block).

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::report::Device;

/// Names of devices whose content lives in memory, before their number.
const IN_MEMORY: &[&str] = &["zram", "ram", "nullb"];

/// Names of devices served by another program or machine, before their number.
const SERVED: &[&str] = &["nbd", "rbd", "drbd", "ublkb", "zd"];

/// Names of devices whose drivers take whole requests past the queue that counts flushes.
const UNCOUNTED: &[&str] = &["zd", "drbd", "pmem"];

/// Models that hypervisors and clouds give their disks, in lower case.
const VIRTUAL_MODELS: &[&str] = &[
    "qemu",
    "vbox",
    "vmware",
    "virtual disk",
    "virtual_disk",
    "msft nvme",
    "amazon elastic block store",
    "amazon ec2",
    "persistentdisk",
    "nvme_card",
    "alibaba cloud",
    "block volume",
    "scsi_debug",
];

/// A device in sysfs.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Its directory, all links resolved.
    pub(super) dir: PathBuf,
    /// Its kernel name.
    pub(super) name: String,
}

impl Block {
    /// The device behind a link or directory of sysfs.
    pub(super) fn at(path: &Path) -> Option<Self> {
        let dir = path.canonicalize().ok()?;
        let name = dir.file_name()?.to_string_lossy().into_owned();
        Some(Self { dir, name })
    }

    pub(super) fn is_partition(&self) -> bool {
        self.dir.join("partition").exists()
    }

    pub(super) fn is_loop(&self) -> bool {
        self.dir.join("loop").is_dir()
    }

    /// The disk of a partition.
    pub(super) fn parent(&self) -> Option<Self> {
        Self::at(self.dir.parent()?)
    }

    /// The paths to the same disk, one of which takes each request; none where there is
    /// only the disk.
    pub(super) fn paths(&self) -> Vec<Self> {
        if self
            .attribute("dm/uuid")
            .is_some_and(|uuid| uuid.starts_with("mpath-"))
        {
            return self.slaves();
        }
        self.nvme_paths()
    }

    /// An NVMe disk that may have several paths, `nvme0n1`, lies with its subsystem; the
    /// paths `nvme0c1n1` lie with the controllers, and it is they that count flushes.
    fn nvme_paths(&self) -> Vec<Self> {
        let subsystem = self.dir.parent().filter(|dir| {
            let name = dir.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("nvme-subsys")
        });
        let (Some(subsystem), Some((disk, namespace))) = (subsystem, self.name.rsplit_once('n'))
        else {
            return Vec::new();
        };
        let listed = |dir: &Path| -> Vec<PathBuf> {
            let entries = fs::read_dir(dir).into_iter().flatten().flatten();
            entries.map(|e| e.path()).collect()
        };
        let is_path = |block: &Self| {
            block
                .name
                .strip_prefix(disk)
                .and_then(|rest| rest.strip_prefix('c'))
                .and_then(|rest| rest.split_once('n'))
                .is_some_and(|(_, number)| number == namespace)
        };
        let mut paths: Vec<Self> = listed(subsystem)
            .iter()
            .filter(|entry| **entry != self.dir)
            .flat_map(|controller| listed(controller))
            .filter_map(|path| Self::at(&path))
            .filter(is_path)
            .collect();
        paths.sort_by(|a, b| a.name.cmp(&b.name));
        paths
    }

    /// The devices that a stacked device lies on. What md keeps as a spare or has given up
    /// gets neither writes nor flushes (Documentation/admin-guide/md.rst).
    pub(super) fn slaves(&self) -> Vec<Self> {
        let Ok(entries) = fs::read_dir(self.dir.join("slaves")) else {
            return Vec::new();
        };
        let idle = |name: &str| {
            self.attribute(&format!("md/dev-{name}/state"))
                .is_some_and(|state| state.split(',').any(|s| matches!(s, "spare" | "faulty")))
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
        paths.sort();
        paths
            .iter()
            .filter_map(|path| Self::at(path))
            .filter(|slave| !idle(&slave.name))
            .collect()
    }

    /// An attribute's text; none where it is not there or empty.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        let bytes = fs::read(self.dir.join(name)).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.attribute(name)?.parse().ok()
    }

    /// Length of the device.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.number("size").map(|sectors| sectors * 512)
    }

    /// Everything that does not depend on the devices around it.
    pub(super) fn describe(&self, on_virtual_machine: bool) -> Device {
        let disk = if self.is_partition() {
            self.parent().unwrap_or_else(|| self.clone())
        } else {
            self.clone()
        };
        let flag = |name: &str| disk.number(name).map(|n| n != 0);
        Device {
            name: self.name.clone(),
            kind: self.kind().to_owned(),
            level: self.attribute("md/level"),
            write_cache: disk.write_cache(),
            fua: flag("queue/fua"),
            rotational: flag("queue/rotational"),
            is_virtual: disk.is_virtual(on_virtual_machine),
            scheduler: disk.attribute("queue/scheduler").map(|s| active(&s)),
            logical_block_bytes: disk.number("queue/logical_block_size"),
            physical_block_bytes: disk.number("queue/physical_block_size"),
            atomic_write_max_bytes: disk
                .number("queue/atomic_write_unit_max_bytes")
                .filter(|&n| n > 0),
            model: disk.model(),
            ..Device::default()
        }
    }

    fn kind(&self) -> &'static str {
        let dm = || self.attribute("dm/uuid").unwrap_or_default();
        if self.is_partition() {
            "partition"
        } else if self.is_loop() {
            "loop"
        } else if self.dir.join("dm").is_dir() {
            let uuid = dm();
            if uuid.starts_with("LVM-") {
                "lvm"
            } else if uuid.starts_with("CRYPT-") {
                "crypt"
            } else {
                "dm"
            }
        } else if self.dir.join("md").is_dir() {
            "md"
        } else if numbered(&self.name, IN_MEMORY)
            || numbered(&self.name, SERVED)
            || !self.slaves().is_empty()
            || !self.nvme_paths().is_empty()
        {
            "other"
        } else {
            "disk"
        }
    }

    /// `write back` if the kernel or the device says so.
    fn write_cache(&self) -> Option<String> {
        let kernel = self.attribute("queue/write_cache");
        let says_back =
            |text: &Option<String>| text.as_ref().is_some_and(|t| t.starts_with("write back"));
        if says_back(&kernel) || says_back(&self.device_cache()) {
            return Some("write back".to_owned());
        }
        kernel
    }

    /// The device's own word: virtio and SCSI disks have one.
    fn device_cache(&self) -> Option<String> {
        self.attribute("cache_type").or_else(|| {
            let disks = fs::read_dir(self.dir.join("device/scsi_disk")).ok()?;
            let disk = Self::at(&disks.flatten().next()?.path())?;
            disk.attribute("cache_type")
        })
    }

    fn model(&self) -> Option<String> {
        let vendor = self
            .attribute("device/vendor")
            // virtio and PCI have a number here, which names nothing to a reader.
            .filter(|v| !v.starts_with("0x") && v != "ATA");
        match (vendor, self.attribute("device/model")) {
            (Some(vendor), Some(model)) => Some(format!("{vendor} {model}")),
            (_, model) => model,
        }
    }

    /// None where it cannot be told: on a virtual machine any disk may be emulated.
    fn is_virtual(&self, on_virtual_machine: bool) -> Option<bool> {
        let path = self.dir.to_string_lossy().to_lowercase();
        let by_path = ["/virtio", "/vbd-", "/xen", "vmbus", "/session"]
            .iter()
            .any(|part| path.contains(part));
        let model = self.model().unwrap_or_default().to_lowercase();
        let by_model = VIRTUAL_MODELS.iter().any(|m| model.contains(m));
        let fabric = self
            .attribute("device/transport")
            .is_some_and(|t| matches!(t.as_str(), "tcp" | "rdma" | "fc"));
        if by_path || by_model || fabric || numbered(&self.name, SERVED) {
            return Some(true);
        }
        match self.kind() {
            "disk" if on_virtual_machine => None,
            _ => Some(false),
        }
    }
}

/// A device of this name keeps its content in memory, which no flush can save.
#[must_use]
pub fn in_memory(name: &str) -> bool {
    numbered(name, IN_MEMORY)
}

/// A device of this name counts no flushes, whatever it does with them.
#[must_use]
pub fn counts_no_flushes(name: &str) -> bool {
    numbered(name, UNCOUNTED)
}

/// `zram0` is a numbered `zram`; `rama` is no `ram`.
fn numbered(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| {
        name.strip_prefix(prefix)
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// The bracketed one of `none [mq-deadline] kyber`.
fn active(schedulers: &str) -> String {
    schedulers
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or(schedulers, |(active, _)| active)
        .to_owned()
}

#[cfg(test)]
mod tests;
