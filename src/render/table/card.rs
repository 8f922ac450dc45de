//! A directory's card: where it lies, what is below it, and whether a sync is to be believed.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use walprobe_probes::report::{Device, DurabilityVerdict, Ground, Target, Weight};

use super::{Page, scalar, title};
use crate::render::{units, vocabulary};

/// Facts that stand on the card when they are known, in this order.
const DETAILS: &[&str] = &[
    "fs.subtype",
    "fs.journal_mode",
    "fs.barrier",
    "fs.delalloc",
    "fs.compress",
    "fs.nocow",
    "overlay.volatile",
    "nfs.version",
    "nfs.hard",
    "nfs.sync",
    "cifs.version",
    "cifs.cache",
    "cifs.strict_sync",
    "9p.cache",
    "zfs.recordsize_bytes",
    "zfs.sync",
    "zfs.logbias",
    "zfs.compression",
    "zfs.primarycache",
];

/// Writes the card.
pub(super) fn write(page: &mut Page, target: &Target) {
    page.out.push('\n');
    if let Some(line) = alarm(target) {
        page.loud(&line);
    }
    let rule = "=".repeat(target.dir.chars().count().clamp(8, page.options.prose()));
    let _ = writeln!(page.out, "{}\n{rule}", page.paint.bold(&target.dir));
    if let Some(reason) = &target.reason {
        page.loud(&format!("not measured to the end: {reason}"));
    }
    if !target.left_behind.is_empty() {
        page.loud(&format!(
            "LEFT BEHIND: {}; `walprobe clean {}` removes it",
            target.left_behind.join(", "),
            target.dir
        ));
    }
    if target.facts.is_empty() && target.rows.is_empty() {
        return;
    }
    page.labelled(1, "filesystem", &filesystem(target));
    let details = details(target);
    if !details.is_empty() {
        page.labelled(1, "", &details);
    }
    devices(page, &target.devices);
    let durability = &target.durability;
    page.labelled(
        1,
        "durability",
        &format!("{}: {}", durability.verdict.as_str(), durability.text),
    );
    for ground in &durability.grounds {
        page.labelled(3, weight(ground.weight), &words(ground));
    }
    if target.bytes_written > 0 {
        page.labelled(1, "written", &units::bytes(target.bytes_written as f64));
    }
}

/// The first line of a directory whose figures are not those of a durable log.
pub(in crate::render) fn alarm(target: &Target) -> Option<String> {
    let text = target.durability.text.trim_end_matches('.');
    match target.durability.verdict {
        DurabilityVerdict::NotDurable => Some(format!(
            "NOT DURABLE: {text}; the figures below are not those of a durable log"
        )),
        DurabilityVerdict::NoFlushSeen => Some(format!(
            "NO FLUSH SEEN: {text}; what was acknowledged may be lost with the power, and the \
             figures below are not those of a durable log"
        )),
        _ => None,
    }
}

/// The filesystem in one phrase: `ext4 (rw,relatime) on loop0`.
#[must_use]
pub fn filesystem(target: &Target) -> String {
    phrase(target, true)
}

/// The same without the mount options.
pub(in crate::render) fn filesystem_alone(target: &Target) -> String {
    phrase(target, false)
}

fn phrase(target: &Target, options: bool) -> String {
    let text = |name: &str| {
        target
            .facts
            .get(name)
            .filter(|f| !f.value.is_null())
            .map(|f| scalar(name, &f.value))
    };
    let mut out = text("fs.type").unwrap_or_else(|| "unknown filesystem".to_owned());
    if let Some(options) = text("mount.options").filter(|_| options) {
        let _ = write!(out, " ({options})");
    }
    let own: Vec<&str> = target
        .devices
        .iter()
        .filter(|d| d.above.is_none())
        .map(|d| d.name.as_str())
        .collect();
    if !own.is_empty() {
        let _ = write!(out, " on {}", own.join(", "));
    }
    out
}

