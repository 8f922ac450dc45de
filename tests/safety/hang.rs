//! An operation that never returns: the filesystem is frozen while walprobe measures.
//!
//! A write to a frozen filesystem waits without end, and no signal ends it: so do a dead NFS
//! server and a broken disk. The command must come back all the same, with what it has.

use std::fs;
use std::thread;
use std::time::Duration;

use libtest_mimic::Trial;
use walprobe_probes::report::{Row, RowStatus};
use walprobe_test_support::bystanders::Bystanders;
use walprobe_test_support::document::{Document, id};
use walprobe_test_support::mounts::Mounted;
use walprobe_test_support::process::Invocation;
use walprobe_test_support::recipe::{Kind, Recipe};
use walprobe_test_support::stopwatch::{Stopwatch, poll};
use walprobe_test_support::work::{self, WorkFolder};
use walprobe_test_support::{Checked, trial};

use crate::{LIMIT, TMP, exe, wait_for_scratch, walprobe};

const OP_TIMEOUT: u64 = 3;

/// What the command promises, and what a busy machine may add.
const BACK_WITHIN: Duration = Duration::from_secs(OP_TIMEOUT + 10 + 5);

pub(crate) fn trials(seed: u64) -> Vec<Trial> {
    vec![trial("hang::frozen", move || frozen(seed))]
}

fn frozen(seed: u64) -> Checked {
    let mounted = Mounted::new(&work::base(TMP), &Recipe::new(Kind::Ext4))?;
    let output = WorkFolder::new(&work::base(TMP))?;
    let dir = mounted.point().join("wal");
    fs::create_dir(&dir)?;
    let bystanders = Bystanders::plant(&dir, &output.folder("elsewhere")?)?;

    // Under a shell, as in a script: `$(walprobe ...)` must not wait for what is left behind.
    let mut shell = Invocation::new("/bin/sh")
        .args(["-c", r#""$@"; echo "code $?" >&2"#, "sh"])
        .arg(exe())
        .arg("all")
        .arg(&dir)
        .args(["--profile", "quick", "--time", "15", "--format", "json"])
        .args(["--op-timeout".to_owned(), OP_TIMEOUT.to_string()])
        .args(["--json".into(), output.path().join("report.json")])
        .start()?;
    if !wait_for_scratch(&bystanders, &mut shell)? {
        return Err(format!("it ended before the freeze; stderr: {}", shell.stderr()).into());
    }
    // The durability check takes less than a second; then there is always more to write.
    let mut random = fastrand::Rng::with_seed(seed);
    thread::sleep(Duration::from_millis(random.u64(1_500..4_000)));
    let worker = shell.descendants();
    let frozen = mounted.freeze()?;
    let watch = Stopwatch::start();
    let back = shell.finish(BACK_WITHIN);
    let took = watch.elapsed();
    let scratch = bystanders.scratch_folders();
    // Whatever came of it: nothing below may wait for a frozen filesystem.
    frozen.thaw();
    let finished = back.map_err(|error| format!("frozen for {took:?}: {error}"))?;

    if !finished.stderr.contains("code 0\n") {
        return Err(format!("not exit code 0; stderr: {}", finished.stderr).into());
    }
    if !finished.stderr.contains("walprobe clean") {
        return Err(format!("stderr does not name walprobe clean: {}", finished.stderr).into());
    }
    let document = Document::read(&finished.stdout)?;
    document.check()?;
    let saved = Document::read(&fs::read(output.path().join("report.json"))?)?;
    if saved.json != document.json {
        return Err("stdout and --json are not the same document".into());
    }
    has_the_row_and_the_rest(&document)?;
    names_what_is_left(&document, &scratch)?;

    poll(LIMIT, || {
        worker.iter().all(|process| !process.lives()).then_some(())
    })
    .ok_or("the worker still runs after the thaw")?;
    walprobe()
        .arg("clean")
        .arg(&dir)
        .run(LIMIT)?
        .expect_code(0)?;
    bystanders.untouched()?;
    Ok(mounted.undo()?)
}

fn has_the_row_and_the_rest(document: &Document) -> Result<(), String> {
    let rows = &document.report.targets[0].rows;
    let silent: Vec<_> = rows
        .iter()
        .filter(|row| row.reason_code.as_deref() == Some("no-answer"))
        .collect();
    if silent.is_empty() {
        return Err("no row says no-answer".to_owned());
    }
    // The one in flight is a fault; those after it were never begun.
    let (faults, later): (Vec<&Row>, Vec<&Row>) = silent
        .iter()
        .copied()
        .partition(|row: &&Row| row.status == RowStatus::Fault);
    if faults.is_empty() || faults.iter().any(|row| row.fault.is_none()) {
        return Err(format!(
            "no fault with its call among {} rows",
            silent.len()
        ));
    }
    if let Some(row) = later
        .iter()
        .find(|row| row.status != RowStatus::Skipped || row.ops > 0)
    {
        return Err(format!(
            "{} is {:?}, {} operations",
            id(row),
            row.status,
            row.ops
        ));
    }
    let measured = document.row("durability/check/fdatasync");
    if !measured.is_some_and(|row| row.status == RowStatus::Ok && row.ops > 0) {
        return Err(format!(
            "what was measured before is not there: {measured:?}"
        ));
    }
    for wanted in ["sync/commit/fdatasync", "recycle/life-cold/new+sparse"] {
        if document.row(wanted).is_none() {
            return Err(format!("{wanted} was planned and has no row"));
        }
    }
    Ok(())
}

fn names_what_is_left(document: &Document, scratch: &[std::path::PathBuf]) -> Result<(), String> {
    let left = &document.report.targets[0].left_behind;
    let named = scratch
        .iter()
        .all(|folder| left.iter().any(|path| *path == *folder.to_string_lossy()));
    if left.is_empty() || !named {
        return Err(format!("left_behind is {left:?}; there are {scratch:?}"));
    }
    Ok(())
}
