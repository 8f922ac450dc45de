#![expect(unsafe_code, reason = "LOOP_GET_STATUS64 has no safe wrapper")]
//! Which file a loop device lies on: `LOOP_GET_STATUS64` (loop(4)).
//!
//! `/sys/block/loopN/loop/backing_file` is a path, which may mean another file in this
//! mount namespace, or none any more; this names the file's device and inode. The device
//! is opened read-only, which needs the right to (root, usually); nothing is changed.
//!
//! <https://man7.org/linux/man-pages/man4/loop.4.html>

use std::{fs::File, io, os::fd::AsFd, path::Path};

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl};

/// `struct loop_info64`: its first fields and its size.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rest: [u8; 216],
}

const _: () = assert!(size_of::<LoopInfo>() == 232);

/// The request; its number carries no size, so rustix's patterns do not fit.
struct GetStatus(LoopInfo);

// SAFETY: the kernel fills one `loop_info64`, for which `LoopInfo` is large enough and of
// which every bit pattern is valid; `as_ptr` points at it for the time of the call.
unsafe impl Ioctl for GetStatus {
    type Output = (u64, u64);

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        0x4c05
    }

    fn as_ptr(&mut self) -> *mut libc::c_void {
        (&raw mut self.0).cast()
    }

    unsafe fn output_from_ptr(
        _: IoctlOutput,
        filled: *mut libc::c_void,
    ) -> rustix::io::Result<Self::Output> {
        // SAFETY: `filled` is what `as_ptr` returned, and the call succeeded.
        let info = unsafe { &*filled.cast::<LoopInfo>() };
        Ok((info.device, info.inode))
    }
}

/// A loop device's file: the device (major, minor) of its filesystem, and its inode.
///
/// # Errors
/// As open(2) and loop(4): EACCES without the right, ENXIO on an unbound device.
pub fn backing(device: &Path) -> io::Result<((u32, u32), u64)> {
    let file = File::open(device)?;
    let request = GetStatus(LoopInfo {
        device: 0,
        inode: 0,
        rest: [0; 216],
    });
    // SAFETY: see the implementation of `Ioctl`; the request only reads the device's state.
    let (device, inode) = unsafe { ioctl(file.as_fd(), request) }?;
    Ok((decode(device), inode))
}

/// The kernel's `huge_decode_dev`.
const fn decode(dev: u64) -> (u32, u32) {
    (
        ((dev >> 8) & 0xfff) as u32,
        ((dev & 0xff) | ((dev >> 12) & 0xfff00)) as u32,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_are_decoded_as_the_kernel_encodes_them() {
        assert_eq!(decode(0xfe00), (254, 0));
        assert_eq!(decode(0x29), (0, 41));
        assert_eq!(decode(0x0010_0801), (8, 257));
    }

    #[test]
    fn other_files_have_no_backing() {
        let e = backing(Path::new("/dev/null")).unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::ENOTTY));
        let e = backing(Path::new("/nonexistent")).unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::ENOENT));
    }
}
