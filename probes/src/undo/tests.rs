//! The file's lines read back, whole and torn; actions undone newest first.

use std::{fs, os::fd::AsFd as _, path::Path};

use proptest::prelude::*;

use super::{lines::*, *};
use crate::{clean::clean, removal, scratch::Scratch, target};

const RUN: &str = "01JDW3K9ZQ4T";

fn marker(path: &Path) -> Action {
    Action::Marker {
        path: path.to_owned(),
    }
}

fn log(actions: usize, undone: usize) -> (String, Vec<Action>) {
    let all: Vec<_> = (0..actions)
        .map(|n| marker(Path::new(&n.to_string())))
        .collect();
    let mut text = header(RUN, 42);
    for action in &all {
        text += &line(&Told::Will(action));
    }
    for action in all.iter().rev().take(undone) {
        text += &line(&Told::Undone(action));
    }
    (text, all[..actions - undone].to_vec())
}

#[test]
fn a_whole_log() {
    for (actions, undone) in [(0, 0), (1, 0), (3, 1), (3, 3)] {
        let (text, left) = log(actions, undone);
        assert_eq!(
            parse(text.as_bytes(), RUN, 42),
            Ok((text.len() as u64, left))
        );
    }
}

#[test]
fn the_same_action_twice_counts_twice() {
    let action = marker(Path::new("x"));
    let text = header(RUN, 42)
        + &line(&Told::Will(&action))
        + &line(&Told::Will(&action))
        + &line(&Told::Undone(&action));
    assert_eq!(parse(text.as_bytes(), RUN, 42).unwrap().1, [action]);
}

#[test]
fn somebody_else_s_file() {
    let (text, _) = log(1, 0);
    for (run_id, inode) in [("01JDW3K9ZQ4V", 42), (RUN, 43), (RUN, 4), (RUN, 420)] {
        assert!(
            parse(text.as_bytes(), run_id, inode).is_err(),
            "{run_id} {inode}"
        );
    }
    for foreign in [
        "x",
        "\n",
        "{}\n",
        "{\"magic\":\"other\"}\n",
        "git log --undo\n",
        "\n{\"magic\":\"walprobe undo\"",
    ] {
        let reason = parse(foreign.as_bytes(), RUN, 42).unwrap_err();
        assert_eq!(reason, "its undo file does not belong to it", "{foreign:?}");
    }
    let newer = text.replacen("\"version\":1", "\"version\":2", 1);
    assert!(
        parse(newer.as_bytes(), RUN, 42)
            .unwrap_err()
            .contains("version")
    );
    let broken_header = text.replacen("\"pid\":", "\"pid\" ", 1);
    assert!(parse(broken_header.as_bytes(), RUN, 42).is_err());
}

#[test]
fn a_line_that_is_not_understood_stops_everything() {
    let (text, _) = log(1, 0);
    for odd in [
        "{\"will\":{\"kind\":\"wormhole\",\"end\":7}}\n",
        "{\"shall\":{\"kind\":\"marker\",\"path\":\"x\"}}\n",
        "\n",
        "noise\x1b[31m\n",
    ] {
        let reason = parse((text.clone() + odd).as_bytes(), RUN, 42).unwrap_err();
        assert!(reason.contains("does not understand"), "{reason}");
        assert!(!reason.contains('\x1b') && !reason.contains('\n'));
        // The same line torn was never followed by what it announces.
        assert!(parse((text.clone() + odd.trim_end()).as_bytes(), RUN, 42).is_ok());
    }
}

proptest! {
    #[test]
    fn torn_anywhere(actions in 0_usize..5, cut in 0.0..1.0, nuls in 0_usize..9) {
        let (text, all) = log(actions, 0);
        let cut = (text.len() as f64 * cut) as usize;
        let mut bytes = text.as_bytes()[..cut].to_vec();
        bytes.extend(std::iter::repeat_n(0, nuls));
        let (len, left) = parse(&bytes, RUN, 42).expect("a torn log is ours");
        prop_assert!(len as usize <= cut);
        prop_assert!(len == 0 || bytes[len as usize - 1] == b'\n');
        prop_assert_eq!(&left[..], &all[..left.len()], "a prefix of what was announced");
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 1..200)) {
        // Never a panic, never an action; random bytes are not ours unless a header begins with them.
        if let Ok((_, actions)) = parse(&bytes, RUN, 42) {
            prop_assert!(actions.is_empty());
            let text: Vec<u8> = bytes.iter().copied().take_while(|b| *b != 0).collect();
            prop_assert!(header(RUN, 42).as_bytes().starts_with(&text));
        }
    }
}

fn scratch(dir: &Path) -> Scratch {
    Scratch::create(&target::hold(dir).unwrap(), RUN).unwrap()
}

/// A folder, and a file in it: undone in the wrong order the folder is not empty.
fn announce_two(undo: &Undo, dir: &Path) -> (Action, Action) {
    let outer = dir.join("outer");
    let inner = outer.join("inner");
    undo.will(marker(&outer)).unwrap();
    fs::create_dir(&outer).unwrap();
    undo.will(marker(&inner)).unwrap();
    fs::write(&inner, "").unwrap();
    undo.will(marker(&dir.join("announced, never made")))
        .unwrap();
    (marker(&outer), marker(&inner))
}

