//! What `align` plans, and what it does in a directory of its own.

use std::collections::BTreeMap;

use walprobe_probes::{
    align::Align,
    contract::{Group, Probe as _},
    facts::Facts,
    plan,
    report::{Cold, Fact, Row, RowStatus},
    request::{DropCaches, Profile, Request, Selection},
};

#[path = "kit/measured.rs"]
mod kit;

use kit::measured;

const MIB: u64 = 1 << 20;
const SIZES: [&str; 12] = [
    "512", "1k", "2k", "4k", "8k", "16k", "32k", "64k", "128k", "256k", "512k", "1m",
];

fn request(profile: Profile) -> Request {
    Request {
        probes: vec!["align".to_owned()],
        profile,
        time_s: profile.seconds(),
        budget_bytes: profile.budget_bytes(),
        segment_bytes: 16 << 20,
        op_timeout_s: 60.0,
        run_id: "01JDW3K9ZQ4T".to_owned(),
        ..Request::default()
    }
}

fn only(pattern: &str, profile: Profile) -> Request {
    Request {
        only: vec![pattern.to_owned()],
        ..request(profile)
    }
}

fn facts(name: &str, value: impl Into<serde_json::Value>) -> Facts {
    let mut facts = Facts::default();
    let fact = Fact {
        value: value.into(),
        source: "test".to_owned(),
        why: None,
    };
    facts.target.insert(name.to_owned(), fact);
    facts
}

fn planned(request: &Request, facts: &Facts) -> Group {
    let groups = Align.plan(request, facts);
    assert_eq!(
        groups.len(),
        1,
        "its cases share a file, so they are one group"
    );
    groups.into_iter().next().unwrap()
}

/// What a plan says that it writes, as the user is told.
fn bytes(request: &Request, facts: &Facts) -> u64 {
    let selection = Selection::new(&request.only, &request.skip).unwrap();
    let groups: Vec<_> = plan::groups(walprobe_probes::PROBES, request, facts, &selection)
        .into_iter()
        .filter(|p| p.group.probe == "align")
        .collect();
    let rows = plan::rows(&groups, &selection);
    rows.iter().map(|row| row.bytes).sum()
}

#[test]
fn quick_has_the_record_alone_and_the_others_every_size() {
    let ids = |request: &Request| {
        let group = planned(request, &Facts::default());
        let rows = group.compare.iter().flat_map(|c| {
            let members = group.members(c);
            members
                .into_iter()
                .map(|(name, _)| format!("{}/{name}", c.id))
        });
        rows.collect::<Vec<_>>()
    };
    let behaviour = ["behaviour/record", "behaviour/direct"];
    assert_eq!(ids(&request(Profile::Quick)), behaviour);
    let mut sweep: Vec<String> = SIZES.iter().map(|size| format!("sweep/{size}")).collect();
    sweep.push("sweep/odd-8k".to_owned());
    let spelt_out = ids(&only("align/sweep", Profile::Quick));
    assert_eq!(spelt_out[..13], sweep);
    sweep.extend(behaviour.map(str::to_owned));
    assert_eq!(ids(&request(Profile::Normal)), sweep);
    assert_eq!(ids(&request(Profile::Thorough)), sweep);
}

#[test]
fn what_is_written_stays_small_and_is_told_whatever_is_selected() {
    let none = Facts::default();
    let mib = |request: &Request, facts: &Facts| bytes(request, facts).div_ceil(MIB);
    let quick = mib(&request(Profile::Quick), &none);
    assert!((24..=32).contains(&quick), "{quick}");
    let normal = mib(&request(Profile::Normal), &none);
    assert!((quick + 20..=68).contains(&normal), "{normal}");
    // The shared file is told with whatever case opens it.
    for case in ["align/sweep/8k", "align/sweep/1m", "align/behaviour/record"] {
        let group = planned(&only(case, Profile::Normal), &none);
        let own = group.cases[0].params["places"].as_u64().unwrap();
        let file = own + 1 + 2;
        assert_eq!(group.cases[0].file_bytes, file * MIB, "{case}");
        assert!(mib(&only(case, Profile::Normal), &none) >= file, "{case}");
    }
    // Long records make long places, and fewer of them.
    for (record, stride, places) in [(8192, MIB, 26), (MIB, MIB, 26), (16 * MIB, 16 * MIB, 3)] {
        let group = planned(
            &request(Profile::Normal),
            &facts("zfs.recordsize_bytes", record),
        );
        let case = &group.cases[0];
        assert_eq!(case.params["stride_bytes"], stride);
        assert_eq!(case.params["places"], places);
    }
}

fn in_new_dir(request: &Request, of: impl Fn(BTreeMap<String, Row>)) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    of(measured(&Request {
        dir: dir.path().to_string_lossy().into_owned(),
        ..request.clone()
    }));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_size_is_written_as_often_as_planned_and_only_cold() {
    in_new_dir(&only("align/sweep/{2k,odd-8k}", Profile::Normal), |rows| {
        for (case, size) in [("2k", 2048), ("odd-8k", 8192)] {
            let row = &rows[&format!("sweep/{case}")];
            if row.status == RowStatus::Skipped {
                // Where the directory of the build cannot be cold, nothing is said.
                assert_eq!(row.ops, 0, "{:?}", row.reason);
                assert!(!row.observations.contains_key("read_per_write_bytes"));
                continue;
            }
            assert_eq!(row.status, RowStatus::Ok, "{:?}", row.reason);
            assert_eq!(row.cold, Some(Cold::Proven));
            assert_eq!(row.bytes_written, Some(row.ops * size));
            assert_eq!(row.ops, 2 * row.rounds);
            assert_eq!(
                row.params["offset"],
                if case == "2k" { "aligned" } else { "odd" }
            );
        }
    });
}

#[test]
fn without_a_proof_nothing_is_written_and_nothing_said() {
    let undropped = Request {
        drop_caches: DropCaches::None,
        ..only("align/*", Profile::Normal)
    };
    in_new_dir(&undropped, |rows| {
        for size in SIZES {
            let row = &rows[&format!("sweep/{size}")];
            assert_eq!(row.status, RowStatus::Skipped);
            assert_eq!((row.ops, row.cold), (0, None));
        }
        let record = &rows["behaviour/record"];
        assert_eq!(record.status, RowStatus::Skipped);
        assert!(record.observations.is_empty(), "{:?}", record.observations);
    });
}

#[test]
fn in_memory_there_is_nothing_to_be_read() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("skipped: no /dev/shm");
        return;
    };
    let rows = measured(&Request {
        dir: dir.path().to_string_lossy().into_owned(),
        ..request(Profile::Quick)
    });
    let row = &rows["behaviour/record"];
    assert_eq!(row.status, RowStatus::Skipped);
    assert_eq!(row.reason_code.as_deref(), Some("filesystem"));
    let direct = &rows["behaviour/direct"];
    assert_eq!(direct.status, RowStatus::Ok, "{:?}", direct.reason);
    assert_ne!(direct.observations["direct"], "real");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
