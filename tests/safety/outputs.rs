//! Outputs where they can do most harm: on a device, and on a filesystem that hangs.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::thread;
use std::time::Duration;

use libtest_mimic::Trial;
use walprobe_test_support::document::Document;
use walprobe_test_support::mounts::Mounted;
use walprobe_test_support::process::Finished;
use walprobe_test_support::recipe::{Kind, Recipe};
use walprobe_test_support::stopwatch::poll;
use walprobe_test_support::work;
use walprobe_test_support::{Checked, trial};

use crate::{LIMIT, Place, TMP, wait_for_scratch, walprobe};

/// The limits on saving, the run itself, and what a busy machine may add.
const BACK_WITHIN: Duration = Duration::from_secs(60);

pub(crate) fn trials(_seed: u64) -> Vec<Trial> {
    vec![
        trial("outputs::block-device", block_device),
        trial("outputs::frozen-before", frozen_before),
        trial("outputs::frozen-during", frozen_during),
    ]
}

fn start_of(device: &str) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; 1 << 20];
    File::open(device)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| format!("cannot read {device}: {error}"))?;
    Ok(bytes)
}

/// Under any name, with or without `--force`.
fn block_device() -> Checked {
    let place = Place::new()?;
    let mounted = Mounted::new(&work::base(TMP), &Recipe::new(Kind::Ext4))?;
    let device = mounted.device().ok_or("there is no device")?.to_owned();
    let link = place.outside("link");
    std::os::unix::fs::symlink(&device, &link)?;
    let before = start_of(&device)?;
    for option in ["--json", "--csv", "--conf"] {
        for name in [Path::new(&device), &link] {
            for force in [&[][..], &["--force"]] {
                let finished = walprobe()
                    .arg("all")
                    .arg(place.dir())
                    .args(["--only", "durability", "--profile", "quick"])
                    .arg(option)
                    .arg(name)
                    .args(force)
                    .run(LIMIT)?;
                finished.expect_code(2)?;
                if !finished.stderr.contains("it is a block device") {
                    return Err(format!("stderr: {}", finished.stderr).into());
                }
            }
        }
    }
    if start_of(&device)? != before {
        return Err("the device was written".into());
    }
    place.bystanders.untouched()?;
    Ok(mounted.undo()?)
}

/// It does not answer from the start: refused, and nothing was measured.
fn frozen_before() -> Checked {
    let place = Place::new()?;
    let mounted = Mounted::new(&work::base(TMP), &Recipe::new(Kind::Ext4))?;
    let json = mounted.point().join("r.json");
    let frozen = mounted.freeze()?;
    let back = walprobe()
        .arg("facts")
        .arg(place.dir())
        .arg("--json")
        .arg(&json)
        .run(BACK_WITHIN);
    frozen.thaw();
    let finished = back?;
    finished.expect_code(2)?;
    says(&finished, &json, "no answer within")?;
    place.bystanders.untouched()?;
    Ok(mounted.undo()?)
}

/// It stops to answer while walprobe measures elsewhere.
fn frozen_during() -> Checked {
    let place = Place::new()?;
    let mounted = Mounted::new(&work::base(TMP), &Recipe::new(Kind::Ext4))?;
    let json = mounted.point().join("r.json");
    let other = place.outside("r.csv");
    let mut running = walprobe()
        .arg("all")
        .arg(place.dir())
        .args(["--profile", "quick", "--time", "6", "--format", "json"])
        .arg("--json")
        .arg(&json)
        .arg("--csv")
        .arg(&other)
        .start()?;
    if !wait_for_scratch(&place.bystanders, &mut running)? {
        return Err(format!("it ended before the freeze: {}", running.stderr()).into());
    }
    let frozen = mounted.freeze()?;
    // It saves after each comparison, and the first takes less than this.
    thread::sleep(Duration::from_secs(4));
    let children = running.descendants();
    let back = running.finish(BACK_WITHIN);
    frozen.thaw();
    let finished = back?;
    finished.expect_code(3)?;
    says(&finished, &json, "no answer within")?;
    Document::read(&finished.stdout)?.check()?;
    if !fs::read_to_string(&other)?.starts_with("schema,run_id,") {
        return Err("the other output was not written".into());
    }
    poll(LIMIT, || {
        children
            .iter()
            .all(|process| !process.lives())
            .then_some(())
    })
    .ok_or("a writer still runs after the thaw")?;
    place.bystanders.untouched()?;
    Ok(mounted.undo()?)
}

fn says(finished: &Finished, path: &Path, why: &str) -> Result<(), String> {
    let wanted = format!("cannot write {}: {why}", path.display());
    if finished.stderr.contains(&wanted) {
        return Ok(());
    }
    Err(format!(
        "stderr does not say {wanted:?}: {}",
        finished.stderr
    ))
}
