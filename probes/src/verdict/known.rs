//! What facts decide alone, without a sync.

use serde_json::json;

use super::{Judged, stack};
use crate::{
    facts::{Facts, Family, family, preload},
    report::{
        Device,
        DurabilityVerdict::{NoFlushSeen, NotDurable, NotProvable},
        Weight,
    },
};

const MOUNTINFO: &str = "/proc/self/mountinfo";

/// The grounds that lie in the facts.
pub(super) fn judge(facts: &Facts, case: &mut Judged) {
    in_memory(facts, case);
    swallowed(facts, case);
    elsewhere(facts, case);
    mounted(facts, case);
    barriers(facts, case);
}

/// The type of the filesystem where a sync ends: below an overlay its upper layer's.
fn final_type(facts: &Facts) -> Option<&str> {
    let kind = facts.text("fs.type")?;
    if family(kind) == Family::Overlay {
        facts.text("fs.subtype")
    } else {
        Some(kind)
    }
}

/// A file that a device lies on, and the filesystem that the file lies on.
struct Below<'a> {
    /// `the file below loop0`.
    file: String,
    kind: &'a str,
    source: String,
}

/// Each once.
fn files(facts: &Facts) -> Vec<Below<'_>> {
    let mut found: Vec<(&Device, &str)> = facts
        .devices
        .iter()
        .filter_map(|d| Some((d, d.backing_fs.as_deref()?)))
        .collect();
    found.sort_unstable_by_key(|(device, kind)| (&device.name, *kind));
    found.dedup_by_key(|(device, kind)| (&device.name, *kind));
    found
        .into_iter()
        .map(|(device, kind)| {
            let (file, source) = if stack::is_file(device) {
                (
                    format!("the file {}", device.name),
                    "zpool status".to_owned(),
                )
            } else {
                (
                    format!("the file below {}", device.name),
                    backing_file(&device.name),
                )
            };
            Below { file, kind, source }
        })
        .collect()
}

fn backing_file(name: &str) -> String {
    format!("/sys/block/{name}/loop/backing_file")
}

fn in_memory(facts: &Facts, case: &mut Judged) {
    let id = "fs-in-memory";
    if let Some(kind) = final_type(facts).filter(|kind| family(kind) == Family::Memory) {
        case.ground(id, Weight::Against, json!(kind), None, MOUNTINFO, None);
        case.say(
            NotDurable,
            format!("{kind} lives in memory: everything is lost with the power"),
        );
    }
    for Below { file, kind, source } in files(facts) {
        if family(kind) == Family::Memory {
            case.ground(id, Weight::Against, json!(kind), None, source, None);
            case.say(
                NotDurable,
                format!("{file} lies on {kind}, in memory: everything is lost with the power"),
            );
        }
    }
    for device in stack::leaves(facts) {
        if crate::facts::is_memory_device(&device.name) {
            let source = format!("/sys/block/{}", device.name);
            case.ground(id, Weight::Against, json!(device.name), None, source, None);
            case.say(
                NotDurable,
                format!(
                    "{} keeps its content in memory: everything is lost with the power",
                    device.name
                ),
            );
        }
    }
}

fn swallowed(facts: &Facts, case: &mut Judged) {
    if facts.truth("overlay.volatile") == Some(true) {
        case.ground(
            "overlay-volatile",
            Weight::Against,
            json!(true),
            None,
            MOUNTINFO,
            None,
        );
        case.say(
            NotDurable,
            "the overlay is mounted volatile: it answers syncs without doing them",
        );
    }
    for Below { file, kind, source } in files(facts) {
        if kind == "overlay volatile" {
            case.ground(
                "overlay-volatile",
                Weight::Against,
                json!(kind),
                None,
                source,
                None,
            );
            case.say(
                NotDurable,
                format!("{file} lies on an overlay that is mounted volatile: it answers syncs without doing them"),
            );
        }
    }
    if facts.text("zfs.sync") == Some("disabled") {
        case.ground(
            "zfs-sync-disabled",
            Weight::Against,
            json!("disabled"),
            None,
            "zfs get",
            None,
        );
        case.say(
            NotDurable,
            "the dataset has sync=disabled: it answers syncs without doing them",
        );
    }
    let preloaded = facts.text("host.preload").unwrap_or_default();
    if let Some(library) = preloaded
        .split(' ')
        .find(|name| preload::swallows_syncs(name))
    {
        let source = facts
            .get("host.preload")
            .map_or_else(String::new, |fact| fact.source.clone());
        case.ground(
            "preload",
            Weight::Against,
            json!(library),
            None,
            source,
            None,
        );
        case.say(
            NotDurable,
            format!("{library} is loaded into programs here and answers syncs without doing them"),
        );
    }
}

