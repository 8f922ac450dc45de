//! What facts decide alone, without a sync.

use serde_json::json;

use super::{Judged, stack};
use crate::{
    facts::{Facts, Family, family, preload},
    report::{
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

/// Loop devices and the filesystem that their backing file lies on; each once.
fn loops(facts: &Facts) -> Vec<(&str, &str)> {
    let mut found: Vec<(&str, &str)> = facts
        .devices
        .iter()
        .filter_map(|d| Some((d.name.as_str(), d.backing_fs.as_deref()?)))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
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
    for (name, kind) in loops(facts) {
        if family(kind) == Family::Memory {
            case.ground(
                id,
                Weight::Against,
                json!(kind),
                None,
                backing_file(name),
                None,
            );
            case.say(
                NotDurable,
                format!(
                    "the file below {name} lies on {kind}, in memory: everything is lost with the power"
                ),
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
    for (name, kind) in loops(facts) {
        if kind == "overlay volatile" {
            let source = backing_file(name);
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
                format!("the file below {name} lies on an overlay that is mounted volatile: it answers syncs without doing them"),
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
    let own = final_type(facts).map(|kind| (kind, MOUNTINFO.to_owned()));
    let below = loops(facts)
        .into_iter()
        .map(|(name, kind)| (kind, backing_file(name)));
    for (kind, source) in own.into_iter().chain(below) {
        let (id, who) = match family(kind) {
            Family::Nfs | Family::Network => ("network-filesystem", "the server"),
            Family::UserSpace => ("user-space-filesystem", "the program that serves it"),
            _ => continue,
        };
        case.ground(id, Weight::Limits, json!(kind), None, source, None);
        case.say(
            NotProvable,
            format!("{kind}: whether a sync reaches a device is up to {who}, and cannot be seen from here"),
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
