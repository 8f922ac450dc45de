//! Space taken so that little, or nothing, is left: by fallocate(2) where that takes it, else written.

use rustix::{fs::OFlags, io::Errno};

use crate::{
    contract::{Fault, Lab, Stop},
    files::WalFile,
    folder::Folder,
    sys::{
        buffer::Buffer,
        errno,
        fallocate::{Mode, fallocate},
    },
};

/// Most a call: a signal is heard between two.
const ALLOCATED: u64 = 1 << 30;
const WRITTEN: u64 = 1 << 20;
/// Steps below a block of this are not tried.
const LEAST: u64 = 4096;
/// A filesystem that slows down when it is nearly full gets so long.
const LIMIT_NS: u64 = 20_000_000_000;

/// A disk or a quota is full.
pub(super) const fn is_full(errno: i32) -> bool {
    errno == libc::ENOSPC || errno == libc::EDQUOT
}

/// Bytes that this user may take, by `f_bavail`.
pub(super) fn free_bytes(folder: &Folder) -> Result<u64, Fault> {
    let vfs = folder.statvfs()?;
    Ok(vfs.f_bavail.saturating_mul(vfs.f_frsize))
}

/// A file that only takes space. Removed when dropped.
pub(super) struct Ballast {
    folder: Folder,
    name: String,
    file: Option<WalFile>,
    len: u64,
    native: bool,
    page: Buffer,
    /// The deadline passed before the disk was full.
    pub(super) late: bool,
}

impl Ballast {
    /// An empty one.
    pub(super) fn create(folder: &Folder, name: &str, seed: u64) -> Result<Self, Fault> {
        let mut page = Buffer::new(WRITTEN as usize, 4096);
        page.fill_incompressible(seed);
        Ok(Self {
            folder: folder.folder()?,
            name: name.to_owned(),
            file: Some(WalFile::create(folder, name)?),
            len: 0,
            native: true,
            page,
            late: false,
        })
    }

    /// Grows until at most `room` bytes are free, or nothing more can be had.
    pub(super) fn leave(&mut self, room: u64, lab: &mut Lab<'_>) -> Result<(), Stop> {
        let until = lab.clock.now_ns() + LIMIT_NS;
        let mut most = ALLOCATED;
        loop {
            self.watch(until, lab)?;
            let free = free_bytes(&self.folder)?;
            let step = free.saturating_sub(room).min(most);
            if step < LEAST || self.late {
                return Ok(());
            }
            match self.grow(step, lab)? {
                Ok(taken) => {
                    // A filesystem may say yes and reserve nothing.
                    if self.native && free_bytes(&self.folder)?.saturating_add(taken / 2) > free {
                        self.folder.syncfs()?;
                        self.native = free_bytes(&self.folder)?.saturating_add(taken / 2) <= free;
                    }
                }
                Err(_) => most = step / 2,
            }
        }
    }

    /// Grows until not a block more can be had; then writes to another file's end until that fails too,
    /// since a call may ask for more than it takes.
    pub(super) fn fill_up(&mut self, lab: &mut Lab<'_>) -> Result<(), Stop> {
        let until = lab.clock.now_ns() + LIMIT_NS;
        let vfs = self.folder.statvfs()?;
        let least = vfs.f_frsize.clamp(512, LEAST);
        let mut step = free_bytes(&self.folder)?
            .next_power_of_two()
            .clamp(WRITTEN, ALLOCATED);
        loop {
            self.watch(until, lab)?;
            if self.late {
                return Ok(());
            }
            if self.grow(step, lab)?.is_ok() {
                continue;
            }
            step /= 2;
            if step < least {
                if !self.native {
                    return Ok(());
                }
                self.native = false;
                step = WRITTEN;
                self.sync_end();
            }
        }
    }

    fn watch(&mut self, until: u64, lab: &Lab<'_>) -> Result<(), Stop> {
        lab.pulse.beat();
        if lab.pulse.stopped() {
            return Err(Stop::Interrupted);
        }
        self.late = lab.clock.now_ns() > until;
        Ok(())
    }

    /// What was taken, or why nothing was: the disk is full.
    fn grow(&mut self, step: u64, lab: &mut Lab<'_>) -> Result<Result<u64, Fault>, Stop> {
        let Some(file) = &self.file else {
            return Err(Stop::Broken("no ballast".to_owned()));
        };
        if self.native {
            match fallocate(file.fd(), Mode::Allocate, self.len, step) {
                Ok(()) => {
                    self.len += step;
                    return Ok(Ok(step));
                }
                Err(e) => match Errno::from_io_error(&e) {
                    Some(Errno::INTR) => return Ok(Ok(0)),
                    Some(e) if is_full(e.raw_os_error()) => {
                        return Ok(Err(file.fault("fallocate", e.raw_os_error())));
                    }
                    Some(e)
                        if errno::is_unsupported(e.raw_os_error())
                            || matches!(e, Errno::INVAL | Errno::FBIG) =>
                    {
                        self.native = false;
                    }
                    e => {
                        let errno = e.unwrap_or(Errno::IO).raw_os_error();
                        return Err(file.fault("fallocate", errno).into());
                    }
                },
            }
        }
        let step = step.min(WRITTEN);
        lab.hooks.charge(step)?;
        let written = file
            .pwrite_all(&self.page[..step as usize], self.len)
            .and_then(|()| file.fdatasync());
        match written {
            Ok(()) => {
                self.len += step;
                Ok(Ok(step))
            }
            Err(fault) if is_full(fault.errno) => Ok(Err(fault)),
            Err(fault) => Err(fault.into()),
        }
    }

    /// The end may lie within a block.
    fn sync_end(&self) {
        if let Some(file) = &self.file {
            let _ = file.fdatasync();
        }
    }

    /// Closes the file, which stays; [`Ballast::reopen`] opens it again.
    pub(super) fn close(&mut self) {
        self.file = None;
    }

    /// See [`Ballast::close`].
    pub(super) fn reopen(&mut self, folder: &Folder) -> Result<(), Fault> {
        self.folder = folder.folder()?;
        self.file = Some(WalFile::open(folder, &self.name, OFlags::empty())?);
        Ok(())
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        self.file = None;
        // What stays goes with the scratch folder.
        let _ = self.folder.unlink(&self.name);
    }
}
