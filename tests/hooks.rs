//! Cache-drop hooks, each followed by the proof, on filesystems of the tests' own.
//!
//! - `command::*`: a program that does nothing is never proven; one that fails, hangs or closes the
//!   mount ends its case with the reason and no other; one that unmounts and mounts again works;
//! - `system::*`: the whole host's caches, and where that is not permitted;
//! - `zfs::*`: the calls that export and import a pool, with programs that play OpenZFS.
//!
//! `WALPROBE_TEST_EXE` names another binary to test.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::Arguments;
use walprobe_probes::report::{Row, RowStatus};
use walprobe_test_support::bystanders::Bystanders;
use walprobe_test_support::command::run;
use walprobe_test_support::document::Document;
use walprobe_test_support::mounts::Mounted;
use walprobe_test_support::process::{Invocation, binary};
use walprobe_test_support::recipe::{Kind, Recipe};
use walprobe_test_support::work;
use walprobe_test_support::{Checked, stale};

#[path = "hooks/command.rs"]
mod command;
#[path = "hooks/system.rs"]
mod system;
#[path = "hooks/zfs.rs"]
mod zfs;

const TMP: &str = env!("CARGO_TARGET_TMPDIR");
/// After this a command that should have come back has not.
const LIMIT: Duration = Duration::from_secs(120);
/// The case that is to be cold.
const COLD: &str = "recycle/life-cold/recycle+zero";
/// A case beside it, to which the same drop is done.
const NEW: &str = "recycle/life-cold/new+zero";
/// A case that needs no hook.
const OTHER: &str = "recycle/life/new+zero";

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Two measurements side by side would only slow each other.
    arguments.test_threads.get_or_insert(1);
    if let Err(error) = stale::sweep(&work::base(TMP)) {
        eprintln!("an earlier test run could not be undone: {error}");
    }
    let trials = [command::trials(), system::trials(), zfs::trials()];
    let trials = trials.into_iter().flatten().collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The binary under test.
fn exe() -> PathBuf {
    binary(env!("CARGO_BIN_EXE_walprobe"))
}

/// A directory with the user's files on a filesystem that may go away.
struct Place {
    bystanders: Bystanders,
    mounted: Mounted,
}

impl Place {
    fn new() -> Checked<Self> {
        let recipe = Recipe {
            size_bytes: 256 << 20,
            ..Recipe::new(Kind::Ext4)
        };
        let mounted = Mounted::new(&work::base(TMP), &recipe)?;
        let dir = mounted.point().join("wal");
        fs::create_dir(&dir)?;
        let elsewhere = mounted.work().join("elsewhere");
        fs::create_dir(&elsewhere)?;
        let bystanders = Bystanders::plant(&dir, &elsewhere)?;
        Ok(Self {
            bystanders,
            mounted,
        })
    }

    fn dir(&self) -> &Path {
        self.bystanders.dir()
    }

    /// A path on another filesystem.
    fn outside(&self, name: &str) -> PathBuf {
        self.mounted.work().join(name)
    }

    /// A program of the user's: a shell script that finds the mount point and the device in its
    /// environment and says each of its calls in `calls`.
    fn script(&self, name: &str, body: &str) -> Checked<PathBuf> {
        let path = self.outside(name);
        let (point, device) = (self.mounted.point(), self.mounted.device().unwrap_or(""));
        let head = format!(
            "#!/bin/sh\nset -eu\nPOINT='{}'\nDEVICE='{device}'\nWORK='{}'\n\
             echo \"{name} $*\" >>\"$WORK/calls\"\n",
            point.display(),
            self.mounted.work().display()
        );
        fs::write(&path, head + body)?;
        fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        Ok(path)
    }

    /// Mounts the filesystem again that a hook took away.
    fn mount(&self) -> Result<(), String> {
        let point = self.mounted.point().display().to_string();
        let device = self.mounted.device().unwrap_or_default();
        run("mount", &["-t", "ext4", device, &point]).map(drop)
    }

    /// What the scripts were called with.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.outside("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// A short run of lives, warm and cold; more words follow.
    fn walprobe(&self) -> Invocation {
        self.walprobe_for("10")
    }

    /// The same with more time, which a slow hook takes.
    fn walprobe_for(&self, seconds: &str) -> Invocation {
        Invocation::new(exe())
            .arg("recycle")
            .arg(self.dir())
            .args(["--profile", "quick", "--segment-size", "1MiB"])
            .args(["--time", seconds])
            .args(["--only", "recycle/life", "--only", "recycle/life-cold"])
            .args(["--format", "json"])
    }

    /// Runs it to its end: exit code 0, one good document, the user's files as they were.
    fn run(&self, invocation: Invocation) -> Checked<Document> {
        let document = self.run_only(invocation, 0)?;
        self.bystanders.untouched()?;
        let left = &document.report.targets[0].left_behind;
        if !left.is_empty() {
            return Err(format!("left behind: {left:?}").into());
        }
        Ok(document)
    }

    /// The same where the directory may be gone, and what is left in it is the exit code.
    fn run_only(&self, invocation: Invocation, code: i32) -> Checked<Document> {
        let finished = invocation.run(LIMIT)?;
        finished.expect_code(code)?;
        let document = Document::read(&finished.stdout)?;
        document.check()?;
        Ok(document)
    }
}

fn row<'d>(document: &'d Document, id: &str) -> Result<&'d Row, String> {
    document.row(id).ok_or_else(|| format!("no row {id}"))
}

/// The case ended with this code and a reason that has all these words.
fn ended(document: &Document, id: &str, code: &str, words: &[&str]) -> Result<(), String> {
    let row = row(document, id)?;
    let reason = row.reason.as_deref().unwrap_or_default();
    if row.status != RowStatus::Skipped
        || row.reason_code.as_deref() != Some(code)
        || !words.iter().all(|word| reason.contains(word))
        || row.cold.is_some()
    {
        return Err(format!(
            "{id}: {:?}, {:?}, {reason:?}, cold {:?}; wanted {code} with {words:?}",
            row.status, row.reason_code, row.cold
        ));
    }
    Ok(())
}

/// Every case to which the drop is done ended with this code and these words; the lives that need
/// none were measured.
fn all_ended(document: &Document, code: &str, words: &[&str]) -> Result<(), String> {
    ended(document, COLD, code, words)?;
    ended(document, NEW, code, words)?;
    measured(document, OTHER)
}

fn measured(document: &Document, id: &str) -> Result<(), String> {
    let row = row(document, id)?;
    if row.status == RowStatus::Ok && row.ops > 0 {
        return Ok(());
    }
    Err(format!(
        "{id}: {:?}, {} operations, {:?}",
        row.status, row.ops, row.reason
    ))
}
