//! One case: a number of clients that commit beside each other, burst by burst.

use std::{collections::BTreeMap, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::{
    contract::{Case, Fault, Lab, Observations, Series, Stop, Trial},
    engine::lap::Lap,
    report::ColdProof,
    sync::way::Way,
};

use super::{
    beside::Neighbour,
    burst,
    delay::{self, Half},
    group::{Closed, End, Group, Wal},
    plan::{self, SERIES},
    wal::Segment,
};

/// Commits of a client that is alone at a block's start, which are not counted.
const DISCARDED: u64 = 4;

/// See the module docs.
pub(super) struct Clients {
    /// Taken by a burst, which gives it back.
    segment: Option<Segment>,
    half: Option<Half>,
    burst: burst::Plan,
    commit_bytes: u64,
    neighbour: Option<Neighbour>,
    cpus: u64,
    cpu_ns: u64,
    elapsed_ns: u64,
    broken: Option<String>,
}

impl Clients {
    /// Makes the segment and what the neighbour uses, and finds out how long half a flush is where
    /// the case sleeps.
    pub(super) fn open(case: &Case, lab: &mut Lab<'_>) -> Result<Self, Stop> {
        let number = |key| case.params.get(key).and_then(Value::as_u64).unwrap_or(0);
        let broken = || Stop::Broken(format!("no case {}", case.name));
        let method = case.params.get("method").and_then(Value::as_str);
        let way = method.and_then(Way::parse).ok_or_else(broken)?;
        let commit_bytes = number("commit_bytes").max(1);
        let mut segment = Segment::open(way, commit_bytes, number("file_bytes"), lab)?;
        let half = if plan::sleeps(case) {
            Some(Half::flush(&mut segment, lab)?)
        } else {
            None
        };
        Ok(Self {
            segment: Some(segment),
            half,
            burst: burst::Plan {
                clients: number("clients").max(1),
                commits: number("commits_per_burst").max(1),
                think: Duration::from_micros(number("think_us")),
            },
            commit_bytes,
            neighbour: Neighbour::of(case, lab)?,
            cpus: lab.facts.number("host.cpus").unwrap_or(1).max(1),
            cpu_ns: 0,
            elapsed_ns: 0,
            broken: None,
        })
    }

    /// Puts what a whole burst gave into the lap.
    fn told(&self, seen: &burst::Seen, groups: &[Group], lap: &mut Lap<'_>) {
        lap.burst(seen.elapsed_ns, &seen.latencies_ns);
        lap.wal(seen.latencies_ns.len() as u64 * self.commit_bytes);
        for group in groups {
            let mut phases = vec![("write", group.write_ns), ("sync", group.sync_ns)];
            phases.extend(group.slept_ns.map(|ns| ("delay", ns)));
            lap.group(group.commits, &phases);
            lap.wrote(group.wrote.bytes);
            lap.synced(group.wrote.syncs);
        }
    }
}

impl Trial for Clients {
    fn prepare(&mut self, lab: &mut Lab<'_>) -> Result<Option<ColdProof>, Stop> {
        if let Some(segment) = &mut self.segment {
            for _ in 0..DISCARDED {
                delay::flush(segment)?;
                lab.pulse.beat();
            }
        }
        if let Some(neighbour) = &mut self.neighbour {
            neighbour.prepare()?;
        }
        Ok(None)
    }

    fn op(&mut self, lap: &mut Lap<'_>) -> Result<(), Fault> {
        let Some(segment) = self.segment.take() else {
            self.broken = Some("the log was not given back".to_owned());
            return Ok(());
        };
        lap.leg(SERIES, 1.0);
        let (clock, pulse) = (lap.clock(), lap.pulse());
        let delay = self.half.as_ref().map(Half::delay);
        let wal = Wal::new(segment, self.burst.first_records(), delay, clock, pulse);
        let (from, cpu_from) = (clock.now_ns(), cpu_ns());
        let run = || burst::run(&wal, self.burst, clock, pulse);
        let seen = match &mut self.neighbour {
            None => run(),
            Some(neighbour) => neighbour.beside(clock, run),
        };
        self.cpu_ns += cpu_ns().saturating_sub(cpu_from);
        self.elapsed_ns += clock.now_ns().saturating_sub(from);
        let Some(Closed { log, groups, end }) = wal.close() else {
            self.broken = Some("the log was not given back".to_owned());
            return Ok(());
        };
        self.segment = Some(log);
        let seen = seen.map_err(|error| {
            let errno = error.raw_os_error().unwrap_or(libc::EAGAIN);
            Fault::new("pthread_create", errno, "a client")
        })?;
        match end {
            Some(End::Fault(fault)) => return Err(fault),
            Some(End::Panicked) => self.broken = Some("a client panicked".to_owned()),
            Some(End::Stopped) => return Ok(()),
            None => {}
        }
        if let Some(fault) = self.neighbour.as_mut().and_then(Neighbour::fault) {
            return Err(fault);
        }
        if seen.latencies_ns.len() as u64 == self.burst.commits {
            self.told(&seen, &groups, lap);
        } else if !pulse.stopped() && self.broken.is_none() {
            self.broken = Some(format!(
                "{} of {} commits were acknowledged",
                seen.latencies_ns.len(),
                self.burst.commits
            ));
        }
        Ok(())
    }

    fn observe(
        &mut self,
        _lab: &mut Lab<'_>,
        seen: &mut BTreeMap<Series, Observations>,
    ) -> Result<(), Stop> {
        if let Some(broken) = self.broken.take() {
            return Err(Stop::Broken(broken));
        }
        let common = seen.entry("").or_default();
        let tenth = |x: f64| json!((x * 10.0).round() / 10.0);
        if self.elapsed_ns > 0 {
            let share = self.cpu_ns as f64 / self.elapsed_ns as f64 / self.cpus as f64;
            common.insert("cpu_busy_pct".to_owned(), tenth(100.0 * share.min(1.0)));
        }
        common.insert(
            "clients_per_cpu".to_owned(),
            tenth(self.burst.clients as f64 / self.cpus as f64),
        );
        if let Some(half) = &self.half {
            half.observe(common);
        }
        if let Some(neighbour) = &self.neighbour {
            neighbour.observe(common);
        }
        Ok(())
    }

    fn close(&mut self, _lab: &mut Lab<'_>) -> Result<(), Stop> {
        if let Some(segment) = &self.segment {
            segment.remove()?;
        }
        if let Some(neighbour) = &self.neighbour {
            neighbour.remove()?;
        }
        Ok(())
    }
}

/// Processor time of all threads of this process: clock_gettime(2).
fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
