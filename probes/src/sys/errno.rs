//! Names of errno values (errno(3)).

/// The name of an errno, as `EINVAL`; `E` and the number where it has none here.
#[must_use]
pub fn name(errno: i32) -> String {
    // nix prints the C name as the variant's Debug form.
    match nix::errno::Errno::from_raw(errno) {
        nix::errno::Errno::UnknownErrno => format!("E{errno}"),
        known => format!("{known:?}"),
    }
}

/// The call is not there, for this kernel, filesystem or policy.
#[must_use]
pub const fn is_unsupported(errno: i32) -> bool {
    matches!(errno, libc::ENOSYS | libc::EOPNOTSUPP | libc::ENOTTY)
}
