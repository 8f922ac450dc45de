//! The monotonic clock (clock_gettime(2), CLOCK_MONOTONIC), and what reading it costs.

use std::time::Instant;

use crate::contract::Clock;

/// Nanoseconds since it was made.
#[derive(Clone, Copy, Debug)]
pub struct Monotonic {
    origin: Instant,
}

impl Default for Monotonic {
    fn default() -> Self {
        Self::new()
    }
}

impl Monotonic {
    /// A clock that starts at 0 now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn new() -> Self {
        Self {
            origin: Instant::now(),
        }
    }
}

impl Clock for Monotonic {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Cost of one reading in nanoseconds: the median of batches, so that one preemption does not count.
#[must_use]
pub fn cost_ns(clock: &dyn Clock) -> f64 {
    const BATCHES: usize = 15;
    const READINGS: u32 = 200;
    let mut batches: Vec<u64> = (0..BATCHES)
        .map(|_| {
            let from = clock.now_ns();
            for _ in 0..READINGS {
                std::hint::black_box(clock.now_ns());
            }
            clock.now_ns().saturating_sub(from)
        })
        .collect();
    batches.sort_unstable();
    batches[BATCHES / 2] as f64 / f64::from(READINGS + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_goes_back_and_a_reading_costs_something() {
        let clock = Monotonic::new();
        let (a, b) = (clock.now_ns(), clock.now_ns());
        assert!(b >= a);
        assert!(cost_ns(&clock) > 0.0);
    }
}
