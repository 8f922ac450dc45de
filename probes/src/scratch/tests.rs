//! What may stand at the folder's name by the time it is opened.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown, symlink},
    path::Path,
};

use super::*;
use crate::target;

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
