//! What looks like ours and is not stays, and the reason is told.

use std::{
    fs,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, chown, symlink},
    path::Path,
    process::Command,
};

use rustix::fs::{CWD, FileType, Mode};

use crate::{RUN, child, cleaned, leftover, means, place, shown, tree};

/// `clean` leaves the directory as it is and gives this reason for the folder.
#[track_caller]
fn stays(dir: &Path, folder: &Path, reason: &str) {
    let before = tree::of(dir);
    let report = cleaned(dir);
    tree::of(dir).assert_same(&before, reason);
    assert_eq!(report.left, [(shown(folder), reason.to_owned())]);
    assert!(
        report.removed.is_empty() && report.running.is_empty(),
        "{report:?}"
    );
}

/// A private folder with a name that verifies, and nothing else of ours.
fn named_as_ours(dir: &Path) -> std::path::PathBuf {
    let folder = place(dir, RUN);
    fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
    folder
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp")
        .arg("-a")
        .arg(from)
        .arg(to)
        .status()
        .unwrap();
    assert!(status.success());
}

const NAME: &str = "its name does not verify here: walprobe did not make it in this directory";
const FOREIGN: &str = "its undo file does not belong to it";

#[test]
fn a_copy_elsewhere() {
    let base = tempfile::tempdir().unwrap();
    let (one, two) = (base.path().join("one"), base.path().join("two"));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&two).unwrap();
    let folder = leftover(&one, RUN);
    copy(&folder, &two);
    stays(
        &two,
        &two.canonicalize()
            .unwrap()
            .join(folder.file_name().unwrap()),
        NAME,
    );
    // A copy of the whole directory is another directory.
    let three = base.path().join("three");
    copy(&one, &three);
    stays(
        &three,
        &three
            .canonicalize()
            .unwrap()
            .join(folder.file_name().unwrap()),
        NAME,
    );
    // Moved: not where its run was.
    let moved = two
        .canonicalize()
        .unwrap()
        .join(folder.file_name().unwrap());
    fs::remove_file(moved.join("undo")).unwrap();
    fs::rename(&moved, base.path().join("away")).unwrap();
    fs::rename(&folder, &moved).unwrap();
    stays(&two, &moved, NAME);
}

#[test]
fn a_copy_that_took_the_name() {
    let dir = tempfile::tempdir().unwrap();
    let folder = leftover(dir.path(), RUN);
    let away = tempfile::tempdir().unwrap();
    fs::rename(&folder, away.path().join("original")).unwrap();
    copy(&away.path().join("original"), &folder);
    stays(dir.path(), &folder, FOREIGN);
}

#[test]
fn files_and_links_with_a_name_that_verifies() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let real = leftover(elsewhere.path(), RUN);
    let name = place(dir.path(), RUN);

    fs::write(&name, "mine").unwrap();
    stays(dir.path(), &name, "it is not a directory");
    fs::remove_file(&name).unwrap();

    rustix::fs::mknodat(CWD, &name, FileType::Fifo, Mode::RUSR, 0).unwrap();
    stays(dir.path(), &name, "it is not a directory");
    fs::remove_file(&name).unwrap();

    let before = tree::of(elsewhere.path());
    symlink(&real, &name).unwrap();
    stays(dir.path(), &name, "it is a symbolic link");
    tree::of(elsewhere.path()).assert_same(&before, "behind the link");
}

#[test]
fn folders_with_a_name_that_verifies() {
    let dir = tempfile::tempdir().unwrap();
    let folder = named_as_ours(dir.path());
    fs::write(folder.join("seg-1"), "mine").unwrap();
    stays(dir.path(), &folder, "it is not empty and has no undo file");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    stays(dir.path(), &folder, "its mode is 0755, walprobe's is 0700");
}

#[test]
fn an_open_folder_that_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    let folder = named_as_ours(dir.path());
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o750)).unwrap();
    stays(dir.path(), &folder, "its mode is 0750, walprobe's is 0700");
}

#[test]
fn undo_files_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let folder = named_as_ours(dir.path());
    let undo = folder.join("undo");
    fs::write(folder.join("seg-1"), "mine").unwrap();
    for content in [
        "mine",
        "{\"magic\":\"other\"}\n",
        "{\"magic\":\"walprobe undo\",\"version\":1,\"run_id\":\"01JDW3K9ZQ4T\",\"folder_inode\":1,",
    ] {
        fs::write(&undo, content).unwrap();
        stays(dir.path(), &folder, FOREIGN);
    }
    fs::write(&undo, vec![b'x'; 2 << 20]).unwrap();
    stays(
        dir.path(),
        &folder,
        "its undo file is too long to be walprobe's",
    );
    fs::remove_file(&undo).unwrap();

    symlink("seg-1", &undo).unwrap();
    stays(dir.path(), &folder, "its undo file is not a regular file");
    fs::remove_file(&undo).unwrap();
    fs::create_dir(&undo).unwrap();
    stays(dir.path(), &folder, "its undo file is not a regular file");
    fs::remove_dir(&undo).unwrap();
    rustix::fs::mknodat(CWD, &undo, FileType::Fifo, Mode::RUSR, 0).unwrap();
    stays(dir.path(), &folder, "its undo file is not a regular file");
}

