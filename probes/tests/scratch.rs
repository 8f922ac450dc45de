//! The scratch folder in ordinary use: who may read it, what is in it, how it goes.
//!
//! What is guarded: a mode that a umask has changed, a link that is followed, a file that
//! is made outside the folder or left behind in it.

#[path = "kit/child.rs"]
mod child;
#[path = "kit/means.rs"]
mod means;
#[path = "kit/tree.rs"]
mod tree;

#[path = "scratch/full.rs"]
mod full;
#[path = "scratch/names.rs"]
mod names;
#[path = "scratch/refusals.rs"]
mod refusals;

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, Mode, OFlags};
use walprobe_probes::{
    paths,
    request::{DropCaches, Profile, Request},
    scratch::{Scratch, name_for},
    target::{self, Target},
};

const RUN: &str = "01JDW3K9ZQ4T";
const RW: OFlags = OFlags::RDWR;

fn request(dir: &Path) -> Request {
    Request {
        dir: paths::to_request(dir),
        run_id: RUN.to_owned(),
        probes: Vec::new(),
        only: Vec::new(),
        skip: Vec::new(),
        profile: Profile::Quick,
        time_s: 1.0,
        budget_bytes: 1,
        seed: 1,
        drop_caches: DropCaches::None,
        commit_bytes: None,
        segment_bytes: 16 << 20,
        syncs: None,
        force: false,
        dry_run: false,
        op_timeout_s: 60.0,
        ..Request::default()
    }
}

#[track_caller]
fn target(dir: &Path) -> Target {
    target::open(&request(dir)).expect("usable")
}

#[track_caller]
fn scratch(dir: &Path) -> Scratch {
    Scratch::create(&target(dir), RUN).expect("created")
}

/// Where the folder is, from the outside.
fn place(dir: &Path) -> PathBuf {
    dir.join(name_for(RUN, fs::metadata(dir).expect("stat").ino()))
}

#[track_caller]
fn write(scratch: &Scratch, name: &str) {
    let file = scratch.create_file(name, RW).expect("create");
    rustix::io::write(&file, name.as_bytes()).expect("write");
}

#[test]
fn is_private_complete_and_gone_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine"), "mine").unwrap();
    let before = tree::of(dir.path());

    let scratch = scratch(dir.path());
    let folder = place(dir.path());
    assert_eq!(
        scratch.path,
        folder.canonicalize().unwrap().to_str().unwrap()
    );
    let meta = fs::symlink_metadata(&folder).unwrap();
    assert_eq!(meta.mode() & 0o7777, 0o700);
    assert_eq!(meta.uid(), rustix::process::geteuid().as_raw());

    write(&scratch, "seg-1");
    assert_eq!(
        fs::metadata(folder.join("seg-1")).unwrap().mode() & 0o7777,
        0o600
    );
    let undo = fs::read_to_string(folder.join("undo")).unwrap();
    assert_eq!(
        fs::metadata(folder.join("undo")).unwrap().mode() & 0o7777,
        0o600
    );
    let header: serde_json::Value = serde_json::from_str(&undo).unwrap();
    assert_eq!(header["magic"], "walprobe undo");
    assert_eq!(header["version"], 1);
    assert_eq!(header["run_id"], RUN);
    assert_eq!(header["folder_inode"], meta.ino());
    assert_eq!(header["pid"], std::process::id());
    assert!(undo.ends_with('\n'));

    let other = fs::File::open(folder.join("undo")).unwrap();
    let lock = rustix::fs::flock(&other, FlockOperation::NonBlockingLockExclusive);
    assert_eq!(
        lock,
        Err(rustix::io::Errno::WOULDBLOCK),
        "locked while it is held"
    );

    assert_eq!(scratch.remove(), Vec::<String>::new());
    tree::of(dir.path()).assert_same(&before, "after removal");
}

