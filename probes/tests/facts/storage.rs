//! Arrays, volumes, pools and the paths between them.

use walprobe_probes::{facts::Facts, report::DurabilityVerdict};

use super::{recorded, stack, verdict_of, why};

fn storage(path: &str) -> Facts {
    recorded("storage", path)
}

#[test]
fn a_loop_over_a_volume_over_an_array() {
    let image = storage("/mnt/image");
    // The spare takes no writes.
    assert_eq!(
        stack(&image),
        "loop0:loop[xfs] loop0>dm-0:lvm dm-0>md0:md \
         md0>sda1:partition sda1>sda:disk. md0>sdb1:partition sdb1>sdb:disk."
    );
    assert_eq!(image.devices[2].level.as_deref(), Some("raid1"));
    let both = [("loop0", 64), ("sda", 64), ("sdb", 64)];
    let told = verdict_of(&image, 64, &both);
    assert_eq!(
        told.verdict,
        DurabilityVerdict::FlushesSeen,
        "{}",
        told.text
    );
    // One side of the mirror is enough to lose what was acknowledged.
    let one = [("loop0", 64), ("sda", 64), ("sdb", 0)];
    let told = verdict_of(&image, 64, &one);
    assert_eq!(told.verdict, DurabilityVerdict::NoFlushSeen);
    assert_eq!(told.text, "loop0 got 64 flushes but sdb below it only 0");
}

#[test]
fn every_member_of_a_btrfs_must_be_flushed() {
    let two = storage("/mnt/two");
    assert_eq!(stack(&two), "sdd:disk. sde:disk.");
    let told = verdict_of(&two, 256, &[("sdd", 128), ("sde", 128)]);
    assert_eq!(told.verdict, DurabilityVerdict::FlushesSeen);
    let told = verdict_of(&two, 128, &[("sdd", 128), ("sde", 0)]);
    assert_eq!(told.verdict, DurabilityVerdict::NoFlushSeen);
}

#[test]
fn one_path_of_several_takes_the_flushes() {
    let san = storage("/mnt/san");
    assert_eq!(stack(&san), "dm-1:dm dm-1>sdh:disk. dm-1>sdi:disk.");
    let flushes = |dm: u64, paths: u64| {
        let counts = [("dm-1", dm), ("sdh", 0), ("sdi", paths)];
        verdict_of(&san, dm, &counts).verdict
    };
    assert_eq!(flushes(64, 64), DurabilityVerdict::FlushesSeen);
    assert_eq!(flushes(64, 0), DurabilityVerdict::NoFlushSeen);
    // Some kernels do not count for it; the paths do.
    assert_eq!(flushes(0, 64), DurabilityVerdict::FlushesSeen);
    assert_eq!(flushes(0, 0), DurabilityVerdict::NoFlushSeen);
}

#[test]
fn a_pool_is_told_by_its_programs() {
    let pg = storage("/tank/pg");
    assert_eq!(pg.text("zfs.dataset"), Some("tank/pg"));
    assert_eq!(pg.number("zfs.recordsize_bytes"), Some(8192));
    assert_eq!(pg.text("zfs.compression"), Some("lz4"));
    assert_eq!(pg.text("zfs.sync"), Some("standard"));
    assert_eq!(pg.text("zfs.logbias"), Some("latency"));
    assert_eq!(pg.text("zfs.primarycache"), Some("all"));
    assert_eq!(pg.number("zfs.special_small_blocks_bytes"), Some(0));
    assert_eq!(pg.text("zfs.direct"), Some("standard"));
    assert_eq!(pg.text("zfs.version"), Some("2.3.2-2"));
    assert_eq!(pg.number("zfs.arc_bytes"), Some(123_456_789));
    assert_eq!(pg.number("zfs.arc_max_bytes"), Some(2_000_000_000));
    assert_eq!(pg.truth("fs.barrier"), Some(true));
    assert_eq!(
        pg.text("zfs.vdevs"),
        Some("mirror-0 /dev/sdf1 /dev/sdg1, log /dev/nvme0n1p1")
    );
    assert_eq!(
        stack(&pg),
        "sdf1:partition(mirror-0) sdf1>sdf:disk. sdg1:partition(mirror-0) sdg1>sdg:disk. \
         nvme0n1p1:partition(log) nvme0n1p1>nvme0n1:disk."
    );
    // An older version has no such property.
    let lax = storage("/tank/lax");
    assert!(why(&lax, "zfs.direct").contains("no property direct"));
    // Nobody answers: what statfs tells remains.
    let other = storage("/other");
    assert_eq!(why(&other, "zfs.sync"), "no program zfs");
    assert_eq!(why(&other, "zfs.vdevs"), "no program zpool");
    assert_eq!(other.number("zfs.recordsize_bytes"), Some(131_072));
    assert_eq!(other.get("zfs.recordsize_bytes").unwrap().source, "statvfs");
    assert_eq!(stack(&other), "");
}

