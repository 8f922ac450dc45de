use super::*;
use crate::{PROBES, plan, request::Selection};

fn request(profile: Profile) -> Request {
    Request {
        profile,
        segment_bytes: 16 << 20,
        ..Request::default()
    }
}

fn rows(groups: &[Group]) -> Vec<String> {
    let mut out = Vec::new();
    for group in groups {
        for comparison in &group.compare {
            for (name, _) in group.members(comparison) {
                out.push(format!("{}/{name}", comparison.id));
            }
        }
    }
    out
}

#[test]
fn each_row_is_planned_once_whatever_the_group() {
    let plan = |profile| Prealloc.plan(&request(profile), &Facts::default());
    for (profile, methods) in [
        (Profile::Quick, 3),
        (Profile::Normal, 3),
        (Profile::Thorough, METHODS.len()),
    ] {
        let mut rows = rows(&plan(profile));
        assert_eq!(rows.len(), methods * COMPARISONS.len(), "{profile:?}");
        rows.sort();
        rows.dedup();
        assert_eq!(rows.len(), methods * COMPARISONS.len(), "{profile:?}");
    }
}

#[test]
fn every_group_has_its_own_baseline() {
    for group in Prealloc.plan(&request(Profile::Thorough), &Facts::default()) {
        for comparison in &group.compare {
            let at = group.baseline(comparison).expect("a baseline");
            assert_eq!(group.cases[at].name, BASELINE);
        }
    }
}

#[test]
fn cycles_come_last_and_only_where_asked_for() {
    let asked = Request {
        cycles: Some(3),
        rewrites: Some(2),
        ..request(Profile::Quick)
    };
    let groups = Prealloc.plan(&asked, &Facts::default());
    let last = groups.last().unwrap();
    assert_eq!(last.compare[0].id, "cycles");
    assert_eq!(last.fixed_rounds(), Some(3));
    assert_eq!(last.cases[0].op_bytes, 48 << 20);
    assert_eq!(groups.len(), 2);
}

#[test]
fn a_rarer_method_alone_brings_the_baseline_but_not_its_row() {
    let asked = Request {
        probes: vec![CARD.id.to_owned()],
        only: vec!["append".to_owned()],
        ..request(Profile::Normal)
    };
    let selection = Selection::new(&asked.only, &[]).unwrap();
    let planned = plan::groups(PROBES, &asked, &Facts::default(), &selection);
    let own: Vec<_> = planned
        .iter()
        .filter(|p| p.group.probe == CARD.id)
        .collect();
    let cases: Vec<_> = own[0].group.cases.iter().map(|c| c.name.as_str()).collect();
    assert_eq!((own.len(), cases), (1, vec![BASELINE, "append"]));
    let rows = plan::rows(&planned, &selection);
    let rows: Vec<_> = rows.iter().filter(|r| r.probe == CARD.id).collect();
    assert_eq!(rows.len(), COMPARISONS.len());
    assert!(rows.iter().all(|r| r.case == "append"));
    // The row answers for what its baseline writes too.
    let bytes: u64 = rows.iter().map(|r| r.bytes).sum();
    assert!(bytes > 16 << 20, "{bytes}");
}

#[test]
fn a_commit_larger_than_what_is_walked_is_walked_once() {
    let asked = |commit| Request {
        commit_bytes: Some(commit),
        ..request(Profile::Quick)
    };
    let walked = |commit| {
        let groups = Prealloc.plan(&asked(commit), &Facts::default());
        groups
            .first()
            .map(|g| g.cases[0].params["walked_bytes"].clone())
    };
    assert_eq!(walked(1 << 20), Some(json!(1 << 20)));
    assert_eq!(walked(100_000), Some(json!(2 * 106_496)));
    assert_eq!(walked(32 << 20), None, "more than a segment");
}
