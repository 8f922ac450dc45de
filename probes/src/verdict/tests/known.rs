//! What facts decide and limit, with and without rows.

use super::*;

#[test]
fn facts_against_decide_alone_asked_or_not() {
    let cheap = |mut rows: Vec<Row>| {
        phase(&mut rows[1], "sync", 800);
        rows
    };
    for (list, devices, id) in [
        (vec![("fs.type", json!("tmpfs"))], vec![], "fs-in-memory"),
        (vec![("fs.type", json!("ramfs"))], vec![], "fs-in-memory"),
        (
            vec![
                ("fs.type", json!("overlay")),
                ("fs.subtype", json!("tmpfs")),
            ],
            vec![],
            "fs-in-memory",
        ),
        (vec![], vec![write_through("zram0", None)], "fs-in-memory"),
        (
            vec![
                ("fs.type", json!("overlay")),
                ("fs.subtype", json!("ext4")),
                ("overlay.volatile", json!(true)),
            ],
            loop_on_vda(),
            "overlay-volatile",
        ),
        (
            vec![(
                "host.preload",
                json!("/l/libjemalloc.so /l/libeatmydata.so"),
            )],
            loop_on_vda(),
            "preload",
        ),
        (
            vec![("fs.type", json!("zfs")), ("zfs.sync", json!("disabled"))],
            vec![],
            "zfs-sync-disabled",
        ),
    ] {
        let facts = facts(&list, devices);
        let asked = judged(
            &facts,
            &cheap(same(64, &[("loop0", 64), ("vda", 64)])),
            true,
        );
        let unasked = judged(&facts, &[], false);
        for durability in [asked, unasked] {
            assert_eq!(durability.verdict, NotDurable, "{id}");
            assert_eq!(durability.grounds[0].id, id);
            assert_eq!(durability.grounds[0].weight, AGAINST);
        }
    }
    let library = facts(
        &[("host.preload", json!("/l/libeatmydata.so"))],
        loop_on_vda(),
    );
    let ground = &judged(&library, &[], false).grounds[0];
    assert_eq!(ground.value, "/l/libeatmydata.so");
    let harmless = facts(
        &[("host.preload", json!("/l/libjemalloc.so"))],
        loop_on_vda(),
    );
    assert_eq!(judged(&harmless, &[], false).verdict, NotTested);
}

#[test]
fn the_other_end_of_a_network_or_a_program_cannot_be_seen() {
    for (kind, id) in [
        ("nfs4", "network-filesystem"),
        ("cifs", "network-filesystem"),
        ("9p", "network-filesystem"),
        ("virtiofs", "network-filesystem"),
        ("fuse", "user-space-filesystem"),
        ("fuseblk", "user-space-filesystem"),
    ] {
        if kind != "fuseblk" {
            let facts = facts(&[("fs.type", json!(kind))], vec![]);
            expect(&facts, &same(0, &[]), NotProvable, &[(id, LIMITS)]);
        }
        // Also below a loop device that counts every flush.
        let facts = self::facts(&[], vec![loop_on(Some(kind))]);
        expect(
            &facts,
            &same(64, &[("loop0", 64)]),
            NotProvable,
            &[(id, LIMITS), ("device-flushes", FOR)],
        );
    }
}

/// The kernel ties a `fuseblk` to a block device, so its flushes are counted as any other's; and
/// its data must be seen there too.
#[test]
fn a_program_on_a_block_device_is_judged_by_that_device() {
    let facts = facts(
        &[("fs.type", json!("fuseblk")), ("fs.subtype", json!("x"))],
        vec![device("sda", None)],
    );
    let rows = |flushes, written: Option<u64>| {
        let mut rows = same(flushes, &[("sda", flushes)]);
        for row in &mut rows {
            row.bytes_written = Some(64 * 8192);
            row.device_bytes_written = written;
        }
        rows
    };
    let id = "user-space-filesystem";
    expect(
        &facts,
        &rows(64, Some(64 * 8192)),
        FlushesSeen,
        &[(id, LIMITS), ("device-flushes", FOR)],
    );
    expect(
        &facts,
        &rows(0, Some(64 * 8192)),
        NoFlushSeen,
        &[(id, LIMITS), ("device-flushes", AGAINST)],
    );
    for written in [None, Some(0), Some(32 * 8192)] {
        let seen = [(id, LIMITS), ("device-flushes", FOR), (id, LIMITS)];
        expect(&facts, &rows(64, written), NotProvable, &seen);
    }
    // Nothing is known of a device.
    let facts = self::facts(&[("fs.type", json!("fuseblk"))], vec![]);
    let seen = [(id, LIMITS), ("device-flushes", LIMITS), (id, LIMITS)];
    expect(&facts, &same(0, &[]), NotProvable, &seen);
}

