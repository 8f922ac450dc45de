//! What is mounted: `/proc/self/mountinfo` (proc(5)).

use std::fs;
use std::path::{Path, PathBuf};

/// Mount points below a folder, the last mounted first.
///
/// # Errors
/// `/proc/self/mountinfo` cannot be read.
pub fn mount_points_below(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let table = fs::read_to_string("/proc/self/mountinfo")
        .map_err(|error| format!("cannot read /proc/self/mountinfo: {error}"))?;
    let mut points: Vec<_> = table
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(|point| PathBuf::from(unescape(point)))
        .filter(|point| point.starts_with(folder))
        .collect();
    points.reverse();
    Ok(points)
}

/// Device numbers of the FUSE filesystems mounted below a folder, in the kernel's numbering
/// (12 bits, then 20).
///
/// # Errors
/// `/proc/self/mountinfo` cannot be read.
pub(crate) fn fuse_devices_below(folder: &Path) -> Result<Vec<u64>, String> {
    let table = fs::read_to_string("/proc/self/mountinfo")
        .map_err(|error| format!("cannot read /proc/self/mountinfo: {error}"))?;
    let number = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let fields: Vec<_> = before.split(' ').collect();
        let kind = after.split(' ').next()?;
        let is_fuse = ["fuse", "fuseblk"].contains(&kind.split('.').next()?);
        let is_below = Path::new(&unescape(fields.get(4)?)).starts_with(folder);
        let (major, minor) = fields.get(2)?.split_once(':')?;
        let (major, minor): (u64, u64) = (major.parse().ok()?, minor.parse().ok()?);
        (is_fuse && is_below).then_some(major << 20 | minor)
    };
    Ok(table.lines().filter_map(number).collect())
}

/// Undoes mountinfo's octal escapes of space, tab, line feed and backslash.
fn unescape(text: &str) -> String {
    text.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\")
}
