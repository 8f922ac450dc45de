//! Full disks leave nothing behind, on filesystems of the tests' own.
//!
//! - `fill::*`: `--fill` gives the space back, however the run ends; SIGKILL by `clean`;
//! - `pocket::*`: no loop device, no image, no mount stays, however the run ends;
//! - `edquot`: a quota that is reached is named, and counts as full.
//!
//! `WALPROBE_TEST_EXE` names another binary to test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::Arguments;
use rustix::process::Signal;
use walprobe_probes::report::RowStatus;
use walprobe_test_support::bystanders::Bystanders;
use walprobe_test_support::document::Document;
use walprobe_test_support::loops::loops_below;
use walprobe_test_support::mounts::Mounted;
use walprobe_test_support::process::{Invocation, binary};
use walprobe_test_support::recipe::{Kind, Recipe};
use walprobe_test_support::stopwatch::poll;
use walprobe_test_support::{Checked, means, stale, trial, work};

const TMP: &str = env!("CARGO_TARGET_TMPDIR");
/// After this a command that should have come back has not.
const LIMIT: Duration = Duration::from_secs(120);
/// Metadata that a filesystem may keep once it was used.
const KEPT_BYTES: u64 = 256 << 10;

/// How a run ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Done,
    Signal(Signal),
    /// SIGKILL of the command and its worker, then `clean`.
    Killed,
}

