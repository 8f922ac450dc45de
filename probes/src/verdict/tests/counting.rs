//! One device: its flushes, writes and cache.

use super::*;

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
    // The quiet rate explains it, and it is not what others do while we sync.
    assert_eq!(flushes(64, 128.0), NotProvable);
    assert_eq!(flushes(64, 1e6), NotProvable);
    assert_eq!(flushes(126, 1e6), NotProvable);
    assert_eq!(flushes(57, 128.0), NoFlushSeen);
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

/// Rows of a loaded device: so many of 64 syncs and of 64 writes beside them were flushed.
fn loaded(syncs: u64, writes: u64) -> Vec<Row> {
    let mut rows = same(128, &[("sda", 128)]);
    for row in &mut rows {
        let seen = &mut row.observations;
        for (name, value) in [
            ("quiet_flushes_per_s", json!(5_000.0)),
            ("elapsed_ms", json!(25.0)),
            ("flushed_syncs.sda", json!(syncs)),
            ("flushed_writes.sda", json!(writes)),
            ("writes_beside", json!(64)),
        ] {
            seen.insert(name.to_owned(), value);
        }
    }
    rows
}

#[test]
fn syncs_of_a_loaded_device_must_stand_out() {
    let facts = facts(&[], vec![device("sda", None)]);
    let seen = [("device-flushes", FOR)];
    for writes in [0, 9, 51] {
        expect(&facts, &loaded(64, writes), FlushesSeen, &seen);
    }
    let drowned = [("device-flushes", LIMITS), ("foreign-flushes", LIMITS)];
    for (syncs, writes) in [(64, 52), (64, 64), (63, 9), (40, 40)] {
        expect(&facts, &loaded(syncs, writes), NotProvable, &drowned);
    }
    let text = judged(&facts, &loaded(64, 64), true).text;
    assert!(text.starts_with("others flush sda"), "{text}");
}

#[test]
fn flushes_of_others_that_began_after_the_quiet_window_are_told() {
    let facts = facts(&[], vec![device("sda", None)]);
    let verdict = |syncs, writes| {
        let mut rows = loaded(syncs, writes);
        for row in &mut rows {
            row.observations
                .insert("quiet_flushes_per_s".to_owned(), json!(0.0));
        }
        judged(&facts, &rows, true).verdict
    };
    // A sync that sends no flush sees those of others as often as a write beside it.
    assert_eq!(verdict(40, 40), NotProvable);
    assert_eq!(verdict(64, 60), NotProvable);
    assert_eq!(verdict(64, 30), FlushesSeen);
    assert_eq!(verdict(64, 0), FlushesSeen);
}

#[test]
fn what_a_lower_device_got_for_each_sync_was_not_dropped() {
    // Above, others' flushes are counted too.
    let facts = facts(&[], loop_on_vda());
    let below = |n: u64| judged(&facts, &same(200, &[("loop0", 200), ("vda", n)]), true).verdict;
    assert_eq!(below(58), FlushesSeen);
    assert_eq!(below(57), NoFlushSeen);
}
