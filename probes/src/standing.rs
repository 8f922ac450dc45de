//! Is the filesystem still there to be measured, after a call on it failed?
//!
//! One that cannot write its own metadata gives itself up: XFS shuts down, ext4 does too or is
//! mounted read-only (`errors=`, ext4(5)). Every later call then fails, and tells nothing of the
//! case that made it. A full filesystem, or one bad file, is not that.

use std::{io, path::Path};

use rustix::{
    fs::{Mode, OFlags, StatVfsMountFlags},
    io::Errno,
};

use crate::{contract::Fault, files::WalFile, folder::Folder};

/// Why the folder's filesystem is given up; none where it takes a file, or may take one again.
pub(crate) fn given_up(folder: &Folder) -> Option<Fault> {
    let name = "file-check";
    let fault = match WalFile::create(folder, name) {
        Ok(_) => folder.unlink(name).err()?,
        Err(fault) => fault,
    };
    is_end(Errno::from_raw_os_error(fault.errno)).then_some(fault)
}

/// Why nothing can be removed from a directory: its filesystem is given up; none where nothing
/// speaks for that.
pub(crate) fn given_up_at(dir: &Path) -> Option<String> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let asked = rustix::fs::open(dir, flags, Mode::empty()).and_then(rustix::fs::fstatvfs);
    match asked {
        Ok(stat) if stat.f_flag.contains(StatVfsMountFlags::RDONLY) => {
            Some("its filesystem has become read-only".to_owned())
        }
        Err(e) if is_end(e) => Some(format!("it cannot be opened: {}", io::Error::from(e))),
        _ => None,
    }
}

/// Errors after which a filesystem takes nothing more until it is mounted anew.
const fn is_end(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::IO | Errno::ROFS | Errno::SHUTDOWN | Errno::UCLEAN | Errno::NXIO | Errno::NODEV
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_or_forbidden_directory_is_not_given_up() {
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::ACCESS, Errno::EXIST] {
            assert!(!is_end(errno), "{errno}");
        }
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(given_up_at(dir.path()), None);
        assert_eq!(given_up_at(&dir.path().join("gone")), None);
    }
}
