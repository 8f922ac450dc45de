//! The groups: what belongs to every profile, and the extras.

use serde_json::json;

use crate::{
    contract::{Case, Comparison, Group},
    request::{Profile, Request},
};

use super::{CARD, behaviour, pattern::Pattern, way::Way};

/// The server's methods on Linux, the default first (issue_xlog_fsync, get_sync_bit).
const METHODS: [&str; 4] = ["fdatasync", "fsync", "open_datasync", "open_sync"];
/// pg_test_fsync's, which opens with O_DIRECT what it opens with O_DSYNC or O_SYNC.
const OLD_METHODS: [&str; 6] = [
    "fdatasync",
    "fsync",
    "open_datasync",
    "open_datasync+direct",
    "open_sync",
    "open_sync+direct",
];
const NEWER: [&str; 4] = [
    "fdatasync",
    "rwf_dsync",
    "io_uring_fdatasync",
    "open_datasync+direct",
];
/// Sizes in which 16 KiB are written, by their names.
const SPLITS: [(&str, u64, u64); 5] = [
    ("1x16k", 1, 16 << 10),
    ("2x8k", 2, 8 << 10),
    ("4x4k", 4, 4 << 10),
    ("8x2k", 8, 2 << 10),
    ("16x1k", 16, 1 << 10),
];

/// WAL a commit by default.
const COMMIT_BYTES: u64 = 512;
/// What is walked: fully written, then begun again as the next segment.
const WALKED_BYTES: u64 = 4 << 20;
/// Where only the beginning is written.
const SHORT_BYTES: u64 = 1 << 20;
/// The figures of all comparisons but `behaviour`.
const SERIES: &str = "commit";

/// The groups of a request.
pub(super) fn groups(request: &Request) -> Vec<Group> {
    let bytes = request.commit_bytes.unwrap_or(COMMIT_BYTES);
    let mut groups = vec![
        methods("commit", 2.0, &METHODS, Pattern::Commit { bytes }),
        methods(
            "commit-64k",
            0.5,
            &METHODS,
            Pattern::Commit { bytes: 65536 },
        ),
        methods(
            "bulk",
            0.5,
            &METHODS,
            Pattern::Bulk {
                writes: 16,
                write_bytes: 65536,
            },
        ),
    ];
    for group in &mut groups {
        group.compare[0].judged = true;
    }
    // A method that wins there is recommended only if its slowest commits are no worse.
    groups[0].compare[0].tail = true;
    // Short blocks: a round moves 2 and 4 MiB, so that slow disks still get their rounds.
    for (group, max_ops, discard_ops) in [(1, 8, 1), (2, 1, 0)] {
        for case in &mut groups[group].cases {
            (case.max_ops, case.discard_ops) = (max_ops, discard_ops);
        }
    }
    groups.push(behaviour::group());
    let extras = [
        methods("one-8k", 0.5, &OLD_METHODS, at_start(1, 8192)),
        methods("two-8k", 0.5, &OLD_METHODS, at_start(2, 8192)),
        split(),
        methods("newer-calls", 0.5, &NEWER, Pattern::Commit { bytes }),
    ];
    groups.extend(
        extras
            .into_iter()
            .filter(|group| is_asked(request, &group.compare[0].id)),
    );
    groups
}

/// Extras run in `thorough`, and where an `--only` pattern spells the comparison out.
fn is_asked(request: &Request, comparison: &str) -> bool {
    request.profile == Profile::Thorough
        || request.only.iter().any(|pattern| {
            let named = pattern.split('/').nth(1);
            named.is_some_and(|part| part.contains(comparison))
        })
}

const fn at_start(writes: u64, write_bytes: u64) -> Pattern {
    Pattern::AtStart {
        writes,
        write_bytes,
    }
}

fn methods(comparison: &str, weight: f64, methods: &[&str], pattern: Pattern) -> Group {
    let cases = methods
        .iter()
        .map(|method| case(method, method, pattern))
        .collect();
    group(comparison, weight, cases)
}

/// 16 KiB by open_sync, in different write sizes.
fn split() -> Group {
    let cases = ["", "+direct"].iter().flat_map(|direct| {
        SPLITS.iter().map(move |(name, writes, write_bytes)| {
            let method = format!("open_sync{direct}");
            let pattern = at_start(*writes, *write_bytes);
            let mut case = case(&format!("{name}{direct}"), &method, pattern);
            case.params.insert("method", json!(method));
            case
        })
    });
    group("split-16k", 0.5, cases.collect())
}

fn group(comparison: &str, weight: f64, cases: Vec<Case>) -> Group {
    let baseline = cases[0].name.clone();
    Group {
        probe: CARD.id,
        weight,
        cases,
        compare: vec![Comparison {
            baseline: Some(baseline),
            ..Comparison::plain(comparison, SERIES)
        }],
    }
}

