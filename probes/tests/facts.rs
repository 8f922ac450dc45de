//! Facts of the running system and of recorded trees.
//!
//! `WALPROBE_FACTS_OF=DIR cargo test -p walprobe-probes --test facts print -- --nocapture`
//! prints the facts of a directory, and what system calls answered, as a recorded tree's
//! `stat.json` holds it.

use std::{
    fs::File,
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use serde_json::json;
use walprobe_probes::{
    facts::{self, Facts, Held, Roots, names},
    report::{Durability, Row, Us},
    verdict,
};

#[path = "facts/network.rs"]
mod network;
#[path = "facts/storage.rs"]
mod storage;

fn of(dir: &Path) -> Facts {
    let held = File::open(dir).unwrap();
    facts::read(held.as_fd(), &dir.to_string_lossy(), &Roots::default())
}

#[test]
#[expect(clippy::print_stdout, reason = "printing is what it is for")]
fn print_the_facts_of_a_directory() {
    let dir = std::env::var_os("WALPROBE_FACTS_OF").unwrap_or_else(|| "/tmp".into());
    let dir = Path::new(&dir).canonicalize().unwrap();
    let facts = of(&dir);
    let held = Held::of_dir(File::open(&dir).unwrap().as_fd());
    println!("{}", serde_json::to_string(&held).unwrap());
    for (name, fact) in facts.host.iter().chain(&facts.target) {
        let why = fact.why.as_deref().unwrap_or_default();
        println!("{name:31} {} [{}] {why}", fact.value, fact.source);
    }
    for device in &facts.devices {
        println!("{}", serde_json::to_string(device).unwrap());
    }
}

fn tree(name: &str) -> PathBuf {
    let trees = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trees");
    trees.join(name)
}

/// The verdict where 64 syncs of either kind made the own devices count `flushes`, and each
/// device these.
fn verdict_of(facts: &Facts, flushes: u64, each: &[(&str, u64)]) -> Durability {
    let row = |case: &str| {
        let mut row = Row {
            probe: "durability".to_owned(),
            comparison: "check".to_owned(),
            case: case.to_owned(),
            ops: 64,
            syncs: Some(64),
            flushes: Some(flushes),
            flushes_per_op: Some(flushes as f64 / 64.0),
            mean_us: Some(Us(9_000_000)),
            ..Row::default()
        };
        let seen = &mut row.observations;
        seen.insert("elapsed_ms".to_owned(), json!(600.0));
        seen.insert("device_writes".to_owned(), json!(64));
        for (name, count) in each {
            seen.insert(format!("flushes.{name}"), json!(count));
        }
        row
    };
    verdict::verdict(facts, &[row("fdatasync"), row("fsync-extending")], true)
}

/// Facts of a path of a recorded tree.
fn recorded(tree: &str, path: &str) -> Facts {
    let roots = Roots::recorded(&self::tree(tree)).unwrap();
    let held = roots.recorded.as_ref().unwrap()[path].clone();
    facts::read_held(held, path, &roots)
}

fn server(path: &str) -> Facts {
    recorded("server", path)
}

fn machine(path: &str) -> Facts {
    recorded("virtual-machine", path)
}

fn why<'a>(facts: &'a Facts, name: &str) -> &'a str {
    let fact = facts.get(name).unwrap();
    assert!(fact.value.is_null(), "{name} is {}", fact.value);
    fact.why.as_deref().unwrap()
}

/// `loop0(loop) > vda(disk)`: one device an entry, `above>` before those that are below.
fn stack(facts: &Facts) -> String {
    let entries: Vec<String> = facts
        .devices
        .iter()
        .map(|d| {
            let above = d
                .above
                .as_ref()
                .map(|a| format!("{a}>"))
                .unwrap_or_default();
            let leaf = if d.leaf { "." } else { "" };
            let place = d.role.as_ref().or(d.group.as_ref());
            let place = place.filter(|p| **p != d.name && !p.starts_with("/dev/"));
            let place = place.map(|p| format!("({p})")).unwrap_or_default();
            let fs = d
                .backing_fs
                .as_ref()
                .map(|f| format!("[{f}]"))
                .unwrap_or_default();
            format!("{above}{}:{}{place}{fs}{leaf}", d.name, d.kind)
        })
        .collect();
    entries.join(" ")
}

