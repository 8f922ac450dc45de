//! Somebody else who may write to the directory swaps names while root works in it.
//!
//! In a sticky directory (as /tmp) an attacker can only take names first; in one that is
//! writable for all and not sticky they can also rename the folder away and put a link, a
//! folder or a copy in its place. Neither may get root to touch what lies behind a link.

use std::{
    fs,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink},
    path::Path,
};

use rustix::fs::OFlags;
use walprobe_probes::{
    clean::clean,
    scratch::{Scratch, name_for},
    target,
};

use crate::{child, inode, means, run_id, tree};

const RUNS: u32 = 300;

#[test]
fn names_are_swapped_in_a_directory_for_all() {
    attacked("names_are_swapped_in_a_directory_for_all", 0o777);
}

#[test]
fn names_are_taken_in_a_sticky_directory() {
    attacked("names_are_taken_in_a_sticky_directory", 0o1777);
}

fn attacked(test: &str, mode: u32) {
    if !means::is_root(test) {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let dir = base.path().join("open");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
    // Root's own, which the attacker's links lead to: names as ours, and nothing may change.
    let victim = base.path().join("victim");
    fs::create_dir(&victim).unwrap();
    for name in ["seg-1", "tmp-1", "undo"] {
        fs::write(victim.join(name), "precious").unwrap();
    }
    fs::create_dir(victim.join("empty")).unwrap();
    for private in [victim.join("empty"), victim.clone()] {
        fs::set_permissions(private, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let before = tree::of(&victim);

    let attacker = child::start_as_nobody("attack", &dir, &[]);
    let (mut whole, mut refused, mut disturbed) = (0, 0, 0);
    for n in 0..RUNS {
        match live(&dir, &run_id(n)) {
            Outcome::Whole => whole += 1,
            Outcome::Refused => refused += 1,
            Outcome::Disturbed => disturbed += 1,
        }
        if n % 10 == 0 {
            clean(&dir).expect("cleaned");
        }
        tree::of(&victim).assert_same(&before, &format!("run {n}"));
    }
    drop(attacker);
    clean(&dir).expect("cleaned");
    tree::of(&victim).assert_same(&before, "at last");
    let outcomes = format!("{whole} whole, {refused} refused, {disturbed} disturbed");
    if mode & 0o1000 == 0 {
        assert!(disturbed > 0, "the attacker never got between: {outcomes}");
    } else {
        assert!(refused > 0, "the attacker never was first: {outcomes}");
        assert_eq!(
            disturbed, 0,
            "a sticky directory protects the folder: {outcomes}"
        );
    }
    // Nothing of root's is left but folders that were told.
    for entry in walk(&dir) {
        let name = entry.file_name().unwrap().to_str().unwrap();
        assert!(
            !name.starts_with("seg-") && !name.starts_with("tmp-"),
            "{}",
            entry.display()
        );
    }
}

enum Outcome {
    Whole,
    Refused,
    Disturbed,
}

/// A short run by root. Whatever happens to the name, its files are its own.
fn live(dir: &Path, id: &str) -> Outcome {
    let Ok(scratch) = Scratch::create(&target::hold(dir).expect("held"), id) else {
        return Outcome::Refused;
    };
    let stat = rustix::fs::fstat(scratch.fd().unwrap()).unwrap();
    assert_eq!(
        (stat.st_uid, stat.st_mode & 0o777),
        (0, 0o700),
        "somebody else's folder"
    );
    let made = scratch
        .create_file("tmp-1", OFlags::RDWR)
        .expect("made in the folder held");
    rustix::io::write(&made, b"ours").expect("write");
    scratch.rename("tmp-1", "seg-1").expect("rename");
    let again = scratch.open_file("seg-1", OFlags::RDWR).expect("ours");
    let (a, b) = (
        rustix::fs::fstat(&made).unwrap(),
        rustix::fs::fstat(&again).unwrap(),
    );
    assert_eq!((a.st_dev, a.st_ino), (b.st_dev, b.st_ino), "another file");
    let left = scratch.remove();
    if left.is_empty() {
        Outcome::Whole
    } else {
        Outcome::Disturbed
    }
}

fn walk(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(|e| e.unwrap()) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(walk(&entry.path()));
        }
        found.push(entry.path());
    }
    found
}

/// Takes the names of coming runs, and swaps those of runs at work.
pub(crate) fn child_attack(dir: &Path) {
    let victim = dir.parent().unwrap().join("victim");
    let parent = inode(dir);
    let mut rng = fastrand::Rng::with_seed(9);
    let mut moved = 0_u64;
    loop {
        // One of the names to come: a link to the victim, or a folder as ours.
        let coming = dir.join(name_for(&run_id(rng.u32(0..RUNS)), parent));
        let _ = match rng.u8(0..4) {
            0 => symlink(&victim, &coming),
            1 => fs::DirBuilder::new().mode(0o700).create(&coming),
            2 => fs::remove_file(&coming).or_else(|_| fs::remove_dir(&coming)),
            _ => Ok(()),
        };
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let (name, away) = (entry.path(), dir.join(format!("away-{moved}")));
            let is_ours = entry.file_name().to_string_lossy().starts_with("walprobe-");
            if is_ours && rng.bool() && fs::rename(&name, &away).is_ok() {
                moved += 1;
                let _ = match rng.u8(0..4) {
                    0 => symlink(&victim, &name),
                    1 => symlink(victim.join("seg-1"), &name),
                    2 => symlink(victim.join("empty"), &name),
                    _ => fs::DirBuilder::new().mode(0o700).create(&name),
                };
            }
        }
    }
}
