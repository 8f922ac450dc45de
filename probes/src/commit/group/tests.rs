//! Leaders and followers in scripted order: the fake log's sync returns when the test says so.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use super::*;
use crate::engine::clock::Monotonic;

/// A test that waits longer has failed: the panic ends every client.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a sync of the fake log does once it may go on.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Durable,
    Fails(i32),
    Panics,
}

/// A log whose syncs wait for their answer.
struct Scripted {
    records: u64,
    entered: Sender<u64>,
    answers: Receiver<Answer>,
}

impl Log for Scripted {
    fn write(&mut self, records: u64) -> Result<Wrote, Fault> {
        self.records = records;
        Ok(Wrote {
            bytes: 8192,
            syncs: 1,
        })
    }

    fn sync(&mut self) -> Result<(), Fault> {
        self.entered.send(self.records).unwrap();
        match self.answers.recv_timeout(PATIENCE).unwrap() {
            Answer::Durable => Ok(()),
            Answer::Fails(errno) => Err(Fault::new("fdatasync", errno, "fake")),
            Answer::Panics => panic!("as the test asked"),
        }
    }
}

/// The test's end of a [`Scripted`].
struct Script {
    entered: Receiver<u64>,
    answers: Sender<Answer>,
}

fn scripted() -> (Scripted, Script) {
    let (entered, seen) = channel();
    let (answers, told) = channel();
    let log = Scripted {
        records: 0,
        entered,
        answers: told,
    };
    let script = Script {
        entered: seen,
        answers,
    };
    (log, script)
}

/// Until so many records were added.
fn until_added<L: Log>(wal: &Wal<'_, L>, records: u64) {
    while wal.lock().inserted < records {
        thread::yield_now();
    }
}

/// A first client, whose sync is under way when `followers` more add their records; then the
/// answers, one a sync. What each commit returned, and what is left.
fn one_then(
    followers: u64,
    delay: Option<Delay>,
    answers: &[Answer],
    pulse: &Pulse,
    before_answers: impl FnOnce(),
) -> (Vec<bool>, Closed<Scripted>, Vec<u64>) {
    let clock = Monotonic::new();
    let (log, script) = scripted();
    let wal = Wal::new(log, 1, delay, &clock, pulse);
    let mut synced = Vec::new();
    let outcomes = thread::scope(|scope| {
        let first = scope.spawn(|| wal.commit());
        synced.push(script.entered.recv_timeout(PATIENCE).unwrap());
        let rest: Vec<_> = (0..followers)
            .map(|_| scope.spawn(|| wal.commit()))
            .collect();
        until_added(&wal, followers + 1);
        before_answers();
        for answer in answers {
            script.answers.send(*answer).unwrap();
        }
        std::iter::once(first)
            .chain(rest)
            .map(|client| client.join().unwrap_or(false))
            .collect()
    });
    synced.extend(script.entered.try_iter());
    (outcomes, wal.close().unwrap(), synced)
}

fn sizes(closed: &Closed<Scripted>) -> Vec<u64> {
    closed.groups.iter().map(|g| g.commits).collect()
}

#[test]
fn a_client_alone_flushes_each_commit_itself() {
    let (clock, pulse) = (Monotonic::new(), Pulse::default());
    let (log, script) = scripted();
    let wal = Wal::new(log, 1, None, &clock, &pulse);
    for _ in 0..3 {
        script.answers.send(Answer::Durable).unwrap();
        assert!(wal.commit());
    }
    let closed = wal.close().unwrap();
    assert_eq!(sizes(&closed), [1, 1, 1]);
    assert_eq!(closed.end, None);
    assert_eq!(pulse.beats(), 3);
}

#[test]
fn one_of_those_who_waited_leads_for_all_of_them() {
    let pulse = Pulse::default();
    let answers = [Answer::Durable, Answer::Durable];
    let (outcomes, closed, synced) = one_then(5, None, &answers, &pulse, || ());
    assert_eq!(outcomes, [true; 6]);
    assert_eq!(sizes(&closed), [1, 5]);
    // What the log was told is what was counted.
    assert_eq!(synced, [1, 5]);
    assert!(closed.groups.iter().all(|g| g.slept_ns.is_none()));
}

