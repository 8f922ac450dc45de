//! How long a test has waited.
//!
//! The one place where tests read a clock: for deadlines, after which a test
//! gives up, and for the bound on a command that must come back. No test asserts
//! how long a measurement takes.

use std::thread;
use std::time::{Duration, Instant};

/// Started when made.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts one.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's deadline, not a probe's measurement"
    )]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the start.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Asks until there is an answer, at most for `limit`.
pub fn poll<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let watch = Stopwatch::start();
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if watch.elapsed() >= limit {
            return None;
        }
        thread::sleep(Duration::from_millis(10));
    }
}
