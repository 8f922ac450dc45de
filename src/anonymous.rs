//! `--anonymous`: a report that does not say whose machine it was, or where on it.
//!
//! Names go, measurements stay. The host's name becomes null. Directories, mount points,
//! sources, datasets and backing files become numbered placeholders, the same name always
//! the same one, so that what belongs together still shows (`names`). Of mount options
//! only the values known to be no names stay, of the command line no path (`words`). In
//! texts every one of these names, the host's name, UUIDs and every other absolute path
//! outside `/proc`, `/sys` and `/dev` are replaced too.
//!
//! Kept on purpose, since a reader needs them: times, sizes, kernel release, device models,
//! kernel names of devices. Evidence is resolved again, so that it equals its figures.

use serde_json::Value;
use walprobe_probes::report::{FactMap, Report, Target};

mod names;
mod words;

use names::Names;

/// The name that a directory gets.
#[must_use]
pub fn directory(at: usize) -> String {
    format!("DIR-{}", at + 1)
}

/// The report without names. `given`: the directories as they were given.
///
/// # Errors
/// The report cannot be taken apart: a number in it is not finite.
pub fn anonymous(report: &Report, given: &[String]) -> Result<Report, String> {
    let mut report = report.clone();
    let mut names = Names::default();
    if let Some(host) = report.host.name.take() {
        names.word(&host, "HOST");
    }
    for (at, target) in report.targets.iter().enumerate() {
        let name = directory(at);
        names.path(&target.dir, &name);
        if let Some(given) = given.get(at) {
            names.given(given, &name);
        }
        if let Some(path) = text(&target.facts, "target.path") {
            names.path(path, &name);
        }
    }
    report.tool.argv = words::argv(&report.tool.argv);
    libraries(&mut report.host.facts);
    for (at, target) in report.targets.iter_mut().enumerate() {
        of_target(target, at, &mut names);
    }
    let mut document = serde_json::to_value(&report).map_err(|e| e.to_string())?;
    names.replace_in(&mut document);
    resolve_again(&mut document);
    serde_json::from_value(document).map_err(|e| e.to_string())
}

fn of_target(target: &mut Target, at: usize, names: &mut Names) {
    target.dir = directory(at);
    for device in &mut target.devices {
        device.name = names.device(&device.name);
        device.above = device.above.as_ref().map(|name| names.device(name));
        device.backing = device.backing.as_ref().map(|p| names.numbered(p, "FILE"));
    }
    let kinds = [
        ("mount.point", "MOUNT"),
        ("overlay.upper", "PATH"),
        ("zfs.dataset", "DATASET"),
    ];
    for (fact, kind) in kinds {
        rename(&mut target.facts, fact, |old| match old {
            "/" => old.to_owned(),
            old => names.numbered(old, kind),
        });
    }
    rename(&mut target.facts, "target.path", |_| directory(at));
    let fs = text(&target.facts, "fs.type").unwrap_or("").to_owned();
    let devices = &target.devices;
    rename(&mut target.facts, "mount.source", |old| {
        let device = devices.iter().any(|d| old == format!("/dev/{}", d.name));
        if device || old == fs || words::NO_SOURCES.contains(&old) {
            old.to_owned()
        } else {
            names.numbered(old, "SOURCE")
        }
    });
    rename(&mut target.facts, "mount.options", words::options);
}

/// Of preloaded libraries the file's name tells what they do, the place tells nothing.
fn libraries(facts: &mut FactMap) {
    rename(facts, "host.preload", |old| {
        let bare = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let all: Vec<String> = old.split_whitespace().map(bare).collect();
        all.join(" ")
    });
}

fn text<'a>(facts: &'a FactMap, name: &str) -> Option<&'a str> {
    facts.get(name)?.value.as_str()
}

fn rename(facts: &mut FactMap, name: &str, new: impl FnOnce(&str) -> String) {
    if let Some(fact) = facts.get_mut(name)
        && let Some(old) = fact.value.as_str()
    {
        fact.value = Value::String(new(old));
    }
}

/// Evidence that is a name was replaced where it is read and where it is stated, perhaps
/// differently.
fn resolve_again(document: &mut Value) {
    let figures = document.clone();
    let resolve = |pointer: &Value, value: &mut Value| {
        let found = pointer.as_str().and_then(|p| figures.pointer(p));
        if let Some(found) = found.filter(|f| f.is_string()) {
            *value = found.clone();
        }
    };
    for target in list(document, "targets") {
        for ground in list(&mut target["durability"], "grounds") {
            let pointer = ground["evidence"].clone();
            resolve(&pointer, &mut ground["value"]);
        }
        for finding in list(target, "findings") {
            for evidence in list(finding, "evidence") {
                let pointer = evidence["pointer"].clone();
                resolve(&pointer, &mut evidence["value"]);
            }
        }
    }
}

fn list<'a>(value: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    let items = value.get_mut(key).and_then(Value::as_array_mut);
    items.into_iter().flatten()
}
