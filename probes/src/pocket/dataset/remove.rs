//! Destroys a dataset that a run made, and no other: its name and its user property must both
//! say so. Never with `-r` or `-f`: what was added to it, a snapshot or a child, keeps it, and a
//! process that has a file open on it does.

use std::{thread::sleep, time::Duration};

use super::{RUN, Zfs};
use crate::{contract::Pulse, program::Failure};

/// What each of its calls may take.
const LIMIT: Duration = Duration::from_secs(30);
/// A dataset just unmounted may be looked at by a system service: destroyed on a later try.
const TRIES: u32 = 5;
/// Time between them.
const BETWEEN: Duration = Duration::from_millis(200);
/// How `zfs` says that there is none.
const GONE: &str = "dataset does not exist";

/// `PARENT/walprobe-RUNID-PURPOSE`.
pub(super) fn name_for(parent: &str, run_id: &str, purpose: &str) -> String {
    format!("{parent}/walprobe-{run_id}-{purpose}")
}

/// The name is one that the run gives to a dataset.
fn is_of_run(name: &str, run_id: &str) -> bool {
    let Some((parent, last)) = name.rsplit_once('/') else {
        return false;
    };
    let purpose = last
        .strip_prefix("walprobe-")
        .and_then(|rest| rest.strip_prefix(run_id))
        .and_then(|rest| rest.strip_prefix('-'));
    !parent.is_empty()
        && !parent.starts_with('-')
        && !name.contains(['@', '#', '%'])
        && !name.contains(char::is_control)
        && purpose.is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_lowercase()))
}

/// Unmounts and destroys a run's dataset. One that is not there is a success.
///
/// # Errors
/// Why it stays.
pub(crate) fn undo(name: &str, run_id: &str) -> Result<(), String> {
    if !is_of_run(name, run_id) {
        return Err("its name is not one that this run gives to a dataset".to_owned());
    }
    let by_hand = |why: String| format!("{why}; by hand: zfs destroy {name}");
    let zfs = Zfs::find(LIMIT).map_err(|e| by_hand(text(e)))?;
    destroy(&zfs, name, run_id).map_err(by_hand)
}

fn destroy(zfs: &Zfs, name: &str, run_id: &str) -> Result<(), String> {
    let pulse = Pulse::default();
    let properties = match zfs.properties(name, &pulse) {
        Ok(properties) => properties,
        Err(Failure::Told(why)) if why.ends_with(GONE) => return Ok(()),
        Err(other) => return Err(text(other)),
    };
    let has = |property: &str, wanted: &str| {
        properties
            .get(property)
            .is_some_and(|(value, _)| value == wanted)
    };
    let local = properties
        .get(RUN)
        .is_some_and(|(_, source)| source == "local");
    if !has("type", "filesystem") || !has(RUN, run_id) || !local {
        return Err(format!("{RUN} does not say that this run made it"));
    }
    if has("mounted", "yes") {
        zfs.ask(&["unmount", name], &pulse).map_err(text)?;
    }
    let mut tries = 1;
    loop {
        match zfs.ask(&["destroy", name], &pulse) {
            Ok(_) => return Ok(()),
            Err(Failure::Told(why)) if why.ends_with(GONE) => return Ok(()),
            Err(Failure::Told(why)) if why.ends_with("busy") && tries < TRIES => tries += 1,
            Err(other) => return Err(text(other)),
        }
        sleep(BETWEEN);
    }
}

fn text(failure: Failure) -> String {
    match failure {
        Failure::Interrupted => "interrupted".to_owned(),
        Failure::Told(why) => why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN_ID: &str = "01JDW3K9ZQ4T";

    #[test]
    fn only_names_of_the_run() {
        let good = name_for("tank/pg wal", RUN_ID, "cold");
        assert_eq!(good, "tank/pg wal/walprobe-01JDW3K9ZQ4T-cold");
        assert!(is_of_run(&good, RUN_ID));
        for name in [
            "tank",
            "tank/wal",
            "walprobe-01JDW3K9ZQ4T-cold",
            "/walprobe-01JDW3K9ZQ4T-cold",
            "-r/walprobe-01JDW3K9ZQ4T-cold",
            "tank/walprobe-01JDW3K9ZQ4V-cold",
            "tank/walprobe-01JDW3K9ZQ4T",
            "tank/walprobe-01JDW3K9ZQ4T-",
            "tank/walprobe-01JDW3K9ZQ4T-cold@snap",
            "tank/walprobe-01JDW3K9ZQ4T-cold/data",
            "tank@a/walprobe-01JDW3K9ZQ4T-cold",
            "tank/walprobe-01JDW3K9ZQ4T-co ld",
            "ta\nnk/walprobe-01JDW3K9ZQ4T-cold",
        ] {
            assert!(!is_of_run(name, RUN_ID), "{name:?}");
        }
    }
}
