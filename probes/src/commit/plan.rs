//! The groups: commits by the number of clients, with a delay and without, beside a neighbour.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    contract::{Case, Comparison, Group},
    files::PAGE_BYTES,
    request::{Beside, Profile, Request},
};

use super::{CARD, beside, delay::SIBLINGS};

/// The figures of all comparisons.
pub(super) const SERIES: &str = "commit";
/// Clients of `clients`, unless the request says otherwise.
const CLIENTS: [u64; 5] = [1, 2, 4, 8, 16];
/// Clients of `beside`: the most of those asked for up to this.
const BESIDE_CLIENTS: u64 = 8;
/// WAL a commit by default.
const COMMIT_BYTES: u64 = 512;
/// What is walked: fully written, then begun again as the next segment.
const WALKED_BYTES: u64 = 2 << 20;
/// Commits of each client in a burst, on average.
const COMMITS_A_CLIENT: u64 = 16;
/// Bursts that a block has at most.
const MOST_BURSTS: u64 = 16;
/// Time between commits in the comparisons named `-think`.
const THINK_US: u64 = 500;
/// The server's default on Linux, whose delay is tried.
const METHOD: &str = "fdatasync";
/// The server's other methods.
const OTHERS: [&str; 3] = ["fsync", "open_datasync", "open_sync"];
const DELAY: &str = "+delay";

/// The groups of a request; what decides about a setting comes first.
pub(super) fn groups(request: &Request) -> Vec<Group> {
    let plan = Plan {
        clients: clients(request),
        bytes: request.commit_bytes.unwrap_or(COMMIT_BYTES),
        beside_bytes: beside::file_bytes(request),
    };
    let quick = request.profile == Profile::Quick && !is_named(request, "clients");
    let mut groups = vec![plan.main(if quick { None } else { Some(methods(request)) })];
    if request.profile != Profile::Quick || is_named(request, "think") {
        groups.push(plan.delays("-think", THINK_US));
    }
    if let Some(what) = request.beside {
        groups.push(plan.beside(what));
    }
    groups.retain(|group| !group.cases.is_empty());
    groups
}

/// The numbers of clients that were asked for, in order, each once.
fn clients(request: &Request) -> Vec<u64> {
    let mut clients = request.clients.clone().unwrap_or_else(|| CLIENTS.to_vec());
    clients.retain(|n| *n > 0);
    clients.sort_unstable();
    clients.dedup();
    clients
}

/// An `--only` pattern spells out the comparison or case.
fn is_named(request: &Request, part: &str) -> bool {
    request.only.iter().any(|pattern| {
        let mut parts = pattern.split('/').skip(1);
        parts.any(|p| p.contains(part))
    })
}

/// The methods of `clients`: the default, and all in `thorough` or where one is named.
fn methods(request: &Request) -> Vec<&'static str> {
    let named = |method: &&str| {
        request.profile == Profile::Thorough || is_named(request, &format!("{method}@"))
    };
    let others = OTHERS.into_iter().filter(named);
    std::iter::once(METHOD).chain(others).collect()
}

/// The case's leader sleeps.
pub(super) fn sleeps(case: &Case) -> bool {
    case.name.ends_with(DELAY)
}

struct Plan {
    clients: Vec<u64>,
    bytes: u64,
    beside_bytes: u64,
}

impl Plan {
    /// Few others are never enough for the server's rule.
    fn delayed(&self) -> impl Iterator<Item = u64> {
        self.clients.iter().copied().filter(|n| *n > SIBLINGS)
    }

    /// Delays without think time, and, with `methods`, the clients whose figures they share.
    fn main(&self, methods: Option<Vec<&str>>) -> Group {
        let mut group = self.delays("", 0);
        let (Some(methods), Some(first)) = (methods, self.clients.first()) else {
            return group;
        };
        let mut names = Vec::new();
        for method in methods {
            for &clients in &self.clients {
                let case = self.case(method, clients, 0);
                names.push((case.name.clone(), case.name.clone()));
                if group.cases.iter().all(|c| c.name != case.name) {
                    group.cases.push(case);
                }
            }
        }
        let all = Comparison {
            baseline: Some(format!("{METHOD}@{first}")),
            names,
            knee: Some("clients"),
            ..Comparison::plain("clients", SERIES)
        };
        group.compare.insert(0, all);
        group
    }

    fn delays(&self, suffix: &str, think_us: u64) -> Group {
        let mut group = Group {
            probe: CARD.id,
            weight: 1.0,
            ..Group::default()
        };
        for clients in self.delayed() {
            let base = self.case(METHOD, clients, think_us);
            let mut delay = base.clone();
            delay.name.push_str(DELAY);
            delay.params.insert("commit_siblings", json!(SIBLINGS));
            let names = [&base, &delay].map(|c| (c.name.clone(), c.name.clone()));
            group.compare.push(Comparison {
                names: names.to_vec(),
                ..Comparison::judged(&format!("delay-{clients}{suffix}"), SERIES, &base.name)
            });
            group.cases.extend([base, delay]);
        }
        group
    }

    fn beside(&self, what: Beside) -> Group {
        let few = self
            .clients
            .iter()
            .copied()
            .filter(|n| *n <= BESIDE_CLIENTS);
        let clients = few.max().or(self.clients.first().copied());
        let idle = Case {
            name: "idle".to_owned(),
            ..self.case(METHOD, clients.unwrap_or(1), 0)
        };
        let mut loaded = idle.clone();
        loaded.name = what.as_str().to_owned();
        loaded.params.insert("beside", json!(what.as_str()));
        loaded
            .params
            .insert("beside_file_bytes", json!(self.beside_bytes));
        loaded.op_bytes += beside::op_bytes(what);
        loaded.file_bytes += self.beside_bytes;
        Group {
            probe: CARD.id,
            weight: 1.0,
            cases: vec![idle, loaded],
            compare: vec![Comparison::judged("beside", SERIES, "idle")],
        }
    }

    fn case(&self, method: &str, clients: u64, think_us: u64) -> Case {
        let file_bytes = self.file_bytes();
        let commits = COMMITS_A_CLIENT * clients;
        // A leader whose record came first flushes little, and the others after it the rest.
        let flushes = COMMITS_A_CLIENT * clients.min(2);
        let params: [(&'static str, Value); 6] = [
            ("method", json!(method)),
            ("clients", json!(clients)),
            ("commit_bytes", json!(self.bytes)),
            ("commits_per_burst", json!(commits)),
            ("think_us", json!(think_us)),
            ("file_bytes", json!(file_bytes)),
        ];
        Case {
            name: format!("{method}@{clients}"),
            params: BTreeMap::from(params),
            max_ops: MOST_BURSTS,
            op_bytes: flushes * PAGE_BYTES + commits * self.bytes,
            prepare_bytes: 4 * self.bytes.next_multiple_of(PAGE_BYTES),
            file_bytes,
            op_syncs: flushes,
            ..Case::default()
        }
    }

    /// All cases take turns with one segment: it takes the largest group.
    fn file_bytes(&self) -> u64 {
        let most = self.clients.last().unwrap_or(&1) * self.bytes;
        WALKED_BYTES.max(most.next_multiple_of(PAGE_BYTES) + PAGE_BYTES)
    }
}

#[cfg(test)]
mod tests;
