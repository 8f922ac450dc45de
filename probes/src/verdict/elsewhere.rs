//! Servers, hosts and programs: what facts tell of filesystems whose other end is not here.

use serde_json::json;

use super::{
    Check, FLUSHED, Judged,
    known::{MOUNTINFO, files, final_type},
};
use crate::{
    facts::{Facts, Family, family},
    report::{
        DurabilityVerdict::{NoFlushSeen, NotProvable},
        Weight,
    },
};

/// Filesystems whose other end cannot be seen from here.
pub(super) fn judge(facts: &Facts, case: &mut Judged) {
    // A loop device's file may lie on one; its mount is not known, so neither are its options.
    let own = final_type(facts).map(|kind| (kind, MOUNTINFO.to_owned(), true));
    let below = files(facts)
        .into_iter()
        .map(|below| (below.kind, below.source, false));
    for (kind, source, is_own) in own.into_iter().chain(below) {
        let kind = kind.split('.').next().unwrap_or(kind);
        let (id, text) = match family(kind) {
            Family::Nfs => (
                "network-filesystem",
                up_to(kind, "the server and its export"),
            ),
            Family::Network if is_of_host(facts, kind) => {
                ("network-filesystem", up_to(kind, "the host"))
            }
            Family::Network => ("network-filesystem", up_to(kind, "the server")),
            Family::UserSpace if is_own && has_device(facts) => {
                let id = "user-space-filesystem";
                case.ground(id, Weight::Limits, json!(kind), None, source, None);
                case.besides.push(format!(
                    "what {} does between its flushes cannot be seen",
                    server(facts.text("fs.subtype"))
                ));
                continue;
            }
            Family::UserSpace => {
                let subtype = facts
                    .text("fs.subtype")
                    .filter(|_| is_own && facts.text("fs.type") == Some(kind));
                ("user-space-filesystem", user_space(kind, subtype))
            }
            _ => continue,
        };
        case.ground(id, Weight::Limits, json!(kind), None, source, None);
        case.say(NotProvable, text);
    }
    mounted(facts, case);
}

/// Shared by the host of this virtual machine.
fn is_of_host(facts: &Facts, kind: &str) -> bool {
    let transport = facts.text("9p.transport");
    match kind {
        "virtiofs" | "vboxsf" | "prl_fs" => true,
        "9p" => matches!(transport, Some("virtio" | "xen")),
        _ => false,
    }
}

fn up_to(kind: &str, who: &str) -> String {
    format!("{kind}: whether a sync reaches a device is up to {who}, and cannot be seen from here")
}

/// Programs that send files elsewhere, and what that means for a sync.
const PROGRAMS: &[(&str, &str)] = &[
    (
        "sshfs",
        "sshfs asks the server for a sync only if that offers it",
    ),
    ("s3fs", "s3fs keeps files as objects of a store"),
    ("goofys", "goofys keeps files as objects of a store"),
    ("gcsfuse", "gcsfuse keeps files as objects of a store"),
    ("rclone", "rclone keeps files in a store of another kind"),
    ("gvfsd-fuse", "gvfs hands files to backends of many kinds"),
];

/// A program whose filesystem the kernel ties to a block device: its flushes can be counted.
fn has_device(facts: &Facts) -> bool {
    facts.text("fs.type") == Some("fuseblk")
}

/// Such a program may flush its device and keep the data elsewhere: both must be seen there.
pub(super) fn wrote_there(facts: &Facts, check: &Check<'_>, case: &mut Judged) {
    let row = check.fdatasync.row;
    let there = row.device_bytes_written;
    let is_there = there
        .zip(row.bytes_written)
        .is_some_and(|(there, written)| there as f64 >= written as f64 * FLUSHED);
    if is_there || !has_device(facts) {
        return;
    }
    case.ground(
        "user-space-filesystem",
        Weight::Limits,
        json!(there),
        Some("bytes"),
        "durability/check/fdatasync",
        Some(check.fdatasync.pointer("device_bytes_written")),
    );
    case.say(
        NotProvable,
        format!(
            "{} acknowledged data that its device was not seen to get",
            server(facts.text("fs.subtype"))
        ),
    );
}

fn server(subtype: Option<&str>) -> String {
    subtype.map_or_else(
        || "the program that serves it".to_owned(),
        |subtype| format!("the program that serves it ({subtype})"),
    )
}

/// The kernel itself answers the syncs of a program that has no such operation.
fn user_space(kind: &str, subtype: Option<&str>) -> String {
    let mut text = up_to(kind, &server(subtype));
    text.push_str("; a program may leave syncs out, and they succeed all the same");
    let known = PROGRAMS.iter().find(|(name, _)| subtype == Some(*name));
    if let Some((_, words)) = known {
        text.push_str("; ");
        text.push_str(words);
    }
    text
}

/// Mount options that take from what a sync or an error promises.
fn mounted(facts: &Facts, case: &mut Judged) {
    if facts.truth("cifs.strict_sync") == Some(false) {
        case.ground(
            "sync-not-sent",
            Weight::Against,
            json!("nostrictsync"),
            None,
            MOUNTINFO,
            None,
        );
        case.say(
            NoFlushSeen,
            "the share is mounted nostrictsync: a sync does not ask the server to flush",
        );
    }
    if facts.truth("nfs.hard") == Some(false) {
        case.ground(
            "soft-mount",
            Weight::Limits,
            json!("soft"),
            None,
            MOUNTINFO,
            None,
        );
        case.besides.push(
            "the mount is soft: a write that gets no answer in time fails instead of waiting"
                .to_owned(),
        );
    }
}
