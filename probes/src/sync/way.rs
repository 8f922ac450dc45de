//! The ways to make what was written durable: the server's four, and calls it does not use.

use std::io;

use rustix::{fs::OFlags, io::Errno};

use crate::{
    contract::{Fault, Stop},
    engine::case::stop_of,
    files::{O_DSYNC, O_SYNC, WalFile},
    sys::{rwf, uring::Uring},
};

/// What a case's name says: how the file is opened, and what makes a write durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// Past the page cache.
    pub(crate) direct: bool,
    /// The call.
    pub(crate) call: Call,
}

/// What makes writes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// fdatasync after an operation's writes.
    Fdatasync,
    /// fsync after an operation's writes.
    Fsync,
    /// Each write, by O_DSYNC.
    OpenDatasync,
    /// Each write, by O_SYNC.
    OpenSync,
    /// Each write, by its own flag.
    RwfDsync,
    /// Each write, by an fdatasync linked to it and submitted together with it.
    UringFdatasync,
}

impl Way {
    /// The way of this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (base, direct) = name
            .strip_suffix("+direct")
            .map_or((name, false), |base| (base, true));
        let call = match base {
            "fdatasync" => Call::Fdatasync,
            "fsync" => Call::Fsync,
            "open_datasync" => Call::OpenDatasync,
            "open_sync" => Call::OpenSync,
            "rwf_dsync" => Call::RwfDsync,
            "io_uring_fdatasync" => Call::UringFdatasync,
            _ => return None,
        };
        Some(Self { direct, call })
    }

    /// Flags besides O_RDWR.
    pub(crate) fn flags(self) -> OFlags {
        let sync = match self.call {
            Call::OpenDatasync => O_DSYNC,
            Call::OpenSync => O_SYNC,
            _ => OFlags::empty(),
        };
        if self.direct {
            sync | OFlags::DIRECT
        } else {
            sync
        }
    }

    /// Syncs of an operation of so many writes.
    pub(crate) const fn syncs(self, writes: u64) -> u64 {
        match self.call {
            Call::Fdatasync | Call::Fsync => 1,
            _ => writes,
        }
    }

    /// A call that the system may lack or forbid: tried once before anything is measured.
    pub(crate) const fn may_be_missing(self) -> bool {
        matches!(self.call, Call::RwfDsync | Call::UringFdatasync)
    }

    /// What a refusal before the first operation means. EINVAL is a filesystem's answer to O_DIRECT,
    /// and a kernel's to a call or flag that it does not know.
    pub(crate) fn refused(self, fault: Fault) -> Stop {
        let newer = self.may_be_missing();
        match fault.errno {
            libc::EINVAL if newer || self.direct => Stop::Unsupported(fault),
            libc::EPERM | libc::EACCES if newer => blocked(&fault),
            _ => stop_of(fault),
        }
    }
}

/// A call that works as root on this kernel and is refused all the same: sysctl or seccomp.
fn blocked(fault: &Fault) -> Stop {
    let by = if fault.call.starts_with("io_uring") {
        "the sysctl kernel.io_uring_disabled or a seccomp filter"
    } else {
        "a seccomp filter or a security module"
    };
    let errno = crate::sys::errno::name(fault.errno);
    Stop::Skip(
        "policy",
        format!("{}: blocked by policy ({errno}): {by}", fault.call),
    )
}

/// A file and its way.
pub(crate) struct Writer {
    file: WalFile,
    way: Way,
    ring: Option<Uring>,
}

impl Writer {
    /// A writer on an open file.
    ///
    /// # Errors
    /// The ring could not be made.
    pub(crate) fn new(file: WalFile, way: Way) -> Result<Self, Fault> {
        let ring = (way.call == Call::UringFdatasync)
            .then(|| Uring::new().map_err(|e| fault(&file, "io_uring_setup", &e)))
            .transpose()?;
        Ok(Self { file, way, ring })
    }

