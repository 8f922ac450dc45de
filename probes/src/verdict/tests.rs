//! Each line of the verdict's table, and the known answers that were measured.

use serde_json::{Value, json};

use super::*;

mod elsewhere;
mod pool;

use crate::report::{Device, DurabilityVerdict::*, Fact, PhaseFigures, Target};

fn facts(list: &[(&str, Value)], devices: Vec<Device>) -> Facts {
    let mut facts = Facts {
        devices,
        ..Facts::default()
    };
    let defaults = [
        ("fs.type", json!("ext4")),
        ("fs.barrier", json!(true)),
        ("host.virtual", json!("no")),
        ("host.preload", json!("none")),
    ];
    for (name, value) in defaults.iter().chain(list) {
        let map = if name.starts_with("host.") {
            &mut facts.host
        } else {
            &mut facts.target
        };
        let fact = Fact {
            value: value.clone(),
            source: "test".to_owned(),
            why: None,
        };
        map.insert((*name).to_owned(), fact);
    }
    facts
}

/// `vda` is a virtual disk, `loopN` a loop device on ext4, `dm-N` LVM, `sdX1` a partition.
fn device(name: &str, above: Option<&str>) -> Device {
    let kind = if name.starts_with("loop") {
        "loop"
    } else if name.starts_with("dm") {
        "lvm"
    } else if name.ends_with(|c: char| c.is_ascii_digit()) && !name.starts_with("zram") {
        "partition"
    } else if name.starts_with("zram") {
        "other"
    } else {
        "disk"
    };
    Device {
        name: name.to_owned(),
        above: above.map(str::to_owned),
        kind: kind.to_owned(),
        leaf: matches!(kind, "disk" | "other"),
        write_cache: Some("write back".to_owned()),
        fua: Some(false),
        is_virtual: Some(name.starts_with("vd")),
        backing_fs: (kind == "loop").then(|| "ext4".to_owned()),
        model: (kind == "disk").then(|| "ACME".to_owned()),
        rotational: Some(false),
        ..Device::default()
    }
}

fn write_through(name: &str, above: Option<&str>) -> Device {
    Device {
        write_cache: Some("write through".to_owned()),
        ..device(name, above)
    }
}

fn with_fua(name: &str) -> Device {
    Device {
        fua: Some(true),
        ..device(name, None)
    }
}

/// A loop device that leads nowhere, its file on this filesystem.
fn loop_on(fs: Option<&str>) -> Device {
    Device {
        leaf: true,
        backing_fs: fs.map(str::to_owned),
        ..device("loop0", None)
    }
}

fn row(case: &str, flushes: u64, of: &[(&str, u64)]) -> Row {
    let mut row = Row {
        probe: "durability".to_owned(),
        comparison: "check".to_owned(),
        case: case.to_owned(),
        ops: 64,
        syncs: Some(64),
        flushes: Some(flushes),
        flushes_per_op: Some(flushes as f64 / 64.0),
        mean_us: Some(Us(260_000)),
        ..Row::default()
    };
    for (name, n) in of {
        row.observations.insert(format!("flushes.{name}"), json!(n));
    }
    let seen = [
        ("quiet_flushes_per_s", json!(0.0)),
        ("elapsed_ms", json!(20.0)),
        ("device_writes", json!(64)),
    ];
    for (name, value) in seen {
        row.observations.insert(name.to_owned(), value);
    }
    phase(&mut row, "sync", 240_000);
    row
}

fn phase(row: &mut Row, name: &str, p50_ns: u64) {
    let figures = PhaseFigures {
        p50_us: Us(p50_ns),
        ..PhaseFigures::default()
    };
    row.phases.insert(name.to_owned(), figures);
}

fn write_only() -> Row {
    Row {
        syncs: Some(0),
        flushes: Some(0),
        p50_us: Some(Us(5_000)),
        ..row("write-only", 0, &[])
    }
}

/// The three rows, behind another probe's, with these counts for both kinds of sync.
fn rows(fdatasync: (u64, &[(&str, u64)]), extending: (u64, &[(&str, u64)])) -> Vec<Row> {
    vec![
        Row {
            probe: "sync".to_owned(),
            ..row("fdatasync", 7, &[])
        },
        row("fdatasync", fdatasync.0, fdatasync.1),
        row("fsync-extending", extending.0, extending.1),
        write_only(),
    ]
}

