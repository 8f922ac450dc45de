//! Device and process counters: `/sys/class/block/*/stat`, `/proc/self/io`, `/proc/stat`, `cpu.stat`.
//!
//! Layout of `stat`: Documentation/block/stat.rst. A flush is counted there as a write request too,
//! so it is subtracted; a partition counts no flushes, so they are read off the disk it lies on;
//! writes with FUA cannot be told from others. A counter that cannot be read counts 0.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use crate::{
    contract::{Counters, Counts, Noise},
    facts::Facts,
};

const SECTOR_BYTES: u64 = 512;
/// Field of `stat` that counts flushes, from 0.
const FLUSHES: usize = 15;

/// The counters of one target's devices and of this process.
#[derive(Debug)]
pub struct SysCounters {
    /// The filesystem's own devices.
    own: Vec<File>,
    /// Every device of the stack that counts flushes: name, counters, and whether its flushes are
    /// the filesystem's own.
    flushing: Vec<(String, File, bool)>,
    io: Option<File>,
    stat: Option<File>,
    cpu_stat: Option<File>,
    ticks_per_s: u64,
}

impl SysCounters {
    /// Opens the counters of `facts`' devices below `sys` and `proc` (`/sys`, `/proc`).
    #[must_use]
    pub fn open(facts: &Facts, sys: &Path, proc: &Path) -> Self {
        let mut own: Vec<(&str, File)> = Vec::new();
        let mut flushing: Vec<(String, File, bool)> = Vec::new();
        for device in &facts.devices {
            let at = sys.join("class/block").join(&device.name);
            let Ok(data) = File::open(at.join("stat")) else {
                continue;
            };
            if device.above.is_none()
                && own.iter().all(|(n, _)| *n != device.name)
                && let Ok(again) = data.try_clone()
            {
                own.push((&device.name, again));
            }
            // A partition counts no flushes; a queue may be told to count nothing at all.
            let counts = device.kind != "partition"
                && fs::read_to_string(at.join("queue/iostats")).map_or(true, |t| t.trim() != "0")
                && slurp(&data).split_ascii_whitespace().count() > FLUSHES;
            if counts && flushing.iter().all(|(n, ..)| *n != device.name) {
                flushing.push((device.name.clone(), data, is_own(facts, &device.name)));
            }
        }
        Self {
            own: own.into_iter().map(|(_, data)| data).collect(),
            flushing,
            io: File::open(proc.join("self/io")).ok(),
            stat: File::open(proc.join("stat")).ok(),
            cpu_stat: cpu_stat_path(proc, sys).and_then(|p| File::open(p).ok()),
            ticks_per_s: rustix::param::clock_ticks_per_second().max(1),
        }
    }

    /// Requests under way on the filesystem's own devices.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.own.iter().map(|d| fields(d)[8]).sum()
    }
}

/// A device whose flushes are the filesystem's own: it is the filesystem's, or the disk of a
/// partition that is, or a path to such a disk: an NVMe disk of several paths leaves counting
/// to them.
fn is_own(facts: &Facts, name: &str) -> bool {
    facts
        .devices
        .iter()
        .filter(|d| d.name == name)
        .any(|d| match &d.above {
            None => true,
            Some(above) => {
                facts
                    .own_devices()
                    .any(|o| o.name == *above && o.kind == "partition")
                    || (d.group.is_some() && is_disk_of_paths(facts, above) && is_own(facts, above))
            }
        })
}

/// Not one of device-mapper, which counts, and not a file of a pool.
fn is_disk_of_paths(facts: &Facts, name: &str) -> bool {
    facts
        .devices
        .iter()
        .any(|d| d.name == name && d.kind == "other" && d.backing.is_none())
}

