//! What may happen between the calls that make a folder.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown, symlink},
    path::{Path, PathBuf},
    sync::mpsc,
};

use rustix::fs::FlockOperation;

use super::*;
use crate::{clean::clean, pause::hook, target};

const NAME: &str = "just-made";

/// Makes something at the name; what `open_made` says of it, and its mode afterwards.
fn made(make: impl FnOnce(&Path)) -> Result<Option<u32>, String> {
    let dir = tempfile::tempdir().unwrap();
    make(&dir.path().join(NAME));
    let target = target::hold(dir.path()).unwrap();
    match open_made(&target, NAME) {
        Ok(made) => Ok(made.map(|(dir, id)| {
            let stat = rustix::fs::fstat(&dir).unwrap();
            assert_eq!(Id::of(&stat), id);
            stat.st_mode & 0o7777
        })),
        Err(why) => Err(why.refuse_left(&target, &[]).message),
    }
}

fn mkdir(at: &Path, mode: u32) {
    fs::create_dir(at).unwrap();
    fs::set_permissions(at, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn the_folder_just_made() {
    assert_eq!(made(|at| mkdir(at, 0o700)), Ok(Some(0o700)));
    for mode in [0o000, 0o500, 0o755, 0o777] {
        assert_eq!(
            made(|at| mkdir(at, mode)),
            Ok(Some(0o700)),
            "a mode is put right"
        );
    }
    assert_eq!(made(|_| ()), Ok(None), "a clean was faster");
}

#[test]
fn something_else_with_its_name() {
    let elsewhere = tempfile::tempdir().unwrap();
    fs::set_permissions(elsewhere.path(), fs::Permissions::from_mode(0o755)).unwrap();
    made(|at| symlink(elsewhere.path(), at).unwrap()).expect_err("a link");
    let mode = fs::metadata(elsewhere.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755, "what is behind the link is as it was");
    made(|at| fs::write(at, "").unwrap()).expect_err("a file");
    let full = |at: &Path| {
        mkdir(at, 0o700);
        fs::write(at.join("precious"), "").unwrap();
    };
    assert!(
        made(full)
            .unwrap_err()
            .ends_with("a folder just made in it is not empty")
    );
}

#[test]
fn somebody_else_s_folder_with_its_name() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: somebody_else_s_folder_with_its_name: needs root");
        return;
    }
    let others = |at: &Path| {
        mkdir(at, 0o700);
        chown(at, Some(65534), None).unwrap();
    };
    assert!(
        made(others)
            .unwrap_err()
            .contains("belongs to another user")
    );
}

const RUN: &str = "01JDW3K9ZQ4T";

/// Makes a folder while `meanwhile` happens at the n-th passage of its making, then
/// removes it; how many passages there were.
fn made_while(nth: usize, meanwhile: impl Fn(&Path) + 'static) -> usize {
    let dir = tempfile::tempdir().unwrap();
    let target = target::hold(dir.path()).unwrap();
    let folder = dir.path().join(name_for(RUN, target.id.inode));
    let passed = std::rc::Rc::new(std::cell::Cell::new(0));
    let counter = passed.clone();
    hook::set(move |point| {
        assert_eq!(point, "creating");
        counter.set(counter.get() + 1);
        if counter.get() == nth {
            meanwhile(&folder);
        }
    });
    let scratch = Scratch::create(&target, RUN);
    hook::set(|_| ());
    let scratch = scratch.unwrap_or_else(|e| panic!("passage {nth}: {e}"));
    assert_eq!(
        clean(dir.path()).unwrap().running,
        [scratch.path.as_str()],
        "passage {nth}"
    );
    drop(scratch.create_file("seg-1", OFlags::RDWR).unwrap());
    assert!(scratch.remove().is_empty());
    assert!(
        fs::read_dir(dir.path()).unwrap().next().is_none(),
        "passage {nth}"
    );
    passed.get()
}

#[test]
fn a_clean_comes_between() {
    let cleaned = |folder: &Path| clean(folder.parent().unwrap()).unwrap();
    let takes = move |folder: &Path| assert_eq!(cleaned(folder).removed.len(), 1);
    let lets_be = move |folder: &Path| assert_eq!(cleaned(folder).running.len(), 1);
    assert_eq!(made_while(0, |_| ()), 4, "as documented");
    assert_eq!(made_while(1, takes), 1 + 4, "made again");
    assert_eq!(made_while(2, takes), 2 + 4, "made again");
    assert_eq!(made_while(3, lets_be), 4);
    assert_eq!(made_while(4, lets_be), 4);
}

/// It has locked the undo file before its maker could, and takes its time.
#[test]
fn a_clean_is_slow() {
    let passages = made_while(2, |folder| {
        let folder = PathBuf::from(folder);
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let undo = fs::File::open(folder.join("undo")).unwrap();
            rustix::fs::flock(&undo, FlockOperation::LockExclusive).unwrap();
            tell.send(()).unwrap();
            std::thread::sleep(Duration::from_millis(60));
            fs::remove_file(folder.join("undo")).unwrap();
            fs::remove_dir(&folder).unwrap();
        });
        told.recv().unwrap();
    });
    assert_eq!(passages, 2 + 4, "made again");
}

#[test]
fn the_folder_is_renamed_between() {
    let dir = tempfile::tempdir().unwrap();
    let target = target::hold(dir.path()).unwrap();
    let folder = dir.path().join(name_for(RUN, target.id.inode));
    let away = dir.path().canonicalize().unwrap().join("away");
    let (to, mut passed) = (away.clone(), 0);
    hook::set(move |_| {
        passed += 1;
        if passed == 2 {
            fs::rename(&folder, &to).unwrap();
        }
    });
    let refused = Scratch::create(&target, RUN).unwrap_err();
    let end = format!(
        "the folder just made was renamed; left behind: {}",
        away.display()
    );
    assert!(refused.message.ends_with(&end), "{refused}");
    assert!(fs::read_dir(&away).unwrap().next().is_none(), "empty");
}
