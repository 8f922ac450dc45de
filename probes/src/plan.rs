//! The plan of one target as data: groups in the order in which they run, and what each will
//! probably need. Pure: from the request and the facts alone.

use std::collections::BTreeMap;

use crate::{
    contract::{Case, Comparison, Group, Probe, Value},
    engine::{schedule::Need, sizing::MIN_ROUNDS},
    event::PlannedCase,
    facts::Facts,
    request::{Request, Selection},
};

/// Seconds of a sync until one was measured.
const SYNC_GUESS_S: f64 = 0.000_5;
/// Bytes a second until a write was measured.
const BANDWIDTH_GUESS: f64 = 300e6;
/// Seconds around a block: settling, announcing.
const BLOCK_GUESS_S: f64 = 0.012;

/// What an operation costs here, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Seconds of a sync.
    pub sync_s: f64,
    /// Device bytes a sync writes besides the data.
    pub sync_bytes: f64,
}

impl Default for Prices {
    fn default() -> Self {
        Self {
            sync_s: SYNC_GUESS_S,
            sync_bytes: 0.0,
        }
    }
}

/// One group and its probe.
pub struct Planned {
    /// Who opens its cases.
    pub probe: &'static dyn Probe,
    /// What runs.
    pub group: Group,
}

/// The groups of a request by the probes of `catalogue`, selected, in order. Durability comes first
/// and is not subject to `only`, since every figure is read in its light.
#[must_use]
pub fn groups(
    catalogue: &[&'static dyn Probe],
    request: &Request,
    facts: &Facts,
    selection: &Selection,
) -> Vec<Planned> {
    let mut out = Vec::new();
    for probe in catalogue {
        let id = probe.card().id;
        let asked = request.probes.iter().any(|p| p == id);
        // Nothing is written where only facts are asked for.
        let first = id == "durability" && !request.probes.is_empty();
        if !asked && !first {
            continue;
        }
        for mut group in probe.plan(request, facts) {
            let keep: Vec<bool> = group
                .compare
                .iter()
                .map(|c| {
                    let members = group.members(c).into_iter().map(|(name, _)| name);
                    let mut names = members.chain(c.same.iter().map(|s| s.name));
                    names.any(|name| wanted(selection, id, &c.id, name))
                })
                .collect();
            let mut keep = keep.into_iter();
            group.compare.retain(|_| keep.next() == Some(true));
            let mut used = vec![false; group.cases.len()];
            for comparison in &group.compare {
                for (name, at) in group.members(comparison) {
                    used[at] |= wanted(selection, id, &comparison.id, name);
                }
                if let Some(at) = elsewhere(&group, comparison) {
                    used[at] = true;
                }
            }
            let mut used = used.into_iter();
            group.cases.retain(|_| used.next() == Some(true));
            if !group.compare.is_empty() {
                out.push(Planned {
                    probe: *probe,
                    group,
                });
            }
        }
    }
    out
}

/// A baseline that has no row in the comparison: whoever is compared needs it all the same.
fn elsewhere(group: &Group, comparison: &Comparison) -> Option<usize> {
    let baseline = group.baseline(comparison)?;
    let own = group.members(comparison);
    own.iter()
        .all(|(_, at)| *at != baseline)
        .then_some(baseline)
}

/// Whether this row is to be told.
#[must_use]
pub fn wanted(selection: &Selection, probe: &str, comparison: &str, case: &str) -> bool {
    if probe == "durability" {
        selection.not_skipped(probe, comparison, case)
    } else {
        selection.wants(probe, comparison, case)
    }
}

/// What the group probably needs for its first verdict.
#[must_use]
pub fn need(group: &Group, prices: &Prices) -> Need {
    let judged = group.compare.iter().any(|c| c.judged);
    let rounds = match group.fixed_rounds() {
        Some(rounds) => rounds as f64,
        None if judged => MIN_ROUNDS as f64 + 1.0,
        None => 1.0,
    };
    let mut need = Need {
        weight: group.weight,
        ..Need::default()
    };
    for case in &group.cases {
        // What is done once stands among cases with rounds of their own.
        let once = group.fixed_rounds().is_some() && case.rounds == 0;
        let rounds = if once { 1.0 } else { rounds };
        // A short operation needs a few dozen a block before its mean says anything.
        let ops = if case.op_syncs <= 1 && case.max_ops == 0 && case.rounds == 0 {
            40.0
        } else {
            1.0
        };
        need.seconds += rounds * (BLOCK_GUESS_S + ops * op_seconds(case, prices));
        need.bytes += rounds * ops * op_bytes(case, prices) + setup_bytes(case);
    }
    need
}

fn op_seconds(case: &Case, prices: &Prices) -> f64 {
    case.op_syncs as f64 * prices.sync_s + case.op_bytes as f64 / BANDWIDTH_GUESS
}

fn op_bytes(case: &Case, prices: &Prices) -> f64 {
    case.op_bytes as f64 + case.op_syncs as f64 * prices.sync_bytes
}

/// Files that exist before the first operation are written once.
fn setup_bytes(case: &Case) -> f64 {
    case.file_bytes.saturating_sub(case.op_bytes) as f64
}

/// The rows that will be told, with their group's estimates shared among its cases.
#[must_use]
pub fn rows(planned: &[Planned], selection: &Selection) -> Vec<PlannedCase> {
    let prices = Prices::default();
    let mut out = Vec::new();
    for (at, Planned { group, .. }) in planned.iter().enumerate() {
        let need = need(group, &prices);
        let mut counted = vec![false; group.cases.len()];
        let hidden = group.compare.first().and_then(|c| elsewhere(group, c));
        let told = group.cases.len() - usize::from(hidden.is_some());
        for comparison in &group.compare {
            for (name, index) in group.members(comparison) {
                let case = &group.cases[index];
                if !wanted(selection, group.probe, &comparison.id, name) {
                    continue;
                }
                // Further comparisons are views on the same operations.
                let share = if counted[index] {
                    0.0
                } else {
                    1.0 / told as f64
                };
                counted[index] = true;
                out.push(PlannedCase {
                    probe: group.probe.to_owned(),
                    comparison: comparison.id.clone(),
                    case: name.to_owned(),
                    baseline: comparison.baseline.clone(),
                    series: (!comparison.series.is_empty()).then(|| comparison.series.to_owned()),
                    params: params_of(group, comparison, name),
                    group: at,
                    index,
                    bytes: (need.bytes * share) as u64,
                    seconds: need.seconds * share,
                    file_bytes: case.file_bytes,
                    same_as: None,
                });
            }
            out.extend(same(at, group, comparison, selection));
        }
    }
    out
}

/// The rows that are the same as others: nothing is written for them.
fn same(
    at: usize,
    group: &Group,
    comparison: &Comparison,
    selection: &Selection,
) -> Vec<PlannedCase> {
    let asked = comparison.same.iter();
    asked
        .filter(|same| wanted(selection, group.probe, &comparison.id, same.name))
        .map(|same| PlannedCase {
            probe: group.probe.to_owned(),
            comparison: comparison.id.clone(),
            case: same.name.to_owned(),
            baseline: comparison.baseline.clone(),
            series: (!comparison.series.is_empty()).then(|| comparison.series.to_owned()),
            params: params_of(group, comparison, same.of),
            group: at,
            index: group.cases.len(),
            same_as: Some(format!("the same as {}: {}", same.of, same.why)),
            ..PlannedCase::default()
        })
        .collect()
}

/// What the case is that has this name in the comparison.
fn params_of(group: &Group, comparison: &Comparison, name: &str) -> BTreeMap<String, Value> {
    let mut members = group.members(comparison).into_iter();
    let found = members.find(|(n, _)| *n == name);
    let params = found.map(|(_, at)| group.cases[at].params.iter());
    let owned = |(k, v): (&&str, &Value)| ((*k).to_owned(), v.clone());
    params.into_iter().flatten().map(owned).collect()
}

/// Largest space that the groups take at one time.
#[must_use]
pub fn space_bytes(planned: &[Planned]) -> u64 {
    planned
        .iter()
        .map(|p| p.group.cases.iter().map(|c| c.file_bytes).sum())
        .max()
        .unwrap_or(0)
}
