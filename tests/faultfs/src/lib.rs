//! A FUSE filesystem for tests that does what a script says: what is durable, what a call
//! costs, which call fails, which never returns.
//!
//! The README of this crate has the script's orders and what they do. [`Faultfs::mount`]
//! mounts one and serves it from a thread; the binary does the same from a shell. It needs root
//! and `/dev/fuse`, and neither libfuse nor fusermount.
//!
//! Each file has two images: as it was written, and as an honoured sync has left it
//! ([`Faultfs::durable`]). The kernel's writeback cache is off, so every write(2) arrives here.
//! The script decides in [`mod@script`]; `state` does the work, `answer` speaks FUSE.

mod answer;
mod disk;
mod image;
mod mount;
pub mod script;
mod state;
mod tree;

pub use answer::CONTROL;
pub use mount::Faultfs;
pub use script::{Call, Script};
pub use state::Counts;
