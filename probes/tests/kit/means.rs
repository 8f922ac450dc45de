//! What a test needs of the machine: root, mounts of its own. A missing means is a skip
//! with its name and reason, or a failure where `WALPROBE_REQUIRE` lists it.

use std::{env, path::Path, time::Duration};

use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
};

/// Says that a test was skipped, and why.
pub(crate) fn skip(test: &str, means: &str, reason: &str) {
    let required = env::var("WALPROBE_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|r| r == means),
        "{test}: {means} is required: {reason}"
    );
    eprintln!("skipped: {test}: {reason}");
}

/// This process is root; else the test is skipped.
pub(crate) fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip(test, "root", "needs root");
    }
    root
}

/// Runs `body` in a thread with mounts of its own, which go with it, and an empty directory
/// to mount in.
pub(crate) fn with_own_mounts(test: &str, body: impl FnOnce(&Path) + Send) {
    if !is_root(test) {
        return;
    }
    // Outlives the mounts, also where the body panics.
    let base = tempfile::tempdir().expect("tempdir");
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                let none = None::<&str>;
                let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
                let own = unshare(CloneFlags::CLONE_NEWNS)
                    .and_then(|()| mount(none, "/", none, private, none));
                match own {
                    Ok(()) => body(base.path()),
                    Err(e) => skip(test, "mounts", &format!("no mounts of its own: {e}")),
                }
            })
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Mounts a tmpfs.
#[track_caller]
pub(crate) fn tmpfs(on: &Path, options: &str) {
    mount(
        Some("tmpfs"),
        on,
        Some("tmpfs"),
        MsFlags::empty(),
        Some(options),
    )
    .expect("mount tmpfs");
}

/// Mounts again, with other flags. Waits while a file is open for writing: a process that
/// another thread has just forked still has all of ours.
#[track_caller]
pub(crate) fn remount(on: &Path, flags: MsFlags) {
    let none = None::<&str>;
    for _ in 0..200 {
        match mount(none, on, none, MsFlags::MS_REMOUNT | flags, none) {
            Err(nix::errno::Errno::EBUSY) => std::thread::sleep(Duration::from_millis(10)),
            done => return done.expect("remount"),
        }
    }
    panic!("{} stays busy", on.display());
}