/// Filesystems whose other end cannot be seen from here.
fn elsewhere(facts: &Facts, case: &mut Judged) {
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
            Family::Network if matches!(kind, "virtiofs" | "vboxsf" | "prl_fs") => {
                ("network-filesystem", up_to(kind, "the host"))
            }
            Family::Network => ("network-filesystem", up_to(kind, "the server")),
            Family::UserSpace => {
                let subtype = facts.text("fs.subtype").filter(|_| is_own);
                ("user-space-filesystem", user_space(kind, subtype))
            }
            _ => continue,
        };
        case.ground(id, Weight::Limits, json!(kind), None, source, None);
        case.say(NotProvable, text);
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

/// The kernel itself answers the syncs of a program that has no such operation.
fn user_space(kind: &str, subtype: Option<&str>) -> String {
    let program = subtype.map_or_else(
        || "the program that serves it".to_owned(),
        |subtype| format!("the program that serves it ({subtype})"),
    );
    let mut text = up_to(kind, &program);
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

/// A filesystem that is told to send no flushes. Where every device claims write-through
/// that is how it is meant to be used.
fn barriers(facts: &Facts, case: &mut Judged) {
    if facts.truth("fs.barrier") != Some(false) {
        return;
    }
    let source = facts
        .get("fs.barrier")
        .map_or_else(String::new, |fact| fact.source.clone());
    let own = stack::own_bearers(facts, &|_| false);
    if !own.is_empty() && own.iter().all(|d| stack::is_write_through(d)) {
        case.ground(
            "barriers-off",
            Weight::Limits,
            json!(false),
            None,
            source,
            None,
        );
        return;
    }
    case.ground(
        "barriers-off",
        Weight::Against,
        json!(false),
        None,
        source,
        None,
    );
    case.say(
        NoFlushSeen,
        "barriers are off: the filesystem sends no flush to the device",
    );
}

/// What bounds any verdict: layers that cannot be looked into.
pub(super) fn limits(facts: &Facts, case: &mut Judged) {
    if facts.text("fs.type").map(family) == Some(Family::Overlay) {
        let below = facts.text("fs.subtype");
        case.ground(
            "stacked-filesystem",
            Weight::Limits,
            json!(below),
            None,
            MOUNTINFO,
            None,
        );
    }
    let on_metal = facts.text("host.virtual") == Some("no");
    let mut hidden = Vec::new();
    let mut perhaps = Vec::new();
    for device in stack::leaves(facts) {
        let unknown_file = device.kind == "loop" && device.backing_fs.is_none();
        if device.is_virtual == Some(true) || unknown_file {
            hidden.push(device);
        } else if device.is_virtual.is_none() && !on_metal {
            perhaps.push(device);
        } else {
            continue;
        }
        let source = if unknown_file {
            backing_file(&device.name)
        } else {
            format!("/sys/block/{}/device", device.name)
        };
        case.ground(
            "virtual-device",
            Weight::Limits,
            json!(device.name),
            None,
            source,
            None,
        );
    }
    if !hidden.is_empty() {
        case.besides.push(format!(
            "what lies below {} cannot be seen from here",
            stack::names(&hidden)
        ));
    }
    if !perhaps.is_empty() {
        case.besides.push(format!(
            "this is a virtual machine, and whether {} is a real disk cannot be seen from here",
            stack::names(&perhaps)
        ));
    }
}
