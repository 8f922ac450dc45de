//! The mount helper itself: what it makes is what it should be, and is undone whatever happens.

use std::fs;
use std::path::Path;

use libtest_mimic::Trial;
use walprobe_test_support::mounts::{self, Mounted};
use walprobe_test_support::recipe::{Kind, Recipe};
use walprobe_test_support::sheet::Sheet;
use walprobe_test_support::work;
use walprobe_test_support::{Checked, command, loops, stale, trial};

use crate::TMP;

pub(crate) fn trials(sheets: &[Sheet]) -> Vec<Trial> {
    let mut trials: Vec<_> = sheets
        .iter()
        .map(|sheet| {
            let recipe = sheet.recipe.clone();
            trial(format!("mount::{}", sheet.name), move || {
                mounts_and_undoes(&recipe)
            })
        })
        .collect();
    trials.push(trial("mount::undone-after-a-panic", undone_after_a_panic));
    trials.push(trial("mount::undone-when-frozen", undone_when_frozen));
    trials.push(trial("mount::swept-when-stale", swept_when_stale));
    trials
}

fn mounts_and_undoes(recipe: &Recipe) -> Checked {
    let mounted = Mounted::new(&work::base(TMP), recipe)?;
    let folder = mounted.work().to_path_buf();
    let magic = mounts::magic(mounted.point())?;
    if magic != recipe.kind.magic() {
        return Err(format!("statfs says {magic:#x}, not {}", recipe.kind.name()).into());
    }
    if let Some(option) = &recipe.mount {
        // The kernel may show an option in other words; that it was taken is enough.
        let table = fs::read_to_string("/proc/self/mountinfo")?;
        let shown = table
            .lines()
            .find(|line| line.split(' ').nth(4) == mounted.point().to_str())
            .unwrap_or_default();
        let value = option.split('=').next().unwrap_or_default();
        if !shown.contains(value) {
            return Err(format!("{option} is not in {shown:?}").into());
        }
    }
    fs::write(mounted.point().join("file"), "written")?;
    mounted.undo()?;
    nothing_is_left(&folder)
}

fn nothing_is_left(folder: &Path) -> Checked {
    let mounted = mounts::mount_points_below(folder)?;
    let loops = loops::loops_below(folder)?;
    if mounted.is_empty() && loops.is_empty() && !folder.exists() {
        return Ok(());
    }
    Err(format!(
        "left: mounts {mounted:?}, loop devices {loops:?}, folder {}",
        folder.exists()
    )
    .into())
}

fn undone_after_a_panic() -> Checked {
    let mounted = Mounted::new(&work::base(TMP), &Recipe::new(Kind::Ext4).sized(64 << 20))?;
    let folder = mounted.work().to_path_buf();
    let panicked = std::thread::spawn(move || {
        let _mounted = mounted;
        // Silently: this panic is the point of the trial.
        std::panic::resume_unwind(Box::new("on purpose"));
    })
    .join();
    if panicked.is_ok() {
        return Err("the thread did not panic".into());
    }
    nothing_is_left(&folder)
}

fn undone_when_frozen() -> Checked {
    let mounted = Mounted::new(&work::base(TMP), &Recipe::new(Kind::Ext4).sized(64 << 20))?;
    let folder = mounted.work().to_path_buf();
    // The guard is forgotten: as if the test had been killed before it could thaw.
    std::mem::forget(mounted.freeze()?);
    mounted.undo()?;
    nothing_is_left(&folder)
}

/// What a killed run leaves: mounts, a loop device and a folder whose owner is dead.
fn swept_when_stale() -> Checked {
    let recipe = Recipe::new(Kind::Overlay).sized(64 << 20);
    let made = Mounted::new(&work::base(TMP), &recipe)?;
    let folder = made.work().to_path_buf();
    if stale::sweep(&work::base(TMP))? != 0 {
        return Err("a living test's folder was swept".into());
    }
    // The same without an owner: a copy of the folder's name and a mount in it.
    let orphan = work::base(TMP)
        .canonicalize()?
        .join(format!("{}0-orphan", work::PREFIX));
    fs::create_dir_all(orphan.join("mnt"))?;
    let point = orphan.join("mnt").display().to_string();
    command::run("mount", &["-t", "tmpfs", "tmpfs", &point])?;
    fs::write(orphan.join("mnt/file"), "left")?;
    let swept = stale::sweep(&work::base(TMP))?;
    made.undo()?;
    if swept != 1 {
        return Err(format!("{swept} folders were swept, not 1").into());
    }
    nothing_is_left(&orphan)?;
    nothing_is_left(&folder)
}