fn case(name: &str, method: &str, pattern: Pattern) -> Case {
    let file_bytes = match pattern {
        Pattern::AtStart { .. } => SHORT_BYTES,
        Pattern::Commit { .. } | Pattern::Bulk { .. } => WALKED_BYTES.max(pattern.most_bytes()),
    };
    let mut params: std::collections::BTreeMap<_, _> = pattern.params().into_iter().collect();
    params.insert("file_bytes", json!(file_bytes));
    Case {
        name: name.to_owned(),
        params,
        discard_ops: 4,
        op_bytes: pattern.op_bytes(),
        file_bytes,
        op_syncs: Way::parse(method).map_or(1, |way| way.syncs(pattern.writes())),
        ..Case::default()
    }
}

/// The way of a case.
pub(super) fn way(case: &Case) -> Option<Way> {
    Way::parse(case.method())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(profile: Profile, only: &[&str]) -> Vec<String> {
        let request = Request {
            profile,
            only: only.iter().map(|p| (*p).to_owned()).collect(),
            ..Request::default()
        };
        let mut ids: Vec<String> = Vec::new();
        for group in groups(&request) {
            ids.extend(group.compare.iter().map(|c| c.id.clone()));
        }
        ids.dedup();
        ids
    }

    #[test]
    fn extras_are_for_thorough_or_by_name() {
        let every = ["commit", "commit-64k", "bulk", "behaviour"];
        let extras = ["one-8k", "two-8k", "split-16k", "newer-calls"];
        for profile in [Profile::Quick, Profile::Normal] {
            assert_eq!(planned(profile, &[]), every);
            assert_eq!(planned(profile, &["sync/*", "fdatasync"]), every);
        }
        let all = [&every[..], &extras[..]].concat();
        assert_eq!(planned(Profile::Thorough, &[]), all);
        let named = [&every[..], &["two-8k"]].concat();
        assert_eq!(planned(Profile::Quick, &["sync/two-8k"]), named);
        assert_eq!(planned(Profile::Quick, &["*/two-8k/open_*"]), named);
        let both = [&every[..], &["one-8k", "two-8k"]].concat();
        assert_eq!(planned(Profile::Normal, &["sync/{one-8k,two-8k}"]), both);
    }

    #[test]
    fn every_case_says_what_it_writes_and_how() {
        let request = Request {
            profile: Profile::Thorough,
            commit_bytes: Some(1000),
            ..Request::default()
        };
        let mut judged = Vec::new();
        for group in groups(&request) {
            let comparison = &group.compare[0];
            if comparison.judged {
                judged.push(comparison.id.clone());
            }
            if comparison.id == "behaviour" {
                continue;
            }
            assert!(group.baseline(comparison).is_some(), "{}", comparison.id);
            for case in &group.cases {
                let pattern = Pattern::of(case).unwrap();
                let way = way(case).unwrap();
                assert_eq!(case.op_syncs, way.syncs(pattern.writes()), "{}", case.name);
                assert_eq!(case.op_bytes % 512, 0);
                assert!(case.file_bytes >= pattern.most_bytes());
                let sized = match comparison.id.as_str() {
                    "commit" | "newer-calls" => 1000,
                    "commit-64k" => 65536,
                    "bulk" => 1 << 20,
                    "one-8k" => 8192,
                    _ => 16384,
                };
                assert_eq!(pattern.wal_bytes(), sized, "{}", comparison.id);
            }
        }
        assert_eq!(judged, ["commit", "commit-64k", "bulk"]);
    }

    #[test]
    fn a_commit_larger_than_the_file_gets_a_larger_file() {
        let request = Request {
            commit_bytes: Some(6 << 20),
            ..Request::default()
        };
        assert!(groups(&request)[0].cases[0].file_bytes > 6 << 20);
    }

    #[test]
    fn syncs_of_an_operation() {
        let request = Request {
            profile: Profile::Thorough,
            ..Request::default()
        };
        let groups = groups(&request);
        let syncs = |comparison: &str, case: &str| {
            let group = groups
                .iter()
                .find(|g| g.compare[0].id == comparison)
                .unwrap();
            let found = group.cases.iter().find(|c| c.name == case).unwrap();
            found.op_syncs
        };
        assert_eq!(syncs("bulk", "fdatasync"), 1);
        assert_eq!(syncs("bulk", "open_datasync"), 16);
        assert_eq!(syncs("two-8k", "fsync"), 1);
        assert_eq!(syncs("two-8k", "open_sync+direct"), 2);
        assert_eq!(syncs("split-16k", "1x16k"), 1);
        assert_eq!(syncs("split-16k", "16x1k+direct"), 16);
    }
}
