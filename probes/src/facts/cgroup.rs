//! Limits of this process's control group, version 1 and 2 (cgroups(7)).
//!
//! `/proc/self/cgroup` names the group by its path in the hierarchy, mountinfo where that
//! hierarchy is seen and from which directory of it on; a limit on any group above counts
//! too, as far up as can be seen from here.

use std::path::{Path, PathBuf};

use super::{
    Roots, absent, known,
    mountinfo::{self, Mount},
};
use crate::report::Fact;

/// Version 1 writes "no limit" as the largest multiple of the page size.
const UNLIMITED_BYTES: u64 = 1 << 60;

/// Version 1's files with limits on I/O.
const BLKIO: &[&str] = &[
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_iops_device",
];

/// `host.cgroup_memory_bytes`: the least limit on memory.
pub(super) fn memory(roots: &Roots) -> Fact {
    let group = match Group::of("memory", roots) {
        Ok(group) => group,
        Err(why) => return absent("/proc/self/cgroup", why),
    };
    let file = if group.unified {
        "memory.max"
    } else {
        "memory.limit_in_bytes"
    };
    let least = group
        .texts(file, roots)
        .filter_map(|(path, text)| Some((text.parse::<u64>().ok()?, path)))
        .filter(|(bytes, _)| *bytes < UNLIMITED_BYTES)
        .min_by_key(|(bytes, _)| *bytes);
    match least {
        Some((bytes, path)) => known(bytes, path),
        None => absent(group.at(file), "no limit"),
    }
}

/// `host.cgroup_io`: the limits as the files show them, or `none`.
pub(super) fn io(roots: &Roots) -> Fact {
    let group = match Group::of("blkio", roots).or_else(|_| Group::of("io", roots)) {
        Ok(group) => group,
        Err(why) => return absent("/proc/self/cgroup", why),
    };
    let files = if group.unified { &["io.max"] } else { BLKIO };
    let mut limits = Vec::new();
    for file in files {
        for (_, text) in group.texts(file, roots) {
            for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
                limits.push(if group.unified {
                    line.to_owned()
                } else {
                    format!("{} {line}", file.trim_start_matches("blkio.throttle."))
                });
            }
        }
    }
    let source = group.at(files[0]);
    if limits.is_empty() {
        known("none", source)
    } else {
        known(limits.join("; "), source)
    }
}

/// A controller's group, from its own directory up to the highest that is seen.
struct Group {
    unified: bool,
    dirs: Vec<PathBuf>,
}

impl Group {
    fn of(controller: &str, roots: &Roots) -> Result<Self, String> {
        let text = roots.text("/proc/self/cgroup")?;
        let mounts = mountinfo::parse(&roots.bytes("/proc/self/mountinfo")?);
        let mut unified = None;
        for line in text.lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(list), Some(path)) = (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            if list.split(',').any(|c| c == controller) {
                // Version 1 has this controller: version 2 cannot have it as well.
                let seen = mounts
                    .iter()
                    .find(|m| m.fs_type == "cgroup" && m.super_option(controller).is_some());
                return Self::seen(false, seen, path, controller);
            }
            if list.is_empty() {
                unified = Some(path);
            }
        }
        let path = unified.ok_or_else(|| format!("no control group for {controller}"))?;
        let seen = mounts.iter().find(|m| m.fs_type == "cgroup2");
        Self::seen(true, seen, path, controller)
    }

    fn seen(
        unified: bool,
        mount: Option<&Mount>,
        path: &str,
        controller: &str,
    ) -> Result<Self, String> {
        let mount = mount.ok_or_else(|| format!("no hierarchy for {controller} is mounted"))?;
        // Outside the mounted part only its top can be seen.
        let inner = Path::new(path)
            .strip_prefix(&mount.root)
            .unwrap_or_else(|_| Path::new(""));
        let dirs = inner.ancestors().map(|dir| mount.point.join(dir)).collect();
        Ok(Self { unified, dirs })
    }

    fn at(&self, file: &str) -> String {
        self.dirs[0].join(file).to_string_lossy().into_owned()
    }

    fn texts<'a>(
        &'a self,
        file: &'a str,
        roots: &'a Roots,
    ) -> impl Iterator<Item = (String, String)> + 'a {
        self.dirs.iter().filter_map(move |dir| {
            let path = dir.join(file).to_string_lossy().into_owned();
            let text = roots.text(&path).ok()?;
            Some((path, text))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Roots) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let at = root.path().join(path);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(at, text).unwrap();
        }
        let roots = Roots {
            proc: root.path().join("proc"),
            sys: root.path().join("sys"),
            root: root.path().to_owned(),
            recorded: None,
        };
        (root, roots)
    }

    const V2: &str = "30 23 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_least_limit_on_the_way_up_counts() {
        let (_root, roots) = tree(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            ("proc/self/mountinfo", V2),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/memory.max", "1073741824\n"),
            (
                "sys/fs/cgroup/a/b/io.max",
                "8:0 rbps=max wbps=1048576 riops=max wiops=max\n",
            ),
        ]);
        let fact = memory(&roots);
        assert_eq!(fact.value, 1_073_741_824);
        assert_eq!(fact.source, "/sys/fs/cgroup/a/memory.max");
        assert_eq!(
            io(&roots).value,
            "8:0 rbps=max wbps=1048576 riops=max wiops=max"
        );
    }

    #[test]
    fn a_container_sees_its_group_from_the_middle() {
        let (_root, roots) = tree(&[
            (
                "proc/self/cgroup",
                "5:memory:/docker/ab/x\n3:cpu,blkio:/docker/ab\n",
            ),
            (
                "proc/self/mountinfo",
                "31 30 0:28 /docker/ab /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                 32 30 0:29 /docker/ab /sys/fs/cgroup/blkio rw - cgroup cgroup rw,cpu,blkio\n",
            ),
            (
                "sys/fs/cgroup/memory/x/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"),
            (
                "sys/fs/cgroup/blkio/blkio.throttle.write_bps_device",
                "254:0 1048576\n",
            ),
        ]);
        assert_eq!(memory(&roots).value, 536_870_912);
        assert_eq!(io(&roots).value, "write_bps_device 254:0 1048576");
    }

    #[test]
    fn no_limit_no_group_and_no_mount_are_told_apart() {
        let (_root, roots) = tree(&[
            ("proc/self/cgroup", "0::/../../other\n"),
            ("proc/self/mountinfo", V2),
        ]);
        let fact = memory(&roots);
        assert!(fact.value.is_null());
        assert_eq!(fact.why.as_deref(), Some("no limit"));
        assert_eq!(io(&roots).value, "none");

        let (_root, roots) = tree(&[("proc/self/cgroup", "0::/a\n"), ("proc/self/mountinfo", "")]);
        assert!(memory(&roots).why.unwrap().contains("mounted"));
        let (_root, roots) = tree(&[("proc/self/mountinfo", "")]);
        assert!(memory(&roots).why.unwrap().contains("ENOENT"));
    }
}