const ENDS: [(&str, End); 4] = [
    ("done", End::Done),
    ("sigint", End::Signal(Signal::INT)),
    ("sigterm", End::Signal(Signal::TERM)),
    ("sigkill", End::Killed),
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    if let Err(error) = stale::sweep(&work::base(TMP)) {
        eprintln!("an earlier test run could not be undone: {error}");
    }
    let mut trials = Vec::new();
    for (name, end) in ENDS {
        trials.push(trial(format!("fill::{name}"), move || fill(end)));
        for point in ["pocket", "full"] {
            let name = format!("pocket::{point}::{name}");
            trials.push(trial(name, move || pocket(point, end)));
        }
    }
    trials.push(trial("pocket::no-room", no_room));
    trials.push(trial("edquot", edquot));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A directory with the user's files on a small filesystem.
struct Place {
    bystanders: Bystanders,
    mounted: Mounted,
    free_bytes: u64,
}

impl Place {
    fn new(kind: Kind, mib: u64) -> Checked<Self> {
        let recipe = Recipe {
            size_bytes: mib << 20,
            ..Recipe::new(kind)
        };
        let mounted = Mounted::new(&work::base(TMP), &recipe)?;
        let dir = mounted.point().join("wal");
        fs::create_dir(&dir)?;
        let elsewhere = mounted.work().join("elsewhere");
        fs::create_dir(&elsewhere)?;
        let bystanders = Bystanders::plant(&dir, &elsewhere)?;
        let free_bytes = free(&dir, false)?;
        Ok(Self {
            bystanders,
            mounted,
            free_bytes,
        })
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.mounted.work().join(name)
    }

    fn walprobe(&self, words: &[&str]) -> Invocation {
        let exe = binary(env!("CARGO_BIN_EXE_walprobe"));
        Invocation::new(exe)
            .arg("enospc")
            .arg(self.bystanders.dir())
            .args(["--profile", "quick", "--format", "json"])
            .args(words)
    }

    /// Runs to `point` in the probe, looks there, and ends as `end` says; then nothing may be left.
    fn ended(&self, words: &[&str], point: &str, end: End, look: impl Fn() -> Checked) -> Checked {
        if matches!(end, End::Done) {
            let finished = self.walprobe(words).run(LIMIT)?;
            finished.expect_code(0)?;
            let document = Document::read(&finished.stdout)?;
            let row = document.row("enospc/full/zero-fill").ok_or("no row")?;
            if row.status != RowStatus::Ok {
                return Err(format!("{:?}", row.reason).into());
            }
        } else {
            means::pause_points()?;
            self.stopped(words, point, end, look)?;
        }
        self.bystanders.untouched()?;
        let loops = loops_below(self.mounted.point())?;
        if !loops.is_empty() {
            return Err(format!("still bound: {loops:?}").into());
        }
        let back = free(self.bystanders.dir(), false)?;
        if back + KEPT_BYTES < self.free_bytes {
            return Err(format!("{} bytes were free, now {back}", self.free_bytes).into());
        }
        Ok(())
    }

    fn stopped(
        &self,
        words: &[&str],
        point: &str,
        end: End,
        look: impl Fn() -> Checked,
    ) -> Checked {
        let reached = self.outside("reached");
        let mut running = self
            .walprobe(words)
            .env("WALPROBE_TEST_PAUSE", point)
            .env("WALPROBE_TEST_PAUSE_FILE", &reached)
            .start()?;
        let there = poll(LIMIT, || {
            let there = reached.exists();
            (there || running.ended()).then_some(there)
        });
        if there != Some(true) {
            return Err(format!("{point} was not reached; stderr: {}", running.stderr()).into());
        }
        look()?;
        match end {
            End::Done => {}
            End::Signal(signal) => {
                running.signal(signal);
                let finished = running.finish(LIMIT)?;
                finished.expect_code(128 + signal.as_raw())?;
            }
            End::Killed => {
                let workers = running.descendants();
                running.signal(Signal::KILL);
                workers.into_iter().for_each(|worker| worker.kill());
                poll(LIMIT, || running.ended().then_some(())).ok_or("it does not die")?;
                drop(running);
                let exe = binary(env!("CARGO_BIN_EXE_walprobe"));
                let cleaned = Invocation::new(exe)
                    .arg("clean")
                    .arg(self.bystanders.dir())
                    .run(LIMIT)?;
                cleaned.expect_code(0)?;
            }
        }
        Ok(())
    }
}

/// Bytes that are free: for anybody, or with the reserve.
fn free(dir: &Path, for_anybody: bool) -> Result<u64, String> {
    let vfs = rustix::fs::statvfs(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let blocks = if for_anybody {
        vfs.f_bavail
    } else {
        vfs.f_bfree
    };
    Ok(blocks * vfs.f_frsize)
}

fn fill(end: End) -> Checked {
    let place = Place::new(Kind::Ext4, 160)?;
    let dir = place.bystanders.dir().to_owned();
    let words = ["--fill", "--only", "enospc/full/zero-fill"];
    place.ended(&words, "full", end, || {
        // Full for everybody but root, whose reserve is not touched.
        let (anybody, root) = (free(&dir, true)?, free(&dir, false)?);
        if anybody != 0 || root < 4 << 20 {
            return Err(format!("{anybody} bytes free, {root} with the reserve").into());
        }
        Ok(())
    })?;
    place.mounted.undo()?;
    Ok(())
}

fn pocket(point: &str, end: End) -> Checked {
    means::privileged("root")?;
    let place = Place::new(Kind::Ext4, 256)?;
    let dir = place.bystanders.dir().to_owned();
    let below = place.mounted.point().to_owned();
    place.ended(&["--only", "enospc/full/zero-fill"], point, end, || {
        let bound = loops_below(&below)?.len();
        // The pocket is full, the filesystem itself is not.
        let free = free(&dir, true)?;
        if bound != 1 || free < 64 << 20 {
            return Err(format!("{bound} loop devices, {free} bytes free").into());
        }
        Ok(())
    })?;
    // A mount of the image would keep it busy.
    place.mounted.undo()?;
    Ok(())
}

/// Where the image might not fit, there is no pocket, and the reason says so.
fn no_room() -> Checked {
    means::privileged("root")?;
    let place = Place::new(Kind::Ext4, 96)?;
    let finished = place.walprobe(&["--only", "enospc/full/*"]).run(LIMIT)?;
    finished.expect_code(0)?;
    let document = Document::read(&finished.stdout)?;
    let row = document.row("enospc/full/sparse").ok_or("no row")?;
    if row.reason_code.as_deref() != Some("space") {
        return Err(format!("{:?} {:?}", row.reason_code, row.reason).into());
    }
    place.bystanders.untouched()?;
    place.mounted.undo()?;
    Ok(())
}

/// A btrfs quota group: the answer is EDQUOT, and it counts as full.
fn edquot() -> Checked {
    means::tool("btrfs")?;
    let place = Place::new(Kind::Btrfs, 512)?;
    let point = place.mounted.point().display().to_string();
    let sub = place.mounted.point().join("sub");
    let sub_text = sub.display().to_string();
    let btrfs = |words: &[&str]| walprobe_test_support::command::run("btrfs", words);
    btrfs(&["quota", "enable", &point])?;
    btrfs(&["subvolume", "create", &sub_text])?;
    btrfs(&["qgroup", "limit", "96M", &sub_text])?;
    let exe = binary(env!("CARGO_BIN_EXE_walprobe"));
    let finished = Invocation::new(exe)
        .arg("enospc")
        .arg(&sub)
        .args(["--profile", "quick", "--format", "json", "--fill"])
        .args(["--only", "enospc/full/sparse"])
        .run(LIMIT)?;
    finished.expect_code(0)?;
    let document = Document::read(&finished.stdout)?;
    let row = document.row("enospc/full/sparse").ok_or("no row")?;
    let seen = |name: &str| row.observations.get(name).and_then(|v| v.as_str());
    if row.status != RowStatus::Ok || seen("fails_errno") != Some("EDQUOT") {
        return Err(format!("{:?} {:?}", row.reason, row.observations).into());
    }
    if fs::read_dir(&sub)?.next().is_some() {
        return Err("something stays in the subvolume".into());
    }
    place.mounted.undo()?;
    Ok(())
}
