use super::*;

fn request(profile: Profile) -> Request {
    Request {
        profile,
        budget_bytes: profile.budget_bytes(),
        ..Request::default()
    }
}

fn ids(request: &Request) -> Vec<String> {
    let mut ids = Vec::new();
    for group in groups(request) {
        for comparison in &group.compare {
            let baseline = comparison.baseline.as_deref();
            assert!(group.baseline(comparison).is_some(), "{}", comparison.id);
            for (name, _) in group.members(comparison) {
                let star = if baseline == Some(name) { "*" } else { "" };
                ids.push(format!("{}/{name}{star}", comparison.id));
            }
        }
    }
    ids
}

const QUICK: [&str; 4] = [
    "delay-8/fdatasync@8*",
    "delay-8/fdatasync@8+delay",
    "delay-16/fdatasync@16*",
    "delay-16/fdatasync@16+delay",
];

#[test]
fn quick_has_what_decides_about_the_setting() {
    assert_eq!(ids(&request(Profile::Quick)), QUICK);
}

#[test]
fn normal_has_the_clients_and_think_time_too() {
    let clients = [
        "clients/fdatasync@1*",
        "clients/fdatasync@2",
        "clients/fdatasync@4",
        "clients/fdatasync@8",
        "clients/fdatasync@16",
    ];
    let think = QUICK.map(|id| id.replace('/', "-think/"));
    let all: Vec<String> = clients
        .into_iter()
        .chain(QUICK)
        .map(str::to_owned)
        .chain(think)
        .collect();
    assert_eq!(ids(&request(Profile::Normal)), all);
    let thorough = ids(&request(Profile::Thorough));
    assert_eq!(thorough.len(), all.len() + 3 * 5);
    assert!(thorough.contains(&"clients/open_datasync@16".to_owned()));
}

#[test]
fn a_method_is_measured_where_it_is_named() {
    let mut named = request(Profile::Normal);
    named.only = vec!["commit/clients/open_datasync@*".to_owned()];
    let found = ids(&named);
    assert!(found.contains(&"clients/open_datasync@4".to_owned()));
    assert!(!found.contains(&"clients/open_sync@4".to_owned()));
    let mut named = request(Profile::Quick);
    named.only = vec!["commit/clients".to_owned()];
    assert!(ids(&named).contains(&"clients/fdatasync@4".to_owned()));
}

#[test]
fn few_clients_are_never_delayed() {
    let mut few = request(Profile::Normal);
    few.clients = Some(vec![5, 6, 2, 6]);
    let found = ids(&few);
    assert_eq!(found[0], "clients/fdatasync@2*");
    let delayed: Vec<&String> = found.iter().filter(|id| id.contains("delay-")).collect();
    assert_eq!(delayed.len(), 4, "{found:?}");
    assert!(delayed.iter().all(|id| id.contains("delay-6")));
    few.clients = Some(vec![5]);
    few.profile = Profile::Quick;
    assert_eq!(ids(&few), [""; 0]);
}

#[test]
fn a_neighbour_is_there_where_it_was_asked_for() {
    for (what, name) in [
        (Beside::Read, "read"),
        (Beside::Write, "write"),
        (Beside::Fsync, "fsync"),
    ] {
        let mut asked = request(Profile::Quick);
        asked.beside = Some(what);
        let found = groups(&asked);
        let group = found.last().unwrap();
        let names: Vec<&str> = group.cases.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["idle", name]);
        assert_eq!(group.cases[0].params["clients"], json!(8));
        assert_eq!(group.cases[1].params["beside"], json!(name));
        assert!(group.cases[1].op_bytes >= group.cases[0].op_bytes);
    }
}

#[test]
fn the_segment_takes_the_largest_group_and_every_case_says_what_it_does() {
    let mut large = request(Profile::Normal);
    large.commit_bytes = Some(1 << 20);
    for group in groups(&large) {
        for case in &group.cases {
            let number = |key| case.params.get(key).and_then(Value::as_u64).unwrap();
            assert!(number("file_bytes") >= number("clients") * number("commit_bytes"));
            assert_eq!(number("commits_per_burst"), 16 * number("clients"));
            assert_eq!(case.file_bytes, number("file_bytes"));
            assert_eq!(case.params.contains_key("commit_siblings"), sleeps(case));
        }
    }
}

#[test]
fn quick_writes_little() {
    // Twelve rounds and calibration of the shortest blocks, of 1 GiB in all.
    let bytes: u64 = groups(&request(Profile::Quick))
        .iter()
        .flat_map(|group| &group.cases)
        .map(|case| case.file_bytes + 14 * (case.op_bytes + case.prepare_bytes))
        .sum();
    assert!(bytes < 32 << 20, "{bytes}");
}
