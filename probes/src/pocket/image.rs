//! A small filesystem in an image in the scratch folder, or a small tmpfs: a disk that may be filled.
//!
//! It is never attached to a mount namespace, not even to one of our own: `fsmount(2)` gives a
//! descriptor, nobody else sees a mount point, and the kernel unmounts it with the last descriptor,
//! however this process ends. The image is sparse; the filesystem that holds it must have room for
//! all of it, so that the pocket's end is never the target's.

use std::{ffi::OsStr, os::fd::OwnedFd, time::Duration};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
        fsconfig_set_string, fsmount, fsopen,
    },
};

use super::{format::Format, loops::Loop};
use crate::{
    contract::{Fault, Pulse, Stop},
    files::WalFile,
    folder::{Anchor, Folder, fault},
    program::{Failure, Program, find},
    scratch::Scratch,
};

const IMAGE: &str = "file-pocket";
/// Left free on the filesystem that holds the image, besides all of it.
const KEEP_BYTES: u64 = 64 << 20;
/// A device's last user may be a moment in going.
const MOUNT_TRIES: u32 = 100;
const BETWEEN: Duration = Duration::from_millis(10);

/// A pocket. Unmounted, unbound and removed when dropped; whoever has a file of it open keeps it.
#[derive(Debug)]
pub(crate) struct Pocket<'s> {
    format: Format,
    scratch: &'s Scratch,
    // In this order: the filesystem goes before its device.
    mount: Option<OwnedFd>,
    folder: Folder,
    device: Option<Loop<'s>>,
}

impl<'s> Pocket<'s> {
    /// Makes it and mounts it.
    ///
    /// # Errors
    /// A skip that says why there is none; nothing is left.
    pub(crate) fn make(
        scratch: &'s Scratch,
        format: Format,
        limit: Duration,
        pulse: &Pulse,
    ) -> Result<Self, Stop> {
        if !rustix::process::geteuid().is_root() {
            return Err(skip("need-root", "only root may make a filesystem"));
        }
        let mut pocket = Self {
            folder: scratch.folder()?,
            format,
            scratch,
            mount: None,
            device: None,
        };
        if let Some(mkfs) = pocket.format.mkfs.clone() {
            let image = pocket.image()?;
            pocket.mkfs(&mkfs, limit, pulse)?;
            pulse.beat();
            // Its space is taken now, so that nobody else takes it meanwhile.
            match rustix::fs::fallocate(
                image.fd(),
                rustix::fs::FallocateFlags::empty(),
                0,
                pocket.format.bytes,
            ) {
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
                Err(e) => {
                    let failed = image.fault("fallocate", e.raw_os_error());
                    return Err(Stop::Skip("space", failed.to_string()));
                }
            }
            pulse.beat();
            pocket.device = Some(Loop::bind(scratch.undo(), &image).map_err(|e| refused(&e))?);
        }
        crate::pause::here("pocket");
        pocket.mount()?;
        pulse.beat();
        Ok(pocket)
    }

    /// Its top folder.
    pub(crate) const fn folder(&self) -> &Folder {
        &self.folder
    }

    /// How it was made.
    pub(crate) const fn format(&self) -> &Format {
        &self.format
    }

    /// What is free on the filesystem that holds its image, where that is so little that the image may
    /// have been kept from growing; in bytes.
    pub(crate) fn starved(&self) -> Option<u64> {
        self.device.as_ref()?;
        let vfs = self.scratch.folder().ok()?.statvfs().ok()?;
        let free = vfs.f_bavail.saturating_mul(vfs.f_frsize);
        (free < KEEP_BYTES / 4).then_some(free)
    }

    /// Unmounts it and mounts it again: what is read afterwards comes from its device. False for one in
    /// memory, which would be empty then. No file of it may be open.
    ///
    /// # Errors
    /// The call that failed.
    pub(crate) fn mount_again(&mut self) -> Result<bool, Stop> {
        if self.device.is_none() {
            return Ok(false);
        }
        self.folder.anchor().let_go();
        self.mount = None;
        self.mount().map(|()| true)
    }