    /// Writes `data` at `offset`; durable after it, or after [`Self::sync`].
    ///
    /// # Errors
    /// The call that failed.
    pub(crate) fn write(&mut self, data: &[u8], offset: u64) -> Result<(), Fault> {
        let file = &self.file;
        match (&mut self.ring, self.way.call) {
            (Some(ring), _) => whole(file, "io_uring write", data, offset, |data, offset| {
                ring.write_fdatasync(file.fd(), data, offset)
            }),
            (None, Call::RwfDsync) => whole(file, "pwritev2", data, offset, |data, offset| {
                rwf::pwrite_dsync(file.fd(), data, offset)
            }),
            _ => file.pwrite_all(data, offset),
        }
    }

    /// Closes the file.
    ///
    /// # Errors
    /// close(2) failed.
    pub(super) fn close(self) -> Result<(), Fault> {
        self.file.close()
    }

    /// Makes an operation's writes durable where that takes a call of its own; false where not.
    ///
    /// # Errors
    /// The call that failed.
    pub(crate) fn sync(&self) -> Result<bool, Fault> {
        match self.way.call {
            Call::Fdatasync => self.file.fdatasync().map(|()| true),
            Call::Fsync => self.file.fsync().map(|()| true),
            _ => Ok(false),
        }
    }
}

fn fault(file: &WalFile, call: &'static str, error: &io::Error) -> Fault {
    file.fault(call, error.raw_os_error().unwrap_or(libc::EIO))
}

/// Goes on after short writes, as the server does; a write of nothing counts as ENOSPC.
fn whole(
    file: &WalFile,
    call: &'static str,
    mut data: &[u8],
    mut offset: u64,
    mut write: impl FnMut(&[u8], u64) -> io::Result<usize>,
) -> Result<(), Fault> {
    while !data.is_empty() {
        match write(data, offset) {
            Ok(0) => return Err(file.fault(call, Errno::NOSPC.raw_os_error())),
            Ok(n) => {
                data = &data[n..];
                offset += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(fault(file, call, &e)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_flags_and_syncs() {
        let way = |name| Way::parse(name).unwrap();
        assert_eq!(way("fdatasync").flags(), OFlags::empty());
        assert_eq!(way("open_datasync").flags(), O_DSYNC);
        assert_eq!(way("open_sync+direct").flags(), O_SYNC | OFlags::DIRECT);
        assert_eq!(way("rwf_dsync").flags(), OFlags::empty());
        assert_eq!(way("fsync").syncs(16), 1);
        for each in [
            "open_datasync",
            "open_sync",
            "rwf_dsync",
            "io_uring_fdatasync",
        ] {
            assert_eq!(way(each).syncs(16), 16, "{each}");
        }
        assert_eq!(Way::parse("fsync_writethrough"), None);
    }

    #[test]
    fn a_refusal_says_whether_a_policy_or_the_system_refuses() {
        let of = |name, call, errno| {
            Way::parse(name)
                .unwrap()
                .refused(Fault::new(call, errno, "x"))
        };
        let Stop::Skip(code, why) = of("io_uring_fdatasync", "io_uring_setup", libc::EPERM) else {
            panic!("not skipped");
        };
        assert_eq!(code, "policy");
        assert!(why.contains("blocked by policy (EPERM)"), "{why}");
        for (name, errno) in [
            ("io_uring_fdatasync", libc::ENOSYS),
            ("rwf_dsync", libc::EOPNOTSUPP),
            ("open_sync+direct", libc::EINVAL),
        ] {
            assert!(
                matches!(of(name, "openat", errno), Stop::Unsupported(_)),
                "{name}"
            );
        }
        // The server's own methods have no such excuse.
        for errno in [libc::EINVAL, libc::EPERM] {
            assert!(matches!(of("open_sync", "pwrite", errno), Stop::Fault(_)));
        }
    }
}
