//! What can still be done on a full disk, and once a segment was freed.

use std::time::Duration;

use rustix::fs::OFlags;
use serde_json::json;

use super::{
    ballast::{free_bytes, is_full},
    full::PAGE,
    place::MARK,
    through::{Writer, answer},
};
use crate::{
    contract::{Fault, Lab, Observations, Stop},
    files::WalFile,
    folder::Folder,
    segment::{Init, Maker},
};

/// A filesystem may give space back a moment after it was freed; ZFS with its transaction group.
const TRIES: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(500);

/// Tries the calls on the full disk, frees `spare`, tries them again, and goes on writing.
pub(super) fn when_full(
    folder: &Folder,
    maker: &Maker,
    init: Init,
    spare: &str,
    until: u64,
    lab: &mut Lab<'_>,
    seen: &mut Observations,
) -> Result<(), Stop> {
    each(folder, "full", lab, seen)?;
    let before = free_bytes(folder)?;
    let unlinked = folder.unlink(spare).and_then(|()| folder.sync_dir());
    seen.insert("full_free_segment".to_owned(), json!(answer(&unlinked)));
    unlinked?;
    let mut tries = 0;
    let recovers = loop {
        folder.syncfs()?;
        lab.pulse.beat();
        if lab.pulse.stopped() {
            return Err(Stop::Interrupted);
        }
        let back = free_bytes(folder)?.saturating_sub(before);
        seen.insert("space_back_bytes".to_owned(), json!(back));
        match go_on(folder, maker, init, until, lab)? {
            None => break true,
            Some(fault) if !is_full(fault.errno) => return Err(fault.into()),
            Some(_) => {}
        }
        tries += 1;
        if tries == TRIES || lab.clock.now_ns() > until {
            break false;
        }
        std::thread::sleep(BETWEEN);
    };
    seen.insert("recovers".to_owned(), json!(recovers));
    seen.insert(
        "recover_tries".to_owned(),
        json!(tries + u32::from(recovers)),
    );
    each(folder, "freed", lab, seen)
}

/// Create, append, fsync, rename and unlink, each answer for itself.
fn each(folder: &Folder, when: &str, lab: &Lab<'_>, seen: &mut Observations) -> Result<(), Stop> {
    let (tmp, name) = (format!("tmp{MARK}call"), format!("file{MARK}call"));
    let mut tell = |call: &str, outcome: &Result<(), Fault>| {
        lab.pulse.beat();
        seen.insert(format!("{when}_{call}"), json!(answer(outcome)));
    };
    let created = WalFile::create(folder, &tmp);
    match created {
        Ok(file) => {
            tell("create", &Ok(()));
            tell("append", &file.pwrite_all(&[1; PAGE as usize], 0));
            tell("fsync", &file.fsync());
            drop(file);
            tell("rename", &folder.rename(&tmp, &name));
            let left = [&name, &tmp]
                .into_iter()
                .find(|n| WalFile::open(folder, n, OFlags::empty()).is_ok());
            if let Some(left) = left {
                tell("unlink", &folder.unlink(left));
            }
        }
        Err(fault) => tell("create", &Err(fault)),
    }
    Ok(())
}

/// Half a segment is made anew by the method, and written through.
fn go_on(
    folder: &Folder,
    maker: &Maker,
    init: Init,
    until: u64,
    lab: &Lab<'_>,
) -> Result<Option<Fault>, Stop> {
    let bytes = (maker.segment_bytes / 2).max(PAGE);
    let half = Maker::new(folder.folder()?, bytes, bytes, PAGE, lab.request.seed);
    let (tmp, name) = (format!("tmp{MARK}on"), format!("seg{MARK}on"));
    let mut outcome = half.create(init, &tmp, &name, lab.pulse).err();
    if outcome.is_none() {
        let mut writer = Writer::new(bytes, bytes / 4, lab.request.seed ^ 2);
        let names = [name.clone()];
        outcome = writer
            .walk(folder, &names, until, lab)?
            .map(|failure| failure.fault);
    }
    for left in [tmp, name] {
        match folder.unlink(&left) {
            Err(fault) if fault.errno != libc::ENOENT => return Err(fault.into()),
            _ => {}
        }
    }
    Ok(outcome)
}
