//! Time as this process lived it: the one place of the talking half that reads a clock.
//!
//! Limits on a child count only while the parent runs. A parent that was stopped (Ctrl-Z) or
//! hung in a write to a full pipe has not listened, so it may not call the child silent.

use std::time::{Duration, Instant};

/// The longest stretch between two looks that counts in full.
const STRETCH: Duration = Duration::from_secs(2);

/// Counts lived time from its start.
#[derive(Debug)]
pub struct Stopwatch {
    looked: Instant,
    lived: Duration,
}

impl Stopwatch {
    /// Starts at nothing.
    #[must_use]
    pub fn start() -> Self {
        Self {
            looked: now(),
            lived: Duration::ZERO,
        }
    }

    /// Lived time since the start.
    pub fn lived(&mut self) -> Duration {
        let now = now();
        self.lived += now.duration_since(self.looked).min(STRETCH);
        self.looked = now;
        self.lived
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a watchdog needs a clock; it times no operation"
)]
fn now() -> Instant {
    Instant::now()
}
