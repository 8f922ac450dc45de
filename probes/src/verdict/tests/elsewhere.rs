//! Servers, hosts and programs.

use super::*;

/// Rows of a mount whose 64 syncs sent these requests.
fn sent(writes: u64, commits: u64) -> Vec<Row> {
    let mut rows = same(0, &[]);
    for row in &mut rows {
        row.flushes = None;
        row.flushes_per_op = None;
        row.observations.clear();
        row.observations
            .insert("nfs_writes".to_owned(), json!(writes));
        row.observations
            .insert("nfs_commits".to_owned(), json!(commits));
    }
    rows
}

#[test]
fn requests_to_a_server_are_a_ground_and_no_proof() {
    let nfs = facts(
        &[("fs.type", json!("nfs4")), ("nfs.hard", json!(true))],
        vec![],
    );
    for (writes, commits, weight, value, words) in [
        // One WRITE that asks for stable storage, no COMMIT.
        (64, 0, FOR, 64, "did send its data"),
        (130, 64, FOR, 64, "did send its data"),
        (70, 3, FOR, 70, "did send its data"),
        (40, 0, LIMITS, 40, "not every sync"),
        (0, 0, AGAINST, 0, "no sync was seen"),
    ] {
        let rows = sent(writes, commits);
        expect(
            &nfs,
            &rows,
            NotProvable,
            &[("network-filesystem", LIMITS), ("server-requests", weight)],
        );
        let durability = judged(&nfs, &rows, true);
        assert_eq!(durability.grounds[1].value, value);
        assert!(durability.text.contains(words), "{}", durability.text);
        assert!(!durability.may_recommend);
    }
    // Not counted, nothing said.
    let mut uncounted = sent(0, 0);
    for row in &mut uncounted {
        row.observations.clear();
    }
    expect(
        &nfs,
        &uncounted,
        NotProvable,
        &[("network-filesystem", LIMITS)],
    );
}

#[test]
fn mount_options_that_weaken_a_sync() {
    let soft = facts(
        &[("fs.type", json!("nfs")), ("nfs.hard", json!(false))],
        vec![],
    );
    expect(
        &soft,
        &sent(64, 0),
        NotProvable,
        &[
            ("network-filesystem", LIMITS),
            ("soft-mount", LIMITS),
            ("server-requests", FOR),
        ],
    );
    let lax = facts(
        &[
            ("fs.type", json!("cifs")),
            ("cifs.strict_sync", json!(false)),
        ],
        vec![],
    );
    expect(
        &lax,
        &[],
        NoFlushSeen,
        &[("network-filesystem", LIMITS), ("sync-not-sent", AGAINST)],
    );
}

#[test]
fn who_decides_is_named() {
    let text = |list: &[(&str, Value)]| judged(&facts(list, vec![]), &[], true).text;
    let kind = |kind: &str| ("fs.type", json!(kind));
    assert!(text(&[kind("ceph")]).contains("up to the server"));
    assert!(text(&[kind("9p")]).contains("up to the server"));
    let virtio = ("9p.transport", json!("virtio"));
    assert!(text(&[kind("9p"), virtio]).contains("up to the host"));
    assert!(text(&[kind("virtiofs")]).contains("up to the host"));
    let sshfs = text(&[kind("fuse"), ("fs.subtype", json!("sshfs"))]);
    assert!(
        sshfs.contains("the program that serves it (sshfs)"),
        "{sshfs}"
    );
    assert!(sshfs.contains("only if that offers it"), "{sshfs}");
    // The subtype is that of the mount, not of a file below a loop device.
    let below = facts(
        &[("fs.subtype", json!("x"))],
        vec![loop_on(Some("fuse.sshfs"))],
    );
    let durability = judged(&below, &[], true);
    assert_eq!(durability.verdict, NotProvable);
    assert!(durability.text.starts_with("fuse: "), "{}", durability.text);
    assert!(!durability.text.contains("(x)"), "{}", durability.text);
}
