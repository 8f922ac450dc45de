//! What `recycle` plans, and what it does in a directory of its own.

use std::collections::BTreeMap;

use walprobe_probes::{
    PROBES,
    contract::{Group, Probe as _},
    event::PlannedCase,
    facts::Facts,
    plan,
    recycle::Recycle,
    report::{Fact, Row, RowStatus, Verdict},
    request::{Beside, DropCaches, Profile, Request, Selection},
};

#[path = "kit/measured.rs"]
mod kit;

use kit::measured;

fn request(profile: Profile) -> Request {
    Request {
        probes: vec!["recycle".to_owned()],
        profile,
        time_s: profile.seconds(),
        budget_bytes: profile.budget_bytes(),
        segment_bytes: 16 << 20,
        op_timeout_s: 60.0,
        run_id: "01JDW3K9ZQ4T".to_owned(),
        ..Request::default()
    }
}

fn facts(in_place: &str) -> Facts {
    let mut facts = Facts::default();
    let fact = Fact {
        value: in_place.into(),
        source: "test".to_owned(),
        why: None,
    };
    facts.target.insert("fs.in_place".to_owned(), fact);
    facts
}

fn ids(groups: &[Group]) -> Vec<String> {
    groups
        .iter()
        .flat_map(|g| g.compare.iter().map(|c| c.id.clone()))
        .collect()
}

#[test]
fn each_profile_has_its_comparisons() {
    let quick = ["life", "life-cold"];
    let normal = [
        "life-8k",
        "life-cold-8k",
        "life-standby",
        "standby",
        "overwrite",
    ];
    let planned = |profile| ids(&Recycle.plan(&request(profile), &facts("yes")));
    assert_eq!(planned(Profile::Quick), quick);
    assert_eq!(planned(Profile::Normal), [&quick[..], &normal].concat());
    assert_eq!(
        planned(Profile::Thorough),
        [&quick[..], &normal, &["life-bulk"]].concat()
    );
    let beside = Request {
        beside: Some(Beside::Read),
        ..request(Profile::Normal)
    };
    assert_eq!(
        ids(&Recycle.plan(&beside, &facts("yes")))
            .last()
            .map(String::as_str),
        Some("beside")
    );
}

#[test]
fn the_old_segments_and_the_commit_size_are_as_asked() {
    let asked = Request {
        segments: Some(5),
        commit_bytes: Some(10_000),
        ..request(Profile::Thorough)
    };
    for group in Recycle.plan(&asked, &facts("yes")) {
        for case in &group.cases {
            let old = !case.name.starts_with("new");
            assert_eq!(
                case.params.get("segments").and_then(|v| v.as_u64()),
                old.then_some(5),
                "{}",
                case.name
            );
            let sized = group.compare[0].id.ends_with("-8k");
            let commit = case.params.get("commit_bytes").and_then(|v| v.as_u64());
            assert!(
                commit.is_none_or(|bytes| bytes == if sized { 8192 } else { 16_384 }),
                "{}: {commit:?}",
                group.compare[0].id
            );
        }
    }
}

/// Every row of a plan, and the group's case behind it; without one it is the same as another.
fn rows(request: &Request) -> Vec<PlannedCase> {
    let planned = plan::groups(PROBES, request, &facts("yes"), &Selection::default());
    let rows = plan::rows(&planned, &Selection::default());
    rows.into_iter().filter(|r| r.probe == "recycle").collect()
}

#[test]
fn a_recycled_sparse_segment_is_told_in_every_life_and_never_measured() {
    let rows = rows(&request(Profile::Thorough));
    let same: Vec<&PlannedCase> = rows.iter().filter(|r| r.same_as.is_some()).collect();
    let told: Vec<&str> = same.iter().map(|r| r.comparison.as_str()).collect();
    let lives = [
        "life",
        "life-cold",
        "life-8k",
        "life-cold-8k",
        "life-standby",
        "life-bulk",
    ];
    assert_eq!(told, lives);
    for row in same {
        assert_eq!(row.case, "recycle+sparse");
        assert_eq!((row.bytes, row.seconds, row.file_bytes), (0, 0.0, 0));
        let of = |r: &&PlannedCase| r.comparison == row.comparison && r.case == "recycle+zero";
        assert_eq!(row.params, rows.iter().find(of).unwrap().params);
    }
    let cases = Recycle.plan(&request(Profile::Thorough), &facts("yes"));
    let mut cases = cases.iter().flat_map(|g| &g.cases);
    assert!(cases.all(|c| !c.name.contains("recycle+sparse")));
}

