//! A run: looks at every directory, then measures each, one child at a time.
//!
//! Looking is a dry run in a child: it finds what cannot be used before anything is
//! written anywhere, and it brings the plans, so that each planned case of each directory
//! has a row whatever happens later.

use std::{io, time::Duration};

use walprobe_probes::{
    event::Event,
    request::{Request, Selection},
};

use crate::{
    anonymous,
    assemble::Draft,
    clean,
    cli::Show,
    error::Failure,
    list,
    output::Outputs,
    progress::Console,
    publish,
    render::Options,
    signals::Signals,
    watch::{Ending, Heard, Limits, Outcome, Why, watch},
    worker::Child,
};

/// What a child may take beyond its time before it is asked to stop: it keeps the time itself.
const TIME_SLACK: Duration = Duration::from_secs(2);
/// What a look may take at least, however short the run.
const LOOK_LEAST_S: f64 = 5.0;
/// What a child has to stop and clean up, when the time is over and after a signal.
const GRACE: Duration = Duration::from_secs(4);
const SIGNAL_GRACE: Duration = Duration::from_secs(5);
/// What the clean-up after a child may take, and the whole command beyond its time.
const CLEANING: Duration = Duration::from_secs(6);
const CLEANING_LEAST: Duration = Duration::from_secs(1);
const OVERTIME: Duration = Duration::from_millis(9_500);

/// One run over some directories.
#[derive(Debug)]
pub(crate) struct Task {
    /// The request, but for the directory.
    pub(crate) request: Request,
    pub(crate) dirs: Vec<String>,
    pub(crate) show: Show,
    pub(crate) conf: Option<String>,
    /// Looking is not all.
    pub(crate) measures: bool,
}

/// A run under way.
pub(crate) struct Run {
    pub(crate) task: Task,
    pub(crate) draft: Draft,
    pub(crate) outputs: Outputs,
    pub(crate) signals: Signals,
    pub(crate) console: Console,
}

impl Run {
    /// Looks at every directory. Which of them can be measured.
    pub(crate) fn look(&mut self) -> Result<Vec<usize>, Failure> {
        let request = &self.task.request;
        let patience = request.op_timeout_s.min(request.time_s.max(LOOK_LEAST_S));
        let patience = Duration::from_secs_f64(patience);
        let limits = Limits {
            silence: patience,
            time: patience + TIME_SLACK,
            grace: Duration::from_secs(1),
            signal_grace: SIGNAL_GRACE,
        };
        let mut usable = Vec::new();
        let mut refused = Vec::new();
        for target in 0..self.task.dirs.len() {
            if self.signals.count() > 0 {
                self.draft.skip(target, "interrupted", "interrupted");
                continue;
            }
            let outcome = self.child(target, true, &limits);
            match &outcome.ending {
                Ending::Done { fault: None, .. } => usable.push(target),
                Ending::Refused { message, hint } => {
                    let mut failure = Failure::refused(message.clone());
                    failure.hints.extend(hint.clone());
                    refused.push(failure);
                }
                _ => {
                    self.draft.end(target, &outcome, Vec::new());
                    self.tell_ending(target, &outcome);
                }
            }
        }
        if let Some(last) = refused.pop() {
            self.console.clear();
            refused.iter().for_each(Failure::say);
            return Err(last);
        }
        if self.task.measures && !usable.is_empty() && self.signals.count() == 0 {
            self.anything_wanted(&usable)?;
        }
        Ok(usable)
    }

    fn anything_wanted(&self, usable: &[usize]) -> Result<(), Failure> {
        let request = &self.task.request;
        let selection = Selection::new(&request.only, &request.skip).map_err(Failure::refused)?;
        let planned = usable.iter().flat_map(|t| self.draft.plan(*t));
        let mut wanted = planned.filter(|c| selection.wants(&c.probe, &c.comparison, &c.case));
        if wanted.next().is_some() {
            return Ok(());
        }
        let failure = if request.only.is_empty() {
            Failure::refused("no case is left to measure")
        } else {
            Failure::refused(format!("no case matches --only {}", request.only.join(" ")))
        };
        let hint = match list::measured_with(&selection) {
            Some(option) => format!("{option} measures it; walprobe list shows the cases"),
            None => {
                "walprobe list shows the cases and the smallest profile that has each".to_owned()
            }
        };
        Err(failure.hint(hint))
    }

    pub(crate) fn measure(&mut self, usable: &[usize]) -> Result<(), Failure> {
        let dirs: Vec<String> = self
            .draft
            .report()
            .targets
            .iter()
            .map(|t| t.dir.clone())
            .collect();
        for path in self.outputs.inside(&dirs) {
            self.console.note(&format!(
                "note: {path} lies in a measured directory: saving it adds to what its devices write"
            ));
        }
        if self.task.request.fill {
            for dir in &dirs {
                self.console.note(&format!(
                    "note: --fill: the filesystem of {dir} is filled, for moments to its end, in each case of enospc"
                ));
            }
        }
        let time = Duration::from_secs_f64(self.task.request.time_s);
        let limits = Limits {
            silence: Duration::from_secs_f64(self.task.request.op_timeout_s),
            time: time + TIME_SLACK,
            grace: GRACE,
            signal_grace: SIGNAL_GRACE,
        };
        for &target in usable {
            if self.signals.count() > 0 {
                self.draft.skip(target, "interrupted", "interrupted");
                continue;
            }
            let outcome = self.child(target, false, &limits);
            self.tell_ending(target, &outcome);
            if let Ending::Refused { message, hint } = &outcome.ending
                && self.task.dirs.len() == 1
            {
                let mut failure = Failure::refused(message.clone());
                failure.hints.extend(hint.clone());
                return Err(failure);
            }
            let left = self.left_behind(target, &outcome, time);
            self.draft.end(target, &outcome, left);
            self.save();
        }
        Ok(())
    }

