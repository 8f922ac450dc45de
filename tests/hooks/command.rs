//! `--drop-caches-cmd`: the user's program.

use std::fs;
use std::time::Duration;

use libtest_mimic::Trial;
use rustix::process::Signal;
use walprobe_probes::report::Cold;
use walprobe_test_support::process::Invocation;
use walprobe_test_support::stopwatch::poll;
use walprobe_test_support::{Checked, trial};

use crate::{COLD, LIMIT, NEW, OTHER, Place, all_ended, ended, exe, measured, row};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("command::does-nothing", does_nothing),
        trial("command::drops-the-file", drops_the_file),
        trial("command::fails", fails),
        trial("command::hangs", hangs),
        trial("command::is-not-there", is_not_there),
        trial("command::mounts-again", mounts_again),
        trial("command::closes-the-mount", closes_the_mount),
        trial("command::is-killed", is_killed),
    ]
}

/// The file stays resident: no claim, whatever the program says of itself.
fn does_nothing() -> Checked {
    let place = Place::new()?;
    let program = place.script("drop", "echo dropped everything\n")?;
    let document = place.run(place.walprobe().arg("--drop-caches-cmd").arg(program))?;
    measured(&document, COLD)?;
    let cold = row(&document, COLD)?;
    let proof = cold.cold_proof.clone().unwrap_or_default();
    if cold.cold != Some(Cold::NotCold) || proof.hook != "cmd" || proof.metadata != "unknown" {
        return Err(format!("{:?}, {proof:?}", cold.cold).into());
    }
    Ok(place.mounted.undo()?)
}

/// The path is in the environment, the words are arguments, and no shell reads them.
fn drops_the_file() -> Checked {
    let place = Place::new()?;
    let body = r#"
case "$WALPROBE_FILE" in "$POINT"/wal/walprobe-*/old-*|"$POINT"/wal/walprobe-*/witness-*) ;; *) exit 9;; esac
[ "$#" = 2 ] && [ "$1" = -e ] && [ "$2" = '$HOME;*' ] && [ "$LC_ALL" = C ]
[ "$(cat)" = '' ]
dd if="$WALPROBE_FILE" iflag=nocache count=0 status=none
"#;
    let program = place.script("drop", body)?;
    let invocation = place.walprobe().arg("--drop-caches-cmd").arg(program);
    let document = place.run(invocation.args(["-e", "$HOME;*"]))?;
    measured(&document, COLD)?;
    let cold = row(&document, COLD)?;
    if cold.cold != Some(Cold::Proven) {
        return Err(format!("{:?}, {:?}", cold.cold, cold.cold_proof).into());
    }
    if cold.doubts.iter().any(|d| d.code == "whole-system-drop") {
        return Err("it dropped one file".into());
    }
    Ok(place.mounted.undo()?)
}

fn fails() -> Checked {
    let place = Place::new()?;
    let program = place.script("drop", "echo cannot do that >&2\nexit 3\n")?;
    let document = place.run(place.walprobe().arg("--drop-caches-cmd").arg(program))?;
    let words = ["/drop ended with exit code 3", "cannot do that"];
    all_ended(&document, "need-hook", &words)?;
    Ok(place.mounted.undo()?)
}

fn hangs() -> Checked {
    let place = Place::new()?;
    let body = "sleep 600 & echo $! >\"$WORK/sleeper\"\nwait\n";
    let program = place.script("drop", body)?;
    let invocation = place.walprobe_for("18").args(["--op-timeout", "2"]);
    let document = place.run(invocation.arg("--drop-caches-cmd").arg(program))?;
    all_ended(&document, "need-hook", &["/drop did not end within 2 s"])?;
    let sleeper = fs::read_to_string(place.outside("sleeper"))?;
    let stat = format!("/proc/{}/stat", sleeper.trim());
    poll(Duration::from_secs(5), || {
        let lives = fs::read_to_string(&stat).is_ok_and(|s| !s.contains(") Z "));
        (!lives).then_some(())
    })
    .ok_or("what it started lives on")?;
    Ok(place.mounted.undo()?)
}

