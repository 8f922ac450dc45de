//! What facts decide alone, without a sync.

use serde_json::json;

use super::{Judged, elsewhere, stack};
use crate::{
    facts::{Facts, Family, family, preload},
    report::{
        Device,
        DurabilityVerdict::{NoFlushSeen, NotDurable, NotProvable},
        Weight,
    },
};

pub(super) const MOUNTINFO: &str = "/proc/self/mountinfo";

/// The grounds that lie in the facts.
pub(super) fn judge(facts: &Facts, case: &mut Judged) {
    in_memory(facts, case);
    swallowed(facts, case);
    elsewhere::judge(facts, case);
    barriers(facts, case);
    unseen_files(facts, case);
    unseen_journals(facts, case);
}

/// The type of the filesystem where a sync ends: below an overlay its upper layer's.
pub(super) fn final_type(facts: &Facts) -> Option<&str> {
    let kind = facts.text("fs.type")?;
    if family(kind) == Family::Overlay {
        facts.text("fs.subtype")
    } else {
        Some(kind)
    }
}

/// A file that a device lies on, and the filesystem that the file lies on.
pub(super) struct Below<'a> {
    /// `the file below loop0`.
    file: String,
    /// The filesystem's type.
    pub(super) kind: &'a str,
    /// Where the file's path was read.
    pub(super) source: String,
}

/// Each once.
pub(super) fn files(facts: &Facts) -> Vec<Below<'_>> {
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

/// This program's own calls go past libc, so it cannot see what a library does to others'.
fn preloaded(facts: &Facts, case: &mut Judged) {
    let list = facts.text("host.preload").unwrap_or_default();
    let is_harmless = matches!(list, "" | "none");
    if is_harmless || list.split(' ').any(preload::swallows_syncs) {
        return;
    }
    let source = facts
        .get("host.preload")
        .map_or_else(String::new, |fact| fact.source.clone());
    case.ground("preload", Weight::Limits, json!(list), None, source, None);
    case.besides.push(format!(
        "a preloaded library may change what a sync means for other programs: {list}; these calls went past it"
    ));
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

/// A flush of a loop device is an fsync of its file: where nothing is known of what that
/// lies on, the flushes that it counts show nothing.
fn unseen_files(facts: &Facts, case: &mut Judged) {
    for device in stack::leaves(facts) {
        let kind = device.backing_fs.as_deref();
        let is_decided = kind.is_some_and(|kind| {
            kind == "overlay volatile"
                || matches!(
                    family(kind),
                    Family::Memory | Family::Nfs | Family::Network | Family::UserSpace
                )
        });
        if is_decided || !(device.kind == "loop" || stack::is_file(device)) {
            continue;
        }
        let name = &device.name;
        case.ground(
            "backing-file-unseen",
            Weight::Limits,
            json!(kind),
            None,
            backing_file(name),
            None,
        );
        let which = kind.map_or_else(
            || "where that lies".to_owned(),
            |kind| format!("what the {kind} below it lies on"),
        );
        case.say(
            NotProvable,
            format!(
                "a flush of {name} is a sync of its file, and {which} cannot be seen from here"
            ),
        );
    }
}

/// A journal that is not in the filesystem, and not known where else.
fn unseen_journals(facts: &Facts, case: &mut Judged) {
    for device in facts.devices.iter().filter(|d| stack::is_unseen(d)) {
        let of = device.name.trim_end_matches("-journal");
        case.ground(
            "journal-unseen",
            Weight::Limits,
            json!(of),
            None,
            "/proc/fs/jbd2",
            None,
        );
        case.say(
            NotProvable,
            format!(
                "the journal of {of} lies on another device, and which one cannot be seen from here"
            ),
        );
    }
}

/// What bounds any verdict: layers that cannot be looked into.
pub(super) fn limits(facts: &Facts, case: &mut Judged) {
    preloaded(facts, case);
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
        if device.is_virtual == Some(true) {
            hidden.push(device);
        } else if device.is_virtual.is_none() && !on_metal {
            perhaps.push(device);
        } else {
            continue;
        }
        let source = format!("/sys/block/{}/device", device.name);
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
