use super::*;

fn plan(profile: Profile, fill: bool) -> Group {
    let request = Request {
        profile,
        fill,
        segment_bytes: 16 << 20,
        ..Request::default()
    };
    Enospc.plan(&request, &Facts::default()).remove(0)
}

#[test]
fn quick_asks_only_whether_prepared_segments_can_be_written() {
    let group = plan(Profile::Quick, false);
    let ids: Vec<&str> = group.compare.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(ids, ["full", "rewrite-old"]);
    assert!(group.cases.iter().all(|c| c.params["brief"] == json!(true)));
    let bytes: u64 = group.cases.iter().map(|c| c.op_bytes).sum();
    assert!(bytes <= 16 << 20, "{bytes}");
}

#[test]
fn a_thorough_run_has_the_rarer_methods() {
    let names = |profile| plan(profile, false).compare[0].names.len();
    assert_eq!((names(Profile::Normal), names(Profile::Thorough)), (3, 8));
}

#[test]
fn segments_are_smaller_than_what_a_ballast_leaves() {
    for fill in [false, true] {
        let group = plan(Profile::Normal, fill);
        let segment = group.cases[0].params["segment_bytes"].as_u64().unwrap();
        assert!(segment * (SEGMENTS + 1) * 2 <= place::room(fill, segment));
    }
}
