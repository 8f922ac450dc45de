//! A journal or log on a device of its own: ext4's and XFS's.
//!
//! A sync of data that lie where they lay need not touch it; one of a growing file must. So
//! only the latter is counted, and flushes must be seen there as on any other device.

use super::{
    Check, FLUSHED, Judged, UNFLUSHED, grounds,
    layers::{is_drowned, per_sync},
    stack,
};
use crate::{
    facts::{Facts, counts_no_flushes},
    report::Device,
};

/// Those that take data as well are judged with these.
pub(super) fn judge(facts: &Facts, data: &[&Device], check: &Check<'_>, case: &mut Judged) {
    let Some(found) = &check.extending else {
        let journals = stack::journal_bearers(facts, &|_| false);
        grounds::unclear(&journals, &check.fdatasync, case);
        return;
    };
    let counts = |name: &str| super::layers::count(found, name).is_some_and(|n| n > 0.0);
    for device in stack::journal_bearers(facts, &counts) {
        let is_told = data.iter().any(|d| d.name == device.name)
            || stack::is_unseen(device)
            || stack::is_write_through(device);
        if is_told {
            continue;
        }
        let flushes = per_sync(found, device, false);
        let silent = stack::is_transparent(device) || counts_no_flushes(&device.name);
        match flushes {
            None => grounds::uncounted(&[device], case),
            Some(n) if n >= FLUSHED => grounds::journal_flushed(device, found, case),
            Some(_) if is_drowned(found, device, false) => {
                grounds::drowned(&[device], found, case);
            }
            Some(n) if n > UNFLUSHED || device.write_cache.is_none() => {
                grounds::unclear(&[device], found, case);
            }
            Some(_) if silent => grounds::uncounted(&[device], case),
            Some(_) => grounds::unflushed(&[device], "syncs of a growing file", found, case),
        }
    }
}