#[test]
fn a_leader_sleeps_only_if_enough_others_are_active() {
    let delay = Some(Delay {
        sleep: Duration::from_micros(1),
        siblings: 5,
    });
    let answers = [Answer::Durable, Answer::Durable];
    for (followers, sleeps) in [(4, false), (6, true)] {
        let pulse = Pulse::default();
        let (_, closed, _) = one_then(followers, delay, &answers, &pulse, || ());
        assert_eq!(sizes(&closed), [1, followers]);
        // The first is alone. The client that it was may still count when the second one looks.
        assert_eq!(closed.groups[0].slept_ns, None);
        assert_eq!(closed.groups[1].slept_ns.is_some(), sleeps, "{followers}");
    }
}

/// A clock that stops one of its callers until the test lets it go.
struct Halting {
    calls: AtomicU64,
    at: u64,
    reached: Mutex<Sender<()>>,
    go: Mutex<Receiver<()>>,
}

impl Clock for Halting {
    fn now_ns(&self) -> u64 {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if call == self.at {
            self.reached.lock().unwrap().send(()).unwrap();
            self.go.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        }
        call
    }
}

#[test]
fn what_is_added_while_the_leader_sleeps_is_flushed_with_it() {
    let ((reached, seen), (go, told)) = (channel(), channel());
    // A leader that does not sleep asks three times; the fourth call begins the sleep of the next.
    let clock = Halting {
        calls: AtomicU64::new(0),
        at: 4,
        reached: Mutex::new(reached),
        go: Mutex::new(told),
    };
    let pulse = Pulse::default();
    let delay = Some(Delay {
        sleep: Duration::from_micros(1),
        siblings: 5,
    });
    let (log, script) = scripted();
    let wal = Wal::new(log, 1, delay, &clock, &pulse);
    thread::scope(|scope| {
        let commit = || scope.spawn(|| assert!(wal.commit()));
        commit();
        script.entered.recv_timeout(PATIENCE).unwrap();
        for _ in 0..6 {
            commit();
        }
        until_added(&wal, 7);
        script.answers.send(Answer::Durable).unwrap();
        seen.recv_timeout(PATIENCE).unwrap();
        // The lock is held, and nothing was written yet.
        commit();
        until_added(&wal, 8);
        go.send(()).unwrap();
        script.answers.send(Answer::Durable).unwrap();
    });
    let closed = wal.close().unwrap();
    assert_eq!(sizes(&closed), [1, 7]);
    assert!(closed.groups[1].slept_ns.is_some());
}

#[test]
fn an_errno_in_the_leader_ends_every_client() {
    let pulse = Pulse::default();
    let answers = [Answer::Durable, Answer::Fails(libc::EIO)];
    let (outcomes, closed, synced) = one_then(5, None, &answers, &pulse, || ());
    assert_eq!(outcomes, [true, false, false, false, false, false]);
    assert_eq!(sizes(&closed), [1]);
    assert_eq!(synced, [1, 5], "somebody led again after the fault");
    let fault = Fault::new("fdatasync", libc::EIO, "fake");
    assert_eq!(closed.end, Some(End::Fault(fault)));
}

#[test]
fn a_stop_ends_those_who_wait_and_nobody_leads_again() {
    let pulse = Pulse::default();
    // The call under way returns; its commit is durable and acknowledged.
    let (outcomes, closed, synced) = one_then(5, None, &[Answer::Durable], &pulse, || pulse.stop());
    assert_eq!(outcomes, [true, false, false, false, false, false]);
    assert_eq!((sizes(&closed), synced), (vec![1], vec![1]));
    assert_eq!(closed.end, Some(End::Stopped));
}

#[test]
fn a_panic_of_the_leader_leaves_nobody_waiting() {
    let pulse = Pulse::default();
    let (outcomes, closed, _) = one_then(5, None, &[Answer::Panics], &pulse, || ());
    assert_eq!(outcomes, [false; 6]);
    assert_eq!(closed.end, Some(End::Panicked));
    assert_eq!(sizes(&closed), [0; 0]);
}

#[test]
fn idle_clients_do_not_count_as_active() {
    let (clock, pulse) = (Monotonic::new(), Arc::new(Pulse::default()));
    let (log, script) = scripted();
    let wal = Wal::new(log, 1, None, &clock, &pulse);
    script.answers.send(Answer::Durable).unwrap();
    assert!(wal.commit());
    assert_eq!(wal.lock().active, 0);
}