#[test]
fn what_cannot_be_looked_into_limits() {
    // A virtual disk, whatever the host.
    let disk = facts(&[("host.virtual", json!("kvm"))], vec![device("vda", None)]);
    let durability = judged(&disk, &same(64, &[("vda", 64)]), true);
    assert_eq!(durability.verdict, FlushesSeen);
    assert!(durability.text.contains("below vda cannot be seen"));
    // A disk of a virtual machine that may be real.
    let perhaps = Device {
        is_virtual: None,
        ..device("sda", None)
    };
    let facts = facts(&[("host.virtual", json!("kvm"))], vec![perhaps]);
    let rows = same(64, &[("sda", 64)]);
    expect(
        &facts,
        &rows,
        FlushesSeen,
        &[("device-flushes", FOR), ("virtual-device", LIMITS)],
    );
    assert!(judged(&facts, &rows, true).text.contains("virtual machine"));
    // A loop device whose file cannot be found.
    let lost = self::facts(&[], vec![loop_on(None)]);
    expect(
        &lost,
        &same(64, &[("loop0", 64)]),
        NotProvable,
        &[("backing-file-unseen", LIMITS), ("device-flushes", FOR)],
    );
    // Nor one on an overlay whose upper layer, or on a pool whose devices, cannot be found.
    for kind in ["overlay", "zfs", "btrfs"] {
        expect(
            &self::facts(&[], vec![loop_on(Some(kind))]),
            &same(64, &[("loop0", 64)]),
            NotProvable,
            &[("backing-file-unseen", LIMITS), ("device-flushes", FOR)],
        );
    }
    // An overlay that passes syncs on.
    let overlay = self::facts(
        &[
            ("fs.type", json!("overlay")),
            ("fs.subtype", json!("ext4")),
            ("overlay.volatile", json!(false)),
        ],
        vec![device("sda", None)],
    );
    expect(
        &overlay,
        &rows,
        FlushesSeen,
        &[("device-flushes", FOR), ("stacked-filesystem", LIMITS)],
    );
}

#[test]
fn a_filesystem_without_a_visible_device_is_not_provable() {
    for kind in ["zfs", "bcachefs"] {
        let facts = facts(&[("fs.type", json!(kind))], vec![]);
        expect(
            &facts,
            &same(0, &[]),
            NotProvable,
            &[("device-flushes", LIMITS)],
        );
    }
    // An overlay whose upper layer is of another mount namespace.
    let lost = facts(
        &[
            ("fs.type", json!("overlay")),
            ("fs.subtype", json!(null)),
            ("fs.barrier", json!(null)),
        ],
        vec![],
    );
    expect(
        &lost,
        &same(0, &[]),
        NotProvable,
        &[("device-flushes", LIMITS), ("stacked-filesystem", LIMITS)],
    );
}

#[test]
fn without_rows_nothing_is_claimed() {
    let facts = facts(&[], vec![device("sda", None)]);
    for (rows, asked) in [(vec![], false), (vec![], true)] {
        let durability = judged(&facts, &rows, asked);
        assert_eq!(durability.verdict, NotTested);
        assert_eq!(durability.grounds[0].id, "not-asked");
    }
    let mut faulty = same(64, &[("sda", 64)]);
    faulty[1].status = RowStatus::Fault;
    faulty[1].reason = Some("fdatasync: EIO at operation 3".to_owned());
    let durability = judged(&facts, &faulty, true);
    assert_eq!(durability.verdict, NotTested);
    assert!(durability.text.contains("EIO"));
    assert_eq!(durability.grounds[0].value, "fdatasync: EIO at operation 3");
    let mut empty = same(64, &[("sda", 64)]);
    empty[1].syncs = Some(0);
    assert_eq!(judged(&facts, &empty, true).verdict, NotTested);
    // Barriers off is a fact that needs no sync.
    let bare = self::facts(&[("fs.barrier", json!(false))], vec![device("sda", None)]);
    assert_eq!(judged(&bare, &[], false).verdict, NoFlushSeen);
}

#[test]
fn any_preloaded_library_limits_what_is_said() {
    let library = facts(
        &[("host.preload", json!("/l/libshim.so"))],
        vec![device("sda", None)],
    );
    let rows = same(64, &[("sda", 64)]);
    let grounds = [("device-flushes", FOR), ("preload", LIMITS)];
    expect(&library, &rows, FlushesSeen, &grounds);
    let text = judged(&library, &rows, true).text;
    assert!(text.contains("a preloaded library may change"), "{text}");
    assert!(text.contains("/l/libshim.so"), "{text}");
}

#[test]
fn a_mount_that_changed_under_way_recommends_nothing() {
    let with = |barrier: Value| facts(&[("fs.barrier", barrier)], vec![device("sda", None)]);
    let (on, off) = (with(json!(true)), with(json!(false)));
    let rows = same(64, &[("sda", 64)]);
    for (before, after) in [(&on, &off), (&off, &on)] {
        let told = changed(before, after, &rows, true).unwrap();
        assert_eq!(told.verdict, NoFlushSeen);
        assert!(!told.may_recommend);
        assert_eq!(told.grounds.last().unwrap().id, "mount-changed");
        assert!(told.text.contains("fs.barrier changed"), "{}", told.text);
    }
    assert!(changed(&on, &on, &rows, true).is_none());
    assert!(changed(&on, &with(json!(null)), &rows, true).is_none());
    let journal = |mode: &str| {
        facts(
            &[("fs.journal_mode", json!(mode))],
            vec![device("sda", None)],
        )
    };
    let told = changed(&journal("ordered"), &journal("writeback"), &rows, true).unwrap();
    assert_eq!((told.verdict, told.may_recommend), (NotProvable, false));
}
