//! Devices of which only some take each write: a pool's vdevs, the paths to one disk.
//!
//! A sync flushes the vdev that took its record: a log device where there is one, each of
//! several vdevs in turn. So flushes are summed over the groups; within a group (a mirror's
//! sides) every device must be flushed, so the least count stands for it.

use std::collections::BTreeSet;

use super::{
    Check, DROPPED, FLUSHED, Found, Judged, UNFLUSHED, grounds,
    layers::{count, per_sync, wrote, wrote_or_uncounted},
    stack,
};
use crate::{
    facts::Facts,
    report::{Device, DurabilityVerdict::NoFlushSeen, Weight},
};

/// Devices that take the same writes, those below transparent ones in their place.
struct Group<'a> {
    is_log: bool,
    bearers: Vec<&'a Device>,
}

impl<'a> Group<'a> {
    fn needs_no_flush(&self) -> bool {
        self.bearers.iter().all(|d| stack::is_write_through(d))
    }

    /// The least of the devices that need flushes; none where one of them does not count.
    fn least(&self, of: &dyn Fn(&Device) -> Option<f64>) -> Option<f64> {
        self.bearers
            .iter()
            .filter(|d| !stack::is_write_through(d))
            .map(|d| of(d))
            .try_fold(f64::INFINITY, |least, n| Some(least.min(n?)))
    }
}

/// Whether the devices are such.
pub(super) fn is_pool(devices: &[&Device]) -> bool {
    devices.iter().any(|d| d.group.is_some())
}

/// A device counts in the first group that has it: partitions of one disk may be in two.
fn groups<'a>(
    facts: &'a Facts,
    devices: &[&'a Device],
    counts: &dyn Fn(&str) -> bool,
) -> Vec<Group<'a>> {
    let mut names: Vec<_> = devices.iter().map(|d| (&d.role, &d.group)).collect();
    names.dedup();
    let mut seen = BTreeSet::new();
    names
        .into_iter()
        .map(|name| {
            let of = |d: &&&Device| (&d.role, &d.group) == name;
            let members = devices.iter().filter(of).copied().collect();
            Group {
                is_log: name.0.as_deref() == Some("log"),
                bearers: stack::bearers(facts, members, counts)
                    .into_iter()
                    .filter(|d| seen.insert(d.name.as_str()))
                    .collect(),
            }
        })
        .filter(|group| !group.bearers.is_empty())
        .collect()
}

/// Flushes a sync, all groups together; none where a device does not count.
fn sum(groups: &[&Group<'_>], of: &dyn Fn(&Device) -> Option<f64>) -> Option<f64> {
    groups
        .iter()
        .filter(|group| !group.needs_no_flush())
        .map(|group| group.least(of))
        .sum()
}

/// The filesystem's own devices.
pub(super) fn judge(facts: &Facts, own: &[&Device], check: &Check<'_>, case: &mut Judged) {
    let counts = |name: &str| count(&check.fdatasync, name).is_some_and(|n| n > 0.0);
    let all = groups(facts, own, &counts);
    let every: Vec<&Group<'_>> = all.iter().collect();
    let bearers: Vec<&Device> = all.iter().flat_map(|g| g.bearers.iter().copied()).collect();
    let wants: Vec<&Device> = bearers
        .iter()
        .copied()
        .filter(|d| !stack::is_write_through(d))
        .collect();
    let total = |found: &Found<'_>| sum(&every, &|d| per_sync(found, d, false));
    let flushes = total(&check.fdatasync);
    let growing = check.extending.as_ref().and_then(total);
    // What takes the syncs: the log, unless the dataset goes past it.
    let by_log = facts.text("zfs.logbias") != Some("throughput") && all.iter().any(|g| g.is_log);
    let takers: Vec<&Group<'_>> = all.iter().filter(|g| g.is_log || !by_log).collect();
    case.wrote = wrote(check);

    if flushes.is_some_and(|n| n >= FLUSHED) {
        if growing.is_some_and(|n| n <= UNFLUSHED)
            && let Some(found) = &check.extending
        {
            grounds::unflushed(&wants, "syncs of a growing file", found, case);
            return;
        }
        case.flushed = true;
        let flushed: Vec<&Device> = wants.into_iter().filter(|d| counts(&d.name)).collect();
        let took = |g: &&Group<'_>| g.bearers.iter().any(|d| counts(&d.name));
        let mut whom = stack::names(&flushed);
        if all.iter().filter(took).count() > 1 {
            whom.insert_str(0, "a device of ");
        }
        grounds::flushed_to(&flushed, &whom, check, case);
    } else if takers.iter().all(|g| g.needs_no_flush()) {
        let through: Vec<&Device> = takers.iter().flat_map(|g| g.bearers.clone()).collect();
        if wrote_or_uncounted(check, DROPPED) {
            grounds::write_through(&through, case);
        } else {
            grounds::not_written(&through, check, case);
        }
    } else if flushes.is_none() {
        grounds::uncounted(&wants, case);
    } else if flushes.is_some_and(|n| n > UNFLUSHED) || wants.len() < bearers.len() {
        grounds::unclear(&wants, &check.fdatasync, case);
    } else {
        grounds::unflushed(&wants, "syncs", &check.fdatasync, case);
    }
}

/// The devices below one that counted `above` flushes: true where that settles its verdict.
pub(super) fn drops(
    facts: &Facts,
    device: &Device,
    above: f64,
    below: &[&Device],
    found: &Found<'_>,
    case: &mut Judged,
) -> bool {
    let counts = |name: &str| count(found, name).is_some_and(|n| n > 0.0);
    let all = groups(facts, below, &counts);
    let every: Vec<&Group<'_>> = all.iter().collect();
    let wants: Vec<&Device> = all
        .iter()
        .flat_map(|g| g.bearers.iter().copied())
        .filter(|d| !stack::is_write_through(d))
        .collect();
    let Some(flushes) = sum(&every, &|d| count(found, &d.name)) else {
        grounds::uncounted(&wants, case);
        return true;
    };
    // One that writes through may have taken them all.
    if flushes >= above * DROPPED
        || flushes >= found.syncs() * FLUSHED
        || all.iter().any(Group::needs_no_flush)
    {
        return false;
    }
    grounds::counted(
        "lower-device-drops-flushes",
        Weight::Against,
        &wants,
        found,
        case,
    );
    case.say(
        NoFlushSeen,
        format!(
            "{} got {above} flushes but {} below it only {flushes}",
            device.name,
            stack::names(&wants)
        ),
    );
    true
}
