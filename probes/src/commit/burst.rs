//! A burst: clients that commit beside each other until so many commits are made.
//!
//! The clients are threads of the burst: they wait at a gate, start together, and are joined, so
//! that nothing runs between two bursts and none can be left behind. Each takes the next commit
//! from a common stock until that is empty, so that all are busy to the end.

use std::{
    io,
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use crate::contract::{Clock, Pulse};

use super::group::{Log, Wal};

/// A client needs little stack.
const STACK_BYTES: usize = 128 << 10;

/// How many clients do what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Clients.
    pub(super) clients: u64,
    /// Commits in all.
    pub(super) commits: u64,
    /// Time that a client waits before each commit.
    pub(super) think: Duration,
}

impl Plan {
    /// Records that are added before anyone leads. At a start one after another the first leader would
    /// be alone and the others wait longer than ever after, which would make the slowest commits of
    /// all; clients that think are spread all the same.
    pub(super) const fn first_records(&self) -> u64 {
        if self.think.is_zero() {
            self.clients
        } else {
            1
        }
    }
}

/// What the clients saw.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// From adding the record to knowing that it is durable, one a commit.
    pub(super) latencies_ns: Vec<u64>,
    /// From the first commit's start to the last one's end.
    pub(super) elapsed_ns: u64,
}

/// Runs a burst. Whether all commits were made is for the caller to see: `latencies_ns` holds those
/// that were.
///
/// # Errors
/// A thread could not be started.
pub(super) fn run<L: Log>(
    wal: &Wal<'_, L>,
    plan: Plan,
    clock: &dyn Clock,
    pulse: &Pulse,
) -> io::Result<Seen> {
    let gate = Gate::default();
    let stock = AtomicU64::new(plan.commits);
    let clients = thread::scope(|scope| {
        let mut clients = Vec::new();
        let mut failed = None;
        for number in 0..plan.clients {
            let client = Client {
                think: plan.think,
                // Clients that all thought alike would add their records at the same moment.
                first_think: plan.think * (2 * number as u32 + 1) / (2 * plan.clients as u32),
                stock: &stock,
                clock,
                pulse,
            };
            let gate = &gate;
            let spawned = thread::Builder::new()
                .name(format!("client-{number}"))
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, move || {
                    if gate.pass() {
                        client.work(wal)
                    } else {
                        Own::default()
                    }
                });
            match spawned {
                Ok(client) => clients.push(client),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        gate.open(failed.is_none());
        let done: Vec<Own> = clients
            .into_iter()
            .map(|client| client.join().unwrap_or_default())
            .collect();
        failed.map_or(Ok(done), Err)
    })?;
    let first = clients.iter().filter_map(|c| c.first_ns).min();
    let last = clients.iter().map(|c| c.last_ns).max();
    Ok(Seen {
        latencies_ns: clients.into_iter().flat_map(|c| c.latencies_ns).collect(),
        elapsed_ns: match (first, last) {
            (Some(first), Some(last)) => last.saturating_sub(first),
            _ => 0,
        },
    })
}

/// Lets all in at once, or sends them away.
#[derive(Default)]
struct Gate {
    open: Mutex<Option<bool>>,
    moved: Condvar,
}

impl Gate {
    fn open(&self, let_in: bool) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(let_in);
        self.moved.notify_all();
    }

    fn pass(&self) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(let_in) = *open {
                return let_in;
            }
            open = self
                .moved
                .wait(open)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

struct Client<'c> {
    think: Duration,
    first_think: Duration,
    stock: &'c AtomicU64,
    clock: &'c dyn Clock,
    pulse: &'c Pulse,
}

/// What one client saw.
#[derive(Default)]
struct Own {
    latencies_ns: Vec<u64>,
    first_ns: Option<u64>,
    last_ns: u64,
}

impl Client<'_> {
    fn work<L: Log>(&self, wal: &Wal<'_, L>) -> Own {
        let mut own = Own::default();
        let mut think = self.first_think;
        while !self.pulse.stopped() && self.take() {
            if !think.is_zero() {
                thread::sleep(think);
            }
            think = self.think;
            let began = self.clock.now_ns();
            own.first_ns.get_or_insert(began);
            if !wal.commit() {
                break;
            }
            own.last_ns = self.clock.now_ns();
            own.latencies_ns.push(own.last_ns.saturating_sub(began));
        }
        own
    }

    /// Takes a commit from the stock.
    fn take(&self) -> bool {
        self.stock
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            })
            .is_ok()
    }
}

#[cfg(test)]
mod tests;
