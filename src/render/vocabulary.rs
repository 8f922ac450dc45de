//! The closed lists of the report, and the words for them.
//!
//! `docs/format.md` explains each entry; a test holds the page to these lists, and
//! [`check_vocabulary`] holds a report to them. An id never changes its meaning.

use serde_json::Value;
use walprobe_probes::facts::names;

/// Grounds of the durability verdict, each with what it says.
pub const GROUNDS: &[(&str, &str)] = &[
    ("fs-in-memory", "the filesystem keeps its files in memory"),
    (
        "overlay-volatile",
        "the overlay is mounted volatile and drops syncs",
    ),
    ("barriers-off", "write barriers are off"),
    ("zfs-sync-disabled", "the dataset has sync=disabled"),
    ("preload", "a preloaded library swallows syncs, or may"),
    (
        "device-flushes",
        "flushes counted by the filesystem's own devices",
    ),
    (
        "lower-device-drops-flushes",
        "a device further down counts fewer flushes than the one above it",
    ),
    (
        "write-through-device",
        "the device says that it has no volatile cache",
    ),
    (
        "fua-device",
        "the device takes forced unit access writes, which no counter shows",
    ),
    (
        "sync-as-cheap-as-write",
        "a sync costs no more than a plain write",
    ),
    (
        "faster-than-medium",
        "syncs are faster than a medium of this kind can be, or there is a battery-backed cache",
    ),
    (
        "network-filesystem",
        "what the server does cannot be seen from here",
    ),
    (
        "user-space-filesystem",
        "what the filesystem's program does cannot be seen from here",
    ),
    (
        "virtual-device",
        "a virtual device: the host below it cannot be seen",
    ),
    (
        "backing-file-unseen",
        "what the file below a loop device lies on cannot be seen from here",
    ),
    (
        "journal-unseen",
        "the filesystem's journal lies on a device that cannot be seen from here",
    ),
    (
        "foreign-flushes",
        "something else flushes the device as often as syncs might",
    ),
    (
        "mount-changed",
        "the mount or what it says of syncs changed during the run",
    ),
    ("stacked-filesystem", "the filesystem lies on another one"),
    (
        "server-requests",
        "requests that the syncs sent to the server",
    ),
    ("sync-not-sent", "the mount keeps syncs from the server"),
    (
        "soft-mount",
        "a call to the server that gets no answer fails",
    ),
    ("not-asked", "nobody asked for the durability check"),
];

/// Doubts, each with what it means.
pub const DOUBTS: &[(&str, &str)] = &[
    ("drift", "the times moved in one direction during the run"),
    ("foreign-writes", "something else wrote to the device"),
    (
        "foreign-flushes",
        "something else sent flushes to the device",
    ),
    ("steal", "the hypervisor took CPU time away"),
    ("throttled", "the control group's CPU limit took effect"),
    ("burst-ended", "the device was fast only for a while"),
    ("few-rounds", "too few rounds for a verdict"),
    ("coarse-clock", "the clock is coarse beside the times"),
    ("cpu-bound", "the clients left no processor free"),
    (
        "allocation-lags",
        "the filesystem counts allocated space late",
    ),
    (
        "whole-system-drop",
        "the caches of the whole host were dropped",
    ),
];

/// Why a row is not ok, or a setting was not tested; each with its words.
pub const REASON_CODES: &[(&str, &str)] = &[
    ("errno", "a call failed"),
    ("no-answer", "a call never returned"),
    ("need-root", "needs root"),
    ("need-tool", "needs a program that is not here"),
    ("need-hook", "needs a way to drop caches"),
    ("need-option", "needs an option"),
    ("filesystem", "the filesystem does not have it"),
    ("kernel", "the kernel does not have it"),
    ("policy", "a policy of the system forbids it"),
    ("time", "the time limit was reached"),
    ("budget", "the write budget was spent"),
    ("space", "too little free space"),
    ("interrupted", "interrupted"),
    ("not-proven-cold", "not proven cold"),
    ("same-as", "the same as another case"),
    ("not-durable", "the target is not durable"),
    ("no-flush-seen", "no flush was seen"),
    ("inconclusive", "the measurement is inconclusive"),
    ("not-planned", "not part of this run"),
    ("not-provable", "durability cannot be proven here"),
    ("not-tested", "durability was not tested"),
    ("internal", "walprobe itself failed"),
];

