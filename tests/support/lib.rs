//! For the whole-program tests only: what they need around the binary under test.
//!
//! A trial is a function that returns [`Checked`]. A means that the machine lacks
//! (root, loop devices, a mkfs program) makes it a skip with its reason, or a
//! failure where `WALPROBE_REQUIRE` names that means. Whatever a trial makes
//! (folder, loop device, mount, process) is undone when its value is dropped,
//! also after a panic; what a killed test run left is swept by the next one.
//!
//! Nothing here knows how walprobe works inside: it sees the command line, the
//! streams, the exit code, the directory, and the documents.

pub mod bystanders;
pub mod command;
pub mod csv_text;
pub mod document;
pub mod expect;
pub mod family;
pub mod fuse;
pub mod guards;
pub mod lab;
pub mod lock;
pub mod loops;
pub mod means;
mod mount_table;
pub mod mounts;
pub mod process;
pub mod recipe;
pub mod sheet;
pub mod sheet_trials;
pub mod stale;
pub mod stopwatch;
pub mod tree;
pub mod work;

pub use means::{Checked, Problem, trial};
