//! What counting has shown, as grounds and in words.
//!
//! A figure is shown as the report has it, before the quiet rate is subtracted, so that
//! its pointer resolves to it.

use serde_json::{Value, json};

use super::{Check, Found, Judged, layers::count, stack};
use crate::{
    facts::Facts,
    report::{
        Device,
        DurabilityVerdict::{FlushesSeen, NoFlushNeeded, NoFlushSeen, NotProvable},
        Weight,
    },
};

/// What was counted of these devices: the row's own figure where it is of them all and of
/// no other, else the first one's count.
fn figure(found: &Found<'_>, devices: &[&Device]) -> (Value, &'static str, Option<String>) {
    let counts: Option<Vec<f64>> = devices.iter().map(|d| count(found, &d.name)).collect();
    let rows = found.row.flushes.map(|n| n as f64);
    if let Some(flushes) = found.row.flushes_per_op
        && counts.is_none_or(|c| rows == Some(c.iter().sum()))
    {
        let pointer = found.pointer("flushes_per_op");
        return (json!(flushes), "flushes_per_sync", Some(pointer));
    }
    let name = devices.first().map(|d| format!("flushes.{}", d.name));
    match name.and_then(|name| Some((found.row.observations.get(&name)?, name))) {
        Some((value, name)) => (value.clone(), "flushes", Some(found.observation(&name))),
        None => (Value::Null, "flushes", None),
    }
}

/// A `device-flushes` ground, or another of the same figure.
pub(super) fn counted(
    id: &str,
    weight: Weight,
    devices: &[&Device],
    found: &Found<'_>,
    case: &mut Judged,
) {
    let (value, unit, evidence) = figure(found, devices);
    let source = stack::stat_files(devices);
    case.ground(id, weight, value, Some(unit), source, evidence);
}

pub(super) fn flushed(devices: &[&Device], check: &Check<'_>, case: &mut Judged) {
    flushed_to(devices, &stack::names(devices), check, case);
}

/// The same, where only some of the devices take each flush.
pub(super) fn flushed_to(devices: &[&Device], whom: &str, check: &Check<'_>, case: &mut Judged) {
    if devices.is_empty() {
        return;
    }
    counted(
        "device-flushes",
        Weight::For,
        devices,
        &check.fdatasync,
        case,
    );
    case.say(FlushesSeen, format!("each sync sent a flush to {whom}"));
}

pub(super) fn fua(devices: &[&Device], check: &Check<'_>, case: &mut Judged) {
    let Some(found) = check.extending.filter(|_| !devices.is_empty()) else {
        return;
    };
    counted("fua-device", Weight::For, devices, &found, case);
    case.say(
        FlushesSeen,
        format!(
            "each sync wrote to {}, which has forced unit access, and each sync of a growing file sent it a flush",
            stack::names(devices)
        ),
    );
}

pub(super) fn write_through(devices: &[&Device], case: &mut Judged) {
    for device in devices {
        case.ground(
            "write-through-device",
            Weight::For,
            json!(device.name),
            None,
            format!("/sys/block/{}/queue/write_cache", device.name),
            None,
        );
    }
    if !devices.is_empty() {
        case.say(
            NoFlushNeeded,
            format!(
                "{} claims to write through, so no flush is needed",
                stack::names(devices)
            ),
        );
    }
}

pub(super) fn unflushed(devices: &[&Device], syncs: &str, found: &Found<'_>, case: &mut Judged) {
    for device in devices {
        counted("device-flushes", Weight::Against, &[device], found, case);
    }
    if !devices.is_empty() {
        case.say(
            NoFlushSeen,
            format!(
                "{syncs} sent no flush to {}, whose write cache may lose what it holds",
                stack::names(devices)
            ),
        );
    }
}

pub(super) fn not_written(devices: &[&Device], check: &Check<'_>, case: &mut Judged) {
    if devices.is_empty() {
        return;
    }
    let found = &check.fdatasync;
    let name = "device_writes";
    let value = found.row.observations.get(name).cloned();
    case.ground(
        "device-flushes",
        Weight::Against,
        value.unwrap_or_default(),
        Some("writes"),
        stack::stat_files(devices),
        Some(found.observation(name)),
    );
    case.say(
        NoFlushSeen,
        format!(
            "syncs sent neither a flush nor their data to {}",
            stack::names(devices)
        ),
    );
}

pub(super) fn unclear(devices: &[&Device], found: &Found<'_>, case: &mut Judged) {
    for device in devices {
        counted("device-flushes", Weight::Limits, &[device], found, case);
    }
    if !devices.is_empty() {
        case.say(
            NotProvable,
            format!(
                "the flushes that {} counted do not show that each sync sent one",
                stack::names(devices)
            ),
        );
    }
}

/// Enough flushes were counted, and others flush the device as often.
pub(super) fn drowned(devices: &[&Device], found: &Found<'_>, case: &mut Judged) {
    if devices.is_empty() {
        return;
    }
    for device in devices {
        counted("device-flushes", Weight::Limits, &[device], found, case);
    }
    let name = "quiet_flushes_per_s";
    let rate = found.row.observations.get(name).cloned();
    case.ground(
        "foreign-flushes",
        Weight::Limits,
        rate.clone().unwrap_or_default(),
        Some("flushes_per_s"),
        stack::stat_files(devices),
        rate.map(|_| found.observation(name)),
    );
    case.say(
        NotProvable,
        format!(
            "others flush {} so often that the syncs' own flushes cannot be told from theirs",
            stack::names(devices)
        ),
    );
}

/// The filesystem's journal, on a device of its own.
pub(super) fn journal_flushed(device: &Device, found: &Found<'_>, case: &mut Judged) {
    counted("device-flushes", Weight::For, &[device], found, case);
    case.say(
        FlushesSeen,
        format!(
            "each sync of a growing file sent a flush to the journal on {}",
            device.name
        ),
    );
}

pub(super) fn uncounted(devices: &[&Device], case: &mut Judged) {
    if devices.is_empty() {
        return;
    }
    let source = stack::stat_files(devices);
    case.ground(
        "device-flushes",
        Weight::Limits,
        Value::Null,
        Some("flushes"),
        source,
        None,
    );
    case.say(
        NotProvable,
        format!("{} does not count flushes", stack::names(devices)),
    );
}

/// No block device is known below the filesystem.
pub(super) fn no_device(facts: &Facts, case: &mut Judged) {
    // Where a fact has said why, that says more.
    if case.worst.is_some() {
        return;
    }
    case.ground(
        "device-flushes",
        Weight::Limits,
        Value::Null,
        Some("flushes"),
        "/sys/block",
        None,
    );
    let kind = facts.text("fs.type").unwrap_or("the filesystem");
    case.say(
        NotProvable,
        format!("no block device below {kind} can be seen from here"),
    );
}
