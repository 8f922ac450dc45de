//! What is planned: one group, so that all its cases share one cold file.

use serde_json::json;

use crate::{
    align::{CARD, direct, ground::Shape, record, sweep},
    contract::{Case, Comparison, Group},
    facts::Facts,
    request::{Profile, Request, Selection},
};

/// The sizes of a write, by the names of their cases.
pub(super) const SIZES: [(&str, u64); 12] = [
    ("512", 512),
    ("1k", 1 << 10),
    ("2k", 2 << 10),
    ("4k", 4 << 10),
    ("8k", 8 << 10),
    ("16k", 16 << 10),
    ("32k", 32 << 10),
    ("64k", 64 << 10),
    ("128k", 128 << 10),
    ("256k", 256 << 10),
    ("512k", 512 << 10),
    ("1m", 1 << 20),
];
/// 8 KiB at odd offsets.
pub(super) const ODD: (&str, u64) = ("odd-8k", 8 << 10);
/// The case that tells the record size.
pub(super) const RECORD: &str = "record";
/// The case about direct I/O.
pub(super) const DIRECT: &str = "direct";

/// The groups of a request.
pub(super) fn groups(request: &Request, facts: &Facts) -> Vec<Group> {
    let selection = Selection::new(&request.only, &request.skip).unwrap_or_default();
    let wanted = |comparison: &str, case: &str| selection.wants(CARD.id, comparison, case);
    let sizes: Vec<(&str, u64)> = SIZES
        .into_iter()
        .chain([ODD])
        .filter(|(name, _)| sweeps(request) && wanted("sweep", name))
        .collect();
    let record = wanted("behaviour", RECORD);
    let (rounds, writes) = sweep::often(request.profile, facts);
    let places = (writes * sizes.len() as u64).max(if record { record::PLACES } else { 0 });
    let shape = Shape::new(places, facts);

    let mut cases: Vec<Case> = sizes
        .iter()
        .map(|&(name, bytes)| sweep::case(name, bytes, writes, rounds, &shape))
        .collect();
    if record {
        cases.push(record::case(&shape));
    }
    // The file is there once, whoever opens it first.
    if let Some(first) = cases.first_mut() {
        first.file_bytes = shape.all_bytes();
    }
    if wanted("behaviour", DIRECT) {
        cases.push(direct::case());
    }
    let same = |names: &mut dyn Iterator<Item = &str>| -> Vec<(String, String)> {
        names.map(|n| (n.to_owned(), n.to_owned())).collect()
    };
    let mut compare = vec![
        Comparison {
            names: same(&mut sizes.iter().map(|(name, _)| *name)),
            ..Comparison::plain("sweep", sweep::SERIES)
        },
        Comparison {
            names: same(&mut [RECORD, DIRECT].into_iter()),
            ..Comparison::plain("behaviour", "")
        },
    ];
    // A comparison without names would have every case.
    compare.retain(|c| !c.names.is_empty());
    if cases.is_empty() {
        return Vec::new();
    }
    vec![Group {
        probe: CARD.id,
        weight: 0.0,
        cases,
        compare,
    }]
}

/// The sweep is not part of `quick`, unless an `--only` pattern spells it out.
fn sweeps(request: &Request) -> bool {
    let named = |pattern: &String| {
        let part = pattern.split('/').nth(1);
        part.is_some_and(|part| part.contains("sweep"))
    };
    request.profile != Profile::Quick || request.only.iter().any(named)
}

/// Params of every case that writes to the shared file.
pub(super) fn params(shape: &Shape) -> Vec<(&'static str, serde_json::Value)> {
    vec![
        ("stride_bytes", json!(shape.stride)),
        ("places", json!(shape.places)),
    ]
}
