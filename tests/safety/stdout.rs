//! stdout is exactly one valid document, however the run ends.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use libtest_mimic::Trial;
use rustix::fs::FallocateFlags;
use rustix::process::Signal;
use walprobe_probes::report::{EndedBy, RowStatus};
use walprobe_test_support::bystanders::Bystanders;
use walprobe_test_support::document::Document;
use walprobe_test_support::mounts::Mounted;
use walprobe_test_support::process::{Finished, Invocation};
use walprobe_test_support::recipe::{Kind, Recipe};
use walprobe_test_support::work::{self, WorkFolder};
use walprobe_test_support::{Checked, csv_text, guards, trial};

use crate::{LIMIT, Place, TMP, wait_for_scratch, walprobe};

pub(crate) fn trials(seed: u64) -> Vec<Trial> {
    let mut trials = vec![
        trial("stdout::json", json),
        trial("stdout::csv", csv),
        trial("stdout::nothing-selected", nothing_selected),
        trial("stdout::not-reached", not_reached),
        trial("stdout::full-disk-json", || full_disk("json")),
        trial("stdout::full-disk-csv", || full_disk("csv")),
        trial("stdout::cannot-be-written", cannot_be_written),
    ];
    for (name, signal) in [
        ("sigint", Signal::INT),
        ("sigterm", Signal::TERM),
        ("sighup", Signal::HUP),
    ] {
        trials.push(trial(format!("stdout::{name}"), move || {
            at_random_moments(signal, seed)
        }));
    }
    trials.push(trial("stdout::signal-at-once", move || at_once(seed)));
    trials
}

fn quick(dir: &Path, seconds: u32, format: &str) -> Invocation {
    walprobe()
        .arg("all")
        .arg(dir)
        .args(["--profile", "quick", "--format", format])
        .args(["--time".to_owned(), seconds.to_string()])
}

/// One valid document in the format.
fn one_document(stdout: &[u8], format: &str) -> Checked<Option<Document>> {
    if format == "csv" {
        csv_text::read(stdout)?;
        return Ok(None);
    }
    let document = Document::read(stdout)?;
    document.check()?;
    guards::check(&document.report)?;
    Ok(Some(document))
}

fn json() -> Checked {
    let place = Place::new()?;
    let finished = quick(place.dir(), 5, "json").run(LIMIT)?;
    finished.expect_code(0)?;
    one_document(&finished.stdout, "json")?;
    Ok(place.bystanders.untouched()?)
}

fn csv() -> Checked {
    let place = Place::new()?;
    let finished = quick(place.dir(), 5, "csv").run(LIMIT)?;
    finished.expect_code(0)?;
    if csv_text::read(&finished.stdout)?.is_empty() {
        return Err("a header and no row".into());
    }
    Ok(place.bystanders.untouched()?)
}

/// A selection that leaves nothing is either a report of nothing or a usage error.
fn nothing_selected() -> Checked {
    for format in ["json", "csv"] {
        let place = Place::new()?;
        let finished = quick(place.dir(), 5, format)
            .args(["--only", "sync/commit/no-such-case"])
            .run(LIMIT)?;
        if finished.status.code() == Some(2) {
            empty(&finished)?;
        } else {
            finished.expect_code(0)?;
            one_document(&finished.stdout, format)?;
        }
        place.bystanders.untouched()?;
    }
    Ok(())
}

/// Far too little time: the rows are there, skipped, and say why.
fn not_reached() -> Checked {
    let place = Place::new()?;
    let finished = quick(place.dir(), 1, "json").run(LIMIT)?;
    finished.expect_code(0)?;
    if let Some(document) = one_document(&finished.stdout, "json")? {
        let rows = &document.report.targets[0].rows;
        if !rows.iter().any(|row| row.status == RowStatus::Skipped) {
            return Err("all was measured in a second".into());
        }
    }
    Ok(place.bystanders.untouched()?)
}

