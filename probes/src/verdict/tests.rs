//! Each line of the verdict's table, and the known answers that were measured.

use serde_json::{Value, json};

use super::*;

mod counting;
mod elsewhere;
mod known;
mod pool;
mod stacked;

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