impl Counters for SysCounters {
    fn read(&self) -> Counts {
        let mut counts = Counts::default();
        for device in &self.own {
            let stat = fields(device);
            counts.device_bytes_read += stat[2] * SECTOR_BYTES;
            counts.device_bytes_written += stat[6] * SECTOR_BYTES;
            // On a partition the disk's flushes are not among the partition's writes.
            counts.device_writes += stat[4].saturating_sub(stat[FLUSHES]);
        }
        for (_, stat, own) in &self.flushing {
            let flushes = fields(stat)[FLUSHES];
            if *own {
                counts.flushes += flushes;
            } else {
                counts.lower_flushes += flushes;
            }
        }
        if let Some(io) = &self.io {
            let text = slurp(io);
            counts.own_bytes_read = named(&text, "read_bytes:");
            counts.own_bytes_written = named(&text, "write_bytes:");
        }
        counts
    }

    fn flushes_by_device(&self) -> Vec<(String, u64)> {
        self.flushing
            .iter()
            .map(|(name, stat, _)| (name.clone(), fields(stat)[FLUSHES]))
            .collect()
    }

    fn noise(&self) -> Noise {
        let steal_ticks = self
            .stat
            .as_ref()
            .map(slurp)
            .and_then(|t| {
                t.lines()
                    .next()?
                    .split_ascii_whitespace()
                    .nth(8)?
                    .parse::<u64>()
                    .ok()
            })
            .unwrap_or(0);
        let cpu = self.cpu_stat.as_ref().map(slurp).unwrap_or_default();
        // Version 1 counts nanoseconds, version 2 microseconds.
        let throttled_us = named(&cpu, "throttled_usec").max(named(&cpu, "throttled_time") / 1_000);
        Noise {
            steal_ms: steal_ticks * 1_000 / self.ticks_per_s,
            throttled_us,
        }
    }

    fn has_device(&self) -> bool {
        !self.own.is_empty()
    }
}

fn fields(file: &File) -> [u64; 17] {
    let mut out = [0; 17];
    for (slot, word) in out.iter_mut().zip(slurp(file).split_ascii_whitespace()) {
        *slot = word.parse().unwrap_or(0);
    }
    out
}

fn named(text: &str, name: &str) -> u64 {
    text.lines()
        .find_map(|l| l.strip_prefix(name)?.trim().parse().ok())
        .unwrap_or(0)
}

/// These files are generated when read from offset 0, so one descriptor serves every reading.
fn slurp(file: &File) -> String {
    let mut buffer = [0_u8; 4096];
    let n = file.read_at(&mut buffer, 0).unwrap_or(0);
    String::from_utf8_lossy(&buffer[..n]).into_owned()
}