#[test]
fn file_calls_stay_inside_and_name_their_fault() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = scratch(dir.path());
    let folder = place(dir.path());
    fs::write(dir.path().join("seg-out"), "mine").unwrap();
    write(&scratch, "tmp-1");

    for bad in [
        "undo",
        "../seg-out",
        "seg-",
        "seg-A",
        "seg-a/b",
        "x",
        "",
        "seg-\n",
    ] {
        for fault in [
            scratch.create_file(bad, RW).unwrap_err(),
            scratch.open_file(bad, RW).unwrap_err(),
            scratch.rename("tmp-1", bad).unwrap_err(),
            scratch.rename(bad, "seg-1").unwrap_err(),
            scratch.unlink(bad).unwrap_err(),
        ] {
            assert_eq!(fault.errno, libc::EINVAL, "{bad:?}: {fault}");
        }
    }
    let again = scratch.create_file("tmp-1", RW).unwrap_err();
    assert_eq!(
        (again.call, again.errno, again.file.as_str()),
        ("openat", libc::EEXIST, "tmp-1")
    );
    let making = scratch.open_file("seg-9", RW | OFlags::CREATE).unwrap_err();
    assert_eq!(making.errno, libc::EINVAL);
    assert!(!folder.join("seg-9").exists());
    assert_eq!(
        scratch.open_file("seg-9", RW).unwrap_err().errno,
        libc::ENOENT
    );

    scratch.rename("tmp-1", "seg-1").unwrap();
    scratch.sync_dir().unwrap();
    scratch.syncfs().unwrap();
    assert_eq!(fs::read(folder.join("seg-1")).unwrap(), b"tmp-1");
    let file = scratch.open_file("seg-1", OFlags::RDONLY).unwrap();
    let flags = rustix::io::fcntl_getfd(&file).unwrap();
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    scratch.unlink("seg-1").unwrap();
    assert_eq!(scratch.unlink("seg-1").unwrap_err().call, "unlinkat");

    symlink(dir.path().join("seg-out"), folder.join("seg-link")).unwrap();
    let link = scratch
        .open_file("seg-link", RW | OFlags::TRUNC)
        .unwrap_err();
    assert_eq!(link.errno, libc::ELOOP, "a link is not followed");
    assert_eq!(
        scratch.create_file("seg-link", RW).unwrap_err().errno,
        libc::EEXIST
    );
    assert_eq!(fs::read(dir.path().join("seg-out")).unwrap(), b"mine");
    fs::remove_file(folder.join("seg-link")).unwrap();
    assert!(scratch.remove().is_empty());
}

#[test]
fn what_is_not_ours_stays_and_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let outside = dir.path().join("outside");
    fs::write(&outside, "mine").unwrap();
    let scratch = scratch(dir.path());
    let folder = place(dir.path());
    write(&scratch, "seg-1");
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    fs::create_dir(folder.join("seg-dir")).unwrap();
    fs::write(folder.join("seg-dir/seg-1"), "mine").unwrap();
    symlink(&outside, folder.join("old-link")).unwrap();
    symlink(dir.path(), folder.join("tmp-link")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        folder.join("file-fifo"),
        rustix::fs::FileType::Fifo,
        Mode::RUSR,
        0,
    )
    .unwrap();

    let shown = scratch.path.clone();
    let mut left = scratch.remove();
    assert_eq!(left.remove(0), shown, "the folder first");
    left.sort();
    let expected = ["file-fifo", "notes.txt", "old-link", "seg-dir", "tmp-link"];
    assert_eq!(left, expected.map(|n| format!("{shown}/{n}")));
    let stays = tree::of(&folder);
    let names: Vec<_> = stays
        .top()
        .iter()
        .map(|p| p.to_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, expected, "ours are gone, theirs are not");
    assert_eq!(fs::read(&outside).unwrap(), b"mine");
    assert_eq!(fs::read(folder.join("seg-dir/seg-1")).unwrap(), b"mine");
}

#[test]
fn dropping_and_panicking_remove_it() {
    let dir = tempfile::tempdir().unwrap();
    let before = tree::of(dir.path());
    write(&scratch(dir.path()), "seg-1");
    tree::of(dir.path()).assert_same(&before, "after a drop");

    let panic = std::panic::catch_unwind(|| {
        let scratch = scratch(dir.path());
        write(&scratch, "seg-1");
        assert!(!place(dir.path()).exists(), "on purpose");
    });
    assert!(panic.is_err());
    tree::of(dir.path()).assert_same(&before, "after a panic");
}

#[test]
fn the_directory_is_renamed_while_it_is_held() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    fs::create_dir(&old).unwrap();
    // Before the folder is made, and again after it.
    let target = target(&old);
    fs::rename(&old, &new).unwrap();
    fs::create_dir(&old).unwrap();
    fs::write(old.join("seg-1"), "mine").unwrap();
    let before = tree::of(&old);
    let scratch = Scratch::create(&target, RUN).unwrap();
    let last = dir.path().join("last");
    fs::rename(&new, &last).unwrap();
    let new = last;
    write(&scratch, "seg-1");
    assert!(
        place(&new).join("seg-1").exists(),
        "in the directory that was opened"
    );
    assert!(scratch.remove().is_empty());
    tree::of(&old).assert_same(&before, "the directory that took the name");
    assert!(tree::of(&new).top().is_empty(), "nothing is left");
}

