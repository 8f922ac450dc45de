//! Files as PostgreSQL writes them: every return value looked at, short writes continued,
//! EINTR retried, renames made durable as `durable_rename` does (src/common/file_utils.c).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::{
    fs::{OFlags, Stat, StatVfs},
    io::Errno,
};

use crate::{
    contract::{Fault, Pulse},
    folder::Folder,
    pause,
};

/// A WAL page (XLOG_BLCKSZ).
pub const PAGE_BYTES: u64 = 8192;
/// O_DSYNC. rustix's `OFlags::DSYNC` is O_SYNC on Linux (1.1), which would also sync the
/// modification time; the kernel tells the two apart (open(2)).
pub const O_DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC.cast_unsigned());
/// O_SYNC.
pub const O_SYNC: OFlags = OFlags::from_bits_retain(libc::O_SYNC.cast_unsigned());

/// Bytes a call when a segment is filled with zeros (PostgreSQL 18: PG_IOV_MAX pages).
pub const FILL_BYTES: u64 = 1 << 20;

/// An open file of the scratch folder.
#[derive(Debug)]
pub struct WalFile {
    fd: OwnedFd,
    name: String,
}

impl WalFile {
    /// Makes a new file (O_CREAT and O_EXCL), open for reading and writing.
    ///
    /// # Errors
    /// The call that failed.
    pub fn create(folder: &Folder, name: &str) -> Result<Self, Fault> {
        Ok(Self {
            fd: folder.create_file(name, OFlags::RDWR)?,
            name: name.to_owned(),
        })
    }

    /// Opens an existing file for reading and writing, with further flags (O_DSYNC, O_SYNC).
    ///
    /// # Errors
    /// The call that failed.
    pub fn open(folder: &Folder, name: &str, flags: OFlags) -> Result<Self, Fault> {
        Ok(Self {
            fd: folder.open_file(name, OFlags::RDWR | flags)?,
            name: name.to_owned(),
        })
    }

    /// Its descriptor.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// A fault of `call` on this file.
    #[must_use]
    pub fn fault(&self, call: &'static str, errno: i32) -> Fault {
        Fault::new(call, errno, &self.name)
    }

    fn check<T>(&self, call: &'static str, result: rustix::io::Result<T>) -> Result<T, Fault> {
        result.map_err(|e| self.fault(call, e.raw_os_error()))
    }

    /// Writes all of `data` at `offset`. A write of nothing counts as ENOSPC, as in the server.
    ///
    /// # Errors
    /// The call that failed.
    pub fn pwrite_all(&self, mut data: &[u8], mut offset: u64) -> Result<(), Fault> {
        while !data.is_empty() {
            match rustix::io::pwrite(&self.fd, data, offset) {
                Ok(0) => return Err(self.fault("pwrite", Errno::NOSPC.raw_os_error())),
                Ok(n) => {
                    data = &data[n..];
                    offset += n as u64;
                }
                Err(Errno::INTR) => {}
                Err(e) => return Err(self.fault("pwrite", e.raw_os_error())),
            }
        }
        Ok(())
    }

    /// Reads all of `data` from `offset`; an early end is EIO.
    ///
    /// # Errors
    /// The call that failed.
    pub fn pread_all(&self, mut data: &mut [u8], mut offset: u64) -> Result<(), Fault> {
        while !data.is_empty() {
            match rustix::io::pread(&self.fd, &mut *data, offset) {
                Ok(0) => return Err(self.fault("pread", Errno::IO.raw_os_error())),
                Ok(n) => {
                    data = &mut data[n..];
                    offset += n as u64;
                }
                Err(Errno::INTR) => {}
                Err(e) => return Err(self.fault("pread", e.raw_os_error())),
            }
        }
        Ok(())
    }

    /// fdatasync(2), EINTR retried.
    ///
    /// # Errors
    /// The call that failed.
    pub fn fdatasync(&self) -> Result<(), Fault> {
        self.check(
            "fdatasync",
            rustix::io::retry_on_intr(|| rustix::fs::fdatasync(&self.fd)),
        )
    }

