//! Names: the folder's, the files', and those of directories that are hard to print.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt as _, path::Path};

use walprobe_probes::{
    clean::clean,
    paths,
    scratch::{Scratch, is_run_id, name_for, name_is_ours, run_id_of},
};

use crate::{RUN, place, request, target, tree, write};

#[test]
fn the_form_does_not_change_between_versions() {
    // A later walprobe has to know what an earlier one left: computed by other means.
    assert_eq!(name_for("01JDW3K9ZQ4T", 42), "walprobe-01JDW3K9ZQ4T-NKA09D");
    assert_eq!(
        name_for("ZZZZZZZZZZZZ", u64::MAX),
        "walprobe-ZZZZZZZZZZZZ-F6WVMT"
    );
}

#[test]
fn the_check_depends_on_run_and_directory() {
    let name = name_for(RUN, 42);
    assert_ne!(name, name_for(RUN, 43));
    assert_ne!(name[22..], name_for("01JDW3K9ZQ4V", 42)[22..]);
    assert_eq!(run_id_of(&name), Some(RUN));
    for other in [
        "walprobe-notes",
        "walprobe-01JDW3K9ZQ4T",
        "walprobe-01JDW3K9ZQ4T-",
        "walprobe-01JDW3K9ZQ4T-00000",
        "walprobe-01JDW3K9ZQ4T-0000000",
        "walprobe-01jdw3k9zq4t-000000",
        "walprobe-01JDW3K9ZQ4T-00000u",
        "xwalprobe-01JDW3K9ZQ4T-000000",
    ] {
        assert_eq!(run_id_of(other), None, "{other}");
    }
    assert!(is_run_id("0123456789AB") && !is_run_id("0123456789AI"));
}

#[test]
fn names_of_files() {
    for ours in ["seg-1", "tmp-a+b.c@d_e-f", "old-0", "witness-x", "file-y"] {
        assert!(name_is_ours(ours), "{ours}");
    }
    assert!(name_is_ours(&format!("seg-{}", "x".repeat(60))));
    assert!(!name_is_ours(&format!("seg-{}", "x".repeat(61))));
    for other in [
        "seg-",
        "seg",
        "Seg-1",
        "seg-A",
        "seg-a b",
        "seg-a/b",
        "undo",
        "seg-\u{e9}",
        ".",
        "..",
    ] {
        assert!(!name_is_ours(other), "{other}");
    }
}

#[test]
fn directories_that_are_hard_to_print() {
    for (bytes, shown) in [
        (&b"with space"[..], "with space"),
        (b"line\nbreak", r"line\nbreak"),
        (b"esc\x1b[31m", r"esc\x1b[31m"),
        (b"not\xffutf8", r"not\xffutf8"),
        (b"back\\slash", r"back\\slash"),
        (b"100%{}", "100%{}"),
    ] {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let dir = base.join(Path::new(OsStr::from_bytes(bytes)));
        let missing = target::open(&request(&dir)).unwrap_err();
        let expected = format!("{}/{shown}", base.display());
        assert_eq!(
            missing.message,
            format!("cannot use {expected}: No such file or directory (os error 2)")
        );

        fs::create_dir(&dir).unwrap();
        let target = target(&dir);
        assert_eq!(target.path, dir);
        assert_eq!(target.path_text(), expected);
        let json = serde_json::to_string(&request(&dir)).unwrap();
        let back: walprobe_probes::request::Request = serde_json::from_str(&json).unwrap();
        assert_eq!(
            paths::from_request(&back.dir),
            dir,
            "the way to a worker and back"
        );

        let scratch = Scratch::create(&target, RUN).unwrap();
        write(&scratch, "seg-1");
        assert!(place(&dir).join("seg-1").exists());
        assert_eq!(
            scratch.path,
            format!("{expected}/{}", place(&dir).file_name().unwrap().display())
        );
        let report = clean(&dir).unwrap();
        assert_eq!(report.running, std::slice::from_ref(&scratch.path));
        fs::write(place(&dir).join(OsStr::from_bytes(b"a\xff\n")), "").unwrap();
        let left = scratch.remove();
        assert_eq!(left[1], format!("{}/a\\xff\\n", left[0]));
        assert!(left.iter().all(|l| !l.contains('\n')));
        assert_eq!(tree::of(&place(&dir)).top().len(), 1);
    }
}