/// What else is known of it.
pub(in crate::render) fn details(target: &Target) -> String {
    let free = target.facts.get("fs.free_bytes");
    let free = free.filter(|f| !f.value.is_null());
    let free = free.map(|f| format!("{} free", scalar("fs.free_bytes", &f.value)));
    DETAILS
        .iter()
        .filter_map(|name| {
            let fact = target.facts.get(*name)?;
            if fact.value.is_null() {
                return None;
            }
            let short = name.split_once('.').map_or(*name, |(_, rest)| rest);
            Some(format!("{} {}", title(short), scalar(name, &fact.value)))
        })
        .chain(free)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The stack, each device indented below the one above it.
fn devices(page: &mut Page, devices: &[Device]) {
    let mut label = "device";
    for (depth, device) in stack(devices) {
        let indent = 2 * depth.min(8);
        let first = format!(" {label:<12} {:indent$}", "");
        let rest = " ".repeat(18 + indent);
        crate::render::fill::fill(
            &mut page.out,
            page.options.prose(),
            &first,
            &rest,
            &describe(device),
        );
        label = "";
    }
}

/// The stack from above, each device with its depth.
pub(in crate::render) fn stack(devices: &[Device]) -> Vec<(usize, &Device)> {
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    let own = |d: &&Device| d.above.is_none();
    let mut next: Vec<(usize, &Device)> =
        devices.iter().filter(own).rev().map(|d| (0, d)).collect();
    let mut rest_of_stack = devices.iter().filter(|d| !own(d));
    loop {
        let Some((depth, device)) = next.pop() else {
            // What hangs on nothing known is shown all the same.
            match rest_of_stack.find(|d| !seen.contains(d.name.as_str())) {
                Some(device) => next.push((0, device)),
                None => return out,
            }
            continue;
        };
        out.push((depth, device));
        // A device may stand below several; it is described once for each, its own stack once.
        if seen.insert(device.name.as_str()) {
            next.extend(
                devices
                    .iter()
                    .rev()
                    .filter(|d| d.above.as_deref() == Some(device.name.as_str()))
                    .map(|d| (depth + 1, d)),
            );
        }
    }
}

/// A device in one line.
pub(in crate::render) fn describe(device: &Device) -> String {
    let mut kind = device.kind.clone();
    if device.is_virtual == Some(true) {
        kind.insert_str(0, "virtual ");
    }
    if let Some(level) = &device.level {
        let _ = write!(kind, " {level}");
    }
    // A file or a single device is its own group, which says nothing more.
    let group = device
        .group
        .as_ref()
        .filter(|g| !g.contains('/') && **g != device.name);
    let place: Vec<&str> = device
        .role
        .as_deref()
        .into_iter()
        .chain(group.map(String::as_str))
        .collect();
    let backing = device
        .backing
        .as_ref()
        .map(|path| match &device.backing_fs {
            Some(fs) => format!("file {path} on {fs}"),
            None => format!("file {path}"),
        });
    let parts = [
        Some(kind),
        (!place.is_empty()).then(|| place.join(" ")),
        device.model.clone(),
        Some(match &device.write_cache {
            Some(cache) => format!("{cache} cache"),
            None => "cache unknown".to_owned(),
        }),
        (device.fua == Some(true)).then(|| "FUA".to_owned()),
        (device.rotational == Some(true)).then(|| "rotational".to_owned()),
        device.scheduler.as_ref().map(|s| format!("scheduler {s}")),
        backing,
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{}: {}", device.name, parts.join(", "))
}

/// A weight as a label.
pub(in crate::render) fn weight(weight: Weight) -> &'static str {
    match weight {
        Weight::For => "for",
        Weight::Against => "against",
        Weight::Limits => "limits",
    }
}

/// A ground in words, with what was seen and where.
pub(in crate::render) fn words(ground: &Ground) -> String {
    let mut out = vocabulary::words(vocabulary::GROUNDS, &ground.id).to_owned();
    if !ground.value.is_null() && ground.value != serde_json::Value::Bool(true) {
        let unit = ground.unit.as_deref().unwrap_or("");
        let named = format!("_{unit}");
        let value = scalar(&named, &ground.value);
        let unit = match unit {
            "bytes" | "us" | "ms" | "pct" => String::new(),
            "" => String::new(),
            other => format!(" {}", other.replace('_', " ")),
        };
        let _ = write!(out, ": {value}{unit}");
    }
    if !ground.source.is_empty() {
        let _ = write!(out, " ({})", ground.source);
    }
    out
}
