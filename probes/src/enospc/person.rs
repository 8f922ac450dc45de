//! Who fills: not root. Most filesystems keep a reserve for root, which a server does not run as; what
//! root writes would be told of a disk that is not full for it alone.

use std::os::fd::AsFd as _;

use nix::unistd::{Uid, setfsuid};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use crate::{contract::Fault, folder::fault, scratch::Scratch};

/// `nobody`, where the directory is root's own.
const NOBODY: u32 = 65534;

/// This thread's files count as another user's, and the reserves are closed to it, until dropped.
/// A process that is not root's stays what it is.
#[derive(Debug)]
pub(super) struct Person {
    before: Option<CapabilitySets>,
}

impl Person {
    /// Becomes the owner of the directory that was given.
    pub(super) fn of(scratch: &Scratch) -> Result<Self, Fault> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self { before: None });
        }
        let parent = rustix::fs::statat(
            scratch.folder()?.fd()?.as_fd(),
            "..",
            rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
        )
        .map_err(|e| fault("fstatat", e, ".."))?;
        let owner = if parent.st_uid == 0 {
            NOBODY
        } else {
            parent.st_uid
        };
        let before = capabilities(None).map_err(|e| fault("capget", e, "."))?;
        let person = Self {
            before: Some(before),
        };
        setfsuid(Uid::from_raw(owner));
        // The call tells nothing but who it was before.
        if setfsuid(Uid::from_raw(owner)).as_raw() != owner {
            return Err(fault("setfsuid", rustix::io::Errno::PERM, "."));
        }
        // It took the right to pass the scratch folder's permissions as well.
        let mut sets = before;
        sets.effective = before.effective - CapabilitySet::SYS_RESOURCE;
        set_capabilities(None, sets).map_err(|e| fault("capset", e, "."))?;
        Ok(person)
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            setfsuid(Uid::from_raw(0));
            // What was effective before is permitted: it cannot fail.
            let _ = set_capabilities(None, before);
        }
    }
}
