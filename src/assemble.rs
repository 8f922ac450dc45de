//! Events become the report.
//!
//! The report is whole at every moment: as soon as a plan is known each planned case has
//! its row, first as not reached, in plan order. So no row ever changes its index, and
//! the pointers of the durability grounds stay right. How a child ended decides what the
//! rows that it did not tell say.

use std::collections::BTreeMap;

use walprobe_probes::{
    event::{Event, PlannedCase},
    report::{Durability, EndedBy, Host, Margins, Report, Row, SCHEMA, Target, TargetStatus, Tool},
};

use crate::{
    rows::{Doing, INTERNAL, State},
    stamp,
    watch::{Ending, Outcome, Why},
};

/// Coverage of each interval of the report.
const INTERVAL_LEVEL: f64 = 0.997;

/// A report under construction.
#[derive(Debug)]
pub struct Draft {
    report: Report,
    states: Vec<State>,
}

/// What the run is, for the report's head.
#[derive(Clone, Debug)]
pub struct Head {
    /// Unique to the run.
    pub run_id: String,
    /// The command line.
    pub argv: Vec<String>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Name of the profile.
    pub profile: &'static str,
    /// Seconds for each directory.
    pub time_s: f64,
    /// Bytes for each directory.
    pub budget_bytes: u64,
}

impl Draft {
    /// A report of nothing yet, with an entry for each of `dirs`.
    #[must_use]
    pub fn new(head: Head, dirs: &[String]) -> Self {
        let target = |dir: &String| Target {
            dir: dir.clone(),
            ..Target::default()
        };
        let report = Report {
            schema: SCHEMA,
            run_id: head.run_id,
            tool: Tool {
                name: env!("CARGO_PKG_NAME").to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                argv: head.argv,
            },
            started_at: stamp::now(),
            finished_at: None,
            // What a report says that nobody finished.
            ended_by: EndedBy::Error,
            seed: head.seed,
            profile: head.profile.to_owned(),
            time_limit_s: head.time_s,
            write_budget_bytes: head.budget_bytes,
            interval_level: INTERVAL_LEVEL,
            host: Host {
                name: host_name(),
                facts: BTreeMap::new(),
            },
            targets: dirs.iter().map(target).collect(),
            margins: Margins::default(),
        };
        let states = dirs.iter().map(|_| State::default()).collect();
        Self { report, states }
    }

    /// The report as it stands.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// The cases planned for a target.
    #[must_use]
    pub fn plan(&self, target: usize) -> &[PlannedCase] {
        &self.states[target].plan
    }

    /// The target's scratch folder, if one was made.
    #[must_use]
    pub fn scratch(&self, target: usize) -> Option<String> {
        self.states[target].scratch.clone()
    }

    /// Takes in what a child told of a target. True: worth saving.
    pub fn take(&mut self, target: usize, event: Event) -> bool {
        let entry = &mut self.report.targets[target];
        let state = &mut self.states[target];
        match event {
            Event::Facts {
                dir,
                host,
                target,
                devices,
            } => {
                entry.dir = dir;
                entry.facts = target;
                entry.devices = devices;
                for (name, fact) in host {
                    self.report.host.facts.entry(name).or_insert(fact);
                }
            }
            Event::Plan { cases } => state.lay_out(entry, cases),
            Event::Scratch { path } => state.scratch = Some(path),
            Event::Doing {
                probe,
                comparison,
                case,
                round,
            } => {
                state.doing = Some(Doing {
                    probe,
                    comparison,
                    case,
                    round,
                });
            }
            Event::Alive { bytes_written } => entry.bytes_written = bytes_written,
            Event::Rows { rows, done } => {
                for row in rows {
                    state.put(entry, row, done);
                }
                return done;
            }
            Event::Durability { durability } => entry.durability = rooted(durability, target),
            Event::Refused { .. }
            | Event::Note { .. }
            | Event::Paused { .. }
            | Event::Done { .. } => {}
        }
        false
    }

