//! Directories that are not used, and what is said.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    sync::mpsc,
    time::Duration,
};

use nix::mount::MsFlags;
use rustix::fs::{FileType, IFlags, Mode};
use walprobe_probes::{scratch::Scratch, target::Refused};

use crate::{RUN, child, means, request, scratch, target, tree};

#[track_caller]
fn refused(dir: &Path) -> Refused {
    // A call that never returns must not take the test with it.
    let (tell, told) = mpsc::channel();
    let request = request(dir);
    std::thread::spawn(move || tell.send(target::open(&request)));
    let opened = told
        .recv_timeout(Duration::from_secs(60))
        .expect("open returns");
    opened.map(|_| ()).expect_err("refused")
}

#[track_caller]
fn refused_with(dir: &Path, error: &str) {
    let refused = refused(dir);
    assert_eq!(
        refused.message,
        format!("cannot use {}: {error}", dir.display())
    );
    let hint = refused.hint.unwrap_or_default();
    assert!(!hint.contains('\n') && !hint.ends_with('.'), "{hint}");
}

#[test]
fn what_is_no_directory() {
    let base = tempfile::tempdir().unwrap();
    let at = |name: &str| base.path().join(name);
    fs::write(at("file"), "mine").unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("fifo"),
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    symlink("loop", at("loop")).unwrap();
    symlink("fifo", at("to-fifo")).unwrap();
    let before = tree::of(base.path());
    refused_with(&at("missing"), "No such file or directory (os error 2)");
    refused_with(&at("dangling"), "No such file or directory (os error 2)");
    refused_with(&at("file"), "Not a directory (os error 20)");
    refused_with(&at("fifo"), "Not a directory (os error 20)");
    refused_with(&at("to-fifo"), "Not a directory (os error 20)");
    refused_with(&at("file/x"), "Not a directory (os error 20)");
    refused_with(
        &at("loop"),
        "Too many levels of symbolic links (os error 40)",
    );
    refused_with(Path::new("/dev/null"), "Not a directory (os error 20)");
    assert_eq!(
        refused(Path::new("")).message,
        "cannot use \"\": No such file or directory (os error 2)"
    );
    assert!(
        target::open(&walprobe_probes::request::Request {
            dir: "/tmp\0".to_owned(),
            ..request(base.path())
        })
        .is_err()
    );
    tree::of(base.path()).assert_same(&before, "after the refusals");
}

#[test]
fn a_directory_that_was_removed() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("dir");
    fs::create_dir(&dir).unwrap();
    let held = fs::File::open(&dir).unwrap();
    fs::remove_dir(&dir).unwrap();
    let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held));
    refused_with(Path::new(&link), "No such file or directory (os error 2)");
}

#[test]
fn a_link_is_followed_once() {
    let base = tempfile::tempdir().unwrap();
    let (one, two, link) = (
        base.path().join("one"),
        base.path().join("two"),
        base.path().join("link"),
    );
    fs::create_dir(&one).unwrap();
    fs::create_dir(&two).unwrap();
    symlink(&one, &link).unwrap();
    let target = target(&link);
    assert_eq!(target.path, one.canonicalize().unwrap());
    fs::remove_file(&link).unwrap();
    symlink(&two, &link).unwrap();
    let scratch = Scratch::create(&target, RUN).unwrap();
    assert_eq!(tree::of(&one).top().len(), 1);
    assert!(tree::of(&two).top().is_empty());
    assert!(scratch.remove().is_empty());
}

#[test]
fn not_writable_for_an_ordinary_user() {
    let base = tempfile::tempdir().unwrap();
    fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let dir = base.path().join("dir");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o555)).unwrap();
    let child = if rustix::process::geteuid().is_root() {
        child::start_as_nobody("not-writable", &dir, &[])
    } else {
        child::start("not-writable", &dir, &[])
    };
    assert!(child.end().success());
}

pub(crate) fn child_not_writable(dir: &Path) {
    refused_with(dir, "Permission denied (os error 13)");
}

