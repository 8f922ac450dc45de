//! What a process passes on to its children: signal dispositions and descriptors.
//!
//! signal(2), fcntl(2), proc(5). `close_range` with `CLOSE_RANGE_CLOEXEC` would be one
//! call, but came with Linux 5.11.

#![expect(unsafe_code, reason = "signal(2) and fcntl(2) on plain numbers")]

/// Ignores `signals` from now on; programs that this one starts inherit it.
pub fn ignore_signals(signals: &[i32]) {
    for &signal in signals {
        // SAFETY: SIG_IGN installs no handler, so no code of ours can run in signal context.
        // A number that is no signal gives EINVAL, and nothing changes.
        unsafe {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
}

/// Marks every open descriptor from 3 on close-on-exec, so that no child holds what the
/// shell left open for us. Call it before there are other threads.
pub fn close_all_on_exec() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let open: Vec<i32> = entries
        .filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in open {
        // SAFETY: fcntl reads and writes only the descriptor's flags; a number that is not open
        // (the listing's own) gives EBADF.
        unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFD);
            if flags >= 0 {
                libc::fcntl(fd, libc::F_SETFD, flags | libc::FD_CLOEXEC);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    #[test]
    fn an_inherited_descriptor_becomes_close_on_exec() {
        let file = std::fs::File::open("/dev/null").unwrap();
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
        super::close_all_on_exec();
        let flags = rustix::io::fcntl_getfd(&file).unwrap();
        assert!(
            flags.contains(rustix::io::FdFlags::CLOEXEC),
            "{}",
            file.as_raw_fd()
        );
    }
}