fn same(flushes: u64, of: &[(&str, u64)]) -> Vec<Row> {
    rows((flushes, of), (flushes, of))
}

/// Judges, and checks what holds of every verdict.
fn judged(facts: &Facts, rows: &[Row], asked: bool) -> Durability {
    let durability = verdict(facts, rows, asked);
    let target = serde_json::to_value(Target {
        rows: rows.to_vec(),
        ..Target::default()
    })
    .unwrap();
    for ground in &durability.grounds {
        if let Some(pointer) = &ground.evidence {
            let figure = target.pointer(pointer);
            assert_eq!(figure, Some(&ground.value), "{}: {pointer}", ground.id);
        }
    }
    let text = durability.text.to_lowercase();
    assert!(!text.contains("safe"), "{text}");
    assert!(!text.is_empty() && !text.ends_with('.'), "{text}");
    assert!(!durability.grounds.is_empty(), "{text}");
    assert_eq!(
        durability.may_recommend,
        matches!(durability.verdict, FlushesSeen | NoFlushNeeded)
    );
    durability
}

/// A ground by id and weight.
type Expected<'a> = (&'a str, Weight);

#[track_caller]
fn expect(facts: &Facts, rows: &[Row], verdict: DurabilityVerdict, grounds: &[Expected<'_>]) {
    let durability = judged(facts, rows, true);
    let got: Vec<Expected<'_>> = durability
        .grounds
        .iter()
        .map(|g| (g.id.as_str(), g.weight))
        .collect();
    assert_eq!(
        (durability.verdict, got.as_slice()),
        (verdict, grounds),
        "{}",
        durability.text
    );
}

const FOR: Weight = Weight::For;
const AGAINST: Weight = Weight::Against;
const LIMITS: Weight = Weight::Limits;

fn loop_on_vda() -> Vec<Device> {
    vec![device("loop0", None), device("vda", Some("loop0"))]
}

#[test]
fn a_flush_for_each_sync_on_every_layer_is_seen() {
    let facts = facts(&[], loop_on_vda());
    let rows = same(64, &[("loop0", 64), ("vda", 66)]);
    expect(
        &facts,
        &rows,
        FlushesSeen,
        &[("device-flushes", FOR), ("virtual-device", LIMITS)],
    );
    let durability = judged(&facts, &rows, true);
    let ground = &durability.grounds[0];
    assert_eq!(ground.value, 1.0);
    assert_eq!(ground.unit.as_deref(), Some("flushes_per_sync"));
    assert_eq!(ground.evidence.as_deref(), Some("/rows/1/flushes_per_op"));
    assert_eq!(ground.source, "/sys/block/loop0/stat");
    assert_eq!(
        durability.text,
        "each sync sent a flush to loop0; what lies below vda cannot be seen from here"
    );
}

#[test]
fn known_answers_that_were_measured() {
    // btrfs: two flushes a sync.
    let btrfs = facts(&[("fs.type", json!("btrfs"))], loop_on_vda());
    expect(
        &btrfs,
        &same(128, &[("loop0", 128), ("vda", 128)]),
        FlushesSeen,
        &[("device-flushes", FOR), ("virtual-device", LIMITS)],
    );
    // ext4 on loop, barrier=0: none at all.
    let bare = facts(&[("fs.barrier", json!(false))], loop_on_vda());
    expect(
        &bare,
        &same(0, &[("loop0", 0), ("vda", 0)]),
        NoFlushSeen,
        &[
            ("barriers-off", AGAINST),
            ("device-flushes", AGAINST),
            ("virtual-device", LIMITS),
        ],
    );
    // A loop on a file in tmpfs counts a flush a sync, and is not durable.
    let memory = facts(&[], vec![loop_on(Some("tmpfs"))]);
    expect(
        &memory,
        &same(64, &[("loop0", 64)]),
        NotDurable,
        &[("fs-in-memory", AGAINST), ("device-flushes", FOR)],
    );
    // A loop on a file in a volatile overlay: its flushes go nowhere.
    let swallowed = facts(
        &[],
        vec![
            Device {
                backing_fs: Some("overlay volatile".to_owned()),
                ..device("loop4", None)
            },
            device("loop0", Some("loop4")),
            device("vda", Some("loop0")),
        ],
    );
    expect(
        &swallowed,
        &same(64, &[("loop4", 64), ("loop0", 0), ("vda", 0)]),
        NotDurable,
        &[
            ("overlay-volatile", AGAINST),
            ("device-flushes", FOR),
            ("lower-device-drops-flushes", AGAINST),
            ("virtual-device", LIMITS),
        ],
    );
}

#[test]
fn facts_against_decide_alone_asked_or_not() {
    let cheap = |mut rows: Vec<Row>| {
        phase(&mut rows[1], "sync", 800);
        rows
    };
    for (list, devices, id) in [
        (vec![("fs.type", json!("tmpfs"))], vec![], "fs-in-memory"),
        (vec![("fs.type", json!("ramfs"))], vec![], "fs-in-memory"),
        (
            vec![
                ("fs.type", json!("overlay")),
                ("fs.subtype", json!("tmpfs")),
            ],
            vec![],
            "fs-in-memory",
        ),
        (vec![], vec![write_through("zram0", None)], "fs-in-memory"),
        (
            vec![
                ("fs.type", json!("overlay")),
                ("fs.subtype", json!("ext4")),
                ("overlay.volatile", json!(true)),
            ],
            loop_on_vda(),
            "overlay-volatile",
        ),
        (
            vec![(
                "host.preload",
                json!("/l/libjemalloc.so /l/libeatmydata.so"),
            )],
            loop_on_vda(),
            "preload",
        ),
        (
            vec![("fs.type", json!("zfs")), ("zfs.sync", json!("disabled"))],
            vec![],
            "zfs-sync-disabled",
        ),
    ] {
        let facts = facts(&list, devices);
        let asked = judged(
            &facts,
            &cheap(same(64, &[("loop0", 64), ("vda", 64)])),
            true,
        );
        let unasked = judged(&facts, &[], false);
        for durability in [asked, unasked] {
            assert_eq!(durability.verdict, NotDurable, "{id}");
            assert_eq!(durability.grounds[0].id, id);
            assert_eq!(durability.grounds[0].weight, AGAINST);
        }
    }
    let library = facts(
        &[("host.preload", json!("/l/libeatmydata.so"))],
        loop_on_vda(),
    );
    let ground = &judged(&library, &[], false).grounds[0];
    assert_eq!(ground.value, "/l/libeatmydata.so");
    let harmless = facts(
        &[("host.preload", json!("/l/libjemalloc.so"))],
        loop_on_vda(),
    );
    assert_eq!(judged(&harmless, &[], false).verdict, NotTested);
}

#[test]
fn the_other_end_of_a_network_or_a_program_cannot_be_seen() {
    for (kind, id) in [
        ("nfs4", "network-filesystem"),
        ("cifs", "network-filesystem"),
        ("9p", "network-filesystem"),
        ("virtiofs", "network-filesystem"),
        ("fuse", "user-space-filesystem"),
        ("fuseblk", "user-space-filesystem"),
    ] {
        let facts = facts(&[("fs.type", json!(kind))], vec![]);
        expect(&facts, &same(0, &[]), NotProvable, &[(id, LIMITS)]);
        // Also below a loop device that counts every flush.
        let facts = self::facts(&[], vec![loop_on(Some(kind))]);
        expect(
            &facts,
            &same(64, &[("loop0", 64)]),
            NotProvable,
            &[(id, LIMITS), ("device-flushes", FOR)],
        );
    }
}

#[test]
fn the_quiet_rate_is_subtracted() {
    let facts = facts(&[], vec![device("sda", None)]);
    let flushes = |n: u64, quiet_per_s: f64| {
        let mut rows = same(n, &[("sda", n)]);
        for row in &mut rows {
            let seen = &mut row.observations;
            seen.insert("quiet_flushes_per_s".to_owned(), json!(quiet_per_s));
            seen.insert("elapsed_ms".to_owned(), json!(500.0));
        }
        judged(&facts, &rows, true).verdict
    };
    assert_eq!(flushes(64, 0.0), FlushesSeen);
    assert_eq!(flushes(58, 0.0), FlushesSeen);
    assert_eq!(flushes(57, 0.0), NotProvable);
    assert_eq!(flushes(64, 20.0), NotProvable);
    assert_eq!(flushes(64, 128.0), NoFlushSeen);
    assert_eq!(flushes(64, 1e6), NoFlushSeen);
    assert_eq!(flushes(7, 0.0), NotProvable);
    assert_eq!(flushes(6, 0.0), NoFlushSeen);
    assert_eq!(flushes(0, 0.0), NoFlushSeen);
}

#[test]
fn write_through_needs_no_flush_but_the_writes() {
    let facts = facts(&[], vec![write_through("sda", None)]);
    let rows = same(0, &[("sda", 0)]);
    expect(
        &facts,
        &rows,
        NoFlushNeeded,
        &[("write-through-device", FOR)],
    );
    let mut unwritten = rows.clone();
    unwritten[1]
        .observations
        .insert("device_writes".to_owned(), json!(3));
    expect(
        &facts,
        &unwritten,
        NoFlushSeen,
        &[("device-flushes", AGAINST)],
    );
    // No barrier is how such a device is meant to be used.
    let bare = self::facts(
        &[("fs.barrier", json!(false))],
        vec![write_through("sda", None)],
    );
    expect(
        &bare,
        &rows,
        NoFlushNeeded,
        &[("barriers-off", LIMITS), ("write-through-device", FOR)],
    );
    // One member that writes back and gets flushes, one that writes through.
    let mixed = self::facts(&[], vec![device("sda", None), write_through("sdb", None)]);
    expect(
        &mixed,
        &same(64, &[("sda", 64), ("sdb", 0)]),
        FlushesSeen,
        &[("device-flushes", FOR), ("write-through-device", FOR)],
    );
    // A loop device's cache is the page cache below it, whatever its queue says.
    let file = self::facts(
        &[],
        vec![write_through("loop0", None), device("sda", Some("loop0"))],
    );
    expect(
        &file,
        &same(0, &[("loop0", 0), ("sda", 0)]),
        NoFlushSeen,
        &[("device-flushes", AGAINST)],
    );
    // Below a loop device that got its flushes, a write-through disk needs none.
    let lower = self::facts(
        &[],
        vec![device("loop0", None), write_through("sda", Some("loop0"))],
    );
    expect(
        &lower,
        &same(64, &[("loop0", 64), ("sda", 0)]),
        FlushesSeen,
        &[("device-flushes", FOR)],
    );
}

#[test]
fn a_fua_device_is_decided_by_the_extending_sync() {
    let facts = facts(&[], vec![with_fua("sda")]);
    let none: (u64, &[(&str, u64)]) = (0, &[("sda", 0)]);
    let all: (u64, &[(&str, u64)]) = (64, &[("sda", 64)]);
    let some: (u64, &[(&str, u64)]) = (20, &[("sda", 20)]);
    expect(
        &facts,
        &rows(none, all),
        FlushesSeen,
        &[("fua-device", FOR)],
    );
    let durability = judged(&facts, &rows(none, all), true);
    assert_eq!(
        durability.grounds[0].evidence.as_deref(),
        Some("/rows/2/flushes_per_op")
    );
    expect(
        &facts,
        &rows(none, none),
        NoFlushSeen,
        &[("device-flushes", AGAINST)],
    );
    expect(
        &facts,
        &rows(none, some),
        NotProvable,
        &[("device-flushes", LIMITS)],
    );
    expect(
        &facts,
        &rows(all, all),
        FlushesSeen,
        &[("device-flushes", FOR)],
    );
    // Without FUA, writes alone force nothing.
    let plain = self::facts(&[], vec![device("sda", None)]);
    expect(
        &plain,
        &rows(none, all),
        NoFlushSeen,
        &[("device-flushes", AGAINST)],
    );
    let mut without = rows(none, all);
    without.remove(2);
    expect(&facts, &without, NotProvable, &[("device-flushes", LIMITS)]);
    // Forced unit access that wrote nothing forced nothing.
    let mut unwritten = rows(none, all);
    unwritten[1]
        .observations
        .insert("device_writes".to_owned(), json!(0));
    expect(
        &facts,
        &unwritten,
        NoFlushSeen,
        &[("device-flushes", AGAINST)],
    );
}

#[test]
fn a_device_further_down_that_drops_flushes_is_found() {
    let facts = facts(&[], loop_on_vda());
    let drops = same(64, &[("loop0", 64), ("vda", 31)]);
    expect(
        &facts,
        &drops,
        NoFlushSeen,
        &[
            ("device-flushes", FOR),
            ("lower-device-drops-flushes", AGAINST),
            ("virtual-device", LIMITS),
        ],
    );
    let durability = judged(&facts, &drops, true);
    assert_eq!(durability.grounds[1].value, 31);
    assert_eq!(
        durability.grounds[1].evidence.as_deref(),
        Some("/rows/1/observations/flushes.vda")
    );
    // Several may be merged.
    let merged = same(64, &[("loop0", 64), ("vda", 32)]);
    assert_eq!(judged(&facts, &merged, true).verdict, FlushesSeen);
    // A few flushes above that came from elsewhere say nothing of what lies below.
    let stray = same(3, &[("loop0", 3), ("vda", 0)]);
    expect(
        &facts,
        &stray,
        NoFlushSeen,
        &[("device-flushes", AGAINST), ("virtual-device", LIMITS)],
    );
    // Through what does not count, and two layers down.
    let deep = self::facts(
        &[],
        vec![
            device("loop1", None),
            device("sda1", Some("loop1")),
            device("sda", Some("sda1")),
        ],
    );
    assert_eq!(
        judged(&deep, &same(64, &[("loop1", 64), ("sda", 0)]), true).verdict,
        NoFlushSeen
    );
    let deeper = self::facts(
        &[],
        vec![
            device("loop2", None),
            device("loop1", Some("loop2")),
            device("sda", Some("loop1")),
        ],
    );
    let counts = [("loop2", 64), ("loop1", 64), ("sda", 1)];
    assert_eq!(
        judged(&deeper, &same(64, &counts), true).verdict,
        NoFlushSeen
    );
    // One that does not count proves nothing either way.
    expect(
        &deep,
        &same(64, &[("loop1", 64)]),
        NotProvable,
        &[("device-flushes", FOR), ("device-flushes", LIMITS)],
    );
}

#[test]
fn what_does_not_count_is_looked_through() {
    let lvm = || {
        vec![
            device("dm-0", None),
            device("sda", Some("dm-0")),
            device("sdb1", Some("dm-0")),
            device("sdb", Some("sdb1")),
        ]
    };
    // The row's own flushes are dm's, which counts none.
    let facts = facts(&[], lvm());
    let counted = same(0, &[("dm-0", 0), ("sda", 64), ("sdb", 64)]);
    expect(&facts, &counted, FlushesSeen, &[("device-flushes", FOR)]);
    let ground = &judged(&facts, &counted, true).grounds[0];
    assert_eq!(ground.value, 64);
    assert_eq!(ground.unit.as_deref(), Some("flushes"));
    assert_eq!(ground.source, "/sys/block/sda/stat, /sys/block/sdb/stat");
    // One disk of two got none.
    let one = same(0, &[("dm-0", 0), ("sda", 64), ("sdb", 0)]);
    expect(
        &facts,
        &one,
        NoFlushSeen,
        &[("device-flushes", FOR), ("device-flushes", AGAINST)],
    );
    // Nothing below counts: the row's 0 is not theirs.
    assert_eq!(judged(&facts, &same(0, &[]), true).verdict, NotProvable);
    let alone = self::facts(&[], vec![device("dm-0", None)]);
    expect(
        &alone,
        &same(0, &[("dm-0", 0)]),
        NotProvable,
        &[("device-flushes", LIMITS)],
    );
    // A partition's flushes are its disk's, and the row's.
    let partition = self::facts(&[], vec![device("sda1", None), device("sda", Some("sda1"))]);
    expect(
        &partition,
        &same(64, &[]),
        FlushesSeen,
        &[("device-flushes", FOR)],
    );
    assert_eq!(judged(&partition, &same(0, &[]), true).verdict, NoFlushSeen);
}

#[test]
fn every_member_must_be_flushed() {
    let facts = facts(
        &[("fs.type", json!("btrfs"))],
        vec![device("sda", None), device("sdb", None)],
    );
    expect(
        &facts,
        &same(256, &[("sda", 128), ("sdb", 128)]),
        FlushesSeen,
        &[("device-flushes", FOR)],
    );
    let durability = judged(&facts, &same(128, &[("sda", 128), ("sdb", 0)]), true);
    assert_eq!(durability.verdict, NoFlushSeen);
    let against = &durability.grounds[1];
    assert_eq!(against.value, 0);
    assert_eq!(
        against.evidence.as_deref(),
        Some("/rows/1/observations/flushes.sdb")
    );
}

#[test]
fn both_kinds_of_sync_must_be_flushed() {
    let facts = facts(&[], vec![device("sda", None)]);
    let rows = rows((64, &[("sda", 64)]), (0, &[("sda", 0)]));
    expect(&facts, &rows, NoFlushSeen, &[("device-flushes", AGAINST)]);
    let durability = judged(&facts, &rows, true);
    assert!(durability.text.contains("growing"));
    assert_eq!(
        durability.grounds[0].evidence.as_deref(),
        Some("/rows/2/flushes_per_op")
    );
}

#[test]
fn an_unknown_cache_without_flushes_proves_nothing() {
    let unknown = Device {
        write_cache: None,
        ..device("sda", None)
    };
    let facts = facts(&[], vec![unknown]);
    expect(
        &facts,
        &same(0, &[("sda", 0)]),
        NotProvable,
        &[("device-flushes", LIMITS)],
    );
    assert_eq!(
        judged(&facts, &same(64, &[("sda", 64)]), true).verdict,
        FlushesSeen
    );
}

#[test]
fn a_cheap_sync_decides_only_where_nothing_was_counted() {
    let cheap = |mut rows: Vec<Row>| {
        phase(&mut rows[1], "sync", 5_000);
        rows
    };
    // Counted flushes outweigh it.
    let disk = facts(&[], vec![device("sda", None)]);
    expect(
        &disk,
        &cheap(same(64, &[("sda", 64)])),
        FlushesSeen,
        &[("device-flushes", FOR), ("sync-as-cheap-as-write", LIMITS)],
    );
    // So do counted writes, on a device that needs no flush.
    let through = facts(&[], vec![write_through("sda", None)]);
    let rows = cheap(same(0, &[("sda", 0)]));
    expect(
        &through,
        &rows,
        NoFlushNeeded,
        &[
            ("write-through-device", FOR),
            ("sync-as-cheap-as-write", LIMITS),
        ],
    );
    // Without them the device's claim is all there is.
    let mut bare = rows.clone();
    bare[1].observations.remove("device_writes");
    expect(
        &through,
        &bare,
        NotProvable,
        &[
            ("write-through-device", FOR),
            ("sync-as-cheap-as-write", AGAINST),
        ],
    );
    let ground = &judged(&through, &bare, true).grounds[1];
    assert_eq!(
        ground.evidence.as_deref(),
        Some("/rows/1/phases/sync/p50_us")
    );
    // A little dearer than a write is not cheap; nor is anything where the clock shows 0.
    phase(&mut bare[1], "sync", 5_001);
    assert_eq!(judged(&through, &bare, true).verdict, NoFlushNeeded);
    phase(&mut bare[1], "sync", 0);
    bare[3].p50_us = Some(Us(0));
    assert_eq!(judged(&through, &bare, true).verdict, NoFlushNeeded);
}

#[test]
fn a_disk_faster_than_it_rotates_is_doubted_and_no_more() {
    let rotating = |device: Device| Device {
        rotational: Some(true),
        ..device
    };
    let disk = || rotating(device("sda", None));
    let rows = same(64, &[("sda", 64)]);
    let limits = ("faster-than-medium", LIMITS);
    expect(
        &facts(&[], vec![disk()]),
        &rows,
        FlushesSeen,
        &[("device-flushes", FOR), limits],
    );
    let slow = |mean_ns: u64| {
        let mut rows = rows.clone();
        rows[1].mean_us = Some(Us(mean_ns));
        judged(&facts(&[], vec![disk()]), &rows, true).grounds.len()
    };
    assert_eq!(slow(1_999_000), 2);
    assert_eq!(slow(2_000_000), 1);
    // Never said of what is virtual, stacked, or unnamed.
    for (virtualised, devices) in [
        ("kvm", vec![disk()]),
        (
            "no",
            vec![Device {
                is_virtual: Some(true),
                ..disk()
            }],
        ),
        (
            "no",
            vec![Device {
                model: None,
                ..disk()
            }],
        ),
        (
            "no",
            vec![
                rotating(device("loop0", None)),
                Device {
                    above: Some("loop0".to_owned()),
                    ..disk()
                },
            ],
        ),
        (
            "no",
            vec![
                rotating(device("dm-0", None)),
                Device {
                    above: Some("dm-0".to_owned()),
                    ..disk()
                },
            ],
        ),
    ] {
        let facts = facts(&[("host.virtual", json!(virtualised))], devices);
        let rows = same(64, &[("sda", 64), ("loop0", 64)]);
        let durability = judged(&facts, &rows, true);
        assert_eq!(durability.verdict, FlushesSeen);
        assert!(!durability.grounds.iter().any(|g| g.id == limits.0));
    }
}

#[test]
fn what_cannot_be_looked_into_limits() {
    // A virtual disk, whatever the host.
    let disk = facts(&[("host.virtual", json!("kvm"))], vec![device("vda", None)]);
    let durability = judged(&disk, &same(64, &[("vda", 64)]), true);
    assert_eq!(durability.verdict, FlushesSeen);
    assert!(durability.text.contains("below vda cannot be seen"));
    // A disk of a virtual machine that may be real.
    let perhaps = Device {
        is_virtual: None,
        ..device("sda", None)
    };
    let facts = facts(&[("host.virtual", json!("kvm"))], vec![perhaps]);
    let rows = same(64, &[("sda", 64)]);
    expect(
        &facts,
        &rows,
        FlushesSeen,
        &[("device-flushes", FOR), ("virtual-device", LIMITS)],
    );
    assert!(judged(&facts, &rows, true).text.contains("virtual machine"));
    // A loop device whose file cannot be found.
    let lost = self::facts(&[], vec![loop_on(None)]);
    expect(
        &lost,
        &same(64, &[("loop0", 64)]),
        FlushesSeen,
        &[("device-flushes", FOR), ("virtual-device", LIMITS)],
    );
    // An overlay that passes syncs on.
    let overlay = self::facts(
        &[
            ("fs.type", json!("overlay")),
            ("fs.subtype", json!("ext4")),
            ("overlay.volatile", json!(false)),
        ],
        vec![device("sda", None)],
    );
    expect(
        &overlay,
        &rows,
        FlushesSeen,
        &[("device-flushes", FOR), ("stacked-filesystem", LIMITS)],
    );
}

#[test]
fn a_filesystem_without_a_visible_device_is_not_provable() {
    for kind in ["zfs", "bcachefs"] {
        let facts = facts(&[("fs.type", json!(kind))], vec![]);
        expect(
            &facts,
            &same(0, &[]),
            NotProvable,
            &[("device-flushes", LIMITS)],
        );
    }
    // An overlay whose upper layer is of another mount namespace.
    let lost = facts(
        &[
            ("fs.type", json!("overlay")),
            ("fs.subtype", json!(null)),
            ("fs.barrier", json!(null)),
        ],
        vec![],
    );
    expect(
        &lost,
        &same(0, &[]),
        NotProvable,
        &[("device-flushes", LIMITS), ("stacked-filesystem", LIMITS)],
    );
}

#[test]
fn without_rows_nothing_is_claimed() {
    let facts = facts(&[], vec![device("sda", None)]);
    for (rows, asked) in [(vec![], false), (vec![], true)] {
        let durability = judged(&facts, &rows, asked);
        assert_eq!(durability.verdict, NotTested);
        assert_eq!(durability.grounds[0].id, "not-asked");
    }
    let mut faulty = same(64, &[("sda", 64)]);
    faulty[1].status = RowStatus::Fault;
    faulty[1].reason = Some("fdatasync: EIO at operation 3".to_owned());
    let durability = judged(&facts, &faulty, true);
    assert_eq!(durability.verdict, NotTested);
    assert!(durability.text.contains("EIO"));
    assert_eq!(durability.grounds[0].value, "fdatasync: EIO at operation 3");
    let mut empty = same(64, &[("sda", 64)]);
    empty[1].syncs = Some(0);
    assert_eq!(judged(&facts, &empty, true).verdict, NotTested);
    // Barriers off is a fact that needs no sync.
    let bare = self::facts(&[("fs.barrier", json!(false))], vec![device("sda", None)]);
    assert_eq!(judged(&bare, &[], false).verdict, NoFlushSeen);
}

#[test]
fn device_names_are_escaped_in_pointers() {
    let odd = Device {
        name: "a~b".to_owned(),
        kind: "disk".to_owned(),
        leaf: true,
        write_cache: Some("write back".to_owned()),
        is_virtual: Some(false),
        ..Device::default()
    };
    let facts = facts(&[], vec![odd, device("sda", None)]);
    let durability = judged(&facts, &same(64, &[("a~b", 0), ("sda", 64)]), true);
    assert_eq!(durability.verdict, NoFlushSeen);
    assert!(
        durability
            .grounds
            .iter()
            .any(|g| { g.evidence.as_deref() == Some("/rows/1/observations/flushes.a~0b") })
    );
}
