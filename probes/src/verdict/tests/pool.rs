//! Pools: which device's flushes count.

use super::*;

fn member(of: Device, role: Option<&str>, group: &str) -> Device {
    Device {
        role: role.map(str::to_owned),
        group: Some(group.to_owned()),
        ..of
    }
}

fn zfs(devices: Vec<Device>) -> Facts {
    facts(&[("fs.type", json!("zfs"))], devices)
}

/// A mirror of sda and sdb, and a log on sdc.
fn with_log() -> Facts {
    zfs(vec![
        member(device("sda", None), None, "mirror-0"),
        member(device("sdb", None), None, "mirror-0"),
        member(device("sdc", None), Some("log"), "/dev/sdc"),
    ])
}

#[test]
fn a_log_device_takes_the_flushes() {
    let counts = |log: u64, mirror: u64| {
        let each = [("sda", mirror), ("sdb", mirror), ("sdc", log)];
        same(log + 2 * mirror, &each)
    };
    let pool = with_log();
    expect(
        &pool,
        &counts(64, 0),
        FlushesSeen,
        &[("device-flushes", FOR)],
    );
    let text = judged(&pool, &counts(64, 0), true).text;
    assert_eq!(text, "each sync sent a flush to sdc");
    // logbias=throughput goes past the log.
    expect(
        &pool,
        &counts(0, 64),
        FlushesSeen,
        &[("device-flushes", FOR)],
    );
    expect(
        &pool,
        &counts(0, 0),
        NoFlushSeen,
        &[("device-flushes", AGAINST); 3],
    );
    expect(
        &pool,
        &counts(20, 0),
        NotProvable,
        &[("device-flushes", LIMITS); 3],
    );
}

#[test]
fn both_sides_of_a_mirror_are_flushed_but_only_one_of_several_vdevs() {
    let mirror = zfs(vec![
        member(device("sda", None), None, "mirror-0"),
        member(device("sdb", None), None, "mirror-0"),
    ]);
    let counts = |a: u64, b: u64| same(a + b, &[("sda", a), ("sdb", b)]);
    expect(
        &mirror,
        &counts(64, 64),
        FlushesSeen,
        &[("device-flushes", FOR)],
    );
    // One side of the mirror has no claim on the other's flushes.
    expect(
        &mirror,
        &counts(64, 0),
        NoFlushSeen,
        &[("device-flushes", AGAINST); 2],
    );
    let stripe = zfs(vec![
        member(device("sda", None), None, "/dev/sda"),
        member(device("sdb", None), None, "/dev/sdb"),
    ]);
    expect(
        &stripe,
        &counts(30, 33),
        FlushesSeen,
        &[("device-flushes", FOR)],
    );
    expect(
        &stripe,
        &counts(64, 0),
        FlushesSeen,
        &[("device-flushes", FOR)],
    );
    let text = |pool: &Facts, a: u64, b: u64| judged(pool, &counts(a, b), true).text;
    assert_eq!(
        text(&mirror, 64, 64),
        "each sync sent a flush to sda and sdb"
    );
    assert_eq!(
        text(&stripe, 30, 33),
        "each sync sent a flush to a device of sda and sdb"
    );
    assert_eq!(text(&stripe, 64, 0), "each sync sent a flush to sda");
    // Partitions of one disk: its flushes count once.
    let shared = zfs(vec![
        member(device("sda1", None), None, "/dev/sda1"),
        device("sda", Some("sda1")),
        member(device("sda2", None), Some("log"), "/dev/sda2"),
        device("sda", Some("sda2")),
    ]);
    expect(
        &shared,
        &same(40, &[("sda", 40)]),
        NotProvable,
        &[("device-flushes", LIMITS)],
    );
}

#[test]
fn what_takes_the_syncs_may_write_through() {
    let log = |logbias: &str| {
        let mut pool = zfs(vec![
            member(device("sda", None), None, "/dev/sda"),
            member(write_through("sdc", None), Some("log"), "/dev/sdc"),
        ]);
        let more = facts(&[("zfs.logbias", json!(logbias))], vec![]);
        pool.target.extend(more.target);
        pool
    };
    let none = same(1, &[("sda", 1), ("sdc", 0)]);
    expect(
        &log("latency"),
        &none,
        NoFlushNeeded,
        &[("write-through-device", FOR)],
    );
    let mut unwritten = none.clone();
    unwritten[1]
        .observations
        .insert("device_writes".to_owned(), json!(0));
    expect(
        &log("latency"),
        &unwritten,
        NoFlushSeen,
        &[("device-flushes", AGAINST)],
    );
    // The log is not asked: the disk should have been flushed, or perhaps the log took it.
    expect(
        &log("throughput"),
        &none,
        NotProvable,
        &[("device-flushes", LIMITS)],
    );
}

#[test]
fn parameters_and_properties_decide_alone() {
    let mut pool = with_log();
    let off = facts(&[("fs.barrier", json!(false))], vec![]);
    pool.target
        .insert("fs.barrier".to_owned(), off.target["fs.barrier"].clone());
    let told = judged(&pool, &same(0, &[("sda", 0), ("sdb", 0), ("sdc", 0)]), true);
    assert_eq!(told.verdict, NoFlushSeen);
    assert!(told.text.contains("barriers are off"), "{}", told.text);
}

#[test]
fn a_growing_file_is_flushed_too() {
    let each = |n: u64| [("sda", 0), ("sdb", 0), ("sdc", n)];
    expect(
        &with_log(),
        &rows((64, &each(64)), (0, &each(0))),
        NoFlushSeen,
        &[("device-flushes", AGAINST); 3],
    );
}

#[test]
fn a_file_of_a_pool_in_memory_is_named() {
    let file = Device {
        name: "/run/vdev".to_owned(),
        kind: "other".to_owned(),
        backing: Some("/run/vdev".to_owned()),
        backing_fs: Some("tmpfs".to_owned()),
        leaf: true,
        write_cache: None,
        ..device("loop0", None)
    };
    let durability = judged(&zfs(vec![member(file, None, "/run/vdev")]), &[], true);
    assert_eq!(durability.verdict, NotDurable);
    assert_eq!(
        durability.text,
        "the file /run/vdev lies on tmpfs, in memory: everything is lost with the power"
    );
}

#[test]
fn the_paths_of_a_disk_count_for_it() {
    let head = || Device {
        kind: "other".to_owned(),
        leaf: false,
        ..device("nvme0n1", Some("nvme0n1p1"))
    };
    let path = |name: &str| member(device(name, Some("nvme0n1")), None, name);
    let devices = vec![
        device("nvme0n1p1", None),
        head(),
        path("nvme0c0na"),
        path("nvme0c1na"),
    ];
    let counts = |a: u64, b: u64| same(0, &[("nvme0n1", 0), ("nvme0c0na", a), ("nvme0c1na", b)]);
    let disk = facts(&[], devices);
    expect(
        &disk,
        &counts(0, 64),
        FlushesSeen,
        &[("device-flushes", FOR)],
    );
    expect(
        &disk,
        &counts(30, 33),
        FlushesSeen,
        &[("device-flushes", FOR)],
    );
    expect(
        &disk,
        &counts(0, 0),
        NoFlushSeen,
        &[("device-flushes", AGAINST); 2],
    );
}

#[test]
fn a_driver_that_counts_no_flushes_proves_nothing() {
    for name in ["zd16", "drbd0", "pmem0"] {
        let mut of = device("sda", None);
        of.name = name.to_owned();
        expect(
            &facts(&[], vec![of]),
            &same(0, &[(name, 0)]),
            NotProvable,
            &[("device-flushes", LIMITS)],
        );
    }
}