fn is_not_there() -> Checked {
    let place = Place::new()?;
    let invocation = place.walprobe().args(["--drop-caches-cmd", "no-such-drop"]);
    let document = place.run(invocation)?;
    all_ended(&document, "need-tool", &["no-such-drop"])?;
    Ok(place.mounted.undo()?)
}

/// The filesystem goes away and comes back: everything is cold, and a `clean` in between knows
/// that the run lives.
fn mounts_again() -> Checked {
    let place = Place::new()?;
    let body = format!(
        "'{}' clean \"$POINT/wal\" >>\"$WORK/cleaned\" 2>&1 || true\n\
         umount \"$POINT\"\nmount -t ext4 \"$DEVICE\" \"$POINT\"\n",
        exe().display()
    );
    let program = place.script("drop", &body)?;
    let document = place.run(
        place
            .walprobe_for("60")
            .arg("--drop-caches-cmd")
            .arg(program),
    )?;
    measured(&document, COLD)?;
    measured(&document, NEW)?;
    let cold = row(&document, COLD)?;
    let proof = cold.cold_proof.clone().unwrap_or_default();
    if cold.cold != Some(Cold::Proven) || proof.data != "cold" || proof.metadata != "cold" {
        return Err(format!("{:?}, {proof:?}", cold.cold).into());
    }
    // For the file and for the witness, before each operation of each case of the cold comparison,
    // with one more of each that is not counted.
    let rows = document.report.targets[0].rows.iter();
    let ops: u64 = rows
        .filter(|r| r.comparison == "life-cold")
        .map(|r| r.ops)
        .sum();
    let calls = place.calls().len() as u64;
    if calls != 2 * (ops + 3) {
        return Err(format!("it was called {calls} times for {ops} operations").into());
    }
    let cleaned = fs::read_to_string(place.outside("cleaned"))?;
    if cleaned.contains("removed") || cleaned.lines().count() == 0 {
        return Err(format!("clean, meanwhile: {cleaned}").into());
    }
    Ok(place.mounted.undo()?)
}

/// The filesystem goes away and stays away: the case says so, the run ends, and `clean` removes
/// what lies on it once it is back.
fn closes_the_mount() -> Checked {
    let place = Place::new()?;
    let program = place.script("drop", "umount \"$POINT\"\n")?;
    let document = place.run_only(place.walprobe().arg("--drop-caches-cmd").arg(program), 3)?;
    // The second call, for the witness, finds nothing to unmount.
    ended(&document, COLD, "need-hook", &["the directory is gone"])?;
    measured(&document, OTHER)?;
    let new = row(&document, NEW)?;
    if new.status != walprobe_probes::report::RowStatus::Fault {
        return Err(format!("{NEW}: {:?}, {:?}", new.status, new.reason).into());
    }
    let left = &document.report.targets[0].left_behind;
    let [left] = &left[..] else {
        return Err(format!("left behind: {left:?}").into());
    };
    place.mount()?;
    if !fs::exists(left)? {
        return Err(format!("{left} is not there").into());
    }
    cleaned(&place)?;
    Ok(place.mounted.undo()?)
}

/// Killed while the folder is let go: the line in the undo file keeps nobody from cleaning.
fn is_killed() -> Checked {
    let place = Place::new()?;
    let body = "touch \"$WORK/reached\"\nexec sleep 30\n";
    let program = place.script("drop", body)?;
    let mut running = place
        .walprobe()
        .arg("--drop-caches-cmd")
        .arg(program)
        .start()?;
    let reached = place.outside("reached");
    poll(LIMIT, || reached.exists().then_some(())).ok_or("it was never run")?;
    let workers = running.descendants();
    running.signal(Signal::KILL);
    workers.iter().for_each(|worker| worker.kill());
    poll(LIMIT, || running.ended().then_some(())).ok_or("it does not die")?;
    if place.bystanders.scratch_folders().is_empty() {
        return Err("nothing was left to clean".into());
    }
    cleaned(&place)?;
    drop(running);
    Ok(place.mounted.undo()?)
}

fn cleaned(place: &Place) -> Checked {
    let clean = Invocation::new(exe()).arg("clean").arg(place.dir());
    clean.run(LIMIT)?.expect_code(0)?;
    Ok(place.bystanders.untouched()?)
}