#[test]
fn read_only() {
    means::with_own_mounts("read_only", |dir| {
        means::tmpfs(dir, "size=16m");
        scratch(dir);
        means::remount(dir, MsFlags::MS_RDONLY);
        refused_with(dir, "Read-only file system (os error 30)");
        // The mount alone, over a filesystem that is writable.
        means::remount(dir, MsFlags::empty());
        means::remount(dir, MsFlags::MS_BIND | MsFlags::MS_RDONLY);
        refused_with(dir, "Read-only file system (os error 30)");
    });
}

#[test]
fn becomes_read_only_while_it_is_held() {
    means::with_own_mounts("becomes_read_only_while_it_is_held", |dir| {
        means::tmpfs(dir, "size=16m");
        let held = target(dir);
        means::remount(dir, MsFlags::MS_RDONLY);
        let refused = Scratch::create(&held, RUN).unwrap_err();
        assert!(
            refused
                .message
                .ends_with("Read-only file system (os error 30)"),
            "{refused}"
        );
    });
}

#[test]
fn flags_that_make_removal_impossible() {
    if !means::is_root("flags_that_make_removal_impossible") {
        return;
    }
    for (flag, why) in [
        (
            IFlags::APPEND,
            "it is append-only: nothing made in it could be removed again",
        ),
        (IFlags::IMMUTABLE, "Operation not permitted (os error 1)"),
    ] {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("dir");
        fs::create_dir(&dir).unwrap();
        let held = fs::File::open(&dir).unwrap();
        let flags = match rustix::fs::ioctl_getflags(&held) {
            Ok(flags) => flags,
            Err(e) => {
                let reason = format!(
                    "the filesystem of {} keeps no such flags: {e}",
                    dir.display()
                );
                return means::skip("flags_that_make_removal_impossible", "flags", &reason);
            }
        };
        rustix::fs::ioctl_setflags(&held, flags | flag).unwrap();
        let opened = std::panic::catch_unwind(|| refused_with(&dir, why));
        rustix::fs::ioctl_setflags(&held, flags).unwrap();
        opened.unwrap_or_else(|e| std::panic::resume_unwind(e));
        assert!(tree::of(&dir).top().is_empty());
    }
}

#[test]
fn a_file_that_cannot_be_removed() {
    let test = "a_file_that_cannot_be_removed";
    if !means::is_root(test) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let scratch = scratch(dir.path());
    let file = scratch
        .create_file("seg-1", rustix::fs::OFlags::RDWR)
        .unwrap();
    drop(
        scratch
            .create_file("seg-2", rustix::fs::OFlags::RDWR)
            .unwrap(),
    );
    let Ok(flags) = rustix::fs::ioctl_getflags(&file) else {
        return means::skip(test, "flags", "the filesystem keeps no flags");
    };
    rustix::fs::ioctl_setflags(&file, flags | IFlags::IMMUTABLE).unwrap();
    let folder = crate::place(dir.path());
    let shown = scratch.path.clone();
    let left = scratch.remove();
    let stays = tree::of(&folder);
    let cleaned = walprobe_probes::clean::clean(dir.path());
    rustix::fs::ioctl_setflags(&file, flags).unwrap();
    assert_eq!(left, std::slice::from_ref(&shown));
    let names: Vec<_> = stays
        .top()
        .iter()
        .map(|p| p.display().to_string())
        .collect();
    assert_eq!(
        names,
        ["seg-1", "undo"],
        "the undo file stays: there is something to undo"
    );
    let reason = "unlinkat of seg-1: Operation not permitted (os error 1)".to_owned();
    assert_eq!(cleaned.unwrap().left, [(shown.clone(), reason)]);
    assert_eq!(
        walprobe_probes::clean::clean(dir.path()).unwrap().removed,
        [shown]
    );
    assert!(tree::of(dir.path()).top().is_empty());
}

