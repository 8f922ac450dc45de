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

/// Undoes mountinfo's octal escapes of space, tab, line feed and backslash.
fn unescape(text: &str) -> String {
    text.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\")
}
