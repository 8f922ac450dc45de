#![expect(unsafe_code, reason = "gnu_get_libc_version has no safe wrapper")]
//! Which C library the program runs on (gnu_get_libc_version(3)).
//!
//! It matters for posix_fallocate: glibc emulates what the filesystem refuses, musl does
//! not. glibc's version is that of the machine, musl's is linked in and tells none.
//!
//! <https://man7.org/linux/man-pages/man3/gnu_get_libc_version.3.html>

/// As `glibc 2.36` or `musl`.
#[must_use]
pub fn name() -> String {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: takes nothing and returns a pointer to a static, terminated string.
        let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        format!("glibc {}", version.to_string_lossy())
    }
    #[cfg(not(target_env = "gnu"))]
    {
        "musl".to_owned()
    }
}
