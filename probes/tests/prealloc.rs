//! prealloc on real directories: cycles, and a filesystem that has no fallocate(2).

#[path = "kit/means.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod means;

use std::{path::Path, sync::Mutex};

use nix::mount::{MsFlags, mount};
use walprobe_probes::{
    contract::Pulse,
    event::Event,
    report::{Row, RowStatus, Verdict},
    request::{Profile, Request},
    worker,
};

const METHODS: [&str; 10] = [
    "zero-fill",
    "zero-fill-8k",
    "fallocate",
    "posix_fallocate",
    "glibc-emulation",
    "sparse",
    "zero-range",
    "write-zeroes",
    "fallocate+zero-fill",
    "append",
];

fn request(dir: &Path, only: &str) -> Request {
    Request {
        dir: dir.to_str().unwrap().to_owned(),
        run_id: "0123456789AB".to_owned(),
        probes: vec!["prealloc".to_owned()],
        only: vec![only.to_owned()],
        profile: Profile::Quick,
        time_s: 60.0,
        budget_bytes: 4 << 30,
        seed: 1,
        segment_bytes: 1 << 20,
        op_timeout_s: 60.0,
        ..Request::default()
    }
}

/// The final rows of a run.
fn measured(request: &Request) -> Vec<Row> {
    let rows = Mutex::new(Vec::new());
    worker::run(
        walprobe_probes::PROBES,
        request,
        &Pulse::default(),
        &|event| match event {
            Event::Rows {
                rows: told,
                done: true,
            } => rows.lock().unwrap().extend(told.iter().cloned()),
            Event::Refused { message, .. } => panic!("{message}"),
            Event::Done { left_behind, .. } => assert!(left_behind.is_empty(), "{left_behind:?}"),
            _ => {}
        },
    );
    let mut rows = rows.into_inner().unwrap();
    rows.retain(|r| r.probe == "prealloc");
    rows
}

fn row<'r>(rows: &'r [Row], comparison: &str, case: &str) -> &'r Row {
    rows.iter()
        .find(|r| r.comparison == comparison && r.case == case)
        .unwrap_or_else(|| panic!("no row {comparison}/{case}"))
}

#[test]
fn cycles_are_done_as_often_as_asked_and_told_in_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let asked = Request {
        cycles: Some(3),
        rewrites: Some(2),
        ..request(dir.path(), "prealloc/cycles/*")
    };
    let rows = measured(&asked);
    assert_eq!(rows.len(), 3);
    for row in &rows {
        if row.case == "posix_fallocate" && row.status == RowStatus::Unsupported {
            continue;
        }
        assert_eq!(row.status, RowStatus::Ok, "{:?}", row.reason);
        assert_eq!((row.ops, row.rounds, row.syncs), (3, 3, Some(6)));
        assert_eq!(row.wal_bytes, Some(6 << 20), "{}", row.case);
        // Three rounds are no verdict.
        let verdict = if row.case == "classic" {
            Verdict::Baseline
        } else {
            Verdict::Inconclusive
        };
        assert_eq!(row.verdict, Some(verdict));
        let total_s = row.observations["total_s"].as_f64().unwrap();
        assert!((total_s - 3.0 * row.mean_us.unwrap().as_us() / 1e6).abs() < 1e-4);
        let line = row.observations["line"].as_str().unwrap();
        let said = format!(
            "method: {}. 3 open/close iterations, 2 rewrite in ",
            row.case
        );
        assert!(line.starts_with(&said) && line.ends_with(" s"), "{line}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_filesystem_without_fallocate_has_glibc_emulate_it() {
    let test = "a_filesystem_without_fallocate_has_glibc_emulate_it";
    means::with_own_mounts(test, |dir| {
        mount(
            Some("ramfs"),
            dir,
            Some("ramfs"),
            MsFlags::empty(),
            None::<&str>,
        )
        .expect("mount ramfs");
        let all = METHODS.join(",");
        let rows = measured(&request(dir, &format!("prealloc/*/{{{all}}}")));
        assert_eq!(rows.len(), 4 * METHODS.len());
        for row in &rows {
            let by_call = [
                "fallocate",
                "zero-range",
                "write-zeroes",
                "fallocate+zero-fill",
            ];
            let supported = !by_call.contains(&row.case.as_str());
            if row.case == "posix_fallocate" {
                continue;
            }
            let id = format!("{}/{}", row.comparison, row.case);
            assert_eq!(row.observations["supported"], supported, "{id}");
            if supported {
                assert_eq!(row.status, RowStatus::Ok, "{id}");
                assert_eq!(row.observations["content_zero"], true, "{id}");
                assert_eq!(row.observations["length_right"], true, "{id}");
            } else {
                assert_eq!(row.status, RowStatus::Unsupported, "{id}");
                assert_eq!(row.fault.as_ref().unwrap().errno_name, "EOPNOTSUPP");
            }
        }
        let libc = row(&rows, "create", "posix_fallocate");
        assert_eq!(libc.observations["raw_fallocate"], "EOPNOTSUPP");
        assert_eq!(libc.observations["native"], false);
        if cfg!(target_env = "gnu") {
            assert_eq!(libc.observations["libc_way"], "emulated");
            assert_eq!(libc.observations["libc_write_calls"], 256);
            assert_eq!(libc.observations["content_zero"], true);
        } else {
            assert_eq!(libc.observations["libc_way"], "refused");
            assert_eq!(libc.status, RowStatus::Unsupported);
        }
    });
}
