//! Runs killed at each pause point and at random: `clean` leaves the directory as it was.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
    time::Duration,
};

use nix::mount::{MsFlags, mount};
use walprobe_probes::clean::clean_run;

use crate::{
    RUN, child, cleaned, create, fill, inode, leftover, means, place, run_id, shown, tree,
};

const TIMES: usize = 20;

/// A user's directory: files of theirs, some with names as ours.
fn furnish(dir: &Path) {
    fs::write(dir.join("seg-1"), "mine").unwrap();
    fs::write(dir.join("undo"), "mine").unwrap();
    fs::write(dir.join("walprobe-notes.txt"), "mine").unwrap();
    fs::create_dir(dir.join("walprobe-01JDW3K9ZQ4T-000000")).unwrap();
    fs::write(dir.join("walprobe-01JDW3K9ZQ4T-000000/seg-1"), "mine").unwrap();
    symlink(
        "walprobe-01JDW3K9ZQ4T-000000",
        dir.join("walprobe-00000000000A-000000"),
    )
    .unwrap();
}

#[test]
fn at_each_pause_point() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    furnish(dir);
    let before = tree::of(dir);
    // Creating: three passages. Removing: five files, the undo file.
    let points = (1..=3)
        .map(|n| ("creating", n))
        .chain((1..=6).map(|n| ("removing", n)));
    for (point, nth) in points {
        for time in 0..TIMES {
            let nth = nth.to_string();
            let env = [
                ("WALPROBE_TEST_PAUSE", point),
                ("WALPROBE_TEST_PAUSE_NTH", nth.as_str()),
            ];
            let mut child = child::start("whole-life", dir, &env);
            child.wait_for(&format!("paused {point}"));
            let when = format!("{point} {nth}, time {time}");
            let folder = place(dir, RUN);
            assert_eq!(stage(&folder), expected(point, &nth), "{when}");

            // While it lives: its folder stays, once it is locked.
            let locked = folder.join("undo").exists() && (point, nth.as_str()) != ("creating", "2");
            if locked && time < 2 {
                let with_it = tree::of(dir);
                let report = cleaned(dir);
                assert_eq!(report.running, [shown(&folder)], "{when}");
                assert!(report.removed.is_empty(), "{when}");
                tree::of(dir).assert_same(&with_it, &when);
            }
            drop(child);
            let report = cleaned(dir);
            assert_eq!(report.removed, [shown(&folder)], "{when}");
            assert_eq!(
                report.left.len(),
                2,
                "{when}: the user's two look-alikes are told"
            );
            tree::of(dir).assert_same(&before, &when);
        }
    }
}

/// Entries in the folder, and whether something is in the undo file.
fn stage(folder: &Path) -> (usize, bool) {
    let undo = fs::metadata(folder.join("undo")).is_ok_and(|m| m.len() > 0);
    (tree::of(folder).top().len(), undo)
}

fn expected(point: &str, nth: &str) -> (usize, bool) {
    match (point, nth.parse().unwrap()) {
        ("creating", 1) => (0, false),
        ("creating", 2 | 3) => (1, false),
        ("creating", _) => (1, true),
        (_, n @ 1..=5) => (6 - n, true),
        (_, _) => (0, false),
    }
}

/// A umask that takes from the owner: killed before the folder's mode was put right, it
/// cannot even be opened by an ordinary user.
#[test]
fn under_an_odd_umask() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).unwrap();
    let root = rustix::process::geteuid().is_root();
    let start = if root {
        child::start_as_nobody
    } else {
        child::start
    };
    for nth in ["1", "3", "4"] {
        let env = [
            ("WALPROBE_TEST_PAUSE", "creating"),
            ("WALPROBE_TEST_PAUSE_NTH", nth),
            ("CHILD_UMASK", "777"),
        ];
        let mut child = start("whole-life", dir, &env);
        child.wait_for("paused creating");
        drop(child);
        let mode = fs::metadata(place(dir, RUN)).unwrap().mode() & 0o7777;
        assert_eq!(mode, if nth == "1" { 0 } else { 0o700 });
        let mut child = start("clean", dir, &[]);
        assert_eq!(child.wait_for("cleaned"), "[]");
        assert!(tree::of(dir).top().is_empty(), "passage {nth}");
    }
}

#[test]
fn at_random() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    furnish(dir);
    let before = tree::of(dir);
    let mut rng = fastrand::Rng::with_seed(7);
    let mut found = 0;
    for time in 0..2 * TIMES {
        let mut child = child::start("lives", dir, &[]);
        child.wait_for("ready");
        std::thread::sleep(Duration::from_micros(rng.u64(0..20_000)));
        drop(child);
        let report = cleaned(dir);
        assert!(report.running.is_empty(), "time {time}: {report:?}");
        assert_eq!(report.left.len(), 2, "time {time}: {report:?}");
        found += report.removed.len();
        tree::of(dir).assert_same(&before, &format!("time {time}"));
    }
    assert!(found > 0, "no kill hit a folder: the test shows nothing");
}

