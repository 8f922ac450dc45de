//! The real [`Hooks`]: write budget, settling, announcements.

use crate::{
    contract::{Clock, Counters, Counts, Hooks, Pulse, Quiet, Settled, Stop},
    engine::{counters::SysCounters, settle::WriteOut},
    event::Event,
    scratch::Scratch,
};

/// Part of the budget kept for what the filesystem writes on its own, the removal's writes among it.
const KEEP_SHARE: u64 = 50;
/// A device is idle when nothing moved for this long.
const IDLE_NS: u64 = 3_000_000;
/// How often it is asked.
const POLL_NS: u64 = 500_000;
/// After this it counts as never idle.
const SETTLE_LIMIT_NS: u64 = 300_000_000;
/// The same where the quiet window already saw others at work on the device.
const BUSY_LIMIT_NS: u64 = 20_000_000;

/// Everything the engine needs besides clock and counters.
pub struct World<'a> {
    scratch: &'a Scratch,
    counters: &'a SysCounters,
    clock: &'a dyn Clock,
    pulse: &'a Pulse,
    quiet: Quiet,
    write_out: WriteOut,
    budget: u64,
    charged: u64,
    origin: Counts,
    origin_ns: u64,
    tell: &'a dyn Fn(&Event),
}

impl<'a> World<'a> {
    /// A world around the scratch folder, with `budget` device bytes.
    pub fn new(
        scratch: &'a Scratch,
        counters: &'a SysCounters,
        clock: &'a dyn Clock,
        pulse: &'a Pulse,
        quiet: Quiet,
        budget: u64,
        tell: &'a dyn Fn(&Event),
    ) -> Self {
        Self {
            scratch,
            counters,
            clock,
            pulse,
            quiet,
            write_out: WriteOut::Syncfs,
            budget: budget - budget / KEEP_SHARE,
            charged: 0,
            origin: counters.read(),
            origin_ns: clock.now_ns(),
            tell,
        }
    }

    /// The same, where the filesystem needs more than syncfs to write out what it put off.
    #[must_use]
    pub fn writing_out(self, write_out: WriteOut) -> Self {
        Self { write_out, ..self }
    }

    /// Bytes written so far: the devices' count less the background rate, and at least what was charged.
    #[must_use]
    pub fn spent(&self) -> u64 {
        if !self.counters.has_device() {
            return self.charged;
        }
        let moved = self.counters.read().since(&self.origin);
        let elapsed_s = (self.clock.now_ns() - self.origin_ns) as f64 / 1e9;
        // What others wrote before the run is a guess at what they write during it: never more than
        // half, and never so much that less is left than was charged.
        let moved = moved.device_bytes_written;
        let foreign = (self.quiet.write_bytes_per_s * elapsed_s) as u64;
        (moved - foreign.min(moved / 2)).max(self.charged)
    }

    /// What is left of the budget.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.budget.saturating_sub(self.spent())
    }

    /// When the device last moved, whether it became idle, and its rates if it did not.
    fn wait_idle(&self) -> (u64, bool, Quiet) {
        let limit = if self.quiet.write_bytes_per_s > 0.0 {
            BUSY_LIMIT_NS
        } else {
            SETTLE_LIMIT_NS
        };
        let from = self.clock.now_ns();
        let mut last = self.counters.read();
        let mut last_moved = from;
        let mut half = None;
        loop {
            std::thread::sleep(std::time::Duration::from_nanos(POLL_NS));
            let now = self.clock.now_ns();
            let counts = self.counters.read();
            let busy = self.counters.in_flight() > 0
                || counts.device_bytes_written != last.device_bytes_written
                || counts.flushes != last.flushes;
            if busy {
                last_moved = now;
                last = counts;
            }
            if now - last_moved >= IDLE_NS {
                return (last_moved, true, Quiet::default());
            }
            if now - from >= limit || self.pulse.stopped() {
                let busy = half.map_or_else(Quiet::default, |(then, before)| {
                    rates(&counts.since(&before), now - then)
                });
                return (now, false, busy);
            }
            if half.is_none() && now - from >= limit / 2 {
                half = Some((now, counts));
            }
        }
    }
}

impl Hooks for World<'_> {
    fn charge(&mut self, bytes: u64) -> Result<(), Stop> {
        let spent = self.spent();
        if spent.saturating_add(bytes) > self.budget {
            return Err(Stop::Skip(
                "budget",
                format!(
                    "{spent} bytes of the write budget are spent; {bytes} more are needed and {} may be written",
                    self.budget
                ),
            ));
        }
        self.charged += bytes;
        Ok(())
    }

    fn settle(&mut self) -> Result<Settled, Stop> {
        let from = self.clock.now_ns();
        let before = self.counters.read();
        self.scratch.syncfs()?;
        self.pulse.beat();
        let written = self.write_out.finish(self.clock, self.pulse)?;
        let synced = self.clock.now_ns();
        let (until, idle, busy) = if self.counters.has_device() {
            let (last_moved, idle, busy) = self.wait_idle();
            (last_moved.max(synced), idle, busy)
        } else {
            (synced, true, Quiet::default())
        };
        let moved = self.counters.read().since(&before);
        Ok(Settled {
            ns: until - from,
            device_bytes: moved.device_bytes_written,
            idle: idle && written,
            busy,
        })
    }

    fn doing(&mut self, probe: &str, comparison: &str, case: &str, round: u64) {
        self.pulse.beat();
        (self.tell)(&Event::Doing {
            probe: probe.to_owned(),
            comparison: comparison.to_owned(),
            case: case.to_owned(),
            round,
        });
    }
}

/// What the devices do while we do nothing, over `window_ns`.
#[must_use]
pub fn quiet_window(counters: &SysCounters, clock: &dyn Clock, window_ns: u64) -> Quiet {
    let (from, before) = (clock.now_ns(), counters.read());
    std::thread::sleep(std::time::Duration::from_nanos(window_ns));
    let moved = counters.read().since(&before);
    rates(&moved, clock.now_ns() - from)
}

fn rates(moved: &Counts, elapsed_ns: u64) -> Quiet {
    let seconds = elapsed_ns.max(1) as f64 / 1e9;
    Quiet {
        write_bytes_per_s: moved.device_bytes_written as f64 / seconds,
        flushes_per_s: moved.flushes as f64 / seconds,
    }
}