/// Facts of a target and of the host: the list that the measuring half fills.
#[must_use]
pub fn facts() -> Vec<&'static str> {
    let target = names::TARGET.iter().map(|(name, _)| *name);
    target.chain(names::HOST.iter().copied()).collect()
}

/// Roles of a finding.
pub const ROLES: &[&str] = &["any", "primary", "standby"];
/// Actions of a finding.
pub const ACTIONS: &[&str] = &["keep", "change", "inform"];
/// Levels of a finding, the least first.
pub const LEVELS: &[&str] = &["info", "advice", "warning", "critical"];
/// Confidence of a finding, the highest first.
pub const CONFIDENCES: &[&str] = &["high", "medium", "low"];
/// Kinds of device.
pub const DEVICE_KINDS: &[&str] = &[
    "disk",
    "partition",
    "loop",
    "lvm",
    "md",
    "crypt",
    "dm",
    "other",
];
/// Parts that a device plays in a filesystem.
pub const DEVICE_ROLES: &[&str] = &["log", "special", "dedup"];
/// Cache-drop hooks of a cold proof.
pub const HOOKS: &[&str] = &["none", "fadvise", "system", "dataset", "zfs", "cmd"];
/// What a cold proof says of data and of metadata.
pub const CACHE_STATES: &[&str] = &["cold", "not-cold", "unknown"];
/// How residency was read.
pub const RESIDENCY_BY: &[&str] = &["cachestat", "mincore"];

/// The words for an id of one of the lists; the id itself where there are none.
#[must_use]
pub fn words<'a>(list: &'a [(&str, &str)], id: &'a str) -> &'a str {
    list.iter()
        .find(|(known, _)| *known == id)
        .map_or(id, |(_, words)| words)
}

/// Ids of a report that stand in no closed list; empty when all is well.
#[must_use]
pub fn check_vocabulary(document: &Value) -> Vec<String> {
    let grounds: Vec<&str> = GROUNDS.iter().map(|(id, _)| *id).collect();
    let doubts: Vec<&str> = DOUBTS.iter().map(|(id, _)| *id).collect();
    let reasons: Vec<&str> = REASON_CODES.iter().map(|(id, _)| *id).collect();
    let facts = facts();
    let mut wrong = Vec::new();
    let mut hold = |at: &str, value: &Value, list: &[&str]| {
        if let Some(id) = value.as_str().filter(|id| !list.contains(id)) {
            wrong.push(format!("{at}: {id}"));
        }
    };
    let each = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let names = |value: &Value| -> Vec<Value> {
        value.as_object().map_or_else(Vec::new, |facts| {
            facts.keys().map(|k| Value::String(k.clone())).collect()
        })
    };
    for name in names(&document["host"]["facts"]) {
        hold("fact", &name, &facts);
    }
    for target in each(&document["targets"]) {
        for name in names(&target["facts"]) {
            hold("fact", &name, &facts);
        }
        for device in each(&target["devices"]) {
            hold("device kind", &device["kind"], DEVICE_KINDS);
            hold("device role", &device["role"], DEVICE_ROLES);
        }
        for ground in each(&target["durability"]["grounds"]) {
            hold("ground", &ground["id"], &grounds);
        }
        for row in each(&target["rows"]) {
            hold("reason_code", &row["reason_code"], &reasons);
            for doubt in each(&row["doubts"]) {
                hold("doubt", &doubt["code"], &doubts);
            }
            let proof = &row["cold_proof"];
            hold("hook", &proof["hook"], HOOKS);
            hold("cold_proof.data", &proof["data"], CACHE_STATES);
            hold("cold_proof.metadata", &proof["metadata"], CACHE_STATES);
            hold("residency_by", &proof["residency_by"], RESIDENCY_BY);
        }
        for finding in each(&target["findings"]) {
            hold("role", &finding["role"], ROLES);
            hold("action", &finding["action"], ACTIONS);
            hold("level", &finding["level"], LEVELS);
            hold("confidence", &finding["confidence"], CONFIDENCES);
        }
        for setting in each(&target["not_tested"]) {
            hold("reason_code", &setting["reason_code"], &reasons);
        }
    }
    wrong
}
