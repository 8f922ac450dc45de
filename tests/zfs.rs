//! Known answers on real OpenZFS, in an emulated machine that `tests/lab` builds and starts.
//!
//! Each file `zfs/*.expect` says how a dataset is made, what walprobe is asked there, and what
//! the report must say; the lines are those of `filesystems/*.expect`. Starting the machine is dear
//! and emulation is slow: one machine serves all files whose disk is as fast, and it does no more
//! runs than the trials that were asked for need. Its pool is new, and each run has a new dataset.
//!
//! - `NAME::...`: as `sheet_trials` says;
//! - `killed::clean`: SIGKILL in the midst of it, then `walprobe clean`.
//!
//! Counts, proofs and what is advised are asserted, never times.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libtest_mimic::Arguments;
use walprobe_test_support::document::Document;
use walprobe_test_support::lab::Lab;
use walprobe_test_support::process::binary;
use walprobe_test_support::sheet::Sheet;
use walprobe_test_support::sheet_trials::{self, Ran, Runs};
use walprobe_test_support::work::{self, WorkFolder};
use walprobe_test_support::{Checked, stale, trial};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const TMP: &str = env!("CARGO_TARGET_TMPDIR");
/// Functions of the shell in the machine.
const FUNCTIONS: &str = include_str!("zfs/runs");
/// A file that every machine has, and a run of no file: it is killed.
const KILLED: &str = "killed";
/// The start of a machine, and what making and removing a dataset takes.
const START: Duration = Duration::from_secs(90);
/// The most that one run may take.
const RUN: Duration = Duration::from_secs(200);
/// The same on a disk with few reads a second, for each of whose runs the file gives a time.
const SLOW_RUN: Duration = Duration::from_secs(900);

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One machine at a time.
    arguments.test_threads.get_or_insert(1);
    if let Err(error) = stale::sweep(&work::base(TMP)) {
        eprintln!("an earlier test run could not be undone: {error}");
    }
    let sheets = match Sheet::read_all(&Path::new(ROOT).join("tests/zfs")) {
        Ok(sheets) => sheets,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let filter = arguments.filter.clone().unwrap_or_default();
    let machines = Arc::new(Machines::default());
    let runs = {
        let machines = Arc::clone(&machines);
        Arc::new(Runs::new(move |sheet, index| {
            ran(&machines
                .get(sheet.recipe.reads_per_s)?
                .join(job(sheet, index)))
        }))
    };
    let mut trials = Vec::new();
    for sheet in sheets {
        let sheet = Arc::new(sheet);
        let of_sheet = sheet_trials::trials(&sheet, &[], &runs);
        if of_sheet.iter().any(|trial| trial.name().contains(&filter)) {
            machines.plan(&sheet);
        }
        trials.extend(of_sheet);
    }
    let clean = {
        let machines = Arc::clone(&machines);
        trial(format!("{KILLED}::clean"), move || {
            killed_and_cleaned(&machines.get(None)?.join(KILLED))
        })
    };
    if clean.name().contains(&filter) {
        machines.plan_kill();
    }
    trials.push(clean);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The folder of a run's results.
fn job(sheet: &Sheet, index: usize) -> String {
    format!("{}.{index}", sheet.name)
}

/// What a machine has to do, and what came of it: by the reads a second of its disk.
#[derive(Default)]
struct Machines(Mutex<BTreeMap<Option<u32>, Machine>>);

#[derive(Default)]
struct Machine {
    calls: Vec<String>,
    limit: Duration,
    done: Option<Checked<Arc<WorkFolder>>>,
}

impl Machines {
    fn add(&self, reads_per_s: Option<u32>, call: String, limit: Duration) {
        let mut machines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let machine = machines.entry(reads_per_s).or_default();
        machine.calls.push(call);
        machine.limit += limit;
    }

    fn plan(&self, sheet: &Sheet) {
        let reads_per_s = sheet.recipe.reads_per_s;
        for (index, run) in sheet.runs.iter().enumerate() {
            let words = [job(sheet, index)]
                .into_iter()
                .chain(sheet.recipe.properties.iter().cloned())
                .chain(["--".to_owned()])
                .chain(run.arguments.iter().cloned());
            let call: Vec<String> = words.map(|word| quoted(&word)).collect();
            let limit = reads_per_s.map_or(RUN, |_| SLOW_RUN);
            self.add(reads_per_s, format!("measure {}", call.join(" ")), limit);
        }
    }

    fn plan_kill(&self) {
        let call = format!(
            "killed {KILLED} recordsize=8k -- recycle --only recycle/life-cold --drop-caches zfs"
        );
        self.add(None, call, RUN);
    }

    /// The folder with the results, of a machine that ran once.
    fn get(&self, reads_per_s: Option<u32>) -> Checked<PathBuf> {
        let mut machines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let machine = machines.entry(reads_per_s).or_default();
        let done = match &machine.done {
            Some(done) => done.clone(),
            None => {
                let done = run_machine(reads_per_s, &machine.calls, machine.limit).map(Arc::new);
                machine.done = Some(done.clone());
                done
            }
        };
        Ok(done?.path().join("share"))
    }
}

fn run_machine(reads_per_s: Option<u32>, calls: &[String], limit: Duration) -> Checked<WorkFolder> {
    let work = WorkFolder::new(&work::base(TMP))?;
    let share = work.folder("share")?;
    fs::copy(
        binary(env!("CARGO_BIN_EXE_walprobe")),
        share.join("walprobe"),
    )?;
    fs::write(share.join("runs"), FUNCTIONS)?;
    fs::write(
        share.join("job"),
        format!("source ./runs\n{}\n", calls.join("\n")),
    )?;
    let mut lab = Lab::new(Path::new(ROOT).join("tests/lab")).option("--size", "3G");
    if let Some(number) = reads_per_s {
        lab = lab.option("--reads-per-s", number);
    }
    let finished = lab.run(&work, &share, &["bash", "./job"], START + limit)?;
    finished.expect_code(0)?;
    Ok(work)
}

/// A word as the shell takes it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The results of a run, from the folder that `measure` filled.
fn ran(folder: &Path) -> Checked<Ran> {
    let read = |name: &str| {
        fs::read(folder.join(name)).map_err(|error| {
            let said = fs::read_to_string(folder.join("stderr")).unwrap_or_default();
            format!("{}/{name}: {error}; stderr: {said}", folder.display())
        })
    };
    let text = |name: &str| read(name).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    for status in ["plan-status", "status"] {
        if text(status)?.trim() != "0" {
            return Err(format!("{status} {}: {}", text(status)?.trim(), text("stderr")?).into());
        }
    }
    let before = text("before")?;
    if text("planned")? != before {
        return Err(format!("--dry-run: {}", differ(&before, &text("planned")?)).into());
    }
    let after = text("after")?;
    Ok(Ran {
        document: Document::read(&read("report.json")?)
            .map_err(|error| format!("--json: {error}"))?,
        stdout_json: Document::read(&read("stdout")?)
            .map_err(|error| format!("stdout: {error}"))?
            .json,
        csv: read("report.csv")?,
        fragment: text("wal.conf")?,
        plan: text("plan")?,
        changed: (after != before).then(|| differ(&before, &after)),
    })
}

fn differ(before: &str, after: &str) -> String {
    format!("before:\n{before}after:\n{after}")
}

/// Killed while it measured; `clean` leaves what there was before.
fn killed_and_cleaned(folder: &Path) -> Checked {
    let text = |name: &str| {
        fs::read_to_string(folder.join(name))
            .map_err(|error| format!("{}/{name}: {error}", folder.display()))
    };
    let said = || {
        format!(
            "{}\n{}",
            text("clean").unwrap_or_default(),
            text("stderr").unwrap_or_default()
        )
    };
    if text("killed-status")?.trim() != "137" {
        return Err(format!("it ended before it was killed: {}", said()).into());
    }
    let before = text("before")?;
    if text("killed")? == before {
        return Err("killed, and nothing was there to clean".into());
    }
    if text("status")?.trim() != "0" || text("after")? != before {
        return Err(format!("{}\n{}", differ(&before, &text("after")?), said()).into());
    }
    Ok(())
}
