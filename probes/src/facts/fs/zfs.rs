//! OpenZFS: properties of the dataset, devices of the pool, the cache's size.
//!
//! Properties and devices are told by `zfs get` and `zpool status` (zfs-get(8),
//! zpool-status(8)) where these programs are there; in a container they often are not. The
//! record size is then still what statfs tells, and flushes may be off by parameters of
//! the module, which anybody may read (zfs(4)).

use super::{Subject, pool};
use crate::{
    facts::{Roots, absent, known, place::Place, put},
    report::{Fact, FactMap},
};

const GET: &str = "zfs get";
const VERSION: &str = "/sys/module/zfs/version";
const ARC: &str = "/proc/spl/kstat/zfs/arcstats";
/// Either one set makes syncs that send no flush.
const NO_FLUSH: [&str; 2] = [
    "/sys/module/zfs/parameters/zfs_nocacheflush",
    "/sys/module/zfs/parameters/zil_nocacheflush",
];

/// Facts that are a property's text, or its number.
const PROPERTIES: [(&str, &str, bool); 7] = [
    ("zfs.recordsize_bytes", "recordsize", true),
    ("zfs.compression", "compression", false),
    ("zfs.sync", "sync", false),
    ("zfs.logbias", "logbias", false),
    ("zfs.primarycache", "primarycache", false),
    (
        "zfs.special_small_blocks_bytes",
        "special_small_blocks",
        true,
    ),
    ("zfs.direct", "direct", false),
];

/// `zfs.*` and `fs.barrier`.
pub(super) fn facts(subject: &Subject<'_>, facts: &mut FactMap) {
    let roots = subject.roots;
    let dataset = dataset(subject.place);
    put(
        facts,
        "zfs.dataset",
        match &dataset {
            Ok(name) => known(name.as_str(), subject.source("/proc/self/mountinfo")),
            Err(why) => absent("/proc/self/mountinfo", why),
        },
    );
    let got = dataset.and_then(|name| {
        let all = ["get", "-Hp", "-o", "property,value", "all", &name];
        roots.program("zfs", &all)
    });
    for (name, property, is_number) in PROPERTIES {
        let fact = match &got {
            Ok(text) => of_property(text, property, is_number, &subject.source(GET)),
            Err(why) => absent(GET, why),
        };
        put(facts, name, fact);
    }
    record_size(subject, facts);
    let version = roots.text(VERSION).map(|v| known(v, VERSION));
    put(
        facts,
        "zfs.version",
        version.unwrap_or_else(|why| absent(VERSION, why)),
    );
    for (name, field) in [("zfs.arc_bytes", "size"), ("zfs.arc_max_bytes", "c_max")] {
        put(facts, name, arc(field, roots));
    }
    put(facts, "zfs.vdevs", pool::fact(subject.place, roots));
    put(facts, "fs.barrier", barrier(subject));
}

/// The dataset is what was mounted.
pub(super) fn dataset(place: &Place) -> Result<String, String> {
    let source = &place.mount.as_ref().map_err(Clone::clone)?.source;
    // It becomes an argument of a program.
    if source.is_empty() || source.starts_with('-') || source.contains(char::is_control) {
        return Err("no dataset's name is listed".to_owned());
    }
    Ok(source.clone())
}

fn of_property(text: &str, property: &str, is_number: bool, source: &str) -> Fact {
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once('\t')?;
        (name == property).then_some(value)
    });
    match (value, value.and_then(|v| v.parse::<u64>().ok())) {
        (None, _) => absent(source, format!("this version has no property {property}")),
        (Some(_), Some(number)) if is_number => known(number, source),
        (Some(value), _) if is_number => absent(source, format!("{value} is no number")),
        (Some(value), _) => known(value, source),
    }
}

/// statfs tells it too, as `f_bsize`.
fn record_size(subject: &Subject<'_>, facts: &mut FactMap) {
    let name = "zfs.recordsize_bytes";
    let unread = facts.get(name).is_none_or(|fact| fact.value.is_null());
    if let (true, Ok(space)) = (unread, &subject.place.held.space) {
        put(
            facts,
            name,
            known(space.block_bytes, subject.source("statvfs")),
        );
    }
}

/// A line of arcstats is name, type, value.
fn arc(field: &str, roots: &Roots) -> Fact {
    let value = roots.text(ARC).and_then(|text| {
        text.lines()
            .find_map(|line| {
                let mut words = line.split_whitespace();
                (words.next() == Some(field)).then(|| words.nth(1)?.parse::<u64>().ok())?
            })
            .ok_or_else(|| format!("no {field} in {ARC}"))
    });
    match value {
        Ok(bytes) => known(bytes, ARC),
        Err(why) => absent(ARC, why),
    }
}

fn barrier(subject: &Subject<'_>) -> Fact {
    let values = NO_FLUSH.map(|path| (path, subject.roots.text(path)));
    for (path, value) in &values {
        if value.as_deref().is_ok_and(|value| value != "0") {
            return known(false, subject.source(path));
        }
    }
    match values {
        [(path, Ok(_)), _] => known(true, subject.source(path)),
        [(path, Err(why)), _] => absent(path, why),
    }
}
