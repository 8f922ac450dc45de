//! Cache-drop hooks, and the proof that a file is cold.
//!
//! A claim of cold rests on two things, both asked before the operation: how much of the file is
//! resident in the page cache (cachestat(2) or mincore(2)), and whether scattered reads of a
//! *witness* come from the device. The witness is a sister file made the same way, dropped by the
//! same call and not opened since. Without a proof there is no claim, whatever the hook. What an
//! operation itself reads is a result, never a ground.
//!
//! A hook that cannot be used, fails or hangs ends the case, with its reason; the run goes on.

use std::time::Duration;

use rustix::fs::OFlags;

use crate::{
    contract::{Lab, Stop},
    files::{WalFile, synced},
    folder::Folder,
    pause,
    program::Failure,
    report::ColdProof,
    request::{DropCaches, Request},
    scratch::Scratch,
    sys::residency,
};

pub mod child;
mod command;
mod fadvise;
mod proof;
mod system;
pub(crate) mod zfs;

pub(crate) use proof::{from_storage, uses_page_cache};

/// A file that is to be cold, and its witness.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The file that will be overwritten.
    pub file: &'a str,
    /// Its sister.
    pub witness: &'a str,
    /// Size of the file.
    pub bytes: u64,
    /// How much of the witness, from its start, holds content that no filesystem can leave out: zeros may be
    /// compressed, and then no device is read for them.
    pub lived_bytes: u64,
}

/// The hook that a request comes down to.
#[must_use]
pub const fn hook(asked: DropCaches) -> DropCaches {
    match asked {
        DropCaches::Auto => DropCaches::Fadvise,
        other => other,
    }
}

/// Drops the pair by `hook`, or by the user's program where the request has one, and proves what
/// came of it.
///
/// # Errors
/// The call that failed; `need-hook` and the like where the hook cannot be used, fails or hangs.
pub fn drop_and_prove(
    folder: &Folder,
    pair: Pair<'_>,
    hook: DropCaches,
    lab: &mut Lab<'_>,
) -> Result<ColdProof, Stop> {
    let command = lab.request.drop_caches_cmd.as_deref();
    let mut after = proof::After::now(lab);
    if command.is_none() && hook == DropCaches::None {
        return proof::prove(folder, pair, hook.as_str(), after, lab);
    }
    for name in [pair.file, pair.witness] {
        // Dirty pages are not dropped.
        synced(folder, name)?;
        lab.pulse.beat();
    }
    pause::here("dropping");
    if let Some(command) = command {
        after = command::run(command, pair, lab)?;
        return proof::prove(folder, pair, "cmd", after, lab);
    }
    match hook {
        DropCaches::None => {}
        DropCaches::Auto | DropCaches::Fadvise => {
            fadvise::run(folder, pair, lab)?;
            after = proof::After::now(lab);
        }
        DropCaches::System => {
            system::run(lab)?;
            after = proof::After::now(lab);
        }
        DropCaches::Zfs => after = zfs::run(lab)?,
    }
    proof::prove(folder, pair, hook.as_str(), after, lab)
}

/// What a program may take: as long as a call may.
fn limit(request: &Request) -> Duration {
    const OTHERWISE_S: f64 = 60.0;
    let seconds = request.op_timeout_s;
    Duration::from_secs_f64(if seconds > 0.0 { seconds } else { OTHERWISE_S })
}

/// A hook's failure ends the case.
fn stop(failure: Failure) -> Stop {
    match failure {
        Failure::Interrupted => Stop::Interrupted,
        Failure::Told(why) => Stop::Skip("need-hook", why),
    }
}

/// Lets the scratch folder go while `drop` runs, so that it may unmount the filesystem.
fn let_go(
    lab: &Lab<'_>,
    drop: impl FnOnce(&Scratch) -> Result<(), Stop>,
) -> Result<proof::After, Stop> {
    let scratch = lab.scratch()?;
    scratch.let_go()?;
    let dropped = drop(scratch);
    // What a program has read is added to our own account when it has ended.
    let mut after = proof::After::now(lab);
    match (scratch.take_again(), dropped) {
        (Ok(read), dropped) => {
            dropped?;
            after.own_data(read);
            Ok(after)
        }
        (Err(_), Err(Stop::Interrupted)) => Err(Stop::Interrupted),
        (Err(gone), dropped) => {
            let failed = match dropped {
                Err(Stop::Skip(_, why)) => format!("{why}; and "),
                _ => String::new(),
            };
            let why = format!("{failed}after the cache-drop hook the directory is gone: {gone}");
            Err(Stop::Skip("need-hook", why))
        }
    }
}

/// Reads the whole file, so that it is warm; tells the resident share, where it can be asked.
///
/// # Errors
/// The call that failed.
pub fn warm(folder: &Folder, name: &str, bytes: u64, lab: &Lab<'_>) -> Result<Option<f64>, Stop> {
    let file = WalFile::open(folder, name, OFlags::empty())?;
    let mut piece = vec![0; crate::files::FILL_BYTES.min(bytes) as usize];
    let mut at = 0;
    while at < bytes {
        let part = (bytes - at).min(piece.len() as u64) as usize;
        file.pread_all(&mut piece[..part], at)?;
        at += part as u64;
        lab.pulse.beat();
    }
    if !proof::uses_page_cache(lab.facts) {
        return Ok(None);
    }
    Ok(residency::resident_pages(file.fd(), bytes)
        .ok()
        .map(|r| 100.0 * r.resident as f64 / r.pages.max(1) as f64))
}
