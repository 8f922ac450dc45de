//! The watchdog: hears one child to its end and sees to it that there is one.
//!
//! An event is a sign of life; a child without one for `silence` hangs in a call that does
//! not answer. A child asked to stop, for a signal or because the time is over, has a
//! grace. What does not end by itself is killed, and left alone if that does not help:
//! whatever happens, [`watch`] returns within the limits.

use std::time::Duration;

use walprobe_probes::{event::Event, report::FaultRecord};

use crate::{
    clock::Stopwatch,
    signals::Signals,
    worker::{Child, Said, how},
};

/// How long the loop sleeps at most.
const TICK: Duration = Duration::from_millis(100);
/// What a killed child has to vanish.
pub const DYING: Duration = Duration::from_secs(2);
/// What a child has between its last word and its end.
const LINGERING: Duration = Duration::from_secs(2);
/// After so long without a word of a child that has ended there is none any more: others hold its
/// pipe. On a busy machine its last words are on their way for a while, and without them a run that
/// was done would count as broken.
const DRAINING: Duration = Duration::from_secs(2);
/// What is waited for the words of a child that has ended, also where others go on talking.
const MOST_DRAINING: Duration = Duration::from_secs(60);
/// A child this long silent that does not stop when asked hangs in a call: it would have
/// said something every second.
const HANGING: Duration = Duration::from_secs(4);

/// What a child may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time without an event; longer where a probe's calls may crawl.
    pub silence: Duration,
    /// Time after which it is asked to stop.
    pub time: Duration,
    /// Time to stop in when the time is over.
    pub grace: Duration,
    /// Time to stop in after a signal.
    pub signal_grace: Duration,
}

/// Why a child was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A signal came.
    Signal,
    /// The time was over.
    Time,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// It told all: the fields of [`Event::Done`].
    Done {
        /// Bytes written to the target.
        bytes_written: u64,
        /// Paths that could not be removed.
        left_behind: Vec<String>,
        /// Why the target could not be measured to the end.
        fault: Option<String>,
        /// The call that told so.
        failed: Option<FaultRecord>,
        /// `time` or `budget` when that ended it.
        ended_by: Option<String>,
    },
    /// The target cannot be used; nothing was created.
    Refused {
        /// The message for the user.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// A call did not answer; silent for so long when it was killed.
    NoAnswer(Duration),
    /// It lived, but did not stop when asked, or was not given the time.
    Overdue,
    /// walprobe's own fault: it could not start, broke, or was killed by others.
    Died(String),
}

/// The end of one child.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// Whether it had been asked to stop.
    pub asked: Option<Why>,
    /// It exists no more. Otherwise it hangs in a call, and no signal reaches it.
    pub gone: bool,
    /// Time from its start to its end.
    pub lived: Duration,
}

/// What the caller may act on while the child runs.
#[derive(Debug)]
pub enum Heard {
    /// It told something.
    Event(Box<Event>),
    /// A line on its stderr.
    Stderr(String),
    /// A line on its stdout that is no event.
    Noise(String),
    /// Nothing; time passes.
    Tick,
}