#[test]
fn the_folder_is_renamed_and_replaced_while_it_is_held() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = scratch(dir.path());
    let folder = place(dir.path());
    let moved = dir.path().canonicalize().unwrap().join("moved");
    fs::rename(&folder, &moved).unwrap();
    fs::create_dir(&folder).unwrap();
    let before = tree::of(dir.path());
    write(&scratch, "seg-1");
    assert!(moved.join("seg-1").exists());
    assert_eq!(
        scratch.remove(),
        [moved.to_str().unwrap()],
        "told where it is now"
    );
    assert!(tree::of(&moved).top().is_empty(), "our files are gone");
    assert!(folder.is_dir(), "what took the name, though empty, stays");
    assert_eq!(tree::of(dir.path()).top(), before.top());
}

#[test]
fn the_folder_is_removed_by_somebody_else() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = scratch(dir.path());
    let folder = place(dir.path());
    fs::remove_file(folder.join("undo")).unwrap();
    fs::remove_dir(&folder).unwrap();
    assert_eq!(
        scratch.create_file("seg-1", RW).unwrap_err().errno,
        libc::ENOENT
    );
    assert!(
        scratch.remove().is_empty(),
        "nothing is left, so nothing is told"
    );
}

#[test]
fn a_replaced_undo_file_stays() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = scratch(dir.path());
    let undo = place(dir.path()).join("undo");
    fs::remove_file(&undo).unwrap();
    fs::write(&undo, "mine").unwrap();
    assert_eq!(scratch.remove().len(), 1);
    assert_eq!(fs::read(&undo).unwrap(), b"mine");
}

#[test]
fn a_run_id_is_used_once() {
    let dir = tempfile::tempdir().unwrap();
    let first = scratch(dir.path());
    write(&first, "seg-1");
    let before = tree::of(dir.path());
    let refused = Scratch::create(&target(dir.path()), RUN).unwrap_err();
    assert!(refused.message.contains("is there already"), "{refused}");
    tree::of(dir.path()).assert_same(&before, "after the refusal");

    let second = Scratch::create(&target(dir.path()), "01JDW3K9ZQ4V").unwrap();
    assert!(first.remove().is_empty());
    write(&second, "seg-1");
    assert!(second.remove().is_empty());
    for bad in [
        "",
        "short",
        "01jdw3k9zq4t",
        "01JDW3K9ZQ4TX",
        "01JDW3K9ZQ4U",
        "../../../../x",
    ] {
        assert!(Scratch::create(&target(dir.path()), bad).is_err(), "{bad}");
    }
    assert!(tree::of(dir.path()).top().is_empty());
}

#[test]
fn a_setgid_directory_hands_its_bit_down() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o2755)).unwrap();
    let scratch = scratch(dir.path());
    assert_eq!(
        fs::metadata(place(dir.path())).unwrap().mode() & 0o777,
        0o700
    );
    assert!(scratch.remove().is_empty());
}

#[test]
fn modes_under_odd_umasks() {
    for mask in ["0", "77", "277", "477", "777"] {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let env = [("CHILD_UMASK", mask)];
        // Root is not held up by modes, so an ordinary user is the harder test.
        let child = if rustix::process::geteuid().is_root() {
            child::start_as_nobody("umask", dir.path(), &env)
        } else {
            child::start("umask", dir.path(), &env)
        };
        assert!(child.end().success(), "umask {mask}");
        assert!(
            tree::of(dir.path()).top().is_empty(),
            "umask {mask}: left behind"
        );
    }
}

fn child_umask(dir: &Path) {
    let mask = std::env::var("CHILD_UMASK").unwrap();
    rustix::process::umask(Mode::from_raw_mode(u32::from_str_radix(&mask, 8).unwrap()));
    let scratch = scratch(dir);
    let mode = |p: &Path| fs::symlink_metadata(p).unwrap().mode() & 0o7777;
    assert_eq!(mode(&place(dir)), 0o700);
    assert_eq!(mode(&place(dir).join("undo")), 0o600);
    write(&scratch, "seg-1");
    assert_eq!(mode(&place(dir).join("seg-1")), 0o600);
    scratch.open_file("seg-1", RW).expect("may be opened again");
    assert!(scratch.remove().is_empty());
}

/// Not a test: what a child of this crate does.
#[test]
fn child_entry() {
    let Ok(case) = std::env::var("CHILD_CASE") else {
        return;
    };
    let dir = PathBuf::from(std::env::var_os("CHILD_DIR").unwrap());
    child::say("ready");
    match case.as_str() {
        "umask" => child_umask(&dir),
        "not-writable" => refusals::child_not_writable(&dir),
        other => panic!("no case {other}"),
    }
}
