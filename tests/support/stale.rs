//! Undoes what an earlier test run left when it was killed.
//!
//! Only work folders whose owner's lock can be had: those of living tests are not
//! touched. Everything that is undone lies below such a folder.

use std::fs;
use std::path::Path;

use crate::fuse;
use crate::loops;
use crate::mounts;
use crate::work::{self, PREFIX};

/// Undoes all stale work folders under `base`; returns how many there were.
///
/// # Errors
/// A mount, loop device or folder that cannot be undone.
pub fn sweep(base: &Path) -> Result<usize, String> {
    let Ok(entries) = fs::read_dir(base) else {
        return Ok(0);
    };
    let mut swept = 0;
    for entry in entries.flatten() {
        let named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let folder = entry.path();
        if !named || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        // The canonical path is the one that mountinfo and losetup show.
        let Ok(folder) = folder.canonicalize() else {
            continue;
        };
        if let Ok(Some(_lock)) = work::lock_owner(&folder) {
            undo(&folder)?;
            swept += 1;
        }
    }
    Ok(swept)
}

/// A lazily unmounted filesystem keeps its loop device; and an image may lie on a
/// mount that is undone only after the device: so mounts and devices in turn.
fn undo(folder: &Path) -> Result<(), String> {
    // Whoever still waits for an answer of a program that is gone would keep the mount busy.
    fuse::abort_below(folder)?;
    for point in mounts::mount_points_below(folder)? {
        let devices = loops::loops_below(&point)?;
        for (device, image) in devices {
            loops::detach(&device, &image)?;
        }
        mounts::unmount(&point)?;
    }
    for (device, image) in loops::loops_below(folder)? {
        loops::detach(&device, &image)?;
    }
    work::remove(folder)
}
