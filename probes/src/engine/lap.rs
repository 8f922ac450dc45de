//! All that a trial sees of time: it marks, the engine reads. It owns no clock and no loop.
//!
//! One `Lap` a block. A sample runs from [`Lap::start`] to [`Lap::done`], split at
//! [`Lap::mark`]s; it belongs to the leg opened last. What was marked goes into the
//! case's [`Tally`] outside the clock.

use crate::{
    contract::{Clock, Counters, Counts, Phase, Pulse, Series},
    engine::tally::Tally,
};

/// Marks in one sample; more are merged into the last.
const MARKS: usize = 8;

/// See the module docs.
pub struct Lap<'a> {
    clock: &'a dyn Clock,
    counters: &'a dyn Counters,
    pulse: &'a Pulse,
    tally: &'a mut Tally,
    leg: Series,
    weight: f64,
    life_ns: f64,
    last_ns: u64,
    marks: [(Phase, u64); MARKS],
    marked: usize,
    at: Counts,
    recording: bool,
}

impl<'a> Lap<'a> {
    /// A lap that feeds `tally`.
    pub fn new(
        clock: &'a dyn Clock,
        counters: &'a dyn Counters,
        pulse: &'a Pulse,
        tally: &'a mut Tally,
    ) -> Self {
        Self {
            clock,
            counters,
            pulse,
            tally,
            leg: "",
            weight: 1.0,
            life_ns: 0.0,
            last_ns: 0,
            marks: [("", 0); MARKS],
            marked: 0,
            at: Counts::default(),
            recording: true,
        }
    }

    /// Opens a leg: counters so far go to the leg before. Outside the clock. `weight`: segment
    /// over walked bytes, else 1; 0 = not part of the life. The leg already open goes on as it is.
    pub fn leg(&mut self, series: Series, weight: f64) {
        self.weight = weight;
        if !series.is_empty() {
            self.tally.leg(series).weight = weight;
        }
        if self.leg == series {
            return;
        }
        self.flush_counters();
        self.leg = series;
    }

    /// Starts a sample.
    pub fn start(&mut self) {
        self.marked = 0;
        self.last_ns = self.clock.now_ns();
    }

    /// Ends a phase of the sample.
    pub fn mark(&mut self, phase: Phase) {
        let now = self.clock.now_ns();
        let slot = self.marked.min(MARKS - 1);
        let spent = now.saturating_sub(self.last_ns);
        if self.marked > 0 && (self.marks[self.marked - 1].0 == phase || self.marked == MARKS) {
            self.marks[self.marked - 1].1 += spent;
        } else {
            self.marks[slot] = (phase, spent);
            self.marked += 1;
        }
        self.last_ns = now;
        self.pulse.beat();
    }

    /// Time since the sample's last mark, for a loop that must not go on for ever.
    #[must_use]
    pub fn since_mark_ns(&self) -> u64 {
        self.clock.now_ns().saturating_sub(self.last_ns)
    }

    /// Ends the sample: one of the leg's series; adds to the life. Its time in nanoseconds, for a
    /// sum that the probe tells.
    pub fn done(&mut self) -> u64 {
        let marks = &self.marks[..self.marked];
        let sum: u64 = marks.iter().map(|m| m.1).sum();
        self.life_ns += sum as f64 * self.weight;
        if self.recording {
            self.tally.sample(self.leg, sum, marks, self.last_ns);
        }
        sum
    }

    /// The clock, for operations that overlap and are timed by threads of the trial's own. They end
    /// in [`Lap::burst`].
    #[must_use]
    pub const fn clock(&self) -> &'a dyn Clock {
        self.clock
    }

    /// Samples that overlapped: the time of each, and the time on the wall from the first one's
    /// start to the last one's end, which the means of blocks and the rate go by.
    pub fn burst(&mut self, elapsed_ns: u64, samples_ns: &[u64]) {
        if self.recording {
            let ended_ns = self.clock.now_ns();
            self.tally.burst(self.leg, elapsed_ns, samples_ns, ended_ns);
        }
    }

    /// A flush that served `ops` samples of a burst, and where its time went.
    pub fn group(&mut self, ops: u64, phases: &[(Phase, u64)]) {
        if self.recording {
            self.tally.group(self.leg, ops, phases);
        }
    }

    /// The life so far, as one sample of `series`; call it before the remove leg (foreground)
    /// and after it (total; the engine adds deferred cost).
    pub fn life(&mut self, series: Series) {
        if self.recording {
            self.tally
                .sample(series, self.life_ns as u64, &[], self.last_ns);
        }
    }

    /// A new operation begins: the life starts at nothing.
    pub(crate) fn begin_op(&mut self) {
        self.life_ns = 0.0;
    }

    /// Counts WAL volume of the open leg.
    pub fn wal(&mut self, bytes: u64) {
        if self.recording {
            self.tally.leg(self.leg).wal_bytes += bytes;
        }
    }

    /// Counts bytes handed to the kernel.
    pub fn wrote(&mut self, bytes: u64) {
        if self.recording {
            self.tally.leg(self.leg).bytes_written += bytes;
        }
    }

    /// Counts syncs, O_DSYNC and O_SYNC writes among them.
    pub fn synced(&mut self, count: u64) {
        if self.recording {
            self.tally.leg(self.leg).syncs += count;
        }
    }

    /// The watchdog's pulse, for loops within one sample.
    #[must_use]
    pub const fn pulse(&self) -> &'a Pulse {
        self.pulse
    }

    /// Whether the run must end: ask between the samples of a long operation.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.pulse.stopped()
    }

    /// Turns recording on or off (the first operations of a block are not counted).
    pub(crate) fn record(&mut self, on: bool) {
        if on && !self.recording {
            self.at = self.counters.read();
        }
        self.recording = on;
    }

    /// Begins the block: counters start here.
    pub(crate) fn begin_block(&mut self) {
        self.leg = "";
        self.at = self.counters.read();
    }

    /// Ends the block: what the counters moved goes to the open leg.
    pub(crate) fn end_block(&mut self) {
        self.flush_counters();
    }

    fn flush_counters(&mut self) {
        let now = self.counters.read();
        if self.recording && !self.leg.is_empty() {
            let moved = now.since(&self.at);
            self.tally.leg(self.leg).counts.add(&moved);
        }
        self.at = now;
    }
}
