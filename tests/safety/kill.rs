//! SIGKILL, then `walprobe clean`: the directory is as it was.
//!
//! Killed are the command alone, its worker alone, or both; at random moments, and where the
//! debug build stops on request: `WALPROBE_TEST_PAUSE` names the point, and the file of
//! `WALPROBE_TEST_PAUSE_FILE` appears when it is reached.

use std::env;
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use libtest_mimic::Trial;
use rustix::process::Signal;
use walprobe_test_support::family::Process;
use walprobe_test_support::process::Running;
use walprobe_test_support::stopwatch::poll;
use walprobe_test_support::{Checked, means, trial};

use crate::{LIMIT, Place, wait_for_scratch, walprobe};

/// Each pause point, and the command that reaches it soonest.
const POINTS: &[(&str, &str)] = &[
    ("creating", "prealloc"),
    ("filling", "prealloc"),
    ("renaming", "prealloc"),
    ("dropping", "recycle"),
    ("removing", "durability"),
];

#[derive(Clone, Copy, Debug)]
enum Victim {
    Command,
    Worker,
    Both,
}

const VICTIMS: [Victim; 3] = [Victim::Command, Victim::Worker, Victim::Both];

pub(crate) fn trials(seed: u64) -> Vec<Trial> {
    let mut trials: Vec<_> = POINTS
        .iter()
        .map(|(point, command)| {
            trial(format!("kill::{point}"), move || {
                means::pause_points()?;
                many(|number| at_point(point, command, VICTIMS[number % 3]))
            })
        })
        .collect();
    trials.push(trial("kill::at-random", move || {
        let mut random = Rng::with_seed(seed);
        many(|number| at_random(VICTIMS[number % 3], random.u64(..5_000)))
    }));
    trials.push(trial("kill::clean-without-need", clean_without_need));
    trials
}

fn many(once: impl FnMut(usize) -> Checked) -> Checked {
    let kills = env::var("WALPROBE_TEST_KILLS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20);
    (0..kills).try_for_each(once)
}

fn at_point(point: &str, command: &str, victim: Victim) -> Checked {
    let place = Place::new()?;
    let reached = place.outside("reached");
    let mut running = walprobe()
        .arg(command)
        .arg(place.dir())
        .args(["--profile", "quick", "--time", "5", "--op-timeout", "30"])
        .env("WALPROBE_TEST_PAUSE", point)
        .env("WALPROBE_TEST_PAUSE_FILE", &reached)
        .start()?;
    let there = poll(LIMIT, || {
        if reached.exists() {
            Some(true)
        } else {
            running.ended().then_some(false)
        }
    });
    if there != Some(true) {
        let state = if there.is_some() { "ended" } else { "waited" };
        return Err(format!(
            "{state} without reaching {point}; stderr: {}",
            running.stderr()
        )
        .into());
    }
    killed_and_cleaned(&place, running, victim)
        .map_err(|error| format!("killed {victim:?} at {point}: {error}").into())
}

fn at_random(victim: Victim, wait: u64) -> Checked {
    let place = Place::new()?;
    let mut running = walprobe()
        .arg("all")
        .arg(place.dir())
        .args(["--profile", "quick", "--time", "4"])
        .start()?;
    wait_for_scratch(&place.bystanders, &mut running)?;
    thread::sleep(Duration::from_millis(wait));
    killed_and_cleaned(&place, running, victim).map_err(|error| {
        format!("killed {victim:?} {wait} ms after the scratch folder: {error}").into()
    })
}

fn killed_and_cleaned(place: &Place, mut running: Running, victim: Victim) -> Result<(), String> {
    let workers = running.descendants();
    match victim {
        Victim::Command => running.signal(Signal::KILL),
        Victim::Both => {
            running.signal(Signal::KILL);
            workers.iter().for_each(|worker| worker.kill());
        }
        Victim::Worker => kill_workers(&mut running, &workers)?,
    }
    poll(Duration::from_secs(10), || running.ended().then_some(())).ok_or("it does not die")?;

    // A worker whose command was killed may take a moment to notice and go.
    let mut last = String::new();
    let cleaned = poll(Duration::from_secs(15), || {
        let finished = walprobe().arg("clean").arg(place.dir()).run(LIMIT);
        let done = finished
            .and_then(|finished| finished.expect_code(0).map(drop))
            .and_then(|()| place.bystanders.untouched());
        done.map_err(|error| last = error).ok()
    });
    // A paused worker ends a few seconds after its command, whether or not its folder is gone.
    let _ = poll(Duration::from_secs(20), || {
        running.descendants().is_empty().then_some(())
    });
    let left: Vec<_> = running.descendants();
    drop(running);
    cleaned.ok_or(format!("clean: {last}"))?;
    if left.is_empty() {
        Ok(())
    } else {
        Err(format!("still running after clean: {left:?}"))
    }
}

/// The worker dies and the command lives: it must end by itself, and may start other
/// workers, which then stop at the same pause point and are killed like the first.
fn kill_workers(running: &mut Running, first: &[Process]) -> Result<(), String> {
    if first.is_empty() {
        // It pauses in the command itself, or is between two workers.
        running.signal(Signal::KILL);
        return Ok(());
    }
    first.iter().for_each(|worker| worker.kill());
    poll(LIMIT, || {
        running
            .descendants()
            .iter()
            .for_each(|worker| worker.kill());
        running.ended().then_some(())
    })
    .ok_or_else(|| format!("without a worker it goes on; stderr: {}", running.stderr()))
}

/// Nothing was left: `clean` changes nothing, twice.
fn clean_without_need() -> Checked {
    let place = Place::new()?;
    for _ in 0..2 {
        let finished = walprobe().arg("clean").arg(place.dir()).run(LIMIT)?;
        finished.expect_code(0)?;
        place.bystanders.untouched()?;
    }
    Ok(())
}
