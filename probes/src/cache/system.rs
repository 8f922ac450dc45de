//! `system`: `/proc/sys/vm/drop_caches`. Drops the clean pages, directory entries and inodes of the
//! whole host, which slows everybody on it: only by name, and its rows carry a doubt.

use std::{fs::File, io, io::Write as _};

use crate::contract::{Lab, Stop};

/// proc_sys_vm(5). Reading it back would only tell who wrote last: it is opened to write.
const PATH: &str = "/proc/sys/vm/drop_caches";
/// Pages, directory entries and inodes.
const ALL: &[u8] = b"3\n";

pub(super) fn run(lab: &Lab<'_>) -> Result<(), Stop> {
    let written = File::options()
        .write(true)
        .open(PATH)
        .and_then(|mut file| file.write_all(ALL));
    lab.pulse.beat();
    written.map_err(|e| refused(&e, rustix::process::geteuid().is_root()))
}

fn refused(error: &io::Error, root: bool) -> Stop {
    let told = |why: &str| format!("--drop-caches system: {PATH}: {error}{why}");
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) if !root => {
            Stop::Skip("need-root", told(": only root may write it"))
        }
        Some(libc::EROFS | libc::EACCES | libc::EPERM) => Stop::Skip(
            "need-hook",
            told(": not permitted here, as in most containers"),
        ),
        Some(libc::ENOENT) => Stop::Skip("kernel", told("")),
        _ => Stop::Skip("need-hook", told("")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_why() {
        let code = |errno, root| match refused(&io::Error::from_raw_os_error(errno), root) {
            Stop::Skip(code, why) => {
                assert!(why.contains(PATH), "{why}");
                code
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(code(libc::EACCES, false), "need-root");
        assert_eq!(code(libc::EACCES, true), "need-hook");
        assert_eq!(code(libc::EROFS, false), "need-hook");
        assert_eq!(code(libc::ENOENT, true), "kernel");
        assert_eq!(code(libc::EIO, true), "need-hook");
    }
}
