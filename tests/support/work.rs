//! A trial's own folder on a disk, removed when dropped.
//!
//! Named `walprobe-test-PID-XXXXXX`. The file `owner` in it stays locked as long
//! as the test process lives: a folder whose lock can be had was left by a killed
//! run, and `stale` may undo it.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::{env, process};

use rustix::fs::FlockOperation;

use crate::{loops, mounts};

/// How every work folder's name begins.
pub const PREFIX: &str = "walprobe-test-";

/// The folder in which work folders are made: `WALPROBE_TEST_DIR`, or what the
/// test binary was built with (`CARGO_TARGET_TMPDIR`: on the disk, where `/tmp`
/// is often in memory).
#[must_use]
pub fn base(built_with: &str) -> PathBuf {
    env::var_os("WALPROBE_TEST_DIR").map_or_else(|| PathBuf::from(built_with), PathBuf::from)
}

/// A folder of a trial's own.
#[derive(Debug)]
pub struct WorkFolder {
    path: PathBuf,
    _owner: File,
}

impl WorkFolder {
    /// Makes one.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(base: &Path) -> Result<Self, String> {
        fs::create_dir_all(base)
            .map_err(|error| format!("cannot make {}: {error}", base.display()))?;
        let base = base
            .canonicalize()
            .map_err(|error| format!("cannot resolve {}: {error}", base.display()))?;
        let random = String::from_iter((0..6).map(|_| fastrand::alphanumeric()));
        let name = format!("{PREFIX}{}-{random}", process::id());
        // Locked before it has its name: a sweep never sees it without an owner.
        let unnamed = base.join(format!(".new-{name}"));
        // Others may pass through: the same folder serves trials as an ordinary user.
        DirBuilder::new()
            .mode(0o755)
            .create(&unnamed)
            .map_err(|error| format!("cannot make {}: {error}", unnamed.display()))?;
        let owner = lock_owner(&unnamed)?
            .ok_or_else(|| format!("{} is locked by another", unnamed.display()))?;
        let path = base.join(name);
        fs::rename(&unnamed, &path)
            .map_err(|error| format!("cannot rename {}: {error}", unnamed.display()))?;
        Ok(Self {
            path,
            _owner: owner,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a folder in it.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.path.join(name);
        fs::create_dir(&path)
            .map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        Ok(path)
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            eprintln!("left behind: {error}");
        }
    }
}

/// Takes the owner's lock of a work folder; `None` where a living test holds it.
///
/// # Errors
/// The file cannot be made.
pub fn lock_owner(folder: &Path) -> Result<Option<File>, String> {
    let path = folder.join("owner");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|error| format!("cannot open {}: {error}", path.display()))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(_) => Ok(None),
    }
}

/// Removes a work folder with all that is in it, unless a mount or a loop device still uses it.
///
/// # Errors
/// A mount or a loop device is there, or a removal failed.
#[expect(
    clippy::disallowed_methods,
    reason = "a test's own folder, by its name, with no mount below"
)]
pub fn remove(folder: &Path) -> Result<(), String> {
    let ours = folder
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    if !ours {
        return Err(format!("{} is not a work folder", folder.display()));
    }
    let mounted = mounts::mount_points_below(folder)?;
    if let Some(point) = mounted.first() {
        return Err(format!("{} is still mounted", point.display()));
    }
    // While its image is there, a later sweep can still find the device.
    if let Some((device, image)) = loops::loops_below(folder)?.first() {
        return Err(format!("{device} still holds {}", image.display()));
    }
    fs::remove_dir_all(folder)
        .map_err(|error| format!("cannot remove {}: {error}", folder.display()))
}
