//! A loop device over a file of the scratch folder.
//!
//! The undo file names device and file before they are bound. The kernel unbinds the device with its
//! last user, so that what a killed run leaves is, at most, a line that has nothing to undo.

use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::AsFd,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{major, minor},
    io::Errno,
};

use crate::{
    contract::Fault,
    files::WalFile,
    folder::fault,
    sys::{loopattach, loopdev},
    undo::{Action, Undo},
};

const CONTROL: &str = "/dev/loop-control";
/// Others may take the device that was free.
const TRIES: u32 = 20;
/// The kernel may unbind a device a moment after its last user has gone.
const UNBINDING: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(5);

/// The device (major, minor) of a file's filesystem, and the file's inode.
pub(crate) type Image = ((u32, u32), u64);

/// A device that is bound to a file of ours. Unbound when dropped.
#[derive(Debug)]
pub(super) struct Loop<'s> {
    undo: &'s Undo,
    action: Action,
    path: PathBuf,
    device: Option<File>,
}

impl<'s> Loop<'s> {
    /// Binds a free device to `image`.
    pub(super) fn bind(undo: &'s Undo, image: &WalFile) -> Result<Self, Fault> {
        let failed = |call, at: &Path, e: &io::Error| {
            let errno = Errno::from_io_error(e).unwrap_or(Errno::IO);
            fault(call, errno, &at.to_string_lossy())
        };
        let stat = image.stat()?;
        let control = Path::new(CONTROL);
        let opened = open(control).map_err(|e| failed("open", control, &e))?;
        let mut tries = 0;
        loop {
            let number = loopattach::free_number(opened.as_fd())
                .map_err(|e| failed("ioctl(LOOP_CTL_GET_FREE)", control, &e))?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = open(&path).map_err(|e| failed("open", &path, &e))?;
            let action = Action::Loop {
                device: path.clone(),
                image_device: (major(stat.st_dev), minor(stat.st_dev)),
                image_inode: stat.st_ino,
            };
            undo.will(action.clone())?;
            let bound = Self {
                undo,
                action,
                path,
                device: Some(device),
            };
            match loopattach::bind(bound.device().as_fd(), image.fd()) {
                Ok(()) => return Ok(bound),
                Err(e) if e.raw_os_error() == Some(libc::EBUSY) && tries < TRIES => tries += 1,
                Err(e) => return Err(failed("ioctl(LOOP_CONFIGURE)", &bound.path, &e)),
            }
        }
    }

    const fn device(&self) -> &File {
        self.device.as_ref().expect("held until dropped")
    }

    /// `/dev/loopN`.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Loop<'_> {
    fn drop(&mut self) {
        self.device = None;
        // Not noted where that fails: undone again with the scratch folder.
        if self.action.undo("").is_ok() {
            drop(self.undo.did_undo(&self.action));
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// Unbinds the device if it is bound to this very file, by its filesystem's device and inode: the number
/// may be another's by now. Who has it mounted in a process that lives keeps it bound.
pub(crate) fn undo(device: &Path, image: Image) -> Result<(), String> {
    let name = crate::paths::show(device);
    let is_loop = device
        .strip_prefix("/dev")
        .ok()
        .and_then(|d| d.to_str()?.strip_prefix("loop"))
        .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    if !is_loop {
        return Err(format!("{name} is no loop device"));
    }
    let mut waited = Duration::ZERO;
    while is_bound(device, image).map_err(|e| format!("{name}: {e}"))? {
        if waited >= UNBINDING {
            return Err(format!("{name} is still in use"));
        }
        if waited == Duration::ZERO {
            let opened = File::open(device).map_err(|e| format!("{name}: {e}"))?;
            match loopattach::unbind(opened.as_fd()) {
                Err(e) if e.raw_os_error() != Some(libc::ENXIO) => {
                    return Err(format!("{name}: {e}"));
                }
                _ => {}
            }
        }
        std::thread::sleep(STEP);
        waited += STEP;
    }
    Ok(())
}

fn is_bound(device: &Path, image: Image) -> io::Result<bool> {
    match loopdev::backing(device) {
        Ok(found) => Ok(found == image),
        Err(e) => match e.raw_os_error() {
            // Not bound; or the device is gone, or was never there.
            Some(libc::ENXIO | libc::ENOENT | libc::ENODEV) => Ok(false),
            _ => Err(e),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loop_devices_are_unbound_and_only_from_our_file() {
        for path in ["/dev/null", "/dev/loop-control", "/tmp/loop0", "/dev/loop"] {
            assert!(undo(Path::new(path), ((7, 0), 1)).is_err(), "{path}");
        }
        assert_eq!(undo(Path::new("/dev/loop987654"), ((7, 0), 1)), Ok(()));
    }
}