#[test]
fn a_drop_beyond_files_is_for_the_new_segments_of_cold_comparisons_too() {
    let ways = [
        (DropCaches::Auto, None, None),
        (DropCaches::None, None, None),
        (DropCaches::Fadvise, None, None),
        (DropCaches::System, None, Some("system")),
        (DropCaches::Zfs, None, Some("zfs")),
        (DropCaches::Auto, Some(vec!["drop".to_owned()]), Some("cmd")),
    ];
    for (drop_caches, drop_caches_cmd, hook) in ways {
        let rows = rows(&Request {
            drop_caches,
            drop_caches_cmd,
            beside: Some(Beside::Read),
            ..request(Profile::Thorough)
        });
        let new = rows.iter().filter(|r| r.case.starts_with("new"));
        for row in new {
            let cold = row.comparison.contains("cold")
                || ["standby", "life-standby", "overwrite"].contains(&row.comparison.as_str());
            let dropped = row.params.get("dropped_by").and_then(|h| h.as_str());
            assert_eq!(dropped, hook.filter(|_| cold), "{}", row.comparison);
        }
        // Shared where the two are the same, else measured apart.
        let of = |comparison: &str| {
            let found = rows
                .iter()
                .find(|r| r.comparison == comparison && r.case == "new+zero");
            found.map(|r| (r.group, r.index)).unwrap()
        };
        assert_eq!(of("life") == of("life-cold"), hook.is_none(), "{hook:?}");
        assert_eq!(of("life-8k") == of("life-cold-8k"), hook.is_none());
    }
}

#[test]
fn a_segment_smaller_than_a_commit_is_not_walked() {
    let tiny = Request {
        segment_bytes: 32 << 10,
        ..request(Profile::Thorough)
    };
    let planned = ids(&Recycle.plan(&tiny, &facts("yes")));
    assert_eq!(
        planned,
        [
            "life-8k",
            "life-cold-8k",
            "life-standby",
            "standby",
            "overwrite"
        ]
    );
}

#[test]
fn a_reader_beside_reads_and_tells_how_it_fared() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let rows = measured(&Request {
        dir: dir.path().to_string_lossy().into_owned(),
        beside: Some(Beside::Read),
        segments: Some(3),
        segment_bytes: 1 << 20,
        only: vec!["recycle/beside".to_owned()],
        time_s: 8.0,
        // A reader's file of the least size.
        budget_bytes: 512 << 20,
        ..request(Profile::Normal)
    });
    for case in ["new+sparse", "recycle+zero"] {
        let row = &rows[&format!("beside/{case}")];
        assert_eq!(row.status, RowStatus::Ok, "{:?}", row.reason);
        assert_eq!(row.cold, None, "nothing is claimed");
        let seen = |name: &str| row.observations[name].clone();
        assert_eq!(seen("reader_file_bytes"), 128 << 20);
        assert!(seen("reader_reads").as_u64().unwrap() > 0);
        // A file far smaller than the memory stays in the cache, where the filesystem can tell.
        let hit = seen("reader_hit_pct").as_f64();
        assert!(
            hit.is_none_or(|pct| (1.0..=100.0).contains(&pct)),
            "{hit:?}"
        );
    }
    assert_eq!(rows["beside/new+sparse"].verdict, Some(Verdict::Baseline));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn what_two_comparisons_share_is_said_and_only_of_rows_that_are_told() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let asked = |only: &[&str]| {
        measured(&Request {
            dir: dir.path().to_string_lossy().into_owned(),
            segment_bytes: 128 << 10,
            only: only.iter().map(|p| (*p).to_owned()).collect(),
            time_s: 4.0,
            ..request(Profile::Quick)
        })
    };
    let other = |rows: &BTreeMap<String, Row>, id: &str| {
        let seen = rows[id].observations.get("same_operations_as");
        seen.map(|id| id.as_str().unwrap().to_owned())
    };
    let both = asked(&["recycle/life", "recycle/life-cold"]);
    for case in ["new+zero", "new+sparse"] {
        assert_eq!(other(&both, &format!("life/{case}")), None);
        let cold = other(&both, &format!("life-cold/{case}"));
        assert_eq!(cold, Some(format!("recycle/life/{case}")));
    }
    assert_eq!(other(&both, "life-cold/recycle+zero"), None);
    let less = asked(&["recycle/life/recycle+zero", "recycle/life-cold"]);
    assert_eq!(other(&less, "life-cold/new+zero"), None);
}

