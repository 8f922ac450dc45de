//! The scratch folder: made exclusively, held by descriptor, locked, removed by its own rules.
use std::os::fd::OwnedFd;

/// A scratch folder that this process made and holds.
#[derive(Debug)]
pub struct Scratch {
    /// The folder.
    pub dir: OwnedFd,
    /// Its absolute path, for messages only: files are opened relative to `dir`.
    pub path: String,
}
