//! Signals: counted here, acted on by whoever waits for a child.
//!
//! The first SIGINT, SIGTERM or SIGHUP asks for an early end, the second for a quick one.
//! SIGHUP stays ignored where it was at the start (`nohup`). Once the report is being
//! printed nothing is left to save, so a signal then ends the process at once.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals as Caught,
    low_level::emulate_default_handler,
};

/// The signals seen so far.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    seen: Arc<Mutex<Vec<i32>>>,
    at_once: Arc<AtomicBool>,
}

impl Signals {
    /// Starts to catch them.
    ///
    /// # Errors
    /// The system refuses the handlers or the thread.
    pub fn catch() -> io::Result<Self> {
        let mut wanted = vec![SIGINT, SIGTERM];
        if !ignored(SIGHUP) {
            wanted.push(SIGHUP);
        }
        let signals = Self::default();
        let mut caught = Caught::new(wanted)?;
        let thread = signals.clone();
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for signal in caught.forever() {
                    if thread.at_once.load(Ordering::SeqCst) {
                        let _ = emulate_default_handler(signal);
                    }
                    thread.note(signal);
                }
            })?;
        Ok(signals)
    }

    /// How many came.
    #[must_use]
    pub fn count(&self) -> usize {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// The one that came first.
    #[must_use]
    pub fn first(&self) -> Option<i32> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .first()
            .copied()
    }

    /// From now on a signal ends the process.
    pub fn end_at_once(&self) {
        self.at_once.store(true, Ordering::SeqCst);
    }

    fn note(&self, signal: i32) {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(signal);
    }
}

/// The signal's name, as in the report.
#[must_use]
pub fn name(signal: i32) -> String {
    match signal_hook::low_level::signal_name(signal) {
        Some(name) => name.to_owned(),
        None => format!("signal {signal}"),
    }
}

/// Whether `signal` is ignored by this process, by `/proc/self/status`.
fn ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    mask(&status).is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

fn mask(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|l| l.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_is_read_in_hex() {
        let status = "Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n";
        assert_eq!(mask(status), Some(0x1001));
        assert_eq!(mask("Name:\tx\n"), None);
    }

    #[test]
    fn the_first_is_kept() {
        let signals = Signals::default();
        signals.note(SIGTERM);
        signals.note(SIGINT);
        assert_eq!((signals.count(), signals.first()), (2, Some(SIGTERM)));
        assert_eq!(name(SIGTERM), "SIGTERM");
    }
}
