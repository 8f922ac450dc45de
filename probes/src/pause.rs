//! Named places at which a test can stop a run, to kill it there.
//!
//! In builds with debug assertions, `WALPROBE_TEST_PAUSE=NAME` makes the first passage of
//! that point announce itself and then wait for ever; `WALPROBE_TEST_PAUSE_NTH=N` makes it
//! the N-th; with `WALPROBE_TEST_PAUSE_FILE=PATH` that file is made first. A release build has
//! no such points. Where they are:
//!
//! - `creating`: 1 the scratch folder is made, its undo file is not; 2 the undo file is made
//!   and not yet locked; 3 it is locked, nothing is in it; 4 the folder is complete;
//! - `dataset`: 1 a dataset is made and not mounted; 2 it is mounted;
//! - `filling`, `renaming`, `dropping`: in the probes;
//! - `pocket`: an image is bound to its loop device, and not mounted; `full`: the disk is full;
//! - `removing`: after each file that is removed, then after the undo file and before the folder.

/// Every point there is.
pub const POINTS: [&str; 8] = [
    "creating", "dataset", "filling", "renaming", "dropping", "pocket", "full", "removing",
];

/// Stops here for ever if a test asked for it; `announce` is called once before.
#[cfg(debug_assertions)]
pub fn point(name: &'static str, announce: &dyn Fn(&str)) {
    use std::sync::atomic::{AtomicU64, Ordering};
    static PASSED: AtomicU64 = AtomicU64::new(0);

    debug_assert!(POINTS.contains(&name), "{name} is no pause point");
    #[cfg(test)]
    hook::passed(name);
    if std::env::var_os("WALPROBE_TEST_PAUSE").is_none_or(|wanted| wanted != name) {
        return;
    }
    let nth = std::env::var("WALPROBE_TEST_PAUSE_NTH")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1);
    if PASSED.fetch_add(1, Ordering::Relaxed) + 1 == nth {
        announce(name);
        if let Some(file) = std::env::var_os("WALPROBE_TEST_PAUSE_FILE") {
            // A test that waits for it would see that it never comes.
            let _ = std::fs::write(file, name);
        }
        loop {
            std::thread::sleep(std::time::Duration::from_secs(3600));
        }
    }
}

/// Nothing, in a build without debug assertions.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_name: &'static str, _announce: &dyn Fn(&str)) {}

/// [`point`], announced by nothing but the file.
pub fn here(name: &'static str) {
    point(name, &|_| ());
}

/// In unit tests: something that happens just when this thread passes a point.
#[cfg(test)]
pub(crate) mod hook {
    use std::cell::RefCell;

    type Hook = Box<dyn FnMut(&str)>;
    thread_local!(static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) });

    /// Sets this thread's hook.
    pub(crate) fn set(hook: impl FnMut(&str) + 'static) {
        HOOK.set(Some(Box::new(hook)));
    }

    pub(super) fn passed(name: &str) {
        // Not set while it runs: what it does may pass points itself.
        if let Some(mut hook) = HOOK.take() {
            hook(name);
            HOOK.set(Some(hook));
        }
    }
}
