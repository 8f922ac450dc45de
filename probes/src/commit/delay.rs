//! How long half a flush is, and what a sleep of that length really takes.

use std::{
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::contract::{Clock, Fault, Lab, Observations, Stop};

use super::group::{Delay, Log};

/// commit_siblings by default.
pub(super) const SIBLINGS: u64 = 5;
/// commit_delay at most, in microseconds.
const MOST_US: u64 = 100_000;
/// Flushes of a batch, and batches: of their means the middle one is taken, so that a stall or two
/// do not make all leaders sleep longer.
const BATCH: usize = 8;
const BATCHES: usize = 8;
/// Flushes before them that are not counted.
const DISCARDED: usize = 4;
/// Sleeps of each length.
const SLEEPS: u64 = 16;
/// A sleep whose real length is told for comparison between hosts.
const SHORT: Duration = Duration::from_micros(100);

/// What was found, once in a run: all delays of a run are of the same length.
#[derive(Clone, Copy, Debug)]
struct Found {
    flush_ns: u64,
    short_ns: u64,
    slept_ns: u64,
}

/// By the scratch folder: a run measures one directory.
static FOUND: Mutex<Option<(String, Found)>> = Mutex::new(None);

/// Half the mean time of a flush after one 8 kB write, which is where the documentation of
/// commit_delay says to start.
pub(super) struct Half(Found);

impl Half {
    /// Measures it with a client that is alone, unless a case before this one did.
    ///
    /// # Errors
    /// The call that failed.
    pub(super) fn flush(log: &mut impl Log, lab: &Lab<'_>) -> Result<Self, Stop> {
        let key = lab.scratch()?.path.clone();
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, found)) = &*found
            && *of == key
        {
            return Ok(Self(*found));
        }
        let flush_ns = mean_flush_ns(log, lab.clock, lab)?;
        let sleep = sleep_of(flush_ns);
        let new = Found {
            flush_ns,
            short_ns: mean_sleep_ns(SHORT, lab.clock),
            slept_ns: mean_sleep_ns(sleep, lab.clock),
        };
        *found = Some((key, new));
        Ok(Self(new))
    }

    /// The server's rule with its default of commit_siblings.
    pub(super) fn delay(&self) -> Delay {
        Delay {
            sleep: sleep_of(self.0.flush_ns),
            siblings: SIBLINGS,
        }
    }

    pub(super) fn observe(&self, seen: &mut Observations) {
        let us = |ns: u64| json!(ns as f64 / 1e3);
        let mut put = |name: &str, value: Value| seen.insert(name.to_owned(), value);
        put("flush_mean_us", us(self.0.flush_ns));
        put("delay_us", json!(sleep_of(self.0.flush_ns).as_micros()));
        put("delay_really_us", us(self.0.slept_ns));
        put("sleep_100us_really_us", us(self.0.short_ns));
        put("timer_slack_us", timer_slack_us());
    }
}

/// Whole microseconds, as the setting has them; at least one, since 0 turns it off.
fn sleep_of(flush_ns: u64) -> Duration {
    Duration::from_micros((flush_ns / 2_000).clamp(1, MOST_US))
}

/// How late the kernel may wake this thread: prctl(2), PR_GET_TIMERSLACK.
fn timer_slack_us() -> Value {
    rustix::thread::current_timer_slack().map_or(Value::Null, |ns| json!(ns as f64 / 1e3))
}

fn mean_flush_ns(log: &mut impl Log, clock: &dyn Clock, lab: &Lab<'_>) -> Result<u64, Stop> {
    let mut times = Vec::with_capacity(BATCH * BATCHES);
    for number in 0..DISCARDED + BATCH * BATCHES {
        if lab.pulse.stopped() {
            return Err(Stop::Interrupted);
        }
        let began = clock.now_ns();
        flush(log)?;
        if number >= DISCARDED {
            times.push(clock.now_ns().saturating_sub(began));
        }
        lab.pulse.beat();
    }
    Ok(middle_mean(&times))
}

/// The middle one of the batches' means.
fn middle_mean(times: &[u64]) -> u64 {
    let mut means: Vec<u64> = times
        .chunks(BATCH)
        .map(|batch| batch.iter().sum::<u64>() / batch.len() as u64)
        .collect();
    means.sort_unstable();
    let half = means.len() / 2;
    means[half.saturating_sub(1)..=half].iter().sum::<u64>() / 2
}

/// One commit of a client that is alone.
pub(super) fn flush(log: &mut impl Log) -> Result<(), Fault> {
    log.write(1)?;
    log.sync()
}

/// pg_usleep is nanosleep(2), and so is this.
fn mean_sleep_ns(length: Duration, clock: &dyn Clock) -> u64 {
    let began = clock.now_ns();
    for _ in 0..SLEEPS {
        thread::sleep(length);
    }
    clock.now_ns().saturating_sub(began) / SLEEPS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_whole_microseconds_within_the_settings_range() {
        assert_eq!(sleep_of(8_000_900).as_micros(), 4_000);
        assert_eq!(sleep_of(300).as_micros(), 1);
        assert_eq!(sleep_of(u64::MAX).as_micros(), 100_000);
    }

    #[test]
    fn a_stall_does_not_lengthen_the_delay() {
        let mut times: Vec<u64> = (0..64).map(|n| 1_000 + n % 8).collect();
        assert_eq!(middle_mean(&times), 1_003);
        times[5] = 9_000_000;
        times[60] = 9_000_000;
        assert_eq!(middle_mean(&times), 1_003);
        // A flush that is dear each time it comes is part of the mean.
        let dear: Vec<u64> = (0..64)
            .map(|n| if n % 8 == 0 { 9_000 } else { 1_000 })
            .collect();
        assert_eq!(middle_mean(&dear), 2_000);
    }

    #[test]
    fn a_sleep_is_never_shorter_than_asked() {
        let clock = crate::engine::clock::Monotonic::new();
        assert!(mean_sleep_ns(Duration::from_micros(50), &clock) >= 50_000);
    }
}