    /// Runs one child to its end.
    fn child(&mut self, target: usize, dry_run: bool, limits: &Limits) -> Outcome {
        let mut request = self.task.request.clone();
        request.dir.clone_from(&self.task.dirs[target]);
        request.dry_run = dry_run;
        self.console.begin(&request.dir, request.time_s);
        let started = serde_json::to_string(&request)
            .map_err(io::Error::from)
            .and_then(|line| Child::start(&["worker"], line));
        let child = match started {
            Ok(child) => child,
            Err(e) => {
                return Outcome {
                    ending: Ending::Died(format!("could not be started: {e}")),
                    asked: None,
                    gone: true,
                    lived: Duration::ZERO,
                };
            }
        };
        let signals = self.signals.clone();
        let mut noise = false;
        watch(child, limits, &signals, &mut |heard| match heard {
            Heard::Event(event) => self.event(target, *event),
            Heard::Stderr(line) => self.console.child_line(&line),
            Heard::Noise(line) => {
                if !std::mem::replace(&mut noise, true) {
                    let start: String = line.chars().take(80).collect();
                    self.console
                        .note(&format!("note: the worker's line is no event: {start}"));
                }
            }
            Heard::Tick => self.console.tick(),
        })
    }

    fn event(&mut self, target: usize, event: Event) {
        match &event {
            Event::Note { text } => self.console.child_line(&format!("note: {text}")),
            Event::Paused { point } => self.console.note(&format!("paused at {point}")),
            other => self.console.event(other),
        }
        if self.draft.take(target, event) {
            self.save();
        }
    }

    /// Saves the report as it stands, so that whatever comes leaves a good document.
    fn save(&mut self) {
        if self.outputs.formats().all(|f| f != "json") {
            return;
        }
        let had_trouble = self.outputs.trouble().next().is_some();
        let report = self.draft.report();
        let document = if self.task.show.anonymous {
            anonymous::anonymous(report, &self.task.dirs)
                .and_then(|r| publish::document("json", &r, &Options::default()))
        } else {
            publish::document("json", report, &Options::default())
        };
        match document {
            Ok(text) => {
                let before = self.signals.count().max(1);
                let stop = || self.signals.count() > before;
                self.outputs.save("json", &text, &stop);
            }
            Err(e) => self
                .console
                .note(&format!("walprobe: cannot save the report: {e}")),
        }
        if !had_trouble {
            let trouble: Vec<String> = self.outputs.trouble().map(str::to_owned).collect();
            for message in trouble {
                self.console.note(&format!("walprobe: {message}"));
            }
        }
    }

    /// What is left of the target's scratch folder, after cleaning up where the child did not.
    fn left_behind(&mut self, target: usize, outcome: &Outcome, time: Duration) -> Vec<String> {
        let left = match &outcome.ending {
            Ending::Done { left_behind, .. } => left_behind.clone(),
            Ending::Refused { .. } => Vec::new(),
            // What hangs in the kernel holds the folder; a clean-up could only hang beside it.
            _ if !outcome.gone => self.draft.scratch(target).into_iter().collect(),
            _ => self.clean_up(target, outcome, time),
        };
        for path in &left {
            self.console
                .note(&format!("walprobe: {path} was left behind"));
        }
        if !left.is_empty() {
            let command = clean::hint(&self.task.dirs[target]);
            self.console.note(&format!(
                "hint: {command} tries again; what it does not know for walprobe's own it leaves, and says why"
            ));
        }
        left
    }

    /// Cleans up after a child that did not. What is left.
    fn clean_up(&mut self, target: usize, outcome: &Outcome, time: Duration) -> Vec<String> {
        let rest = (time + OVERTIME).saturating_sub(outcome.lived);
        let bound = match outcome.asked {
            Some(Why::Signal) => CLEANING,
            _ => CLEANING.min(rest.max(CLEANING_LEAST)),
        };
        self.console.clear();
        let dir = &self.task.dirs[target];
        let run_id = Some(self.task.request.run_id.as_str());
        match clean::in_child(dir, run_id, bound, &self.signals) {
            Ok(cleaned) => {
                for (path, why) in &cleaned.left {
                    self.console
                        .note(&format!("walprobe: cannot remove {path}: {why}"));
                }
                let left = cleaned.left.into_iter().map(|(path, _)| path);
                left.chain(cleaned.running).collect()
            }
            Err(failure) => {
                self.console.note(&format!("walprobe: {}", failure.message));
                self.draft.scratch(target).into_iter().collect()
            }
        }
    }

    fn tell_ending(&mut self, target: usize, outcome: &Outcome) {
        let dir = &self.task.dirs[target];
        let what = match &outcome.ending {
            Ending::Done { fault, .. } => match fault {
                Some(fault) => fault.clone(),
                None => return,
            },
            Ending::Refused { message, hint } => {
                let hint = hint.as_ref().map(|h| format!("hint: {h}"));
                let message = format!("walprobe: {message}");
                [Some(message), hint]
                    .iter()
                    .flatten()
                    .for_each(|l| self.console.note(l));
                return;
            }
            Ending::NoAnswer(silent) => {
                format!("a call did not answer for {} s", silent.as_secs())
            }
            Ending::Overdue if outcome.asked == Some(Why::Signal) && self.signals.count() > 1 => {
                "stopped at once".to_owned()
            }
            Ending::Overdue => "the worker did not stop in time".to_owned(),
            Ending::Died(how) => format!("the worker {how}"),
        };
        let end = if outcome.gone {
            ""
        } else {
            "; its process hangs in the kernel and cannot be killed"
        };
        self.console.note(&format!("walprobe: {dir}: {what}{end}"));
    }
}
