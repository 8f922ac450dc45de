#![expect(
    unsafe_code,
    reason = "LOOP_CTL_GET_FREE and LOOP_CONFIGURE have no safe wrapper"
)]
//! Binds a file to a loop device, and lets it go again (loop(4)).
//!
//! `LOOP_CONFIGURE` (Linux 5.8) sets `LO_FLAGS_AUTOCLEAR` in the same step: the kernel unbinds the
//! device with its last user, however that one ends, so there is no moment in which a SIGKILL could
//! leave it bound.
//!
//! <https://man7.org/linux/man-pages/man4/loop.4.html>

use std::{
    io,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd},
};

use rustix::ioctl::{Ioctl, IoctlOutput, NoArg, Opcode, ioctl};

const CLR_FD: Opcode = 0x4c01;
const CONFIGURE: Opcode = 0x4c0a;
const CTL_GET_FREE: Opcode = 0x4c82;
/// `LO_FLAGS_AUTOCLEAR`.
const AUTOCLEAR: u32 = 4;

/// Asks `/dev/loop-control` for a free device's number.
struct GetFree;

// SAFETY: the request takes no argument and answers with its return value.
unsafe impl Ioctl for GetFree {
    type Output = u32;

    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        CTL_GET_FREE
    }

    fn as_ptr(&mut self) -> *mut libc::c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(
        number: IoctlOutput,
        _: *mut libc::c_void,
    ) -> rustix::io::Result<u32> {
        u32::try_from(number).map_err(|_| rustix::io::Errno::RANGE)
    }
}

/// `struct loop_config`, of which only the file and the flags are set: the first 8 bytes, then
/// `struct loop_info64` with its flags at 52, then 64 reserved bytes.
#[repr(C)]
struct Configure {
    file: u32,
    block_bytes: u32,
    before_flags: [u8; 52],
    flags: u32,
    rest: [u8; 176],
    reserved: [u8; 64],
}

const _: () = assert!(size_of::<Configure>() == 304);
const _: () = assert!(std::mem::offset_of!(Configure, flags) == 8 + 52);

// SAFETY: the kernel reads one `loop_config`, which `Configure` is laid out as, and keeps no pointer.
unsafe impl Ioctl for Configure {
    type Output = ();

    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        CONFIGURE
    }

    fn as_ptr(&mut self) -> *mut libc::c_void {
        (&raw mut *self).cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut libc::c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// The number of a device that nobody uses right now.
///
/// # Errors
/// EACCES without the right; ENODEV and the like where the kernel has no loop devices.
pub fn free_number(control: BorrowedFd<'_>) -> io::Result<u32> {
    // SAFETY: see the implementation of `Ioctl`; on a descriptor that is no loop-control the kernel
    // answers ENOTTY.
    Ok(unsafe { ioctl(control.as_fd(), GetFree) }?)
}

/// Binds `file` to the device, to be unbound with its last user.
///
/// # Errors
/// EBUSY where somebody else was faster; EINVAL before Linux 5.8.
pub fn bind(device: BorrowedFd<'_>, file: BorrowedFd<'_>) -> io::Result<()> {
    let request = Configure {
        file: file.as_raw_fd().cast_unsigned(),
        block_bytes: 0,
        before_flags: [0; 52],
        flags: AUTOCLEAR,
        rest: [0; 176],
        reserved: [0; 64],
    };
    // SAFETY: see the implementation of `Ioctl`; `file` is open for the time of the call.
    Ok(unsafe { ioctl(device, request) }?)
}

/// Unbinds the device; now, or with its last user.
///
/// # Errors
/// ENXIO where it is not bound.
pub fn unbind(device: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the request takes no argument.
    Ok(unsafe { ioctl(device, NoArg::<CLR_FD>::new()) }?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_are_no_loop_devices() {
        let null = std::fs::File::open("/dev/null").unwrap();
        let refused = [
            free_number(null.as_fd()).map(drop).unwrap_err(),
            bind(null.as_fd(), null.as_fd()).unwrap_err(),
            unbind(null.as_fd()).unwrap_err(),
        ];
        for e in refused {
            assert_eq!(e.raw_os_error(), Some(libc::ENOTTY));
        }
    }
}