#[test]
fn every_name_of_the_closed_list_has_a_fact_and_no_other() {
    let mut expected: Vec<&str> = names::TARGET.iter().map(|(name, _)| *name).collect();
    expected.sort_unstable();
    let mut host = names::HOST.to_vec();
    host.sort_unstable();
    for facts in [
        of(Path::new("/tmp")),
        of(Path::new("/proc")),
        server("/tank"),
        server("/mnt/ov"),
        server("/refused"),
        server("/elsewhere"),
        machine("/mnt/btrfs"),
    ] {
        let got: Vec<&str> = facts.target.keys().map(String::as_str).collect();
        assert_eq!(got, expected);
        let got: Vec<&str> = facts.host.keys().map(String::as_str).collect();
        assert_eq!(got, host);
        for (name, fact) in facts.host.iter().chain(&facts.target) {
            assert!(!fact.source.is_empty(), "{name}");
            assert_eq!(fact.value.is_null(), fact.why.is_some(), "{name}");
        }
    }
}

#[test]
fn the_running_system() {
    let dir = tempfile::tempdir().unwrap();
    let facts = of(dir.path());
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "nothing is written"
    );
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(facts.text("host.kernel"), Some(release.trim()));
    assert!(facts.number("fs.free_bytes") <= facts.number("fs.total_bytes"));
    let id = facts.number("mount.id").unwrap();
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(table.lines().any(|l| l.starts_with(&format!("{id} "))));
    // The longest mount point that the path has: right unless something is mounted over it.
    let point = facts.text("mount.point").unwrap();
    assert!(dir.path().canonicalize().unwrap().starts_with(point));
    for device in &facts.devices {
        let class = Path::new("/sys/class/block").join(&device.name);
        assert!(class.exists(), "{}", device.name);
        assert_eq!(class.join("partition").exists(), device.kind == "partition");
    }
}

#[test]
fn the_held_descriptor_leads_not_the_path() {
    // A bind mount with escapes in its name, of a directory with a space.
    let bind = server("/mnt/a b\\c");
    assert_eq!(bind.number("mount.id"), Some(31));
    assert_eq!(bind.text("mount.point"), Some("/mnt/a b\\c"));
    assert_eq!(bind.text("mount.source"), Some("/dev/sda2"));
    assert_eq!(stack(&bind), "sda2:partition sda2>sda:disk.");
    // Two filesystems at the same place: which one depends on what was opened.
    let over = server("/mnt/over");
    assert_eq!(over.text("fs.type"), Some("tmpfs"));
    assert_eq!(over.text("mount.options"), Some("rw,nosuid,size=1024k"));
    assert_eq!(stack(&over), "");
    let below = server("/mnt/over (below)");
    assert_eq!(below.text("fs.type"), Some("ext4"));
    assert_eq!(below.truth("fs.barrier"), Some(false));
    assert_eq!(below.truth("fs.delalloc"), Some(false));
    assert_eq!(below.text("fs.journal_mode"), Some("writeback"));
    assert_eq!(stack(&below), "sda3:partition sda3>sda:disk.");
    // The automounter's own directory, and what it mounted there.
    assert_eq!(
        server("/net (not mounted yet)").text("fs.type"),
        Some("autofs")
    );
    let net = server("/net");
    assert_eq!(net.text("fs.type"), Some("nfs4"));
    assert_eq!(net.text("mount.source"), Some("server:/export"));
    assert_eq!(net.text("fs.in_place"), Some("unknown"));
    // Read-only here, writable elsewhere.
    assert_eq!(server("/mnt/ro").text("mount.options"), Some("ro,relatime"));
}

