//! Whether a hypervisor or a container lies between this process and the machine.
//!
//! A virtual machine is told by its firmware's names, by its clock sources or by the
//! processor's own flag; a container by the namespace of its process ids, then by marks
//! that the runtimes leave. A mark alone is no sign: images made of containers carry it.

use super::{Roots, absent, known};
use crate::report::Fact;

/// Parts of firmware names, in lower case, and the hypervisor they stand for.
const FIRMWARE: &[(&str, &str)] = &[
    ("qemu", "kvm"),
    ("kvm", "kvm"),
    ("vmware", "vmware"),
    ("virtualbox", "virtualbox"),
    ("innotek", "virtualbox"),
    ("xen", "xen"),
    ("microsoft corporation virtual", "microsoft"),
    ("amazon ec2", "amazon"),
    ("google compute engine", "google"),
    ("openstack", "kvm"),
    ("alibaba cloud", "alibaba"),
    ("digitalocean", "kvm"),
    ("parallels", "parallels"),
    ("bochs", "bochs"),
    ("apple virtualization", "apple"),
];

/// The init namespace of process ids has this number (`PROC_PID_INIT_INO`).
const INIT_PIDS: &str = "pid:[4026531836]";

/// Parts of control group paths and the runtime that makes them.
const RUNTIMES: &[(&str, &str)] = &[
    ("kubepods", "kubernetes"),
    ("docker", "docker"),
    ("libpod", "podman"),
    ("lxc", "lxc"),
    ("containerd", "containerd"),
    ("machine.slice/systemd-nspawn", "systemd-nspawn"),
];

/// `host.virtual`: `no`, the hypervisor's name, or `unknown` for one that hides it.
pub(super) fn hypervisor(roots: &Roots) -> Fact {
    let kind = "/sys/hypervisor/type";
    if let Ok(name) = roots.text(kind) {
        return known(name, kind);
    }
    let dmi = "/sys/class/dmi/id";
    let firmware: Vec<String> = ["sys_vendor", "product_name", "bios_vendor"]
        .iter()
        .filter_map(|name| roots.text(&format!("{dmi}/{name}")).ok())
        .collect();
    let names = firmware.join(" ").to_lowercase();
    let cpuinfo = roots.text("/proc/cpuinfo");
    let flagged = cpuinfo.as_ref().is_ok_and(|text| {
        text.lines()
            .filter(|line| line.starts_with("flags"))
            .any(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
    });
    if let Some((_, name)) = FIRMWARE.iter().find(|(part, _)| names.contains(part))
        // Metal machines of clouds carry the cloud's name too.
        && (flagged || !cpuinfo.as_ref().is_ok_and(|t| t.contains("flags")))
    {
        return known(*name, dmi);
    }
    let clocks = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let available = roots.text(clocks).unwrap_or_default();
    for (clock, name) in [
        ("kvm-clock", "kvm"),
        ("hyperv", "microsoft"),
        ("xen", "xen"),
    ] {
        if available.contains(clock) {
            return known(name, clocks);
        }
    }
    let tree = "/proc/device-tree/hypervisor/compatible";
    if let Ok(name) = roots.text(tree) {
        return known(name.trim_end_matches('\0'), tree);
    }
    match cpuinfo {
        _ if flagged => known("unknown", "/proc/cpuinfo"),
        Ok(_) => known("no", format!("/proc/cpuinfo, {dmi}")),
        Err(why) => absent("/proc/cpuinfo", why),
    }
}

/// `host.container`: `no`, the runtime's name, or `unknown` for one that leaves no mark.
pub(super) fn container(roots: &Roots) -> Fact {
    let groups = "/proc/self/cgroup";
    let paths = roots.text(groups).unwrap_or_default();
    let by_group = RUNTIMES.iter().find(|(part, _)| paths.contains(part));
    let pids = "/proc/self/ns/pid";
    let namespace = roots.link(pids);
    if namespace.as_deref() == Ok(INIT_PIDS) {
        // A container may share the host's process ids.
        return match by_group {
            Some((_, name)) => known(*name, groups),
            None => known("no", pids),
        };
    }
    let told = "/run/systemd/container";
    if let Ok(name) = roots.text(told) {
        return known(name, told);
    }
    if let Some((_, name)) = by_group {
        return known(*name, groups);
    }
    for (mark, name) in [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")] {
        if roots.at(mark).exists() {
            return known(name, mark);
        }
    }
    match namespace {
        Ok(_) => known("unknown", pids),
        Err(why) => absent(pids, why),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Roots) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let at = root.path().join(path);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            if let Some(to) = text.strip_prefix("-> ") {
                symlink(to, at).unwrap();
            } else {
                fs::write(at, text).unwrap();
            }
        }
        let roots = Roots {
            proc: root.path().join("proc"),
            sys: root.path().join("sys"),
            root: root.path().to_owned(),
            recorded: None,
        };
        (root, roots)
    }

    const CPU: &str = "proc/cpuinfo";
    const CLOCKS: &str = "sys/devices/system/clocksource/clocksource0/available_clocksource";

    #[test]
    fn hypervisors_are_named_where_they_can_be() {
        let flagged = "flags\t\t: fpu hypervisor sse\n";
        let metal = "flags\t\t: fpu sse\n";
        for (files, is) in [
            (vec![(CPU, metal)], "no"),
            (vec![(CPU, flagged)], "unknown"),
            (vec![(CPU, flagged), (CLOCKS, "tsc kvm-clock\n")], "kvm"),
            (
                vec![
                    (CPU, flagged),
                    ("sys/class/dmi/id/sys_vendor", "VMware, Inc.\n"),
                ],
                "vmware",
            ),
            (
                vec![
                    (CPU, metal),
                    ("sys/class/dmi/id/sys_vendor", "Amazon EC2\n"),
                ],
                "no",
            ),
            (
                vec![(CPU, flagged), ("sys/hypervisor/type", "xen\n")],
                "xen",
            ),
        ] {
            let (_root, roots) = tree(&files);
            assert_eq!(hypervisor(&roots).value, is, "{files:?}");
        }
        let (_root, roots) = tree(&[("proc/x", "")]);
        assert!(hypervisor(&roots).value.is_null());
    }

    #[test]
    fn a_containers_mark_on_a_machine_of_its_own_is_none() {
        let pids = "proc/self/ns/pid";
        let init = "-> pid:[4026531836]";
        let other = "-> pid:[4026532208]";
        let group = "proc/self/cgroup";
        for (files, is) in [
            (
                vec![
                    (pids, init),
                    (group, "0::/user.slice\n"),
                    (".dockerenv", ""),
                ],
                "no",
            ),
            (vec![(pids, init), (group, "0::/docker/abc\n")], "docker"),
            (
                vec![(pids, other), (group, "0::/\n"), (".dockerenv", "")],
                "docker",
            ),
            (
                vec![(pids, other), (group, "0::/kubepods/x\n")],
                "kubernetes",
            ),
            (vec![(pids, other), (group, "0::/\n")], "unknown"),
            (
                vec![
                    (pids, other),
                    (group, "0::/\n"),
                    ("run/systemd/container", "lxc\n"),
                ],
                "lxc",
            ),
        ] {
            let (_root, roots) = tree(&files);
            assert_eq!(container(&roots).value, is, "{files:?}");
        }
    }
}
