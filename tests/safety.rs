//! walprobe is safe to run: whatever happens, stdout is one document or nothing, and the
//! directory is as it was.
//!
//! - `stdout::*`: one valid document on success, skip, signal, full disk;
//! - `refused::*`: exit code 2, an empty stdout, nothing touched;
//! - `kill::*`: SIGKILL at random moments and at each pause point, then `walprobe clean`;
//! - `hang::*`: an operation that never returns;
//! - `outputs::*`: an output that is a device, or on a filesystem that hangs;
//! - `user::*`: the same without root.
//!
//! Each trial plants files of the user's, some of which look like walprobe's own, and reads the
//! whole directory before and after. `WALPROBE_TEST_KILLS` (20) is the number of kills in each
//! `kill` trial, `WALPROBE_TEST_SEED` repeats the random moments of a failed run,
//! `WALPROBE_TEST_EXE` names another binary to test.

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use walprobe_test_support::bystanders::Bystanders;
use walprobe_test_support::process::{Invocation, Running, binary};
use walprobe_test_support::stopwatch::poll;
use walprobe_test_support::work::{self, WorkFolder};
use walprobe_test_support::{Checked, stale};

#[path = "safety/hang.rs"]
mod hang;
#[path = "safety/kill.rs"]
mod kill;
#[path = "safety/outputs.rs"]
mod outputs;
#[path = "safety/refused.rs"]
mod refused;
#[path = "safety/stdout.rs"]
mod stdout;
#[path = "safety/user.rs"]
mod user;

const TMP: &str = env!("CARGO_TARGET_TMPDIR");

/// After this a command that should have come back has not.
const LIMIT: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Two measurements side by side would only slow each other.
    arguments.test_threads.get_or_insert(1);
    if let Err(error) = stale::sweep(&work::base(TMP)) {
        eprintln!("an earlier test run could not be undone: {error}");
    }
    let seed = env::var("WALPROBE_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..1_000_000));
    eprintln!("WALPROBE_TEST_SEED={seed}");
    let groups: [fn(u64) -> Vec<Trial>; 6] = [
        stdout::trials,
        refused::trials,
        kill::trials,
        hang::trials,
        outputs::trials,
        user::trials,
    ];
    let trials = groups.iter().flat_map(|group| group(seed)).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The binary under test.
fn exe() -> PathBuf {
    binary(env!("CARGO_BIN_EXE_walprobe"))
}

fn walprobe() -> Invocation {
    Invocation::new(exe())
}

/// A directory to measure on the work folder's disk, with the user's files.
struct Place {
    work: WorkFolder,
    bystanders: Bystanders,
}

impl Place {
    fn new() -> Checked<Self> {
        let work = WorkFolder::new(&work::base(TMP))?;
        let bystanders = Bystanders::plant(&work.folder("dir")?, &work.folder("elsewhere")?)?;
        Ok(Self { work, bystanders })
    }

    fn dir(&self) -> &Path {
        self.bystanders.dir()
    }

    /// A path in the work folder, outside the directory.
    fn outside(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }
}

/// Waits until the run has its scratch folder; false where it ended before.
fn wait_for_scratch(bystanders: &Bystanders, running: &mut Running) -> Checked<bool> {
    poll(LIMIT, || {
        if !bystanders.scratch_folders().is_empty() {
            Some(true)
        } else {
            running.ended().then_some(false)
        }
    })
    .ok_or_else(|| "no scratch folder was made".into())
}
