//! What mount options and mountstats tell of servers and programs.

use walprobe_probes::{
    facts::{Facts, Roots, mountstats},
    report::{Durability, DurabilityVerdict},
};

use super::{recorded, stack, tree, verdict_of, why};

fn network(path: &str) -> Facts {
    recorded("network", path)
}

fn unchecked(facts: &Facts) -> Durability {
    verdict_of(facts, 0, &[])
}

#[test]
fn nfs_is_told_by_its_options() {
    let soft = network("/mnt/nfs soft");
    assert_eq!(soft.text("fs.type"), Some("nfs4"));
    assert_eq!(soft.text("mount.source"), Some("server:/my data"));
    assert_eq!(soft.text("nfs.version"), Some("4.2"));
    assert_eq!(soft.truth("nfs.hard"), Some(false));
    assert_eq!(soft.truth("nfs.sync"), Some(false));
    assert_eq!(stack(&soft), "");
    let hard = network("/mnt/nfs");
    assert_eq!(hard.text("nfs.version"), Some("3"));
    assert_eq!(hard.truth("nfs.hard"), Some(true));
    assert_eq!(hard.truth("nfs.sync"), Some(true));
    assert_eq!(why(&hard, "cifs.cache"), "not CIFS");

    let told = unchecked(&soft);
    assert_eq!(told.verdict, DurabilityVerdict::NotProvable);
    assert_eq!(
        told.text,
        "nfs4: whether a sync reaches a device is up to the server and its export, and cannot \
         be seen from here; the mount is soft: a write that gets no answer in time fails \
         instead of waiting"
    );
    assert!(!unchecked(&hard).text.contains("soft"));
}

#[test]
fn requests_are_those_of_the_very_mount() {
    let roots = Roots::recorded(&tree("network")).unwrap();
    let sent = |path: &str| {
        let requests = mountstats::read(&network(path), &roots)?;
        Some((requests.writes, requests.commits))
    };
    assert_eq!(sent("/mnt/nfs soft"), Some((130, 2)));
    assert_eq!(sent("/mnt/nfs"), Some((7, 3)));
    assert_eq!(sent("/mnt/share"), None);
}

#[test]
fn a_share_that_keeps_syncs_back_is_told() {
    let strict = network("/mnt/share");
    assert_eq!(strict.text("cifs.version"), Some("3.1.1"));
    assert_eq!(strict.text("cifs.cache"), Some("strict"));
    assert_eq!(strict.truth("cifs.strict_sync"), Some(true));
    // Every CIFS mount lists soft; it means something else there.
    assert_eq!(why(&strict, "nfs.hard"), "not NFS");
    assert_eq!(unchecked(&strict).verdict, DurabilityVerdict::NotProvable);
    let lax = network("/mnt/lax");
    assert_eq!(lax.text("cifs.cache"), Some("loose"));
    assert_eq!(lax.truth("cifs.strict_sync"), Some(false));
    let told = unchecked(&lax);
    assert_eq!(told.verdict, DurabilityVerdict::NoFlushSeen);
    assert_eq!(
        told.text,
        "the share is mounted nostrictsync: a sync does not ask the server to flush"
    );
}

#[test]
fn a_host_that_shares_its_files_is_named() {
    for (path, cache) in [
        ("/mnt/9p", None),
        ("/mnt/9p-old", Some("loose")),
        ("/mnt/9p-new", Some("f")),
    ] {
        let facts = network(path);
        assert_eq!(facts.text("fs.type"), Some("9p"));
        assert_eq!(facts.text("9p.cache"), cache, "{path}");
        assert_eq!(facts.text("9p.transport"), Some("virtio"));
        assert!(unchecked(&facts).text.contains("up to the host"), "{path}");
    }
    assert!(why(&network("/mnt/9p"), "9p.cache").contains("not listed"));
    let virtiofs = network("/mnt/virtiofs");
    assert_eq!(virtiofs.text("fs.type"), Some("virtiofs"));
    let told = unchecked(&virtiofs);
    assert_eq!(told.verdict, DurabilityVerdict::NotProvable);
    assert!(told.text.contains("up to the host"), "{}", told.text);
}

#[test]
fn programs_are_named_with_what_they_do_to_a_sync() {
    for (path, subtype, words) in [
        ("/mnt/ssh", Some("sshfs"), "asks the server for a sync only"),
        ("/mnt/bucket", Some("s3fs"), "objects of a store"),
        ("/mnt/plain", None, "succeed all the same"),
    ] {
        let facts = network(path);
        assert_eq!(facts.text("fs.type"), Some("fuse"));
        assert_eq!(facts.text("fs.subtype"), subtype);
        let told = unchecked(&facts);
        assert_eq!(told.verdict, DurabilityVerdict::NotProvable);
        assert!(told.text.contains(words), "{}", told.text);
    }
}
