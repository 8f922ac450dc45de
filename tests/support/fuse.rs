//! FUSE connections of filesystems below a folder: ended, so that no call waits for an answer.
//!
//! The kernel ends them itself when the last descriptor of the serving program's `/dev/fuse`
//! closes; a child that inherited one would keep them.

use std::fs;
use std::path::Path;

use crate::mounts;

/// Where the kernel shows its connections, once the control filesystem is mounted there.
const CONNECTIONS: &str = "/sys/fs/fuse/connections";

/// Aborts every FUSE connection that is mounted below a folder: each call that waits fails, and
/// so does each later one.
///
/// # Errors
/// `/proc/self/mountinfo` cannot be read, or a connection's abort file cannot be written.
pub fn abort_below(folder: &Path) -> Result<(), String> {
    for number in mounts::fuse_devices_below(folder)? {
        let path = Path::new(CONNECTIONS)
            .join(number.to_string())
            .join("abort");
        // A connection that has ended is not listed.
        if path.exists() {
            fs::write(&path, "1")
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
    }
    Ok(())
}