#[test]
fn a_dataset_that_does_not_sync_is_not_durable() {
    let lax = storage("/tank/lax");
    let told = verdict_of(&lax, 64, &[("nvme0n1", 0), ("sdf", 64), ("sdg", 64)]);
    assert_eq!(told.verdict, DurabilityVerdict::NotDurable);
    assert_eq!(
        told.text,
        "the dataset has sync=disabled: it answers syncs without doing them"
    );
}

#[test]
fn a_pool_flushes_what_took_the_write() {
    use DurabilityVerdict::{FlushesSeen, NoFlushNeeded, NoFlushSeen, NotProvable};
    // The log claims to write through and takes the syncs; the mirror is flushed later.
    let logged = storage("/tank/pg");
    let told = verdict_of(&logged, 2, &[("nvme0n1", 0), ("sdf", 1), ("sdg", 1)]);
    assert_eq!(told.verdict, NoFlushNeeded, "{}", told.text);
    assert!(told.text.contains("nvme0n1 claims"), "{}", told.text);
    // Two devices, each takes some.
    let one = storage("/one");
    assert_eq!(one.text("zfs.vdevs"), Some("/dev/sdf1, /dev/sdg1"));
    for (counts, verdict) in [
        ((64, 0), FlushesSeen),
        ((30, 33), FlushesSeen),
        ((20, 12), NotProvable),
        ((0, 0), NoFlushSeen),
    ] {
        let told = verdict_of(
            &one,
            counts.0 + counts.1,
            &[("sdf", counts.0), ("sdg", counts.1)],
        );
        assert_eq!(told.verdict, verdict, "{}", told.text);
    }
    let told = verdict_of(&storage("/other"), 0, &[]);
    assert_eq!(told.verdict, NotProvable);
    assert_eq!(told.text, "no block device below zfs can be seen from here");
}

#[test]
fn a_pool_of_files_and_a_file_on_a_pool() {
    let files = storage("/files");
    assert_eq!(
        stack(&files),
        "/data/vdev.img:other[xfs] /data/vdev.img>dm-0:lvm dm-0>md0:md \
         md0>sda1:partition sda1>sda:disk. md0>sdb1:partition sdb1>sdb:disk."
    );
    let on_zfs = storage("/mnt/on-zfs");
    assert_eq!(
        stack(&on_zfs),
        "loop1:loop[zfs] loop1>sdf1:partition(mirror-0) sdf1>sdf:disk. \
         loop1>sdg1:partition(mirror-0) sdg1>sdg:disk. \
         loop1>nvme0n1p1:partition(log) nvme0n1p1>nvme0n1:disk."
    );
    // What the log device took cannot be counted.
    let told = verdict_of(
        &on_zfs,
        64,
        &[("loop1", 64), ("sdf", 0), ("sdg", 0), ("nvme0n1", 0)],
    );
    assert_eq!(
        told.verdict,
        DurabilityVerdict::FlushesSeen,
        "{}",
        told.text
    );
}
