//! System calls that no crate wraps safely: the only unsafe code.
pub mod errno;
pub mod process;
