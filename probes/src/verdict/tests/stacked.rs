//! Several devices, and what is only plausible.

use super::*;

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

/// An ext4 whose journal is a device of its own.
fn with_journal(journal: &str) -> Facts {
    let journal = Device {
        role: Some("journal".to_owned()),
        ..device(journal, None)
    };
    facts(&[], vec![device("sda", None), journal])
}

#[test]
fn a_journal_of_its_own_is_judged_by_the_growing_file() {
    let facts = with_journal("sdb");
    // Data that lie where they lay need no journal.
    let both = rows(
        (64, &[("sda", 64), ("sdb", 0)]),
        (192, &[("sda", 64), ("sdb", 128)]),
    );
    expect(
        &facts,
        &both,
        FlushesSeen,
        &[("device-flushes", FOR), ("device-flushes", FOR)],
    );
    let unflushed = rows(
        (64, &[("sda", 64), ("sdb", 0)]),
        (64, &[("sda", 64), ("sdb", 0)]),
    );
    let grounds = [("device-flushes", FOR), ("device-flushes", AGAINST)];
    expect(&facts, &unflushed, NoFlushSeen, &grounds);
    let text = judged(&facts, &unflushed, true).text;
    assert!(text.contains("growing file sent no flush to sdb"), "{text}");
    let mut without = both.clone();
    without.remove(2);
    assert_eq!(judged(&facts, &without, true).verdict, NotProvable);
    // One in memory is lost, and the data with it.
    let memory = with_journal("zram0");
    let told = judged(&memory, &same(64, &[("sda", 64), ("zram0", 64)]), true);
    assert_eq!(told.verdict, NotDurable);
    // One that is there and cannot be found.
    let unseen = Device {
        kind: "other".to_owned(),
        is_virtual: Some(false),
        write_cache: None,
        leaf: true,
        ..device("sda-journal", None)
    };
    let mut lost = with_journal("sdb");
    lost.devices[1] = Device {
        role: Some("journal".to_owned()),
        ..unseen
    };
    expect(
        &lost,
        &same(64, &[("sda", 64)]),
        NotProvable,
        &[("journal-unseen", LIMITS), ("device-flushes", FOR)],
    );
}

#[test]
fn a_journal_below_a_loop_is_not_held_to_the_flushes_above() {
    let mut facts = with_journal("sdb");
    for below in &mut facts.devices {
        below.above = Some("loop0".to_owned());
    }
    facts.devices.insert(0, device("loop0", None));
    let rows = same(64, &[("loop0", 64), ("sda", 64), ("sdb", 0)]);
    expect(&facts, &rows, FlushesSeen, &[("device-flushes", FOR)]);
}