#[test]
fn what_cannot_be_resolved_says_why() {
    let outside = server("/elsewhere");
    assert!(why(&outside, "fs.type").contains("mount 99 is not listed"));
    assert!(why(&outside, "mount.point").contains("not listed"));
    assert!(why(&outside, "fs.barrier").contains("not known"));
    assert_eq!(outside.number("mount.id"), Some(99));
    assert_eq!(outside.text("fs.magic"), Some("0x1021994"));
    assert!(why(&server("/unknown"), "fs.type").contains("neither"));
    let refused = server("/refused");
    assert!(why(&refused, "mount.id").contains("EACCES"));
    assert!(why(&refused, "fs.free_bytes").contains("EIO"));
    assert!(why(&refused, "statx.blksize_bytes").contains("EACCES"));
}

#[test]
fn a_stack_is_followed_to_every_leaf() {
    let data = server("/var/lib/pgsql");
    assert_eq!(
        stack(&data),
        "dm-1:lvm dm-1>dm-0:crypt dm-0>md0:md \
         md0>sda4:partition sda4>sda:disk. md0>sdb1:partition sdb1>sdb:disk. \
         sdc1:partition(log) sdc1>sdc:disk."
    );
    let device = |name: &str| data.devices.iter().find(|d| d.name == name).unwrap();
    let sdc1 = device("sdc1");
    assert_eq!(sdc1.write_cache.as_deref(), Some("write through"));
    assert_eq!(sdc1.model.as_deref(), Some("EXAMPLE EXAMPLE-SSD"));
    assert_eq!(sdc1.atomic_write_max_bytes, Some(16_384));
    assert_eq!(sdc1.is_virtual, Some(false));
    assert_eq!(sdc1.rotational, Some(false));
    // The kernel was told "write through"; the disk itself says otherwise.
    assert_eq!(device("sdb").write_cache.as_deref(), Some("write back"));
    assert_eq!(data.number("statx.dio_mem_align_bytes"), Some(4));
    assert_eq!(data.number("statx.atomic_write_max_bytes"), Some(16_384));
    let own: Vec<&str> = data.own_devices().map(|d| d.name.as_str()).collect();
    assert_eq!(own, ["dm-1", "sdc1"]);
    // A device below itself ends where it would begin again.
    assert_eq!(stack(&server("/mnt/circle")), "dm-9:dm dm-9>dm-8:dm");
    // The file at the backing path is too short to be the device's.
    assert_eq!(stack(&server("/mnt/image")), "loop0:loop.");
}

#[test]
fn overlays_lead_to_their_upper_layer() {
    let ov = server("/mnt/ov");
    assert_eq!(ov.text("fs.type"), Some("overlay"));
    assert_eq!(ov.text("overlay.upper"), Some("/mnt/low/u,v"));
    // Not itself, but the one below it is volatile.
    assert_eq!(ov.truth("overlay.volatile"), Some(true));
    assert_eq!(ov.text("fs.subtype"), Some("ext4"));
    assert_eq!(ov.text("fs.journal_mode"), Some("ordered"));
    assert!(
        ov.get("fs.journal_mode")
            .unwrap()
            .source
            .contains("upper layer")
    );
    assert_eq!(ov.text("fs.in_place"), Some("yes"));
    assert_eq!(stack(&ov), "sda2:partition sda2>sda:disk.");
    // Of another mount namespace, relative, or not there at all: nothing is guessed.
    for (path, reason) in [
        ("/merged", "not recorded"),
        ("/mnt/relative", "relative"),
        ("/mnt/read", "no upper layer"),
    ] {
        let lost = server(path);
        assert_eq!(lost.truth("overlay.volatile"), Some(false));
        assert!(why(&lost, "fs.subtype").contains(reason), "{path}");
        assert!(why(&lost, "fs.barrier").contains(reason), "{path}");
        assert!(why(&lost, "fs.in_place").contains(reason), "{path}");
        assert_eq!(stack(&lost), "");
    }
    // As Linux 6.18 spells it.
    let volatile = machine("/mnt/overlay-volatile");
    assert_eq!(volatile.truth("overlay.volatile"), Some(true));
    assert_eq!(stack(&volatile), "loop0:loop[ext4] loop0>vda:disk.");
}

