//! Group commit under the WAL write lock, as XLogFlush has it.
//!
//! A client adds its record and wants it durable. Whoever finds the lock free leads: it writes and
//! syncs all that was added so far. Who finds it held waits until it is released and looks again
//! (LWLockAcquireOrWait): mostly its record is durable by then; else one of those left leads. With
//! a delay the leader sleeps before it looks how far to flush, lock in hand, if enough others are
//! active (commit_delay, commit_siblings; MinimumActiveBackends).

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::contract::{Clock, Fault, Pulse};

/// How often those who wait for the first records look whether the run is to end.
const RECHECK: Duration = Duration::from_millis(20);

/// What the holder of the lock does with the records. A record is counted, not copied.
pub(super) trait Log: Send {
    /// Writes `records` further records; the calls that it took, and what they wrote.
    fn write(&mut self, records: u64) -> Result<Wrote, Fault>;
    /// Makes them durable where that takes a call of its own.
    fn sync(&mut self) -> Result<(), Fault>;
}

/// What a group's write phase did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wrote {
    /// Bytes handed to the kernel.
    pub(super) bytes: u64,
    /// Syncs, that of [`Log::sync`] and those that come with writes.
    pub(super) syncs: u64,
}

/// When a leader sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delay {
    /// commit_delay.
    pub(super) sleep: Duration,
    /// commit_siblings: at least so many others must be active.
    pub(super) siblings: u64,
}

/// One flush and what it served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    /// Commits that it made durable.
    pub(super) commits: u64,
    /// Time that the leader slept, where it did.
    pub(super) slept_ns: Option<u64>,
    /// Time of the writes.
    pub(super) write_ns: u64,
    /// Time of the sync.
    pub(super) sync_ns: u64,
    /// What it wrote.
    pub(super) wrote: Wrote,
}

/// Why no commit can be made any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A leader's call failed.
    Fault(Fault),
    /// The run is to end.
    Stopped,
    /// A leader panicked.
    Panicked,
}

/// The log and its clients' common state.
pub(super) struct Wal<'w, L> {
    state: Mutex<State<L>>,
    released: Condvar,
    /// Nobody leads before so many records were added.
    first: u64,
    delay: Option<Delay>,
    clock: &'w dyn Clock,
    pulse: &'w Pulse,
}

struct State<L> {
    /// The log; whoever has taken it holds the write lock.
    log: Option<L>,
    /// Records added.
    inserted: u64,
    /// Records durable.
    flushed: u64,
    /// Clients between the start of a commit and its acknowledgement.
    active: u64,
    groups: Vec<Group>,
    end: Option<End>,
}

impl<'w, L: Log> Wal<'w, L> {
    /// A log that is led for the first time when `first` records were added.
    pub(super) fn new(
        log: L,
        first: u64,
        delay: Option<Delay>,
        clock: &'w dyn Clock,
        pulse: &'w Pulse,
    ) -> Self {
        Self {
            state: Mutex::new(State {
                log: Some(log),
                inserted: 0,
                flushed: 0,
                active: 0,
                groups: Vec::new(),
                end: None,
            }),
            released: Condvar::new(),
            first,
            delay,
            clock,
            pulse,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<L>> {
        // A panic is told by the guard that held the log.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One commit: returns when its record is durable, or with false when that will not be.
    pub(super) fn commit(&self) -> bool {
        let mut state = self.lock();
        state.active += 1;
        state.inserted += 1;
        let record = state.inserted;
        if record == self.first {
            self.released.notify_all();
        }
        let durable = loop {
            if state.flushed >= record {
                break true;
            }
            if state.end.is_none() && self.pulse.stopped() {
                state.end = Some(End::Stopped);
            }
            if state.end.is_some() {
                break false;
            }
            if state.inserted < self.first {
                // Who does not come any more wakes nobody: look again.
                let waited = self.released.wait_timeout(state, RECHECK);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            state = match state.log.take() {
                // Whoever holds the log wakes all when it gives it back.
                None => self
                    .released
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(log) => {
                    drop(self.lead(log, state));
                    self.lock()
                }
            };
        };
        // The client itself says that it is idle again, once it runs, as a backend does.
        state.active -= 1;
        durable
    }

    /// Writes and syncs what was added so far, and gives the log back whatever happens.
    fn lead<'s>(&'s self, log: L, state: MutexGuard<'s, State<L>>) -> Held<'s, 'w, L> {
        let others = state.active - 1;
        let mut upto = state.inserted;
        let from = state.flushed;
        drop(state);
        let mut held = Held {
            wal: self,
            log: Some(log),
            outcome: None,
        };
        let mut group = Group::default();
        if let Some(delay) = self.delay.filter(|d| others >= d.siblings) {
            let began = self.clock.now_ns();
            std::thread::sleep(delay.sleep);
            group.slept_ns = Some(self.clock.now_ns().saturating_sub(began));
            upto = self.lock().inserted;
        }
        group.commits = upto - from;
        held.outcome = Some(self.flush(&mut held.log, group).map(|group| (group, upto)));
        held
    }

    fn flush(&self, log: &mut Option<L>, mut group: Group) -> Result<Group, Fault> {
        let Some(log) = log else { return Ok(group) };
        let began = self.clock.now_ns();
        group.wrote = log.write(group.commits)?;
        let written = self.clock.now_ns();
        log.sync()?;
        group.write_ns = written.saturating_sub(began);
        group.sync_ns = self.clock.now_ns().saturating_sub(written);
        self.pulse.beat();
        Ok(group)
    }

    /// No commit is asked for any more: the log, its groups, the records acknowledged, and why it
    /// ended early. None while somebody holds the log.
    pub(super) fn close(self) -> Option<Closed<L>> {
        let state = self
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        Some(Closed {
            log: state.log?,
            groups: state.groups,
            end: state.end,
        })
    }
}

/// What is left of a [`Wal`].
pub(super) struct Closed<L> {
    pub(super) log: L,
    pub(super) groups: Vec<Group>,
    pub(super) end: Option<End>,
}

/// The write lock, held. Dropping it tells the outcome, gives the log back and wakes all who wait.
struct Held<'s, 'w, L: Log> {
    wal: &'s Wal<'w, L>,
    log: Option<L>,
    /// The group and how far it went; none after a panic.
    outcome: Option<Result<(Group, u64), Fault>>,
}

impl<L: Log> Drop for Held<'_, '_, L> {
    fn drop(&mut self) {
        let mut state = self.wal.lock();
        match self.outcome.take() {
            Some(Ok((group, upto))) => {
                state.flushed = upto;
                state.groups.push(group);
            }
            Some(Err(fault)) => state.end = Some(End::Fault(fault)),
            None => state.end = Some(End::Panicked),
        }
        state.log = self.log.take();
        drop(state);
        self.wal.released.notify_all();
    }
}

#[cfg(test)]
mod tests;