/// As `kill` and a service manager do (the process), and as a terminal does (the group).
fn at_random_moments(signal: Signal, seed: u64) -> Checked {
    let mut random = Rng::with_seed(seed);
    let mut interrupted = 0;
    for (format, group) in [
        ("json", false),
        ("json", true),
        ("csv", false),
        ("csv", true),
    ] {
        let place = Place::new()?;
        let mut running = quick(place.dir(), 6, format).start()?;
        wait_for_scratch(&place.bystanders, &mut running)?;
        let wait = random.u64(..4_000);
        thread::sleep(Duration::from_millis(wait));
        if group {
            running.signal_group(signal);
        } else {
            running.signal(signal);
        }
        let finished = running.finish(LIMIT)?;
        let say = |problem: String| {
            format!("{format}, group {group}, {wait} ms after the scratch folder: {problem}")
        };
        // The run may have been over.
        if finished.status.code() != Some(0) {
            finished.expect_code(128 + signal.as_raw()).map_err(say)?;
            interrupted += 1;
        }
        let document = match one_document(&finished.stdout, format) {
            Ok(document) => document,
            Err(problem) => return Err(say(format!("{problem:?}")).into()),
        };
        if let Some(document) = document
            && finished.status.code() != Some(0)
            && document.report.ended_by != ended_by(signal)
        {
            return Err(say(format!("ended_by is {:?}", document.report.ended_by)).into());
        }
        place.bystanders.untouched().map_err(say)?;
    }
    if interrupted == 0 {
        return Err("no run was interrupted".into());
    }
    Ok(())
}

fn ended_by(signal: Signal) -> EndedBy {
    match signal {
        Signal::TERM => EndedBy::Sigterm,
        Signal::HUP => EndedBy::Sighup,
        _ => EndedBy::Sigint,
    }
}

/// Before or while it starts: a document or nothing, never a part of one.
fn at_once(seed: u64) -> Checked {
    let mut random = Rng::with_seed(seed);
    for _ in 0..20 {
        let place = Place::new()?;
        let mut running = quick(place.dir(), 3, "json").start()?;
        let wait = random.u64(..60_000);
        thread::sleep(Duration::from_micros(wait));
        running.signal(if random.bool() {
            Signal::INT
        } else {
            Signal::TERM
        });
        let finished = running.finish(LIMIT)?;
        if !finished.stdout.is_empty() {
            one_document(&finished.stdout, "json")?;
        }
        place
            .bystanders
            .untouched()
            .map_err(|error| format!("{wait} us after the start: {error}"))?;
    }
    Ok(())
}

/// Someone else fills the filesystem while walprobe measures: a fault, not a failure.
fn full_disk(format: &str) -> Checked {
    let recipe = Recipe::new(Kind::Ext4);
    let mounted = Mounted::new(&work::base(TMP), &recipe)?;
    let output = WorkFolder::new(&work::base(TMP))?;
    let dir = mounted.point().join("wal");
    std::fs::create_dir(&dir)?;
    let bystanders = Bystanders::plant(&dir, &output.folder("elsewhere")?)?;

    let mut running = quick(&dir, 8, format).start()?;
    if !wait_for_scratch(&bystanders, &mut running)? {
        let finished = running.finish(LIMIT)?;
        return Err(format!("it ended before the disk was full: {}", finished.stderr).into());
    }
    let filler = File::create(mounted.point().join("filler"))?;
    let stop = AtomicBool::new(false);
    let finished = thread::scope(|scope| {
        scope.spawn(|| fill(&filler, &stop));
        let finished = running.finish(LIMIT);
        stop.store(true, Ordering::Relaxed);
        finished
    })?;
    finished.expect_code(0)?;
    if let Some(document) = one_document(&finished.stdout, format)? {
        let rows = &document.report.targets[0].rows;
        let full = rows.iter().any(|row| {
            row.fault
                .as_ref()
                .is_some_and(|fault| fault.errno_name == "ENOSPC")
        });
        if !full {
            return Err("the disk was full, and no row says ENOSPC".into());
        }
    }
    bystanders.untouched()?;
    drop(filler);
    Ok(mounted.undo()?)
}

/// Takes what is free, and again what becomes free.
fn fill(mut file: &File, stop: &AtomicBool) {
    let mut end = 0;
    while !stop.load(Ordering::Relaxed) {
        for shift in [26, 22, 18, 14, 12] {
            let bytes = 1_u64 << shift;
            while rustix::fs::fallocate(file, FallocateFlags::empty(), end, bytes).is_ok() {
                end += bytes;
            }
        }
        // Delayed allocation may hold back what fallocate did not get.
        let _ = file.flush();
        thread::sleep(Duration::from_millis(5));
    }
}

/// The report cannot be written: walprobe failed, and still cleans up.
fn cannot_be_written() -> Checked {
    let place = Place::new()?;
    let finished = quick(place.dir(), 3, "json")
        .stdout_to("/dev/full")
        .run(LIMIT)?;
    finished.expect_code(3)?;
    if !finished.stderr.contains("walprobe:") {
        return Err(format!("stderr says nothing: {:?}", finished.stderr).into());
    }
    Ok(place.bystanders.untouched()?)
}

fn empty(finished: &Finished) -> Checked {
    if finished.stdout.is_empty() {
        return Ok(());
    }
    Err(format!(
        "stdout is not empty: {:?}",
        String::from_utf8_lossy(&finished.stdout)
    )
    .into())
}
