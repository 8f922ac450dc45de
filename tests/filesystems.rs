//! Known answers on real filesystems: one trial for each filesystem and probe.
//!
//! Each file `filesystems/*.expect` says how a filesystem is made on a loop device, what
//! walprobe is asked there, and what the report must say; `sheet` and `expect` in the
//! test-support crate describe the lines. A run is made once, on a fresh filesystem, and
//! serves all trials of its file:
//!
//! - `mount::ext4`: the filesystem is made, is what it should be, and is undone again;
//! - `ext4::report`: the document itself, in all formats, and what the run left behind;
//! - `ext4::settings`: what may and may not be recommended;
//! - `ext4::durability`, `::sync`, `::prealloc`, `::recycle`, `::enospc`: the expectations of that area;
//! - `ext4::warm::recycle`: the same of the file's further run named `warm`;
//! - `ext4::turned`: the expectation turned round must fail.
//!
//! Counts are asserted, never times. To add a filesystem, add a file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use walprobe_test_support::bystanders::Bystanders;
use walprobe_test_support::document::{Document, id};
use walprobe_test_support::expect::{Expectation, Outcome};
use walprobe_test_support::mounts::Mounted;
use walprobe_test_support::process::{Invocation, binary};
use walprobe_test_support::recipe::Recipe;
use walprobe_test_support::sheet::{Run, Sheet};
use walprobe_test_support::work::{self, WorkFolder};
use walprobe_test_support::{Checked, csv_text, guards, stale, trial};

#[path = "filesystems/helper.rs"]
mod helper;

const SHEETS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/filesystems");
const TMP: &str = env!("CARGO_TARGET_TMPDIR");

/// Rows that `all --profile quick` plans on every filesystem: the judged comparisons and
/// the settings' own cases.
const QUICK_ROWS: &[(&str, &[&str])] = &[
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
    let runs = Arc::new(Runs::default());
    let mut trials = helper::trials(&sheets);
    for sheet in sheets {
        trials.extend(sheet_trials(&Arc::new(sheet), &runs));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// What a trial looks at: the run and what it gave.
type Check = Box<dyn Fn(&Run, &Ran) -> Checked + Send>;

fn sheet_trials(sheet: &Arc<Sheet>, runs: &Arc<Runs>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (index, run) in sheet.runs.iter().enumerate() {
        let prefix = match run.name.as_str() {
            "" => sheet.name.clone(),
            name => format!("{}::{name}", sheet.name),
        };
        let mut add = |name: &str, check: Check| {
            let (sheet, runs) = (Arc::clone(sheet), Arc::clone(runs));
            trials.push(trial(format!("{prefix}::{name}"), move || {
                check(&sheet.runs[index], &*runs.get(&sheet, index)?)
            }));
        };
        let complete = index == 0;
        add(
            "report",
            Box::new(move |run, ran| report_trial(run, ran, complete)),
        );
        add("settings", Box::new(settings_trial));
        let areas: BTreeSet<_> = run
            .expectations
            .iter()
            .map(|expectation| expectation.subject.area().to_owned())
            .filter(|area| !["report", "settings"].contains(&area.as_str()))
            .collect();
        for area in areas {
            let name = area.clone();
            add(
                &name,
                Box::new(move |run, ran| expectations_hold(run, &area, &ran.document)),
            );
        }
        if run.turned.is_some() {
            add("turned", Box::new(turned_trial));
        }
    }
    trials
}

/// The document in its formats, what was planned, and that nothing was left.
fn report_trial(run: &Run, ran: &Ran, complete: bool) -> Checked {
    ran.document.check()?;
    if ran.stdout_json != ran.document.json {
        return Err("stdout and --json are not the same document".into());
    }
    csv_text::agrees(&csv_text::read(&ran.csv)?, &ran.document)?;

    let target = &ran.document.report.targets[0];
    let rows: BTreeSet<_> = target.rows.iter().map(id).collect();
    if rows.len() != target.rows.len() {
        return Err("two rows have the same id".into());
    }
    let mut lacking: Vec<_> = ids_in(&ran.plan)
        .into_iter()
        .filter(|id| !rows.contains(id))
        .collect();
    if complete {
        for (comparison, cases) in QUICK_ROWS {
            let ids = cases.iter().map(|case| format!("{comparison}/{case}"));
            lacking.extend(ids.filter(|id| !rows.contains(id)));
        }
    }
    if !lacking.is_empty() {
        return Err(format!("planned, and without a row: {}", lacking.join(" ")).into());
    }
    if !target.left_behind.is_empty() {
        return Err(format!("left behind: {:?}", target.left_behind).into());
    }
    if let Some(changed) = &ran.changed {
        return Err(changed.clone().into());
    }
    expectations_hold(run, "report", &ran.document)
}

fn settings_trial(run: &Run, ran: &Ran) -> Checked {
    guards::check(&ran.document.report)?;
    let durability = &ran.document.report.targets[0].durability;
    if !durability.may_recommend
        && !ran.document.report.targets[0]
            .findings
            .iter()
            .any(|one| one.value.is_some())
    {
        guards::sets_nothing(&ran.fragment)?;
    }
    expectations_hold(run, "settings", &ran.document)
}

fn expectations_hold(run: &Run, area: &str, document: &Document) -> Checked {
    let wrong: Vec<_> = run
        .expectations
        .iter()
        .filter(|expectation| expectation.subject.area() == area)
        .filter_map(|expectation| complaint(expectation, document))
        .collect();
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n").into())
    }
}

fn complaint(expectation: &Expectation, document: &Document) -> Option<String> {
    match expectation.ask(document) {
        Outcome::Holds => None,
        Outcome::Fails(why) | Outcome::Cannot(why) => {
            Some(format!("expected: {}\n     but: {why}", expectation.text))
        }
    }
}

fn turned_trial(run: &Run, ran: &Ran) -> Checked {
    let Some(turned) = &run.turned else {
        return Ok(());
    };
    match turned.ask(&ran.document) {
        Outcome::Fails(_) => Ok(()),
        Outcome::Holds => Err(format!("turned round, and holds: {}", turned.text).into()),
        Outcome::Cannot(why) => {
            Err(format!("turned round, and cannot be asked: {}: {why}", turned.text).into())
        }
    }
}

/// What a run gave.
struct Ran {
    document: Document,
    stdout_json: serde_json::Value,
    csv: Vec<u8>,
    fragment: String,
    plan: String,
    changed: Option<String>,
}

/// Runs by file and number: each is made once in this process, when first asked for.
#[derive(Default)]
struct Runs(Mutex<BTreeMap<(String, usize), Shared>>);

type Shared = Checked<Arc<Ran>>;

impl Runs {
    fn get(&self, sheet: &Sheet, index: usize) -> Shared {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.entry((sheet.name.clone(), index))
            .or_insert_with(|| run_once(&sheet.recipe, &sheet.runs[index]).map(Arc::new))
            .clone()
    }
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

/// Every `PROBE/COMPARISON/CASE` that a text names.
fn ids_in(text: &str) -> BTreeSet<String> {
    let part = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "-_+@".contains(letter))
    };
    text.split_whitespace()
        .map(|word| word.trim_matches(|letter: char| ",;:()*".contains(letter)))
        .filter(|word| {
            let parts: Vec<_> = word.split('/').collect();
            parts.len() == 3 && parts.iter().all(|one| part(one))
        })
        .map(str::to_owned)
        .collect()
}
