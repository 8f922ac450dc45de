//! Whole bursts on a log that answers by itself.

use super::*;
use crate::{
    commit::group::{Closed, Delay, End, Wrote},
    contract::Fault,
    engine::clock::Monotonic,
};

/// Fails, or stops the run, at a sync with this number; 0 = never.
struct Quick<'p> {
    syncs: u64,
    fails_at: u64,
    stops_at: u64,
    pulse: &'p Pulse,
}

impl Log for Quick<'_> {
    fn write(&mut self, _records: u64) -> Result<Wrote, Fault> {
        Ok(Wrote::default())
    }

    fn sync(&mut self) -> Result<(), Fault> {
        self.syncs += 1;
        if self.syncs == self.stops_at {
            self.pulse.stop();
        }
        if self.syncs == self.fails_at {
            return Err(Fault::new("fdatasync", libc::EIO, "fake"));
        }
        // Long enough for others to add their records meanwhile.
        thread::sleep(Duration::from_micros(200));
        Ok(())
    }
}

fn burst(
    plan: Plan,
    delay: Option<Delay>,
    fails_at: u64,
    stops_at: u64,
) -> (Seen, u64, Closed<u64>) {
    let (clock, pulse) = (Monotonic::new(), Pulse::default());
    let log = Quick {
        syncs: 0,
        fails_at,
        stops_at,
        pulse: &pulse,
    };
    let wal = Wal::new(log, plan.first_records(), delay, &clock, &pulse);
    let seen = run(&wal, plan, &clock, &pulse).unwrap();
    let Closed { log, groups, end } = wal.close().unwrap();
    let sum = groups.iter().map(|g| g.commits).sum();
    let closed = Closed {
        log: log.syncs,
        groups,
        end,
    };
    (seen, sum, closed)
}

const fn plan(clients: u64) -> Plan {
    Plan {
        clients,
        commits: 16 * clients,
        think: Duration::ZERO,
    }
}

#[test]
fn every_commit_is_in_exactly_one_group() {
    for clients in [1, 2, 4, 16] {
        for think in [Duration::ZERO, Duration::from_micros(300)] {
            let delay = Delay {
                sleep: Duration::from_micros(100),
                siblings: 5,
            };
            let plan = Plan {
                think,
                ..plan(clients)
            };
            let (seen, sum, closed) = burst(plan, Some(delay), 0, 0);
            assert_eq!(seen.latencies_ns.len() as u64, plan.commits);
            assert_eq!(sum, plan.commits);
            assert_eq!(closed.log, closed.groups.len() as u64);
            assert_eq!(closed.end, None);
            let largest = closed.groups.iter().map(|g| g.commits).max();
            assert!(largest <= Some(clients), "{largest:?} of {clients}");
            let slept = closed.groups.iter().any(|g| g.slept_ns.is_some());
            assert!(
                clients > 5 || !slept,
                "{clients} clients, and a leader slept"
            );
        }
    }
}

#[test]
fn clients_that_wait_for_the_disk_form_groups() {
    let (_, sum, closed) = burst(plan(16), None, 0, 0);
    let mean = sum as f64 / closed.groups.len() as f64;
    assert!(mean > 1.5, "{mean} commits a group");
}

#[test]
fn waits_overlap_on_the_wall() {
    let (seen, ..) = burst(plan(8), None, 0, 0);
    let sum: u64 = seen.latencies_ns.iter().sum();
    assert!(seen.elapsed_ns < sum, "{} of {sum}", seen.elapsed_ns);
    let longest = seen.latencies_ns.iter().max();
    assert!(longest <= Some(&seen.elapsed_ns));
}

#[test]
fn a_fault_ends_the_burst_with_it() {
    let (seen, sum, closed) = burst(plan(16), None, 3, 0);
    let fault = Fault::new("fdatasync", libc::EIO, "fake");
    assert_eq!(closed.end, Some(End::Fault(fault)));
    assert_eq!(closed.log, 3, "somebody synced after the fault");
    assert_eq!(closed.groups.len(), 2);
    // What was acknowledged before it was durable.
    assert_eq!(seen.latencies_ns.len() as u64, sum);
}

#[test]
fn a_stop_ends_the_burst() {
    let (seen, sum, closed) = burst(plan(16), None, 0, 3);
    assert_eq!(closed.log, 3, "somebody synced after the stop");
    // Who is about to wait for the flush under way leaves without its answer.
    assert!(seen.latencies_ns.len() as u64 <= sum);
    assert!(sum < 256);
}

#[test]
fn all_are_there_before_somebody_leads() {
    for clients in [1, 6, 16] {
        let (.., closed) = burst(plan(clients), None, 0, 0);
        assert_eq!(closed.groups[0].commits, clients);
    }
    // Those who wait for a client that will not come end with the run.
    let (clock, pulse) = (Monotonic::new(), Pulse::default());
    let log = Quick {
        syncs: 0,
        fails_at: 0,
        stops_at: 0,
        pulse: &pulse,
    };
    let wal = Wal::new(log, 2, None, &clock, &pulse);
    let durable = thread::scope(|scope| {
        let alone = scope.spawn(|| wal.commit());
        pulse.stop();
        alone.join().unwrap()
    });
    let closed = wal.close().unwrap();
    assert!(!durable && closed.groups.is_empty());
    assert_eq!(closed.end, Some(End::Stopped));
}
