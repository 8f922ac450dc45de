//! System calls that no crate wraps as we need them, one file a call: the only unsafe code.
//!
//! Where rustix or nix has a safe wrapper it is used here too, so that a probe finds
//! every call that is about a filesystem's peculiarities in one place. Nothing here
//! judges: an errno is handed on as it came.

pub mod advise;
pub mod btrfs;
pub mod buffer;
pub mod errno;
pub mod fallocate;
pub mod fiemap;
pub mod flags;
pub mod libc_version;
pub mod loopattach;
pub mod loopdev;
pub mod process;
pub mod residency;
pub mod rwf;
pub mod statx;
pub mod sync_range;
pub mod uring;
