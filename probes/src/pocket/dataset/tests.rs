//! A dataset is made, refused, and goes: with its scratch folder, by `clean`, or not at all where
//! it is not the run's.

use std::{fs, path::Path, time::Duration};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::{
    fake::{Fake, PARENT, may_mount, no_mount},
    make::NAME_BYTES,
    *,
};
use crate::program::Program;
use crate::{clean::clean, scratch::Scratch, target, undo::Claim};

const ID: &str = "01JDW3K9ZQ4T";
const NAME: &str = "tank/wal/walprobe-01JDW3K9ZQ4T-cold";

/// In the order in which they go: a folder with a mount in it cannot be removed.
struct Setting {
    scratch: Option<Scratch>,
    fake: Fake,
    dir: tempfile::TempDir,
}

impl Setting {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(&target::hold(dir.path()).unwrap(), ID).unwrap();
        let (scratch, fake) = (Some(scratch), Fake::new());
        Self { scratch, fake, dir }
    }

    fn scratch(&self) -> &Scratch {
        self.scratch.as_ref().unwrap()
    }

    fn create(&self) -> Result<Dataset, Failure> {
        let own = [("logbias", "latency")];
        let limit = Duration::from_secs(60);
        let pulse = Pulse::default();
        Dataset::create(self.scratch(), PARENT, "cold", &own, limit, &pulse)
    }

    fn refused(&self) -> String {
        match self.create() {
            Err(Failure::Told(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    /// Nothing was made, or it was undone.
    fn nothing_made(&self) {
        assert_eq!(self.fake.datasets(), [""; 0]);
        assert_eq!(self.scratch().undo().outstanding(), []);
        assert!(no_mount(self.dir.path()));
        let files = fs::read_dir(self.scratch().place()).unwrap().flatten();
        let names: Vec<_> = files.map(|e| e.file_name()).collect();
        assert_eq!(names, ["undo"]);
    }

    /// As a SIGKILL does it: nothing is undone, the lock is gone.
    fn die(&mut self) -> String {
        let scratch = self.scratch.take().unwrap();
        let lock = scratch.undo().lock_held().unwrap();
        flock(&lock, FlockOperation::Unlock).unwrap();
        let path = scratch.path.clone();
        std::mem::forget(scratch);
        path
    }
}

fn action() -> Action {
    Action::Dataset {
        name: NAME.to_owned(),
    }
}

fn is_empty(dir: &Path) -> bool {
    no_mount(dir) && fs::read_dir(dir).unwrap().next().is_none()
}

#[test]
fn it_is_announced_made_alike_and_goes_with_the_folder() {
    if !may_mount("it_is_announced_made_alike_and_goes_with_the_folder") {
        return;
    }
    let mut s = Setting::new();
    let dataset = s.create().unwrap();
    assert_eq!(s.scratch().undo().outstanding(), [action()]);
    for word in [
        "-o walprobe:run=01JDW3K9ZQ4T ",
        "-o canmount=noauto ",
        "-o logbias=latency ",
        &format!(
            "-o mountpoint={}/dataset-cold ",
            s.scratch().place().display()
        ),
    ] {
        assert!(s.fake.creation().contains(word), "{}", s.fake.creation());
    }
    let folder = dataset.folder().unwrap();
    drop(folder.create_file("file-x", OFlags::RDWR).unwrap());
    let inside = s.scratch().place().join("dataset-cold/file-x");
    assert!(inside.exists(), "it is mounted in the scratch folder");
    // A file that is open keeps it.
    let file = fs::File::open(inside).unwrap();
    drop((folder, dataset));
    let (scratch, path) = (s.scratch.take().unwrap(), s.dir.path().to_owned());
    let folder = scratch.path.clone();
    let left = scratch.remove();
    assert!(left.contains(&folder), "{left:?}");
    assert_eq!(s.fake.datasets(), [NAME]);
    drop(file);
    assert_eq!(clean(&path).unwrap().removed, [folder]);
    assert_eq!(s.fake.datasets(), [""; 0]);
    assert!(is_empty(&path));
}

#[test]
fn what_is_refused_is_refused_before_anything_is_made() {
    if !may_mount("what_is_refused_is_refused_before_anything_is_made") {
        return;
    }
    let s = Setting::new();
    for (property, value, word) in [
        ("type", "volume", "not a filesystem"),
        ("mountpoint", "legacy", "not mounted by zfs"),
        ("mountpoint", "none", "not mounted by zfs"),
        ("canmount", "off", "canmount=off"),
        ("encryption", "aes-256-gcm", "encrypted"),
        ("zoned", "on", "zoned"),
    ] {
        s.fake.parent(&[(property, value)]);
        let why = s.refused();
        assert!(why.starts_with("tank/wal ") && why.contains(word), "{why}");
        s.nothing_made();
    }
    s.fake.parent(&[]);
    s.fake.on("altroot");
    assert!(s.refused().contains("altroot"));
    assert_eq!(s.fake.changes(), [""; 0]);
    let zfs = Zfs::find(Duration::from_secs(60)).unwrap();
    let of_parent = zfs.properties(PARENT, &Pulse::default()).unwrap();
    let long = "x".repeat(NAME_BYTES + 1);
    assert!(refused(PARENT, &of_parent, &long).is_err());
    assert_eq!(refused(PARENT, &of_parent, &long[1..]), Ok(()));
}

#[test]
fn what_fails_half_way_is_undone() {
    if !may_mount("what_fails_half_way_is_undone") {
        return;
    }
    let s = Setting::new();
    for (state, word) in [
        ("no-create", "permission denied"),
        ("other", "compression of a child dataset is zstd, not lz4"),
        ("no-mount", "Operation not permitted"),
    ] {
        s.fake.on(state);
        let why = s.refused();
        assert!(why.contains(word), "{why}");
        s.nothing_made();
        s.fake.off(state);
    }
    drop(s.create().unwrap());
}

/// Announced and not made; made and not mounted; mounted.
#[test]
fn clean_undoes_what_a_killed_run_made() {
    if !may_mount("clean_undoes_what_a_killed_run_made") {
        return;
    }
    for steps in 0..3 {
        let mut s = Setting::new();
        let point = s.scratch().place().join("dataset-cold");
        let mountpoint = format!("mountpoint={}", point.display());
        s.scratch().undo().will(action()).unwrap();
        fs::create_dir(&point).unwrap();
        let run = format!("{RUN}={ID}");
        if steps > 0 {
            s.fake.zfs(&["create", "-o", &mountpoint, "-o", &run, NAME]);
        }
        if steps > 1 {
            s.fake.zfs(&["mount", NAME]);
            fs::write(point.join("old-recycle-x"), "x").unwrap();
            // Busy for a moment: it is tried again.
            s.fake.on("busy");
        }
        let folder = s.die();
        assert_eq!(clean(s.dir.path()).unwrap().removed, [folder], "{steps}");
        assert_eq!(s.fake.datasets(), [""; 0]);
        assert!(is_empty(s.dir.path()));
    }
}

#[test]
fn what_was_added_to_it_keeps_it() {
    if !may_mount("what_was_added_to_it_keeps_it") {
        return;
    }
    let mut s = Setting::new();
    drop(s.create().unwrap());
    s.fake.on("children");
    let folder = s.die();
    let left = clean(s.dir.path()).unwrap().left;
    let told = format!("{left:?}");
    assert!(
        told.contains("filesystem has children; by hand: zfs destroy"),
        "{told}"
    );
    assert!(Path::new(&folder).join("undo").exists());
    s.fake.off("children");
    assert_eq!(clean(s.dir.path()).unwrap().removed, [folder]);
    assert!(is_empty(s.dir.path()));
}

#[test]
fn a_dataset_of_somebody_else_stays() {
    if !may_mount("a_dataset_of_somebody_else_stays") {
        return;
    }
    let own = format!("{RUN}={ID}");
    for property in ["x:y=z".to_owned(), format!("{RUN}=01JDW3K9ZQ4V")] {
        let s = Setting::new();
        s.fake.zfs(&["create", "-o", &property, NAME]);
        let why = undo(NAME, ID).unwrap_err();
        assert!(why.contains("does not say that this run made it"), "{why}");
        assert!(
            undo(NAME, "01JDW3K9ZQ4V").is_err(),
            "the name of another run"
        );
        assert_eq!(s.fake.datasets(), [NAME]);
        assert_eq!(s.fake.changes(), ["zfs create"]);
        // The same property, but its parent's.
        s.fake.zfs(&["set", &own, NAME]);
        let below = format!("{NAME}/walprobe-{ID}-cold");
        s.fake.zfs(&["create", &below]);
        assert!(undo(&below, ID).is_err());
        s.fake.zfs(&["destroy", &below]);
        assert_eq!(undo(NAME, ID), Ok(()));
        assert_eq!(undo(NAME, ID), Ok(()), "one that is not there");
    }
}

/// A `clean` after a SIGKILL must not look before the program that was under way has ended.
#[test]
fn a_program_that_changes_something_holds_the_lock() {
    let mut s = Setting::new();
    let go = s.dir.path().join("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.01; done", go.display());
    let lock = s.scratch().undo().lock_held().unwrap();
    let program = std::thread::spawn(move || {
        let shell = Path::new("/bin/sh");
        let program = Program::new(shell, Duration::from_secs(60));
        program
            .args(["-c", &script])
            .stdin(lock)
            .run(&Pulse::default())
    });
    // Dropped, not unlocked: what the kernel does at a process's end.
    let id = target::Id::of(&rustix::fs::stat(s.scratch().place()).unwrap());
    let (held, owner) = (s.scratch().fd().unwrap(), s.scratch().undo().owner());
    let scratch = s.scratch.take().unwrap().without_undo();
    let claim = || Undo::claim(std::os::fd::AsFd::as_fd(&*held), ID, id, owner);
    assert!(matches!(claim(), Claim::Running));
    fs::write(&go, "").unwrap();
    assert_eq!(program.join().unwrap(), Ok(String::new()));
    assert!(matches!(claim(), Claim::Dead(_)));
    drop(scratch);
    fs::remove_file(&go).unwrap();
    assert_eq!(clean(s.dir.path()).unwrap().removed.len(), 1);
}

#[test]
fn a_property_that_does_not_come_back_spoils_it() {
    if !may_mount("a_property_that_does_not_come_back_spoils_it") {
        return;
    }
    let s = Setting::new();
    let dataset = s.create().unwrap();
    let (log, pulse) = (s.scratch().undo(), Pulse::default());
    dataset
        .set("primarycache", "metadata", log, &pulse)
        .unwrap();
    dataset.inherit("primarycache", log, &pulse).unwrap();
    assert_eq!(dataset.spoilt(), None);
    dataset
        .set("primarycache", "metadata", log, &pulse)
        .unwrap();
    s.fake.on("no-inherit");
    assert!(dataset.inherit("primarycache", log, &pulse).is_err());
    let why = dataset.spoilt().unwrap();
    assert!(
        why.contains("primarycache is metadata, that of tank/wal all"),
        "{why}"
    );
}
