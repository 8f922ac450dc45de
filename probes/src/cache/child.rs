//! `auto` on ZFS. Nothing that disturbs nobody else puts a file out of the ARC. What was written
//! while `primarycache=metadata`, though, never stays in it, and the property is of a dataset: a
//! child of the directory's, mounted in the scratch folder, holds all files of a comparison that
//! has cold cases, since a rename cannot leave a dataset and its cases are compared.
//!
//! Before each cold operation the old segment and its witness live once more under
//! `primarycache=metadata`; then the property is inherited again, so that the operation itself is
//! cached as anywhere else. Set afterwards it would do nothing: what is cached stays (OpenZFS 2.3).

use super::{
    Pair, limit,
    proof::{self, After, uses_page_cache},
    stop, zfs,
};
use crate::{
    contract::{Case, Lab, Stop},
    facts::Facts,
    folder::Folder,
    paths,
    pocket::dataset::{Dataset, Held},
    program::Failure,
    report::ColdProof,
    request::{DropCaches, Request},
};

/// What of a dataset the ARC keeps: `all`, `metadata` or `none` (zfsprops(7)).
const CACHED: &str = "primarycache";
/// The dataset's purpose, a part of its name.
const PURPOSE: &str = "cold";
/// The hook's name in a proof.
const HOOK: &str = "dataset";

/// Whether cold cases need a child dataset here.
#[must_use]
pub fn is_needed(request: &Request, facts: &Facts) -> bool {
    request.drop_caches == DropCaches::Auto
        && request.drop_caches_cmd.is_none()
        && !uses_page_cache(facts)
}

/// The folder that the case's files are made in, and whether it is a child dataset's.
///
/// # Errors
/// The call that failed; the run is to end.
pub fn folder(case: &Case, lab: &Lab<'_>) -> Result<(Folder, bool), Stop> {
    let scratch = lab.scratch()?;
    if case.beside_cold && is_needed(lab.request, lab.facts) {
        let held = scratch.cold().get(|| make(lab)).map_err(stop)?;
        if let Ok(dataset) = held {
            return Ok((dataset.folder()?, true));
        }
    }
    Ok((scratch.folder()?, false))
}

fn make(lab: &Lab<'_>) -> Result<Dataset, Failure> {
    let told = |stop: Stop| match stop {
        Stop::Interrupted => Failure::Interrupted,
        Stop::Skip(_, why) | Stop::Broken(why) => Failure::Told(why),
        Stop::Fault(fault) | Stop::Unsupported(fault) => Failure::Told(fault.to_string()),
    };
    let scratch = lab.scratch().map_err(told)?;
    let parent = zfs::dataset_of(&scratch.place(), lab).map_err(told)?;
    let limit = limit(lab.request);
    Dataset::create(scratch, &parent, PURPOSE, &[], limit, lab.pulse)
}

fn held(lab: &Lab<'_>) -> Option<Held> {
    lab.scratch.and_then(|scratch| scratch.cold().held())
}

/// Refuses to go on where files live in a child dataset that is not as its parent any more.
///
/// # Errors
/// `need-hook` and why.
pub fn usable(lab: &Lab<'_>) -> Result<(), Stop> {
    match held(lab) {
        Some(Ok(dataset)) => dataset
            .spoilt()
            .map_or(Ok(()), |why| Err(Stop::Skip("need-hook", why.to_owned()))),
        _ => Ok(()),
    }
}

/// Puts the pair out of the ARC, and proves what came of it. `live` writes both as a segment's
/// life does.
///
/// # Errors
/// The call that failed; `need-hook` where there is no child dataset, or a property of it could
/// not be changed.
pub fn live_and_prove(
    folder: &Folder,
    pair: Pair<'_>,
    lab: &mut Lab<'_>,
    live: impl FnOnce(&mut Lab<'_>) -> Result<(), Stop>,
) -> Result<ColdProof, Stop> {
    let dataset = match held(lab) {
        Some(Ok(dataset)) => dataset,
        Some(Err(why)) => return Err(no_child(&why, lab)),
        None => return Err(no_child("none was made", lab)),
    };
    let scratch = lab
        .scratch
        .ok_or_else(|| no_child("no scratch folder", lab))?;
    let (log, pulse) = (scratch.undo(), lab.pulse);
    dataset.set(CACHED, "metadata", log, pulse).map_err(stop)?;
    crate::pause::here("dropping");
    // What is not yet in its place is kept until it is: settled before the property changes.
    let lived = live(lab).and_then(|()| lab.hooks.settle());
    dataset.inherit(CACHED, log, pulse).map_err(stop)?;
    lived?;
    let after = After::now(lab);
    proof::prove(folder, pair, HOOK, after, lab)
}

fn no_child(why: &str, lab: &Lab<'_>) -> Stop {
    let dir = paths::show(&paths::from_request(&lab.request.dir));
    Stop::Skip(
        "need-hook",
        format!(
            "no child dataset, which needs root and the programs of OpenZFS: {why}; else only an \
             export of the pool empties the ZFS cache of a file: \
             walprobe recycle --drop-caches zfs {dir} (all its datasets go away meanwhile)"
        ),
    )
}

#[cfg(test)]
mod tests;