    /// fsync(2), EINTR retried.
    ///
    /// # Errors
    /// The call that failed.
    pub fn fsync(&self) -> Result<(), Fault> {
        self.check(
            "fsync",
            rustix::io::retry_on_intr(|| rustix::fs::fsync(&self.fd)),
        )
    }

    /// close(2), whose answer counts: some filesystems tell of a failed write only then.
    ///
    /// # Errors
    /// The call that failed; the descriptor is gone all the same.
    pub fn close(self) -> Result<(), Fault> {
        let Self { fd, name } = self;
        nix::unistd::close(fd).map_err(|errno| Fault::new("close", errno as i32, &name))
    }

    /// Fills the file with zeros up to `bytes`, `zeros.len()` bytes a call (XLogFileInitInternal).
    ///
    /// # Errors
    /// The call that failed.
    pub fn zero_fill(&self, bytes: u64, zeros: &[u8], pulse: &Pulse) -> Result<(), Fault> {
        let mut at = 0;
        while at < bytes {
            let part = (bytes - at).min(zeros.len() as u64);
            self.pwrite_all(&zeros[..part as usize], at)?;
            at += part;
            pulse.beat();
        }
        Ok(())
    }

    /// One zero byte at the end: a hole of the right length (wal_init_zero=off).
    ///
    /// # Errors
    /// The call that failed.
    pub fn sparse(&self, bytes: u64) -> Result<(), Fault> {
        self.pwrite_all(&[0], bytes - 1)
    }

    /// fstat(2).
    ///
    /// # Errors
    /// The call that failed.
    pub fn stat(&self) -> Result<Stat, Fault> {
        self.check("fstat", rustix::fs::fstat(&self.fd))
    }

    /// fstatvfs(3).
    ///
    /// # Errors
    /// The call that failed.
    pub fn statvfs(&self) -> Result<StatVfs, Fault> {
        self.check("fstatvfs", rustix::fs::fstatvfs(&self.fd))
    }

    /// posix_fadvise(2) on the whole file.
    ///
    /// # Errors
    /// The call that failed.
    pub fn advise(&self, advice: rustix::fs::Advice) -> Result<(), Fault> {
        self.check(
            "posix_fadvise",
            rustix::fs::fadvise(&self.fd, 0, None, advice),
        )
    }
}

/// Renames so that a crash leaves the file under one of the two names, its contents durable.
///
/// # Errors
/// The call that failed.
pub fn durable_rename(folder: &Folder, old: &str, new: &str) -> Result<(), Fault> {
    WalFile::open(folder, old, OFlags::empty())?.fsync()?;
    pause::here("renaming");
    folder.rename(old, new)?;
    WalFile::open(folder, new, OFlags::empty())?.fsync()?;
    folder.sync_dir()
}

/// Unlinks and makes that durable.
///
/// # Errors
/// The call that failed.
pub fn durable_unlink(folder: &Folder, name: &str) -> Result<(), Fault> {
    folder.unlink(name)?;
    folder.sync_dir()
}

#[cfg(test)]
mod tests {
    use std::{fs::OpenOptions, os::unix::fs::OpenOptionsExt};

    use super::*;

    /// The kernel's flag beside O_DSYNC that makes O_SYNC of it (`__O_SYNC`).
    const FULL_SYNC: i32 = libc::O_SYNC & !libc::O_DSYNC;

    #[test]
    fn the_kernel_sees_o_dsync_and_o_sync_as_two_things() {
        let dir = tempfile::tempdir().unwrap();
        for (flags, full) in [(O_DSYNC, false), (O_SYNC, true)] {
            let file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .custom_flags(flags.bits().cast_signed())
                .open(dir.path().join("x"))
                .unwrap();
            let seen = rustix::fs::fcntl_getfl(&file).unwrap().bits().cast_signed();
            assert_eq!(seen & libc::O_DSYNC, libc::O_DSYNC);
            assert_eq!(seen & FULL_SYNC != 0, full);
        }
    }
}