#[test]
fn a_server_s_directory() {
    let seg = "000000010000000000000001";
    // (what to make, the directory to give, what is said)
    let cases: &[(&[&str], &str, &str)] = &[
        (&["PG_VERSION"], "", "PG_VERSION is in it"),
        (&["postmaster.pid"], "", "postmaster.pid is in it"),
        (&["pg_wal/"], "", "pg_wal is in it"),
        (&["pg_xlog/"], "", "pg_xlog is in it"),
        (&["archive_status/"], "", "archive_status is in it"),
        (&[seg], "", "000000010000000000000001 is in it"),
        (
            &["0000000100000A2F000000FE.partial"],
            "",
            "0000000100000A2F000000FE.partial is in it",
        ),
        (&["PG_18_202506291/"], "", "a PostgreSQL tablespace"),
        (
            &["PG_18_202506291/"],
            "PG_18_202506291",
            "a part of a PostgreSQL tablespace",
        ),
        (
            &["PG_VERSION", "pg_wal/"],
            "pg_wal",
            "PG_VERSION is in a directory above",
        ),
        (
            &["PG_VERSION", "base/"],
            "base",
            "PG_VERSION is in a directory above",
        ),
        (
            &["PG_VERSION", "global/"],
            "global",
            "PG_VERSION is in a directory above",
        ),
        (
            &["PG_VERSION", "global/", "a/", "a/b/"],
            "a/b",
            "PG_VERSION is in a directory above",
        ),
    ];
    for (made, given, said) in cases {
        let base = tempfile::tempdir().unwrap();
        for name in *made {
            let path = base.path().join(name);
            if name.ends_with('/') {
                fs::create_dir(&path).unwrap();
            } else {
                fs::write(&path, "").unwrap();
            }
        }
        let before = tree::of(base.path());
        let dir = base.path().join(given);
        let refused = refused(&dir);
        let start = format!("cannot use {}: it looks like a ", dir.display());
        assert!(refused.message.starts_with(&start), "{refused}");
        assert!(refused.message.contains(said), "{made:?}: {refused}");
        assert!(refused.hint.unwrap().contains("--force"));
        tree::of(base.path()).assert_same(&before, said);

        let before = tree::of(&dir);
        let mut forced = request(&dir);
        forced.force = true;
        let target = target::open(&forced).expect("forced");
        assert!(Scratch::create(&target, RUN).unwrap().remove().is_empty());
        tree::of(&dir).assert_same(&before, "after a forced run");
    }
}

#[test]
fn a_linked_pg_wal_counts_as_one() {
    let base = tempfile::tempdir().unwrap();
    symlink("/nowhere", base.path().join("pg_wal")).unwrap();
    assert!(refused(base.path()).message.contains("pg_wal is in it"));
}

#[test]
fn names_that_only_resemble_a_server_s() {
    let base = tempfile::tempdir().unwrap();
    for file in [
        "PG_VERSION.txt",
        "5f2b6c1e9d3a4b0012345678",
        "0000000100000000000000",
        "pg_wal.tar",
    ] {
        fs::write(base.path().join(file), "").unwrap();
    }
    fs::create_dir(base.path().join("PG_VERSION")).unwrap();
    target(base.path());
}

/// The directory held is the one checked, not one that takes its name between.
#[test]
fn a_file_named_as_the_folder() {
    let base = tempfile::tempdir().unwrap();
    let name = crate::place(base.path());
    let target = target(base.path());
    for make in [0, 1, 2] {
        match make {
            0 => fs::write(&name, "mine").unwrap(),
            1 => symlink("/tmp", &name).unwrap(),
            _ => fs::create_dir(&name).unwrap(),
        }
        let before = tree::of(base.path());
        let refused = Scratch::create(&target, RUN).unwrap_err();
        assert!(refused.message.contains("is there already"), "{refused}");
        tree::of(base.path()).assert_same(&before, "after the refusal");
        if make < 2 {
            fs::remove_file(&name).unwrap();
        }
    }
}
