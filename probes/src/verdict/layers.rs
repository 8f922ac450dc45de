//! Counting, layer by layer: did each device that needs a flush get one for each sync?
//!
//! The filesystem's own devices are measured against the syncs. A device further down is
//! measured against the one above it: a loop device turns a flush into an fsync of its
//! file, and every filesystem sends at least one flush for that; several may be merged, so
//! only clearly fewer (under half) speaks against it.

use super::{Check, DROPPED, FLUSHED, Found, Judged, UNFLUSHED, grounds, journal, pool, stack};
use crate::{
    facts::{Facts, counts_no_flushes},
    report::{Device, DurabilityVerdict::NoFlushSeen, Weight},
};

/// Share of the writes beside the syncs during which others may have flushed, for the syncs to
/// stand out. Chance then flushes every one of 64 syncs less than once in a million times, and
/// once in a hundred where a sync takes so long that others flush during 93 of 100.
const STANDS_OUT: f64 = 0.8;

/// What a device of the first layer was seen to do.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    /// A flush for each sync.
    Flushed,
    /// Writes for each sync, and a flush where a file grows: the device has FUA.
    FuaDecided,
    /// Claims write-through, and nothing was counted.
    Needless,
    /// Claims write-through, and was not even written to.
    NotWritten,
    /// Needs flushes and got none.
    Unflushed,
    /// Got flushes, but none where the file grew.
    GrowingUnflushed,
    /// Some, but not one for each sync; or of an unknown cache.
    Unclear,
    /// Does not count flushes.
    Uncounted,
}

pub(super) fn judge(facts: &Facts, check: &Check<'_>, case: &mut Judged) {
    let counts = |name: &str| count(&check.fdatasync, name).is_some_and(|n| n > 0.0);
    let own = stack::own_bearers(facts, &counts);
    if own.is_empty() {
        grounds::no_device(facts, case);
        return;
    }
    // A disk of several paths may leave the counting to them.
    let devices = match own.as_slice() {
        [one] if stack::is_transparent(one) && !counts(&one.name) => stack::below(facts, &one.name),
        _ => facts.own_devices().collect(),
    };
    if pool::is_pool(&devices) {
        pool::judge(facts, &devices, check, case);
        lower(facts, check, case);
        return;
    }
    let answers: Vec<(&Device, Answer)> = own
        .iter()
        .map(|device| (*device, answer(facts, device, own.len(), check)))
        .collect();
    let with = |wanted: Answer| -> Vec<&Device> {
        answers
            .iter()
            .filter(|(_, is)| *is == wanted)
            .map(|(device, _)| *device)
            .collect()
    };
    case.flushed = answers
        .iter()
        .all(|(_, is)| matches!(is, Answer::Flushed | Answer::FuaDecided | Answer::Needless))
        && answers.iter().any(|(_, is)| *is != Answer::Needless);
    case.wrote = wrote(check);

    grounds::flushed(&with(Answer::Flushed), check, case);
    grounds::fua(&with(Answer::FuaDecided), check, case);
    grounds::write_through(&with(Answer::Needless), case);
    grounds::unflushed(&with(Answer::Unflushed), "syncs", &check.fdatasync, case);
    if let Some(found) = &check.extending {
        let growing = "syncs of a growing file";
        grounds::unflushed(&with(Answer::GrowingUnflushed), growing, found, case);
    }
    grounds::not_written(&with(Answer::NotWritten), check, case);
    let rows_own = |d: &Device| own.len() == 1 && stack::is_own(facts, d);
    let (drowned, unclear): (Vec<&Device>, Vec<&Device>) = with(Answer::Unclear)
        .into_iter()
        .partition(|d| is_drowned(&check.fdatasync, d, rows_own(d)));
    grounds::drowned(&drowned, &check.fdatasync, case);
    grounds::unclear(&unclear, &check.fdatasync, case);
    grounds::uncounted(&with(Answer::Uncounted), case);
    journal::judge(facts, &own, check, case);
    lower(facts, check, case);
}