#[test]
fn a_later_version_s_undo_file() {
    let dir = tempfile::tempdir().unwrap();
    let folder = leftover(dir.path(), RUN);
    let text = fs::read_to_string(folder.join("undo")).unwrap();
    let odd = "{\"will\":{\"kind\":\"wormhole\",\"end\":7}}";
    fs::write(folder.join("undo"), format!("{text}{odd}\n")).unwrap();
    let reason = format!("its undo file has a line that this walprobe does not understand: {odd}");
    stays(dir.path(), &folder, &reason);

    fs::write(
        folder.join("undo"),
        text.replace("\"version\":1", "\"version\":2"),
    )
    .unwrap();
    stays(
        dir.path(),
        &folder,
        "its undo file has a version that this walprobe does not know",
    );
}

#[test]
fn a_user_s_file_in_our_folder() {
    let dir = tempfile::tempdir().unwrap();
    let folder = leftover(dir.path(), RUN);
    let content = folder.join("precious");
    fs::write(&content, "mine").unwrap();
    let report = cleaned(dir.path());
    assert_eq!(
        report.left,
        [
            (shown(&folder), "it is not empty".to_owned()),
            (shown(&content), "walprobe did not make it".to_owned())
        ]
    );
    assert!(report.removed.is_empty());
    let stay = tree::of(&folder);
    assert_eq!(
        stay.top(),
        [Path::new("precious")],
        "ours are gone, theirs is not"
    );
    assert_eq!(fs::read(&content).unwrap(), b"mine");
    stays(dir.path(), &folder, "it is not empty and has no undo file");
    fs::remove_file(content).unwrap();
    assert_eq!(cleaned(dir.path()).removed, [shown(&folder)]);
    assert!(tree::of(dir.path()).top().is_empty());
}

#[test]
fn more_of_a_user_s_files_than_can_be_told() {
    let dir = tempfile::tempdir().unwrap();
    let folder = leftover(dir.path(), RUN);
    for n in 0..200 {
        fs::write(folder.join(format!("mine-{n}")), "").unwrap();
    }
    let report = cleaned(dir.path());
    assert!(report.left.len() < 30, "{}", report.left.len());
    assert!(
        report
            .left
            .iter()
            .any(|(_, why)| why == "180 more files in it"),
        "{report:?}"
    );
    assert_eq!(tree::of(&folder).top().len(), 200);
}

#[test]
fn torn_undo_files() {
    let dir = tempfile::tempdir().unwrap();
    let before = tree::of(dir.path());
    let folder = leftover(dir.path(), RUN);
    let undo = fs::read(folder.join("undo")).unwrap();
    for keep in (0..undo.len()).step_by(7).chain([undo.len() - 1]) {
        fs::write(folder.join("seg-1"), "").unwrap();
        let torn = [&undo[..keep], &[0; 5][..keep % 6]].concat();
        fs::write(folder.join("undo"), torn).unwrap();
        fs::write(folder.join("precious"), "mine").unwrap();
        assert_eq!(cleaned(dir.path()).left.len(), 2, "{keep} bytes");
        assert_eq!(
            tree::of(&folder).top(),
            [Path::new("precious")],
            "{keep} bytes"
        );
        fs::remove_file(folder.join("precious")).unwrap();
    }
    assert_eq!(cleaned(dir.path()).removed, [shown(&folder)]);
    tree::of(dir.path()).assert_same(&before, "at last");
}

#[test]
fn other_users() {
    if !means::is_root("other_users") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    // Root's leftover: an ordinary user's clean lets it be.
    let folder = leftover(dir.path(), RUN);
    let before = tree::of(dir.path());
    let mut other = child::start_as_nobody("clean", dir.path(), &[]);
    assert!(
        other
            .wait_for("cleaned")
            .contains("it belongs to user id 0")
    );
    assert!(other.end().success());
    tree::of(dir.path()).assert_same(&before, "an ordinary user's clean");
    // An undo file that its folder's owner did not write.
    chown(folder.join("undo"), Some(child::NOBODY), None).unwrap();
    stays(dir.path(), &folder, "its undo file belongs to another user");
    chown(folder.join("undo"), Some(0), None).unwrap();
    assert_eq!(cleaned(dir.path()).removed, [shown(&folder)]);

    // An ordinary user's leftover: root may.
    let mut child = child::start_as_nobody("work", dir.path(), &[]);
    child.wait_for("working");
    drop(child);
    assert_eq!(cleaned(dir.path()).removed, [shown(&folder)]);
    assert!(tree::of(dir.path()).top().is_empty());
}

#[test]
fn something_mounted_on_it() {
    means::with_own_mounts("something_mounted_on_it", |dir| {
        let folder = leftover(dir, RUN);
        means::tmpfs(&folder, "size=1m,mode=700");
        stays(dir, &folder, "another filesystem is mounted on it");
        nix::mount::umount(&folder).unwrap();
        assert_eq!(cleaned(dir).removed, [shown(&folder)]);
    });
}

#[test]
fn a_read_only_filesystem() {
    means::with_own_mounts("a_read_only_filesystem", |dir| {
        means::tmpfs(dir, "size=1m");
        let folder = leftover(dir, RUN);
        means::remount(dir, nix::mount::MsFlags::MS_RDONLY);
        let reason = "openat of undo: Read-only file system (os error 30)";
        stays(dir, &folder, reason);
        means::remount(dir, nix::mount::MsFlags::empty());
        assert_eq!(cleaned(dir).removed, [shown(&folder)]);
    });
}
