//! `fadvise`: posix_fadvise(POSIX_FADV_DONTNEED). Needs no privilege and touches nobody else's
//! files; drops clean data pages only.

use rustix::fs::{Advice, OFlags};

use super::Pair;
use crate::{
    contract::{Lab, Stop},
    files::WalFile,
    folder::Folder,
    sys::residency,
};

/// A page may be held for a moment by somebody else: the drop is tried again.
const DROPS: usize = 3;

pub(super) fn run(folder: &Folder, pair: Pair<'_>, lab: &Lab<'_>) -> Result<(), Stop> {
    for _ in 0..DROPS {
        for name in [pair.file, pair.witness] {
            WalFile::open(folder, name, OFlags::empty())?.advise(Advice::DontNeed)?;
            lab.pulse.beat();
        }
        let file = WalFile::open(folder, pair.file, OFlags::empty())?;
        if residency::resident_pages(file.fd(), pair.bytes).is_ok_and(|r| r.resident == 0) {
            break;
        }
    }
    Ok(())
}