    fn image(&self) -> Result<WalFile, Stop> {
        let host = self.scratch.folder()?;
        let vfs = host.statvfs()?;
        let free = vfs.f_bavail.saturating_mul(vfs.f_frsize);
        let need = self.format.bytes + KEEP_BYTES;
        if free < need {
            return Err(Stop::Skip(
                "space",
                format!("{free} bytes are free, and a pocket that cannot fill them needs {need}"),
            ));
        }
        let image = WalFile::create(&host, IMAGE)?;
        // Where the host copies on write, one layer of that is enough; others do not know the flag.
        if let Ok(flags) = rustix::fs::ioctl_getflags(image.fd()) {
            let _ = rustix::fs::ioctl_setflags(image.fd(), flags | rustix::fs::IFlags::NOCOW);
        }
        rustix::fs::ftruncate(image.fd(), self.format.bytes)
            .map_err(|e| image.fault("ftruncate", e.raw_os_error()))?;
        Ok(image)
    }

    fn mkfs(&self, name: &str, limit: Duration, pulse: &Pulse) -> Result<(), Stop> {
        let path = find(OsStr::new(name))
            .ok_or_else(|| Stop::Skip("need-tool", format!("there is no program {name}")))?;
        let image = self.scratch.place().join(IMAGE);
        Program::new(&path, limit)
            .args(&self.format.arguments)
            .args([&image])
            .in_root()
            .run(pulse)
            .map(drop)
            .map_err(|failure| match failure {
                Failure::Interrupted => Stop::Interrupted,
                Failure::Told(why) => Stop::Skip("need-tool", why),
            })
    }

    fn mount(&mut self) -> Result<(), Stop> {
        let mut tries = 0;
        let mounted = loop {
            match self.attempt() {
                Err(e) if e.errno == libc::EBUSY && tries < MOUNT_TRIES => tries += 1,
                other => break other.map_err(|e| refused(&e))?,
            }
            std::thread::sleep(BETWEEN);
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::openat(&mounted, ".", flags, Mode::empty())
            .map_err(|e| fault("openat", e, "the pocket"))?;
        self.folder = Folder::new(Anchor::new(top), "the pocket", false);
        self.mount = Some(mounted);
        Ok(())
    }

    fn attempt(&self) -> Result<OwnedFd, Fault> {
        let kind = &self.format.kind;
        let failed = |call| move |e: Errno| fault(call, e, kind);
        let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).map_err(failed("fsopen"))?;
        let set = |name: &str, value: Option<&str>| {
            let done = match value {
                Some(value) => fsconfig_set_string(&context, name, value),
                None => fsconfig_set_flag(&context, name),
            };
            done.map_err(|e| fault("fsconfig", e, name))
        };
        let source = self
            .device
            .as_ref()
            .map_or("walprobe".into(), |d| d.path().to_string_lossy());
        set("source", Some(&source))?;
        for option in &self.format.options {
            match option.split_once('=') {
                Some((name, value)) => set(name, Some(value))?,
                None => set(option, None)?,
            }
        }
        fsconfig_create(&context).map_err(failed("fsconfig(FSCONFIG_CMD_CREATE)"))?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC
            | MountAttrFlags::MOUNT_ATTR_NOATIME;
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).map_err(failed("fsmount"))
    }
}

impl Drop for Pocket<'_> {
    fn drop(&mut self) {
        if self.mount.is_some() {
            self.folder.anchor().let_go();
        }
        self.mount = None;
        self.device = None;
        // What is left of it goes with the scratch folder.
        if self.format.mkfs.is_some()
            && let Ok(host) = self.scratch.folder()
        {
            drop(host.unlink(IMAGE));
        }
    }
}

fn skip(code: &'static str, why: impl Into<String>) -> Stop {
    Stop::Skip(code, why.into())
}

/// Why a filesystem of our own cannot be mounted: a container's root lacks the right or the devices.
fn refused(fault: &Fault) -> Stop {
    let code = match fault.errno {
        libc::EPERM | libc::EACCES => "need-root",
        libc::ENODEV | libc::ENOSYS => "kernel",
        _ => "errno",
    };
    Stop::Skip(code, format!("no filesystem of walprobe's own: {fault}"))
}