    /// The child is gone: what it did not tell is filled in. `left_behind`: what clean-up
    /// could not remove.
    pub fn end(&mut self, target: usize, outcome: &Outcome, left_behind: Vec<String>) {
        let entry = &mut self.report.targets[target];
        let state = &mut self.states[target];
        entry.left_behind = left_behind;
        let stopped = match outcome.asked {
            Some(Why::Signal) => ("interrupted", "interrupted".to_owned()),
            _ => ("time", "the time was over".to_owned()),
        };
        match &outcome.ending {
            Ending::Done {
                bytes_written,
                fault,
                failed,
                ended_by,
                ..
            } => {
                entry.bytes_written = *bytes_written;
                entry.reason.clone_from(fault);
                if fault.is_some() {
                    entry.status = TargetStatus::Fault;
                }
                state.ended_by.clone_from(ended_by);
                if outcome.asked == Some(Why::Time) {
                    state.ended_by = Some("time".to_owned());
                }
                if let (Some(failed), Some(reason)) = (failed, fault) {
                    state.fill_failed(entry, failed, reason);
                }
                let (code, reason) = match (outcome.asked, ended_by.as_deref(), fault) {
                    (Some(_), ..) => stopped,
                    (_, Some("budget"), _) => ("budget", "the write budget was spent".to_owned()),
                    (_, Some(_), _) => stopped,
                    (_, _, Some(fault)) => ("errno", fault.clone()),
                    _ => (INTERNAL, "the worker did not tell".to_owned()),
                };
                state.fill(entry, code, &reason);
            }
            Ending::Refused { message, .. } => {
                entry.status = TargetStatus::Skipped;
                entry.reason = Some(message.clone());
                state.fill(entry, "errno", message);
            }
            Ending::NoAnswer(silent) => {
                let silent = silent.as_secs();
                let reason = state.no_answer(entry, silent);
                entry.status = TargetStatus::Fault;
                entry.reason = Some(reason);
                if outcome.asked == Some(Why::Time) {
                    state.ended_by = Some("time".to_owned());
                }
                let others = "not measured: an earlier call never answered";
                state.fill(entry, "no-answer", others);
            }
            Ending::Overdue => {
                if outcome.asked == Some(Why::Time) {
                    state.ended_by = Some("time".to_owned());
                }
                state.fill(entry, stopped.0, &stopped.1);
            }
            Ending::Died(how) => {
                let reason = format!("the worker {how}");
                state.died(entry, &reason);
                entry.status = TargetStatus::Fault;
                entry.reason = Some(reason.clone());
                state.broken = true;
                state.fill(entry, INTERNAL, &format!("not measured: {reason}"));
            }
        }
    }

    /// A target that was not begun.
    pub fn skip(&mut self, target: usize, code: &str, reason: &str) {
        let entry = &mut self.report.targets[target];
        entry.status = TargetStatus::Skipped;
        entry.reason = Some(reason.to_owned());
        self.states[target].fill(entry, code, reason);
    }

    /// Whether walprobe itself failed somewhere.
    #[must_use]
    pub fn broken(&self) -> bool {
        let internal = |row: &Row| row.reason_code.as_deref() == Some(INTERNAL);
        self.states.iter().any(|s| s.broken)
            || self
                .report
                .targets
                .iter()
                .any(|t| t.rows.iter().any(internal))
    }

    /// Whether something of ours was left in a directory that is not itself at fault.
    #[must_use]
    pub fn littered(&self) -> bool {
        let mut targets = self.report.targets.iter();
        targets.any(|t| !t.left_behind.is_empty() && t.status != TargetStatus::Fault)
    }

    /// Closes the report. `signal`: the one that interrupted it.
    #[must_use]
    pub fn finish(mut self, signal: Option<i32>) -> Report {
        use signal_hook::consts::{SIGHUP, SIGINT};
        let ended = |by: &str| {
            let mut states = self.states.iter();
            states.any(|s| s.ended_by.as_deref() == Some(by))
        };
        self.report.ended_by = match signal {
            Some(SIGINT) => EndedBy::Sigint,
            Some(SIGHUP) => EndedBy::Sighup,
            Some(_) => EndedBy::Sigterm,
            None if self.broken() => EndedBy::Error,
            None if ended("time") => EndedBy::Time,
            None if ended("budget") => EndedBy::Budget,
            None => EndedBy::Done,
        };
        self.report.finished_at = Some(stamp::now());
        drop_dangling(&mut self.report);
        self.report
    }
}

/// A child knows its own target only; the report's pointers start at the root.
fn rooted(mut durability: Durability, target: usize) -> Durability {
    for ground in &mut durability.grounds {
        if let Some(pointer) = &mut ground.evidence {
            *pointer = format!("/targets/{target}{pointer}");
        }
    }
    durability
}

/// Pointers of grounds that lead nowhere are worse than none.
fn drop_dangling(report: &mut Report) {
    let Ok(document) = serde_json::to_value(&*report) else {
        return;
    };
    for target in &mut report.targets {
        for ground in &mut target.durability.grounds {
            let dangling = |p: &String| document.pointer(p).is_none();
            if ground.evidence.as_ref().is_some_and(dangling) {
                ground.evidence = None;
            }
        }
    }
}

fn host_name() -> Option<String> {
    let name = rustix::system::uname();
    Some(name.nodename().to_string_lossy().into_owned())
}

#[cfg(test)]
#[path = "assemble_tests.rs"]
mod tests;