/// Flushes of a device over the row's syncs.
pub(super) fn count(found: &Found<'_>, name: &str) -> Option<f64> {
    found.number(&format!("flushes.{name}"))
}

/// Flushes of a device over the row's syncs; a single own device's are also the row's.
fn count_of(found: &Found<'_>, device: &Device, rows_own: bool) -> Option<f64> {
    count(found, &device.name).or_else(|| found.row.flushes.filter(|_| rows_own).map(|n| n as f64))
}

/// Flushes a sync, without those of others.
///
/// The quiet rate is not what others do while we sync, since they then wait for us and we
/// for them. So where it alone takes away what was counted, that shows neither a flush nor
/// the lack of one, unless the syncs stand out against the writes between them.
pub(super) fn per_sync(found: &Found<'_>, device: &Device, rows_own: bool) -> Option<f64> {
    let counted = count_of(found, device, rows_own)? / found.syncs();
    let own = counted - foreign(found, device) / found.syncs();
    let noisy = others_flush(found, device);
    if counted < FLUSHED || own >= FLUSHED && !noisy {
        return Some(own.max(0.0));
    }
    let unclear = f64::midpoint(UNFLUSHED, FLUSHED);
    Some(if stands_out(found, device) {
        counted
    } else if noisy {
        unclear
    } else {
        own.max(unclear)
    })
}

/// Flushes enough were counted, and others may have sent them.
pub(super) fn is_drowned(found: &Found<'_>, device: &Device, rows_own: bool) -> bool {
    count_of(found, device, rows_own).is_some_and(|n| n >= FLUSHED * found.syncs())
        && per_sync(found, device, rows_own).is_some_and(|n| n < FLUSHED)
}

/// Flushes of others over the row's syncs, had they gone on as before.
fn foreign(found: &Found<'_>, device: &Device) -> f64 {
    let quiet_per_s = found
        .number(&format!("quiet_flushes_per_s.{}", device.name))
        .or_else(|| found.number("quiet_flushes_per_s"))
        .unwrap_or(0.0);
    let elapsed_s = found.number("elapsed_ms").unwrap_or(0.0) / 1_000.0;
    quiet_per_s * elapsed_s
}

/// The device counted flushes during writes that send none: others flush it, whatever it did
/// before the run.
fn others_flush(found: &Found<'_>, device: &Device) -> bool {
    let writes = found.number(&format!("flushed_writes.{}", device.name));
    let beside = found.number("writes_beside");
    matches!((writes, beside), (Some(writes), Some(beside)) if writes > beside * (1.0 - FLUSHED))
}

/// The device counted a flush during each sync, and clearly not during each write beside
/// them that was waited for without one. A sync that sends none is such a write.
fn stands_out(found: &Found<'_>, device: &Device) -> bool {
    let during = |of: &str| found.number(&format!("{of}.{}", device.name));
    let (Some(syncs), Some(writes), Some(beside)) = (
        during("flushed_syncs"),
        during("flushed_writes"),
        found.number("writes_beside"),
    ) else {
        return false;
    };
    beside >= found.syncs() * FLUSHED && syncs >= found.syncs() && writes <= beside * STANDS_OUT
}

/// A device write was counted for each sync.
pub(super) fn wrote(check: &Check<'_>) -> bool {
    writes_per_sync(check).is_some_and(|n| n >= FLUSHED)
}

fn writes_per_sync(check: &Check<'_>) -> Option<f64> {
    let found = &check.fdatasync;
    Some(found.number("device_writes")? / found.syncs())
}