/// Makes and removes folders until it is killed.
pub(crate) fn child_lives(dir: &Path) {
    for n in 0.. {
        let scratch = create(dir, &run_id(n % 100_000));
        fill(&scratch);
        assert!(scratch.remove().is_empty());
    }
}

#[test]
fn a_clean_that_is_killed_itself() {
    for nth in 1..=6 {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        furnish(dir);
        let before = tree::of(dir);
        let folder = leftover(dir, RUN);
        let nth = nth.to_string();
        let env = [
            ("WALPROBE_TEST_PAUSE", "removing"),
            ("WALPROBE_TEST_PAUSE_NTH", nth.as_str()),
        ];
        let child = child::start("clean", dir, &env);
        let (entries, _) = expected("removing", &nth);
        for _ in 0..2000 {
            // Not by the tree: it expects what it lists to be there.
            if fs::read_dir(&folder).unwrap().count() == entries {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(
            tree::of(&folder).top().len(),
            entries,
            "the clean did not come to passage {nth}"
        );
        drop(child);
        assert_eq!(cleaned(dir).removed, [shown(&folder)]);
        tree::of(dir).assert_same(&before, &format!("passage {nth}"));
    }
}

/// Filesystems whose inode numbers are less simple than a disk's.
#[test]
fn on_other_filesystems() {
    means::with_own_mounts("on_other_filesystems", |base| {
        let at = |name: &str| {
            let path = base.join(name);
            fs::create_dir_all(&path).unwrap();
            path
        };
        means::tmpfs(&at("tmpfs"), "size=16m");
        let (one, lower) = (at("tmpfs/mnt"), at("tmpfs/lower"));
        // Both layers on one filesystem, and on two: an overlay numbers its folders differently.
        for (name, lower) in [("same", lower), ("two", at("lower"))] {
            fs::create_dir(lower.join("seen-through")).unwrap();
            let mnt = at(&format!("{name}-mnt"));
            let options = format!(
                "lowerdir={},upperdir={},workdir={}",
                lower.display(),
                at(&format!("tmpfs/{name}-upper")).display(),
                at(&format!("tmpfs/{name}-work")).display(),
            );
            let (fs, flags) = (Some("overlay"), MsFlags::empty());
            if let Err(e) = mount(fs, &mnt, fs, flags, Some(options.as_str())) {
                means::skip("on_other_filesystems", "overlay", &e.to_string());
                continue;
            }
            killed_and_cleaned(&mnt);
            // A folder of the lower layer becomes one of both.
            killed_and_cleaned(&mnt.join("seen-through"));
        }
        killed_and_cleaned(&one);
    });
}

fn killed_and_cleaned(dir: &Path) {
    let scratch = create(dir, RUN);
    fill(&scratch);
    assert!(scratch.remove().is_empty(), "{}", dir.display());
    let before = tree::of(dir);
    let folder = leftover(dir, RUN);
    let report = cleaned(dir);
    assert_eq!(report.removed, [shown(&folder)], "{report:?}");
    tree::of(dir).assert_same(&before, &shown(dir));
}

#[test]
fn only_the_run_that_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (one, two) = (leftover(dir, &run_id(1)), leftover(dir, &run_id(2)));
    let report = clean_run(dir, &run_id(1)).unwrap();
    assert_eq!(report.removed, [shown(&one)]);
    assert!(two.join("seg-1").exists());
    assert_eq!(
        clean_run(dir, &run_id(1)).unwrap(),
        Default::default(),
        "nothing there"
    );
    assert_eq!(clean_run(dir, "../x").unwrap(), Default::default());
    assert_eq!(cleaned(dir).removed, [shown(&two)]);
}

#[test]
fn a_directory_that_is_renamed_after_the_kill() {
    let base = tempfile::tempdir().unwrap();
    let (old, new) = (base.path().join("old"), base.path().join("new"));
    fs::create_dir(&old).unwrap();
    leftover(&old, RUN);
    fs::rename(&old, &new).unwrap();
    assert_eq!(
        cleaned(&new).removed,
        [shown(&place(&new, RUN))],
        "it is the same directory"
    );
    assert!(tree::of(&new).top().is_empty());
    assert_ne!(inode(&new), 0);
}

#[test]
fn a_directory_that_cannot_be_cleaned() {
    let base = tempfile::tempdir().unwrap();
    let missing = walprobe_probes::clean::clean(&base.path().join("missing")).unwrap_err();
    assert!(
        missing
            .message
            .ends_with("No such file or directory (os error 2)"),
        "{missing}"
    );
    assert_eq!(
        cleaned(base.path()),
        Default::default(),
        "nothing to do is no error"
    );
}
