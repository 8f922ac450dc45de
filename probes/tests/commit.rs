//! What `commit` does in a directory of its own.

use std::{thread, time::Duration};

use walprobe_probes::{
    contract::Pulse,
    report::{Row, RowStatus, Verdict},
    request::{Beside, Profile, Request},
};

#[path = "kit/measured.rs"]
mod kit;

use kit::{measured, measured_until};

fn request(dir: &tempfile::TempDir, only: &str) -> Request {
    Request {
        dir: dir.path().to_string_lossy().into_owned(),
        probes: vec!["commit".to_owned()],
        only: vec![only.to_owned()],
        profile: Profile::Normal,
        time_s: 10.0,
        budget_bytes: 1 << 30,
        segment_bytes: 16 << 20,
        op_timeout_s: 60.0,
        run_id: "01JDW3K9ZQ4T".to_owned(),
        ..Request::default()
    }
}

fn dir() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Threads of clients that only a burst of more than eight has: other tests have fewer.
fn many_clients() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|t| std::fs::read_to_string(t.ok()?.path().join("comm")).ok());
    names
        .filter(|name| {
            let number = name.trim().strip_prefix("client-");
            number.is_some_and(|n| n.parse::<u64>().is_ok_and(|n| n >= 8))
        })
        .count()
}

fn number(row: &Row, name: &str) -> f64 {
    let seen = row.observations.get(name).and_then(|v| v.as_f64());
    seen.unwrap_or_else(|| panic!("{}: {name}: {:?}", row.case, row.observations))
}

#[test]
fn every_commit_is_counted_once_and_served_by_one_flush() {
    let dir = dir();
    let asked = Request {
        clients: Some(vec![1, 6]),
        commit_bytes: Some(1000),
        time_s: 25.0,
        ..request(&dir, "commit/{clients,delay-*}")
    };
    let rows = measured(&asked);
    for (id, clients) in [
        ("clients/fdatasync@1", 1),
        ("clients/fdatasync@6", 6),
        ("delay-6/fdatasync@6+delay", 6),
        ("delay-6-think/fdatasync@6", 6),
        ("delay-6-think/fdatasync@6+delay", 6),
    ] {
        let row = &rows[id];
        assert_eq!(row.status, RowStatus::Ok, "{id}: {:?}", row.reason);
        // Whole bursts of 16 commits a client.
        assert!(
            row.ops > 0 && row.ops.is_multiple_of(16 * clients),
            "{id}: {}",
            row.ops
        );
        assert_eq!(number(row, "group_size_sum"), row.ops as f64, "{id}");
        let groups = number(row, "groups");
        assert_eq!(row.syncs, Some(groups as u64), "{id}");
        assert_eq!(row.wal_bytes, Some(1000 * row.ops), "{id}");
        let mean = number(row, "group_size_mean");
        assert!((mean - row.ops as f64 / groups).abs() < 0.001, "{id}");
        assert!(mean <= clients as f64, "{id}: {mean}");
        // Pages of 8 KiB, at least one a flush.
        assert!(row.bytes_written.unwrap() >= 8192 * groups as u64, "{id}");
        // Rate on the wall: clients that wait together make more commits than their waits' sum says.
        let by_waits = 1e6 / row.mean_us.unwrap().as_us();
        let rate = row.ops_per_sec.unwrap();
        assert!(rate <= by_waits * clients as f64 * 1.01, "{id}: {rate}");
    }
    let alone = &rows["clients/fdatasync@1"];
    assert_eq!(number(alone, "group_size_mean"), 1.0);
    assert!(alone.observations.contains_key("knee_clients"));
    let delay = &rows["delay-6/fdatasync@6+delay"];
    assert!(
        delay.phases.contains_key("delay"),
        "{:?}",
        delay.phases.keys()
    );
    assert!(!rows["delay-6/fdatasync@6"].phases.contains_key("delay"));
    assert_eq!(rows["delay-6/fdatasync@6"].verdict, Some(Verdict::Baseline));
    assert!(delay.verdict.is_some());
    // All delays of a run are of one length, half a flush.
    let lengths: Vec<f64> = rows
        .iter()
        .filter(|(id, _)| id.ends_with("+delay"))
        .map(|(_, row)| number(row, "delay_us"))
        .collect();
    assert_eq!(lengths.len(), 2);
    assert_eq!(lengths[0], lengths[1]);
    let half = number(delay, "flush_mean_us") / 2.0;
    assert!((lengths[0] - half).abs() <= 1.0, "{lengths:?} of {half}");
    assert!(number(delay, "delay_really_us") >= lengths[0]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_neighbour_uses_a_file_of_its_own() {
    for (what, name) in [
        (Beside::Read, "read"),
        (Beside::Write, "write"),
        (Beside::Fsync, "fsync"),
    ] {
        let dir = dir();
        let asked = Request {
            beside: Some(what),
            clients: Some(vec![4]),
            // What others write to the same disk meanwhile counts too.
            budget_bytes: 64 << 30,
            ..request(&dir, "commit/beside")
        };
        let rows = measured(&asked);
        let loaded = &rows[&format!("beside/{name}")];
        assert_eq!(loaded.status, RowStatus::Ok, "{name}: {:?}", loaded.reason);
        assert!(number(loaded, "beside_calls") > 0.0, "{name}");
        assert!(number(loaded, "beside_bytes") > 0.0, "{name}");
        assert_eq!(number(loaded, "group_size_sum"), loaded.ops as f64);
        let idle = &rows["beside/idle"];
        assert_eq!(idle.verdict, Some(Verdict::Baseline));
        assert!(!idle.observations.contains_key("beside_calls"));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

/// The run is stopped while clients wait: whole bursts only are told, no thread and no file is left.
#[test]
fn an_interruption_leaves_neither_threads_nor_files() {
    let dir = dir();
    let asked = Request {
        clients: Some(vec![32]),
        time_s: 30.0,
        ..request(&dir, "commit/clients")
    };
    let pulse = Pulse::default();
    let rows = thread::scope(|scope| {
        scope.spawn(|| {
            while pulse.beats() < 500 {
                thread::sleep(Duration::from_millis(1));
            }
            pulse.stop();
        });
        measured_until(&asked, &pulse)
    });
    let row = &rows["clients/fdatasync@32"];
    if row.ops > 0 {
        assert_eq!(number(row, "group_size_sum"), row.ops as f64);
        assert_eq!(row.ops % (16 * 32), 0);
    }
    assert_ne!(row.status, RowStatus::Fault, "{:?}", row.reason);
    assert_eq!(many_clients(), 0);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