fn answer(facts: &Facts, device: &Device, own: usize, check: &Check<'_>) -> Answer {
    let rows_own = own == 1 && stack::is_own(facts, device);
    let Some(flushes) = per_sync(&check.fdatasync, device, rows_own) else {
        return if stack::is_write_through(device) {
            needless(check)
        } else {
            Answer::Uncounted
        };
    };
    let extending = check.extending.and_then(|e| per_sync(&e, device, rows_own));
    if flushes >= FLUSHED {
        return match extending {
            Some(n) if n <= UNFLUSHED && !stack::is_write_through(device) => {
                Answer::GrowingUnflushed
            }
            _ => Answer::Flushed,
        };
    }
    if stack::is_write_through(device) {
        return needless(check);
    }
    if flushes > UNFLUSHED {
        return Answer::Unclear;
    }
    // LVM over nothing that is known: its 0 says that it does not count.
    if stack::is_transparent(device) || counts_no_flushes(&device.name) {
        return Answer::Uncounted;
    }
    if device.kind != "loop" && device.write_cache.is_none() {
        return Answer::Unclear;
    }
    if device.fua != Some(true) {
        return Answer::Unflushed;
    }
    match writes_per_sync(check) {
        Some(writes) if writes < FLUSHED => return Answer::Unflushed,
        Some(_) => {}
        None => return Answer::Unclear,
    }
    match extending {
        Some(flushes) if flushes >= FLUSHED => Answer::FuaDecided,
        Some(flushes) if flushes <= UNFLUSHED => Answer::Unflushed,
        _ => Answer::Unclear,
    }
}

/// A write-through device needs no flush, but it needs the writes.
fn needless(check: &Check<'_>) -> Answer {
    if wrote_or_uncounted(check, DROPPED) {
        Answer::Needless
    } else {
        Answer::NotWritten
    }
}

/// So many writes a sync were counted; where they are not counted nothing speaks against it.
pub(super) fn wrote_or_uncounted(check: &Check<'_>, least: f64) -> bool {
    writes_per_sync(check).is_none_or(|writes| writes >= least)
}

/// Compares each counting device with the ones next below it, to the leaves.
fn lower(facts: &Facts, check: &Check<'_>, case: &mut Judged) {
    let rows = [Some(check.fdatasync), check.extending];
    let mut seen = std::collections::BTreeSet::new();
    for device in &facts.devices {
        if !seen.insert(device.name.as_str()) {
            continue;
        }
        for found in rows.iter().flatten() {
            let counts = |name: &str| count(found, name).is_some_and(|n| n > 0.0);
            let Some(above) = count(found, &device.name) else {
                continue;
            };
            // So few prove nothing about what lies below.
            if above < found.syncs() * DROPPED {
                continue;
            }
            let next = stack::below(facts, &device.name);
            if pool::is_pool(&next) {
                if pool::drops(facts, device, above, &next, found, case) {
                    break;
                }
                continue;
            }
            let mut worse = false;
            // What a sync sends to a journal cannot be told from what it sends above.
            let next = next.into_iter().filter(|d| !stack::is_journal(d)).collect();
            for below in stack::bearers(facts, next, &counts) {
                worse |= drops(device, above, below, found, case);
            }
            if worse {
                break;
            }
        }
    }
}

/// Whether `below` counted clearly fewer flushes, or none that can be known.
fn drops(
    device: &Device,
    above: f64,
    below: &Device,
    found: &Found<'_>,
    case: &mut Judged,
) -> bool {
    if stack::is_write_through(below) {
        return false;
    }
    let Some(flushes) = count(found, &below.name) else {
        grounds::uncounted(&[below], case);
        return true;
    };
    // What others flush above may be more than what comes through.
    if flushes >= above * DROPPED || flushes >= found.syncs() * FLUSHED {
        return false;
    }
    grounds::counted(
        "lower-device-drops-flushes",
        Weight::Against,
        &[below],
        found,
        case,
    );
    case.say(
        NoFlushSeen,
        format!(
            "{} got {above} flushes but {} below it only {flushes}",
            device.name, below.name
        ),
    );
    true
}
