#![doc = include_str!("../../../docs/probes/enospc.md")]

use serde_json::{Value, json};

use crate::{
    contract::{Card, Case, Comparison, Group, Lab, Need, Probe, Run, Stop},
    facts::Facts,
    request::{Profile, Request},
    segment::Init,
};

mod ballast;
mod calls;
mod full;
mod nearly;
mod person;
mod place;
mod postgres;
#[cfg(test)]
mod tests;
mod through;

use full::{Full, PAGE, Past};
use nearly::Nearly;

/// The watchdog waits so many times longer: calls on a full filesystem may crawl.
pub const PATIENCE: u32 = 3;

/// Segments in a pocket: small, so that a small filesystem holds several.
const POCKET_SEGMENT: u64 = 1 << 20;
/// The same where nothing is overwritten in place: a full btrfs commits a transaction for each block.
const DEAR_SEGMENT: u64 = 256 << 10;
/// Segments where a ballast leaves 32 MiB of a filesystem of any size.
const FILL_SEGMENT: u64 = 4 << 20;
/// Between two syncs when segments are written through.
const COMMIT_BYTES: u64 = 64 << 10;
/// Prepared before the disk gets full.
const SEGMENTS: u64 = 2;

/// The methods of every run, the server's two settings among them.
const METHODS: [(&str, Init); 3] = [
    ("zero-fill", Init::ZeroFill),
    ("fallocate", Init::Fallocate),
    ("sparse", Init::Sparse),
];
/// Those of a thorough one.
const RARER: [(&str, Init); 5] = [
    ("zero-fill-8k", Init::ZeroFill8k),
    ("posix_fallocate", Init::PosixFallocate { piecewise: true }),
    ("glibc-emulation", Init::GlibcEmulation),
    ("zero-range", Init::ZeroRange),
    ("fallocate+zero-fill", Init::FallocateZeroFill),
];
const OLD: &str = "old-segment";
/// What making a pocket and filling it takes, in syncs.
const OWN_SYNCS: u64 = 300;
/// Share of the filesystem that is free.
const FREE_PCT: [u64; 5] = [50, 20, 10, 5, 1];

/// When the disk is full, which call says so?
pub struct Enospc;

static CARD: Card = Card {
    id: "enospc",
    question: "when the disk is full, which call says so, and is what was acknowledged there?",
    needs: &[],
    page: include_str!("../../../docs/probes/enospc.md"),
};

impl Probe for Enospc {
    fn card(&self) -> &'static Card {
        &CARD
    }

    fn plan(&self, request: &Request, facts: &Facts) -> Vec<Group> {
        let profile = request.profile;
        let mut methods: Vec<&str> = METHODS.iter().map(|(name, _)| *name).collect();
        if profile == Profile::Thorough {
            methods.extend(RARER.iter().map(|(name, _)| *name));
        }
        let dear = facts.text("fs.in_place") == Some("no");
        let segment = request.segment_bytes.min(match (request.fill, dear) {
            (true, _) => FILL_SEGMENT,
            (false, false) => POCKET_SEGMENT,
            (false, true) => DEAR_SEGMENT,
        });
        let brief = profile == Profile::Quick;
        let segments = if brief || dear { 1 } else { SEGMENTS };
        let mut cases: Vec<Case> = methods
            .iter()
            .chain([&OLD])
            .map(|name| full_case(name, segment, segments, request))
            .collect();
        let names = |names: &[&str]| {
            let own = |name: &&str| ((*name).to_owned(), (*name).to_owned());
            names.iter().map(own).collect()
        };
        let mut compare = vec![
            Comparison {
                names: names(&methods),
                ..Comparison::plain("full", "")
            },
            Comparison {
                names: names(&[OLD]),
                ..Comparison::plain("rewrite-old", "")
            },
        ];
        if !brief {
            let nearly: Vec<Case> = FREE_PCT
                .iter()
                .map(|pct| nearly_case(*pct, segment, request, facts))
                .collect();
            compare.push(Comparison {
                names: nearly
                    .iter()
                    .map(|c| (c.name.clone(), c.name.clone()))
                    .collect(),
                ..Comparison::plain("nearly-full", nearly::SERIES)
            });
            cases.extend(nearly);
        }
        vec![Group {
            probe: CARD.id,
            weight: 0.0,
            cases,
            compare,
        }]
    }

    fn open(&self, case: &Case, lab: &mut Lab<'_>) -> Result<Run, Stop> {
        if lab.clock.now_ns() as f64 / 1e9 > lab.request.time_s {
            let why = "the time was spent before it".to_owned();
            return Err(Stop::Skip("time", why));
        }
        let param = |name: &str| case.params.get(name).and_then(Value::as_u64).unwrap_or(0);
        if let Some(free_pct) = case.params.get("free_pct").and_then(Value::as_u64) {
            return Ok(Run::Once(Box::new(Nearly {
                case: case.name.clone(),
                free_pct,
                segment_bytes: param("segment_bytes"),
                commits: param("commits"),
                limit_ns: param("limit_ms") * 1_000_000,
            })));
        }
        let past = match METHODS.iter().chain(&RARER).find(|(n, _)| *n == case.name) {
            Some((_, init)) => Past::New(*init),
            None if case.name == OLD => Past::Old,
            None => return Err(Stop::Broken(format!("no method {}", case.name))),
        };
        Ok(Run::Once(Box::new(Full {
            case: case.name.clone(),
            past,
            segment_bytes: param("segment_bytes"),
            segments: param("segments") as usize,
            commit_bytes: param("commit_bytes"),
            brief: case.params.get("brief") == Some(&json!(true)),
        })))
    }
}

/// A filesystem that was not told to be filled needs one of walprobe's own in its place.
fn needs(request: &Request) -> Vec<Need> {
    if request.fill {
        Vec::new()
    } else {
        vec![Need::Root]
    }
}

fn full_case(name: &str, segment: u64, segments: u64, request: &Request) -> Case {
    let brief = request.profile == Profile::Quick;
    let room = place::room(request.fill, segment);
    let fills = !matches!(name, "fallocate" | "sparse" | "zero-range");
    let made = if brief || !fills { 0 } else { room };
    Case {
        name: name.to_owned(),
        needs: needs(request),
        params: [
            ("segment_bytes", json!(segment)),
            ("segments", json!(segments)),
            ("commit_bytes", json!(COMMIT_BYTES)),
            ("brief", json!(brief)),
        ]
        .into(),
        op_bytes: 3 * segments * segment + made,
        // A pocket's image is sparse, and room for it is looked at when it is made.
        file_bytes: segments * segment,
        op_syncs: 2 * segments * segment / COMMIT_BYTES + OWN_SYNCS,
        ..Case::default()
    }
}

fn nearly_case(pct: u64, segment: u64, request: &Request, facts: &Facts) -> Case {
    let copies = facts.text("fs.in_place") == Some("no");
    let (commits, limit_ms) = match request.profile {
        Profile::Thorough => (1000, 10_000),
        // A small commit costs ten times its own bytes where nothing is overwritten in place.
        _ if copies => (32, 500),
        _ => (500, 500),
    };
    Case {
        name: format!("free-{pct}"),
        needs: needs(request),
        params: [
            ("free_pct", json!(pct)),
            ("segment_bytes", json!(segment)),
            ("commit_bytes", json!(PAGE)),
            ("commits", json!(commits)),
            ("limit_ms", json!(limit_ms)),
        ]
        .into(),
        op_bytes: segment + commits * PAGE,
        file_bytes: segment,
        op_syncs: commits + OWN_SYNCS,
        ..Case::default()
    }
}
