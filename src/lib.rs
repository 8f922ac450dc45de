//! The talking half: arguments -> request -> worker -> report -> rules -> renderers.
pub mod advise;

use std::process::ExitCode;

pub mod render;

/// Runs the command line.
#[must_use]
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
