//! Known answers on real filesystems: one trial for each filesystem and probe.
//!
//! Each file `filesystems/*.expect` says how a filesystem is made on a loop device, what
//! walprobe is asked there, and what the report must say; `sheet` and `expect` in the
//! test-support crate describe the lines. A run is made once, on a fresh filesystem, and
//! serves all trials of its file, which `sheet_trials` lists; besides, `mount::ext4`: the
//! filesystem is made, is what it should be, and is undone again.
//!
//! Counts are asserted, never times. To add a filesystem, add a file.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Arguments;
use walprobe_test_support::bystanders::Bystanders;
use walprobe_test_support::document::Document;
use walprobe_test_support::mounts::Mounted;
use walprobe_test_support::process::{Invocation, binary};
use walprobe_test_support::recipe::Recipe;
use walprobe_test_support::sheet::{Run, Sheet};
use walprobe_test_support::sheet_trials::{self, Ran, Rows, Runs};
use walprobe_test_support::work::{self, WorkFolder};
use walprobe_test_support::{Checked, stale};

#[path = "filesystems/helper.rs"]
mod helper;

const SHEETS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/filesystems");
const TMP: &str = env!("CARGO_TARGET_TMPDIR");

/// Rows that `all --profile quick` plans on every filesystem: the judged comparisons and
/// the settings' own cases.
const QUICK_ROWS: Rows = &[
    (
        "durability/check",
        &["fdatasync", "fsync-extending", "write-only"],
    ),
    (
        "sync/commit",
        &["fdatasync", "fsync", "open_datasync", "open_sync"],
    ),
    (
        "sync/commit-64k",
        &["fdatasync", "fsync", "open_datasync", "open_sync"],
    ),
    (
        "sync/bulk",
        &["fdatasync", "fsync", "open_datasync", "open_sync"],
    ),
    (
        "sync/behaviour",
        &[
            "other-descriptor",
            "directory-fsync",
            "durable-rename",
            "write-only",
            "sync_file_range",
            "direct-real",
        ],
    ),
    ("prealloc/create", &["zero-fill", "fallocate", "sparse"]),
    ("prealloc/first-pass", &["zero-fill", "fallocate", "sparse"]),
    (
        "prealloc/second-pass",
        &["zero-fill", "fallocate", "sparse"],
    ),
    ("prealloc/life", &["zero-fill", "fallocate", "sparse"]),
    ("recycle/life", &["recycle+zero", "new+zero", "new+sparse"]),
    (
        "recycle/life-cold",
        &["recycle+zero", "new+zero", "new+sparse"],
    ),
    ("align/behaviour", &["record", "direct"]),
    ("enospc/full", &["zero-fill", "fallocate", "sparse"]),
    ("enospc/rewrite-old", &["old-segment"]),
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Whoever counts flushes must be alone; and a run serves the trials that follow it.
    arguments.test_threads.get_or_insert(1);
    if let Err(error) = stale::sweep(&work::base(TMP)) {
        eprintln!("an earlier test run could not be undone: {error}");
    }
    let sheets = match Sheet::read_all(Path::new(SHEETS)) {
        Ok(sheets) => sheets,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let runs = Arc::new(Runs::new(|sheet, index| {
        run_once(&sheet.recipe, &sheet.runs[index])
    }));
    let mut trials = helper::trials(&sheets);
    for sheet in sheets {
        trials.extend(sheet_trials::trials(&Arc::new(sheet), QUICK_ROWS, &runs));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Makes the filesystem, plants the user's files, asks for the plan and then for the run.
fn run_once(recipe: &Recipe, run: &Run) -> Checked<Ran> {
    let mounted = Mounted::new(&work::base(TMP), recipe)?;
    let output = WorkFolder::new(&work::base(TMP))?;
    let dir = mounted.point().join("wal");
    fs::create_dir(&dir)?;
    let bystanders = Bystanders::plant(&dir, &output.folder("elsewhere")?)?;

    let walprobe = || {
        Invocation::new(binary(env!("CARGO_BIN_EXE_walprobe")))
            .args(&run.arguments)
            .arg(&dir)
    };
    let plan = walprobe().arg("--dry-run").run(Duration::from_secs(60))?;
    plan.expect_code(0)?;
    bystanders
        .untouched()
        .map_err(|error| format!("--dry-run: {error}"))?;

    let file = |name: &str| output.path().join(name);
    let finished = walprobe()
        .args(["--seed", "7", "--format", "json"])
        .args(["--json".into(), file("report.json")])
        .args(["--csv".into(), file("report.csv")])
        .args(["--conf".into(), file("walprobe.conf")])
        .run(Duration::from_secs(300))?;
    finished.expect_code(0)?;
    let stdout = Document::read(&finished.stdout).map_err(|error| format!("stdout: {error}"))?;
    let saved = |name: &str| {
        fs::read(file(name)).map_err(|error| format!("{name} was not written: {error}"))
    };
    let ran = Ran {
        document: Document::read(&saved("report.json")?)
            .map_err(|error| format!("--json: {error}"))?,
        stdout_json: stdout.json,
        csv: saved("report.csv")?,
        fragment: String::from_utf8(saved("walprobe.conf")?)?,
        plan: String::from_utf8_lossy(&plan.stdout).into_owned(),
        changed: bystanders.untouched().err(),
    };
    mounted.undo()?;
    Ok(ran)
}
