//! Filesystems without room: refused in time, and nothing left where it was noticed late.

use std::{fs, path::Path};

use walprobe_probes::scratch::Scratch;

use crate::{RUN, means, target, tree};

const MIB: u64 = 1 << 20;

/// A tmpfs, and a body that gets it.
fn on_tmpfs(test: &str, options: &str, body: impl FnOnce(&Path) + Send) {
    means::with_own_mounts(test, |dir| {
        means::tmpfs(dir, options);
        body(dir);
    });
}

#[test]
fn space_is_asked_for_with_a_margin() {
    on_tmpfs("space_is_asked_for_with_a_margin", "size=100m", |dir| {
        let target = target(dir);
        assert_eq!(target.free_bytes(), Ok(Some(100 * MIB)));
        // 5% of 100 MiB are kept free.
        target.check_space(95 * MIB).expect("just fits");
        let refused = target.check_space(95 * MIB + 1).unwrap_err();
        let shown = dir.display();
        assert_eq!(
            refused.message,
            format!(
                "cannot use {shown}: 100.0 MiB free, 95.0 MiB needed and 5.0 MiB to be kept free"
            )
        );
        target.check_space(u64::MAX).expect_err("no overflow");
        fs::write(dir.join("mine"), vec![1; 10 << 20]).unwrap();
        target.check_space(85 * MIB).expect("what is used counts");
        target
            .check_space(86 * MIB)
            .expect_err("what is used counts");
    });
    on_tmpfs("space_is_asked_for_with_a_margin", "size=4g", |dir| {
        let target = target(dir);
        // 5% would be 205 MiB; 64 MiB are enough.
        target
            .check_space(4096 * MIB - 64 * MIB)
            .expect("just fits");
        target
            .check_space(4096 * MIB - 64 * MIB + 1)
            .expect_err("too much");
    });
}

#[test]
fn no_limit_and_no_inodes() {
    on_tmpfs("no_limit_and_no_inodes", "size=0,nr_inodes=0", |dir| {
        let target = target(dir);
        assert_eq!(target.free_bytes(), Ok(None));
        target
            .check_space(1 << 50)
            .expect("a filesystem without a limit says 0 of 0");
    });
    on_tmpfs("no_limit_and_no_inodes", "size=100m,nr_inodes=20", |dir| {
        let refused = target(dir).check_space(0).unwrap_err();
        assert!(
            refused.message.contains("inodes free, 64 needed"),
            "{refused}"
        );
    });
}

#[test]
fn no_room_for_the_folder() {
    on_tmpfs("no_room_for_the_folder", "size=1m,nr_inodes=1", |dir| {
        let refused = Scratch::create(&target(dir), RUN).unwrap_err();
        let shown = dir.display();
        assert_eq!(
            refused.message,
            format!("cannot use {shown}: No space left on device (os error 28)")
        );
        assert!(tree::of(dir).top().is_empty());
    });
}

#[test]
fn no_room_for_the_undo_file() {
    on_tmpfs("no_room_for_the_undo_file", "size=1m,nr_inodes=2", |dir| {
        let refused = Scratch::create(&target(dir), RUN).unwrap_err();
        let shown = dir.display();
        assert_eq!(
            refused.message,
            format!("cannot use {shown}: openat of undo: No space left on device (os error 28)")
        );
        assert!(tree::of(dir).top().is_empty(), "nothing is left behind");
    });
}

#[test]
fn no_room_for_its_first_line() {
    on_tmpfs(
        "no_room_for_its_first_line",
        "size=64k,nr_inodes=10",
        |dir| {
            fs::write(dir.join("mine"), vec![1; 64 << 10]).unwrap();
            let before = tree::of(dir);
            let refused = Scratch::create(&target(dir), RUN).unwrap_err();
            let shown = dir.display();
            assert_eq!(
                refused.message,
                format!(
                    "cannot use {shown}: pwrite of undo: No space left on device (os error 28)"
                )
            );
            tree::of(dir).assert_same(&before, "nothing is left behind");
        },
    );
}

#[test]
fn full_while_it_is_held() {
    on_tmpfs("full_while_it_is_held", "size=256k,nr_inodes=20", |dir| {
        let target = target(dir);
        let scratch = Scratch::create(&target, RUN).unwrap();
        let file = scratch
            .create_file("seg-1", rustix::fs::OFlags::RDWR)
            .unwrap();
        while rustix::io::write(&file, &[1; 4096]).is_ok() {}
        for n in 2.. {
            if let Err(fault) = scratch.create_file(&format!("seg-{n}"), rustix::fs::OFlags::RDWR) {
                assert_eq!((fault.call, fault.errno), ("openat", libc::ENOSPC));
                break;
            }
        }
        assert!(scratch.remove().is_empty(), "removal needs no room");
        assert!(tree::of(dir).top().is_empty());
    });
}