/// Hears `child` to its end.
pub fn watch(
    mut child: Child,
    limits: &Limits,
    signals: &Signals,
    hear: &mut dyn FnMut(Heard),
) -> Outcome {
    let mut clock = Stopwatch::start();
    let mut state = State::default();
    let verdict = loop {
        let said = child.hear(TICK);
        let now = clock.lived();
        state.idle = said.is_none();
        if said.is_some() {
            state.said_at = now;
        }
        match said {
            Some(Said::Line(line)) => match serde_json::from_slice::<Event>(&line) {
                Ok(event) => {
                    state.take(&event, now);
                    hear(Heard::Event(Box::new(event)));
                }
                Err(_) => hear(Heard::Noise(String::from_utf8_lossy(&line).into())),
            },
            Some(Said::Stderr(line)) => hear(Heard::Stderr(line)),
            Some(Said::Closed) => state.closed_at = Some(now),
            Some(Said::StderrClosed) => state.stderr_closed = true,
            None => hear(Heard::Tick),
        }
        if state.ended_at.is_none() && child.has_ended() {
            state.ended_at = Some(now);
        }
        if state.asked.is_none() && state.last_word.is_none() {
            let why = if signals.count() > 0 {
                Some(Why::Signal)
            } else {
                (now > limits.time).then_some(Why::Time)
            };
            if let Some(why) = why {
                state.asked = Some((why, now));
                child.ask_to_stop();
            }
        }
        if let Some(verdict) = state.verdict(limits, now, signals.count()) {
            break verdict;
        }
    };
    let silent = clock.lived().saturating_sub(state.heard_at);
    // Also after an end of its own: others of its group may live on.
    let status = child.kill(DYING);
    let gone = status.is_some();
    let ending = match (state.last_word, verdict) {
        (Some(ending), _) => ending,
        (None, Verdict::NoAnswer) => Ending::NoAnswer(silent),
        (None, Verdict::Overdue) => Ending::Overdue,
        (None, Verdict::Ended) => Ending::Died(how(status)),
        (None, Verdict::Mute) => Ending::Died("closed its output and went on".to_owned()),
    };
    Outcome {
        ending,
        asked: state.asked.map(|(why, _)| why),
        gone,
        lived: clock.lived(),
    }
}

/// What is known of the child, in lived time.
#[derive(Debug, Default)]
struct State {
    heard_at: Duration,
    /// When anything at all came from it.
    said_at: Duration,
    /// The silence allowed is multiplied by it; 0 counts as 1.
    patience: u32,
    last_word: Option<Ending>,
    last_word_at: Duration,
    closed_at: Option<Duration>,
    stderr_closed: bool,
    ended_at: Option<Duration>,
    /// All that was told so far has been heard.
    idle: bool,
    asked: Option<(Why, Duration)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Ended,
    Mute,
    NoAnswer,
    Overdue,
}

impl State {
    fn take(&mut self, event: &Event, now: Duration) {
        self.heard_at = now;
        if let Event::Doing { probe, .. } = event {
            self.patience = walprobe_probes::patience(probe);
        }
        let word = match event {
            Event::Done {
                bytes_written,
                left_behind,
                fault,
                failed,
                ended_by,
            } => Ending::Done {
                bytes_written: *bytes_written,
                left_behind: left_behind.clone(),
                fault: fault.clone(),
                failed: failed.clone(),
                ended_by: ended_by.clone(),
            },
            Event::Refused { message, hint } => Ending::Refused {
                message: message.clone(),
                hint: hint.clone(),
            },
            _ => return,
        };
        if self.last_word.is_none() {
            self.last_word = Some(word);
            self.last_word_at = now;
        }
    }

    /// Whether it is over with the child.
    fn verdict(&self, limits: &Limits, now: Duration, signals: usize) -> Option<Verdict> {
        let heard_all = self.closed_at.is_some() && self.stderr_closed;
        if let Some(at) = self.ended_at
            // A caller that is slow to take what was told has not heard the last of it.
            && (heard_all
                || (self.idle && now > at.max(self.said_at) + DRAINING)
                || now > at + MOST_DRAINING)
        {
            return Some(Verdict::Ended);
        }
        if self.last_word.is_some() {
            return (now > self.last_word_at + LINGERING).then_some(Verdict::Ended);
        }
        if self.closed_at.is_some_and(|at| now > at + LINGERING) {
            return Some(Verdict::Mute);
        }
        let silent = now.saturating_sub(self.heard_at);
        if let Some((why, at)) = self.asked {
            let grace = match why {
                Why::Signal => limits.signal_grace,
                Why::Time => limits.grace,
            };
            let hurried = signals > 1;
            if hurried || now > at + grace {
                return Some(if silent > HANGING {
                    Verdict::NoAnswer
                } else {
                    Verdict::Overdue
                });
            }
        }
        (silent > limits.silence * self.patience.max(1)).then_some(Verdict::NoAnswer)
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