#[test]
fn bulk_syncs_once_and_prefetching_counts_only_what_was_prefetched() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let rows = measured(&Request {
        dir: dir.path().to_string_lossy().into_owned(),
        segment_bytes: 128 << 10,
        only: vec!["recycle/life-bulk".to_owned(), "recycle/standby".to_owned()],
        time_s: 12.0,
        ..request(Profile::Thorough)
    });
    let bulk = &rows["life-bulk/recycle+zero"];
    assert_eq!(bulk.status, RowStatus::Ok, "{:?}", bulk.reason);
    // Renaming durably takes three, and the segment's end one.
    assert_eq!(bulk.syncs, Some(4 * bulk.ops));
    assert_eq!(bulk.wal_bytes, Some(bulk.ops << 17));
    assert_eq!(bulk.observations["commits"], 2 * bulk.ops);
    let walked = rows["standby/new"].wal_bytes;
    for case in ["new", "warm", "cold", "cold-prefetched"] {
        let row = &rows[&format!("standby/{case}")];
        assert_eq!(row.status, RowStatus::Ok, "{:?}", row.reason);
        // One sync a chunk, and the chunks of a walk cover the segment.
        assert_eq!(row.syncs, Some(row.ops), "{case}");
        let walks = row.wal_bytes.unwrap() >> 17;
        assert!(walks > 0 && row.wal_bytes == Some(walks << 17), "{case}");
        // All walked as often: what is written ahead of a prefetched segment is not counted.
        assert_eq!(row.wal_bytes, walked, "{case}");
        assert_eq!(row.ops % walks, 0, "{case}");
        assert_eq!(row.cold.is_some(), case.starts_with("cold"), "{case}");
    }
}

/// On ZFS a file becomes cold by being written: its group's files lie together, and what a
/// preparation writes is charged.
#[test]
fn what_is_written_to_be_cold_is_charged() {
    let on = |fs_type: &str, drop_caches| {
        let mut facts = facts("no");
        let fact = Fact {
            value: fs_type.into(),
            source: "test".to_owned(),
            why: None,
        };
        facts.target.insert("fs.type".to_owned(), fact);
        let asked = Request {
            drop_caches,
            beside: Some(Beside::Read),
            ..request(Profile::Thorough)
        };
        Recycle.plan(&asked, &facts)
    };
    for (fs_type, drop_caches, times) in [
        ("zfs", DropCaches::Auto, 2),
        ("zfs", DropCaches::Zfs, 0),
        ("btrfs", DropCaches::Auto, 0),
    ] {
        for group in on(fs_type, drop_caches) {
            let id = group.compare[0].id.as_str();
            // A drop of more than files is not shared by warm and cold.
            let apart = drop_caches == DropCaches::Zfs && ["life", "life-8k"].contains(&id);
            let warm_only = apart || ["life-bulk", "beside"].contains(&id);
            for case in &group.cases {
                assert_eq!(case.beside_cold, !warm_only, "{id} {}", case.name);
                let walked = case.params["walked_bytes"].as_u64().unwrap();
                // `warm` of commits alone has the past of `cold`, and is read back.
                let times = match case.name.as_str() {
                    "recycle+zero@cold" | "cold" | "warm" => times,
                    "cold-prefetched" => 2 * times,
                    _ => 0,
                };
                assert_eq!(case.prepare_bytes, times * walked, "{id} {}", case.name);
            }
        }
    }
}