#[test]
fn filesystems_that_are_only_recognised() {
    let ssh = server("/mnt/ssh");
    assert_eq!(ssh.text("fs.type"), Some("fuse"));
    assert_eq!(ssh.text("fs.subtype"), Some("sshfs"));
    let tank = server("/tank");
    assert_eq!(tank.text("fs.type"), Some("zfs"));
    assert_eq!(tank.text("fs.in_place"), Some("no"));
    // Space is counted in records there.
    assert_eq!(tank.number("fs.fragment_bytes"), Some(131_072));
    assert_eq!(tank.number("fs.free_bytes"), Some(400 * 131_072));
    assert_eq!(why(&tank, "fs.nocow"), "not btrfs");
    assert_eq!(why(&tank, "nfs.version"), "not NFS");
    assert_eq!(why(&tank, "zfs.sync"), "no program zfs");
}

#[test]
fn what_was_recorded_of_loop_images() {
    let bare = machine("/mnt/ext4-barrier-off");
    assert_eq!(bare.truth("fs.barrier"), Some(false));
    assert_eq!(bare.text("fs.journal_mode"), Some("ordered"));
    assert_eq!(bare.text("mount.options"), Some("rw,relatime,nobarrier"));
    assert_eq!(bare.number("fs.block_bytes"), Some(1024));
    let xfs = machine("/mnt/xfs");
    assert_eq!(xfs.truth("fs.barrier"), Some(true));
    assert_eq!(stack(&xfs), "loop1:loop[ext4] loop1>vda:disk.");
    assert_eq!(xfs.devices[1].is_virtual, Some(true));
    assert_eq!(xfs.devices[0].backing.as_deref(), Some("/srv/b.img"));
    // A btrfs with two members; the subvolume's device number is in no table.
    let two = machine("/mnt/btrfs-two/sub/nocow");
    assert_eq!(
        stack(&two),
        "loop7:loop[ext4] loop7>vda:disk. loop8:loop[ext4] loop8>vda:disk."
    );
    assert_eq!(two.truth("fs.nocow"), Some(true));
    assert_eq!(two.text("fs.in_place"), Some("yes"));
    assert_eq!(two.text("fs.compress"), Some("none"));
    let btrfs = machine("/mnt/btrfs");
    assert_eq!(btrfs.text("fs.in_place"), Some("no"));
    assert_eq!(btrfs.truth("fs.nocow"), Some(false));
    // In memory, and on what is in memory.
    assert_eq!(stack(&machine("/mnt/tmpfs")), "");
    assert_eq!(stack(&machine("/mnt/ext4-on-tmpfs")), "loop3:loop[tmpfs].");
    assert_eq!(
        stack(&machine("/mnt/ext4-on-volatile")),
        "loop4:loop[overlay volatile] loop4>loop0:loop[ext4] loop0>vda:disk."
    );
    // A loop device on a loop device; a deleted file, which only the device itself knows.
    assert_eq!(
        stack(&machine("/mnt/ext4-on-two-loops")),
        "loop10:loop loop10>loop9:loop[ext4] loop9>vda:disk."
    );
    assert_eq!(stack(&machine("/mnt/ext4-on-deleted")), "loop5:loop.");
}

#[test]
fn what_was_recorded_of_the_host() {
    let facts = machine("/mnt/xfs");
    assert_eq!(facts.text("host.virtual"), Some("kvm"));
    assert_eq!(facts.text("host.container"), Some("no"));
    assert_eq!(facts.text("host.preload"), Some("none"));
    assert_eq!(facts.text("host.clocksource"), Some("tsc"));
    assert_eq!(facts.number("host.dirty_ratio"), Some(20));
    assert_eq!(facts.number("host.cgroup_memory_bytes"), Some(8 << 30));
    assert_eq!(facts.text("host.cgroup_io"), Some("none"));
    let facts = server("/");
    assert_eq!(facts.text("host.virtual"), Some("no"));
    assert!(why(&facts, "host.dirty_ratio").contains("268435456"));
    assert!(why(&facts, "host.cgroup_memory_bytes").contains("mounted"));
}
