#![doc = include_str!("../../../docs/probes/prealloc.md")]

use serde_json::{Value, json};

use crate::{
    contract::{Card, Case, Comparison, Group, Lab, Probe, Run, Series, Stop},
    facts::Facts,
    files::PAGE_BYTES,
    request::{Profile, Request},
    segment::Maker,
};

mod cycles;
mod inspect;
mod libc_way;
mod life;
mod methods;
#[cfg(test)]
mod tests;

use libc_way::LibcWay;
use life::Life;
use methods::{BASELINE, COMPARISONS, METHODS, Method};

/// How much of a segment is walked: what fits the profile's write budget at least twelve times, where
/// a filesystem that never overwrites in place writes ten times a small commit's own bytes.
fn walked(request: &Request, facts: &Facts) -> u64 {
    let copies = facts.text("fs.in_place") == Some("no");
    match (request.profile, copies) {
        (Profile::Quick, _) => 256 << 10,
        (Profile::Normal, true) => 512 << 10,
        (Profile::Normal, false) => 1 << 20,
        (Profile::Thorough, true) => 4 << 20,
        (Profile::Thorough, false) => request.segment_bytes,
    }
}

/// What is walked at most where the rarer methods are compared: 250 commits, and a quarter of that where
/// each writes ten times its own bytes.
fn rarer_walked(facts: &Facts) -> u64 {
    if facts.text("fs.in_place") == Some("no") {
        512 << 10
    } else {
        2 << 20
    }
}

/// WAL a commit.
const COMMIT_BYTES: u64 = 8192;

/// Classic zero-fill, fallocate, or a hole?
pub struct Prealloc;

static CARD: Card = Card {
    id: "prealloc",
    question: "zero-fill, fallocate or a sparse file: what does each commit cost then?",
    needs: &[],
    page: include_str!("../../../docs/probes/prealloc.md"),
};

impl Probe for Prealloc {
    fn card(&self) -> &'static Card {
        &CARD
    }

    fn plan(&self, request: &Request, facts: &Facts) -> Vec<Group> {
        let judged: Vec<&Method> = METHODS.iter().filter(|m| m.judged).collect();
        let walked = walked(request, facts);
        let mut groups = Vec::from_iter(lives(request, walked, &judged, 1.5));
        let rarer = methods::rarer(request);
        if !rarer.is_empty() {
            // In a group of their own, so that they do not slow the judged ones; with zero-filled
            // lives of their own, whose row stands among the judged.
            let mut cases = vec![&METHODS[0]];
            cases.extend(&rarer);
            let walked = walked.min(rarer_walked(facts));
            groups.extend(lives(request, walked, &cases, 0.5).map(|mut group| {
                let names = rarer.iter().map(|m| (m.name.to_owned(), m.name.to_owned()));
                for comparison in &mut group.compare {
                    comparison.names = names.clone().collect();
                }
                group
            }));
        }
        groups.extend(cycles::group(request));
        groups
    }

    fn open(&self, case: &Case, lab: &mut Lab<'_>) -> Result<Run, Stop> {
        if let Some(cycle) = cycles::open(case, lab)? {
            return Ok(cycle);
        }
        let method = methods::named(case.method())
            .ok_or_else(|| Stop::Broken(format!("no method {}", case.name)))?;
        let param = |name: &str| {
            case.params
                .get(name)
                .and_then(Value::as_u64)
                .unwrap_or(PAGE_BYTES)
        };
        let folder = lab.scratch()?.folder()?;
        let (init, libc) = libc_way::settle(method.init, &folder, lab)?;
        Ok(Run::Alone(Box::new(Life {
            init,
            tmp: format!("tmp-prealloc-{}", case.name),
            name: format!("seg-prealloc-{}", case.name),
            maker: Maker::new(
                folder,
                param("segment_bytes"),
                param("walked_bytes"),
                param("commit_bytes"),
                lab.request.seed,
            ),
            ending: libc.as_ref().and_then(LibcWay::refusal),
            libc,
            inspected: None,
        })))
    }
}

/// A group of lives; none where a segment is smaller than a commit.
fn lives(request: &Request, walked: u64, methods: &[&Method], weight: f64) -> Option<Group> {
    let segment = request.segment_bytes;
    let commit = request
        .commit_bytes
        .unwrap_or(COMMIT_BYTES)
        .next_multiple_of(PAGE_BYTES);
    let walked = walked.max(commit).min(segment) / commit * commit;
    if walked == 0 {
        return None;
    }
    let case = |method: &Method| Case {
        name: method.name.to_owned(),
        params: [
            ("commit_bytes", json!(commit)),
            ("walked_bytes", json!(walked)),
            ("segment_bytes", json!(segment)),
        ]
        .into(),
        max_ops: 1,
        op_bytes: if method.fills { segment } else { 0 } + 2 * walked,
        file_bytes: segment,
        op_syncs: 2 * walked / commit + 5,
        ..Case::default()
    };
    let judged = |id: &str| Comparison::judged(id, series(id), BASELINE);
    Some(Group {
        probe: CARD.id,
        weight,
        cases: methods.iter().map(|m| case(m)).collect(),
        compare: COMPARISONS
            .iter()
            .map(|id| match *id {
                "life" => Comparison {
                    legs: &["create", "first-pass"],
                    ..judged(id)
                },
                id => judged(id),
            })
            .collect(),
    })
}

fn series(id: &str) -> Series {
    match id {
        "create" => "create",
        "first-pass" => "first-pass",
        "second-pass" => "second-pass",
        _ => "life",
    }
}