fn unlock(undo: &Undo) {
    rustix::fs::flock(undo.log().file.as_ref().unwrap(), FlockOperation::Unlock).unwrap();
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

#[test]
fn removal_undoes_newest_first() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = scratch(dir.path());
    announce_two(scratch.undo(), dir.path());
    assert!(scratch.remove().is_empty());
    assert!(is_empty(dir.path()));
}

#[test]
fn clean_undoes_newest_first() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = scratch(dir.path());
    let (_, inner) = announce_two(scratch.undo(), dir.path());
    let log = fs::read(Path::new(&scratch.path).join(NAME)).unwrap();
    // As after a SIGKILL: the folder, its files and its log, nobody holding them.
    unlock(scratch.undo());
    let folder = scratch.path.clone();
    std::mem::forget(scratch);

    let mut torn = log.clone();
    torn.extend_from_slice(&line(&Told::Undone(&inner)).as_bytes()[..20]);
    fs::write(Path::new(&folder).join(NAME), torn).unwrap();
    let report = clean(dir.path()).unwrap();
    assert_eq!(report.removed, [folder], "{report:?}");
    assert!(is_empty(dir.path()));
}

#[test]
fn what_cannot_be_undone_keeps_the_folder_and_its_log() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = scratch(dir.path());
    let (outer, _) = announce_two(scratch.undo(), dir.path());
    let foreign = dir.path().join("outer/foreign");
    fs::write(&foreign, "").unwrap();
    drop(scratch.create_file("seg-1", OFlags::RDWR).unwrap());
    let folder = scratch.path.clone();
    let left = scratch.remove();
    assert_eq!(left[0], folder);
    assert_eq!(left.len(), 2, "{left:?}");

    // What was undone is not undone again; the rest is, once it can be.
    let text = fs::read(Path::new(&folder).join(NAME)).unwrap();
    let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&folder).unwrap());
    assert_eq!(parse(&text, RUN, inode).unwrap().1, [outer]);
    fs::remove_file(foreign).unwrap();
    assert_eq!(clean(dir.path()).unwrap().removed, [folder]);
    assert!(is_empty(dir.path()));
}

#[test]
fn a_failed_line_leaves_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = scratch(dir.path());
    let undo = scratch.undo();
    let path = Path::new(&scratch.path).join(NAME);
    undo.will(marker(Path::new("/nowhere/1"))).unwrap();
    let before = fs::read(&path).unwrap();

    let long = "x".repeat(MAX_BYTES as usize);
    let fault = undo.will(marker(Path::new(&long))).unwrap_err();
    assert_eq!((fault.call, fault.errno), ("pwrite", libc::EFBIG));
    // Half a line that a full filesystem let through, longer than the next one.
    undo.log().torn = true;
    fs::write(&path, [&before[..], &[b'{'; 500]].concat()).unwrap();
    undo.did_undo(&marker(Path::new("/nowhere/1"))).unwrap();
    let after = fs::read(&path).unwrap();
    assert!(after.starts_with(&before));
    let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&scratch.path).unwrap());
    assert_eq!(
        parse(&after, RUN, inode).unwrap(),
        (after.len() as u64, Vec::new())
    );
    assert!(undo.outstanding().is_empty());
    assert!(scratch.remove().is_empty());
}

#[test]
fn entries_are_listed_without_the_dots() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "").unwrap();
    let held = target::hold(dir.path()).unwrap();
    assert_eq!(removal::entries(held.dir.as_fd()), Ok(vec![b"a".to_vec()]));
}

/// Else whoever owns a folder could have root undo what they like.
#[test]
fn root_replays_only_what_root_wrote() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: root_replays_only_what_root_wrote: needs root");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let precious = dir.path().join("precious");
    fs::write(&precious, "").unwrap();
    let scratch = scratch(dir.path());
    scratch.undo().will(marker(&precious)).unwrap();
    unlock(scratch.undo());
    let folder = scratch.path.clone();
    std::mem::forget(scratch);
    for path in [Path::new(&folder), &Path::new(&folder).join(NAME)] {
        std::os::unix::fs::chown(path, Some(65534), None).unwrap();
    }
    let report = clean(dir.path()).unwrap();
    let reason = "run walprobe clean as user id 65534, who made it".to_owned();
    assert_eq!(report.left, [(folder, reason)]);
    assert!(precious.exists());
}

#[test]
fn an_undo_file_that_was_removed_before_it_was_claimed() {
    let dir = tempfile::tempdir().unwrap();
    let held = target::hold(dir.path()).unwrap();
    for replaced in [false, true] {
        fs::write(dir.path().join(NAME), "").unwrap();
        let file = OwnedFd::from(
            fs::File::options()
                .write(true)
                .read(true)
                .open(dir.path().join(NAME))
                .unwrap(),
        );
        fs::remove_file(dir.path().join(NAME)).unwrap();
        if replaced {
            fs::write(dir.path().join(NAME), "").unwrap();
        }
        let claim = Undo::claim_opened(held.dir.as_fd(), file, RUN, held.id.inode);
        assert!(matches!(claim, Claim::Again), "replaced: {replaced}");
    }
}

#[test]
fn a_folder_that_was_removed_before_its_undo_file_was_made() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let held = target::hold(&folder).unwrap();
    fs::remove_dir(&folder).unwrap();
    let made = Undo::create(held.dir.as_fd(), &|_| ()).unwrap();
    assert!(matches!(made, Made::Gone));
}