/// Our control group's `cpu.stat` (cgroups(7)); none where no controller is mounted.
fn cpu_stat_path(proc: &Path, sys: &Path) -> Option<PathBuf> {
    let groups = std::fs::read_to_string(proc.join("self/cgroup")).ok()?;
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        let path = parts.next()?.trim_start_matches('/');
        let root = if controllers.is_empty() {
            sys.join("fs/cgroup")
        } else if controllers.split(',').any(|c| c == "cpu") {
            sys.join("fs/cgroup/cpu")
        } else {
            return None;
        };
        let file = root.join(path).join("cpu.stat");
        file.exists().then_some(file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Device;

    fn tree(stats: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, stat) in stats {
            let at = dir.path().join("class/block").join(name);
            fs::create_dir_all(&at).unwrap();
            fs::write(at.join("stat"), stat).unwrap();
        }
        fs::create_dir_all(dir.path().join("self")).unwrap();
        fs::write(
            dir.path().join("self/io"),
            "rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\n",
        )
        .unwrap();
        fs::write(dir.path().join("stat"), "cpu  1 2 3 4 5 6 7 50 0 0\n").unwrap();
        dir
    }

    fn device(name: &str, kind: &str, above: Option<&str>) -> Device {
        Device {
            name: name.into(),
            kind: kind.into(),
            above: above.map(Into::into),
            ..Device::default()
        }
    }

    #[test]
    fn flushes_of_a_partition_are_read_off_its_disk() {
        let dir = tree(&[
            ("sda1", "10 0 80 0 100 0 800 0 0 0 0 0 0 0 0 0 0\n"),
            ("sda", "11 0 88 0 170 0 900 0 0 0 0 0 0 0 0 60 0\n"),
        ]);
        let facts = Facts {
            devices: vec![
                device("sda1", "partition", None),
                device("sda", "disk", Some("sda1")),
            ],
            ..Facts::default()
        };
        let counters = SysCounters::open(&facts, dir.path(), dir.path());
        let counts = counters.read();
        assert_eq!(counts.flushes, 60);
        assert_eq!(counts.lower_flushes, 0);
        assert_eq!(counts.device_writes, 100);
        assert_eq!(counts.device_bytes_written, 800 * 512);
        assert_eq!(counts.device_bytes_read, 80 * 512);
        assert_eq!(
            (counts.own_bytes_read, counts.own_bytes_written),
            (4096, 8192)
        );
        assert_eq!(counters.flushes_by_device(), [("sda".to_owned(), 60)]);
    }

    #[test]
    fn a_flush_is_not_a_write_and_lower_devices_are_told_apart() {
        let dir = tree(&[
            ("loop0", "0 0 0 0 30 0 160 0 0 0 0 0 0 0 0 10 0\n"),
            ("vda", "0 0 0 0 90 0 999 0 0 0 0 0 0 0 0 7 0\n"),
        ]);
        let facts = Facts {
            devices: vec![
                device("loop0", "loop", None),
                device("vda", "disk", Some("loop0")),
            ],
            ..Facts::default()
        };
        let counters = SysCounters::open(&facts, dir.path(), dir.path());
        let counts = counters.read();
        assert_eq!(
            (counts.flushes, counts.device_writes, counts.lower_flushes),
            (10, 20, 7)
        );
        assert!(counters.has_device());
        assert_eq!(
            counters.noise().steal_ms,
            50 * 1000 / rustix::param::clock_ticks_per_second()
        );
    }

    #[test]
    fn a_disk_below_two_partitions_counts_once_and_a_silent_queue_not_at_all() {
        let stat = "0 0 0 0 30 0 160 0 0 0 0 0 0 0 0 10 0\n";
        let dir = tree(&[("sda1", stat), ("sda2", stat), ("sda", stat), ("sdb", stat)]);
        let queue = dir.path().join("class/block/sdb/queue");
        fs::create_dir_all(&queue).unwrap();
        fs::write(queue.join("iostats"), "0\n").unwrap();
        let facts = Facts {
            devices: vec![
                device("sda1", "partition", None),
                device("sda2", "partition", None),
                device("sda", "disk", Some("sda1")),
                device("sda", "disk", Some("sda2")),
                device("sdb", "disk", None),
            ],
            ..Facts::default()
        };
        let counters = SysCounters::open(&facts, dir.path(), dir.path());
        assert_eq!(counters.read().flushes, 10);
        assert_eq!(counters.flushes_by_device(), [("sda".to_owned(), 10)]);
    }

    #[test]
    fn the_paths_of_a_disk_count_its_flushes() {
        let stat = |n: u64| format!("0 0 0 0 30 0 160 0 0 0 0 0 0 0 0 {n} 0\n");
        let dir = tree(&[
            ("nvme0n1p1", &stat(0)),
            ("nvme0n1", &stat(0)),
            ("nvme0c0n1", &stat(10)),
            ("nvme0c1n1", &stat(3)),
        ]);
        let path = |name: &str| Device {
            group: Some(name.to_owned()),
            ..device(name, "disk", Some("nvme0n1"))
        };
        let facts = Facts {
            devices: vec![
                device("nvme0n1p1", "partition", None),
                device("nvme0n1", "other", Some("nvme0n1p1")),
                path("nvme0c0n1"),
                path("nvme0c1n1"),
            ],
            ..Facts::default()
        };
        let counts = SysCounters::open(&facts, dir.path(), dir.path()).read();
        assert_eq!((counts.flushes, counts.lower_flushes), (13, 0));
    }

    #[test]
    fn without_devices_nothing_is_counted() {
        let dir = tree(&[]);
        let counters = SysCounters::open(&Facts::default(), dir.path(), dir.path());
        assert!(!counters.has_device());
        assert_eq!(counters.read().flushes, 0);
    }
}
