#![expect(unsafe_code, reason = "a submission's buffer must outlive it")]
//! io_uring(7): a write and an fdatasync linked to it, submitted together.
//!
//! Links are Linux 5.3, `IORING_OP_WRITE` 5.6. The sysctl `kernel.io_uring_disabled` (6.6) and
//! seccomp filters refuse io_uring_setup with EPERM; a kernel without it says ENOSYS.
//!
//! <https://man7.org/linux/man-pages/man7/io_uring.7.html>,
//! <https://man7.org/linux/man-pages/man2/io_uring_enter.2.html>

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

use io_uring::{IoUring, opcode, squeue, types};

const WRITE: u64 = 1;
const SYNC: u64 = 2;

/// A ring for one pair at a time.
pub struct Uring {
    ring: IoUring,
}

impl Uring {
    /// Makes a ring.
    ///
    /// # Errors
    /// As io_uring_setup(2), or mmap(2) of the ring.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            ring: IoUring::new(2)?,
        })
    }

    /// Writes `data` at `offset`, then syncs the file's data, in one submission. Bytes written, durable
    /// if they are all of `data`: a short write leaves the sync undone.
    ///
    /// # Errors
    /// As io_uring_enter(2), pwrite(2) and fdatasync(2).
    pub fn write_fdatasync(
        &mut self,
        fd: BorrowedFd<'_>,
        data: &[u8],
        offset: u64,
    ) -> io::Result<usize> {
        let file = types::Fd(fd.as_raw_fd());
        let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let write = opcode::Write::new(file, data.as_ptr(), len)
            .offset(offset)
            .build()
            .flags(squeue::Flags::IO_LINK)
            .user_data(WRITE);
        let sync = opcode::Fsync::new(file)
            .flags(types::FsyncFlags::DATASYNC)
            .build()
            .user_data(SYNC);
        // SAFETY: `fd` and `data` are borrowed until this function returns, and it does not return
        // while the kernel may still use them: `both` waits for the two answers.
        unsafe { self.ring.submission().push_multiple(&[write, sync]) }
            .map_err(|_| io::Error::from_raw_os_error(libc::EBUSY))?;
        let (wrote, synced) = self.both()?;
        let wrote = checked(wrote)?;
        if wrote == data.len() {
            checked(synced)?;
        }
        Ok(wrote)
    }

    /// Submits the pair and waits for both answers, however long that takes.
    fn both(&mut self) -> io::Result<(i32, i32)> {
        let (mut wrote, mut synced) = (None, None);
        let mut submitted = 0;
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(n) => submitted += n,
                // Nothing is under way, and the ring is not used again after a fault.
                Err(e) if submitted == 0 && e.kind() != io::ErrorKind::Interrupted => {
                    return Err(e);
                }
                Err(_) => {}
            }
            for answer in self.ring.completion() {
                match answer.user_data() {
                    WRITE => wrote = Some(answer.result()),
                    _ => synced = Some(answer.result()),
                }
            }
            if let (Some(wrote), Some(synced)) = (wrote, synced) {
                return Ok((wrote, synced));
            }
        }
    }
}

fn checked(answer: i32) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::from_raw_os_error(-answer))
}

#[cfg(test)]
mod tests {
    use std::os::{fd::AsFd, unix::fs::FileExt};

    use super::*;

    /// None, said, where this machine has none.
    fn ring() -> Option<Uring> {
        match Uring::new() {
            Ok(ring) => Some(ring),
            Err(e) => {
                eprintln!("skipped: no io_uring here: {e}");
                None
            }
        }
    }

    #[test]
    fn what_was_written_is_there() {
        let Some(mut ring) = ring() else { return };
        let file = tempfile::tempfile().unwrap();
        for n in 0..10 {
            let data = vec![n + 1; 8192];
            let at = u64::from(n) * 8192;
            assert_eq!(ring.write_fdatasync(file.as_fd(), &data, at).unwrap(), 8192);
            let mut back = vec![0; 8192];
            file.read_exact_at(&mut back, at).unwrap();
            assert_eq!(back, data);
        }
    }

    #[test]
    fn a_failed_write_keeps_its_errno_and_the_ring_goes_on() {
        let Some(mut ring) = ring() else { return };
        let named = tempfile::NamedTempFile::new().unwrap();
        let reader = std::fs::File::open(named.path()).unwrap();
        let e = ring
            .write_fdatasync(reader.as_fd(), &[1; 512], 0)
            .unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::EBADF));
        let file = named.as_file().as_fd();
        assert_eq!(ring.write_fdatasync(file, &[1; 512], 0).unwrap(), 512);
    }

    #[test]
    fn a_failed_sync_is_not_taken_for_done() {
        let Some(mut ring) = ring() else { return };
        // A pipe takes the write and cannot be synced.
        let (_reader, writer) = rustix::pipe::pipe().unwrap();
        let e = ring
            .write_fdatasync(writer.as_fd(), &[1; 512], 0)
            .unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn a_seccomp_filter_is_seen_as_eperm() {
        // On a thread of its own: a filter is for good.
        let refused = std::thread::spawn(|| {
            refuse(libc::SYS_io_uring_setup)
                .then(|| Uring::new().err().and_then(|e| e.raw_os_error()))
        });
        match refused.join().unwrap() {
            Some(errno) => assert_eq!(errno, Some(libc::EPERM)),
            None => eprintln!("skipped: no seccomp filter can be set here"),
        }
    }

    /// Lets a system call of this thread fail with EPERM from now on (seccomp(2)).
    fn refuse(call: libc::c_long) -> bool {
        let rule = |code: u32, jf, k| libc::sock_filter {
            code: code as u16,
            jt: 0,
            jf,
            k,
        };
        // The number is the first word of seccomp_data.
        let mut rules = [
            rule(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
            rule(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, call as u32),
            rule(
                libc::BPF_RET | libc::BPF_K,
                0,
                libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
            ),
            rule(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog {
            len: rules.len() as u16,
            filter: rules.as_mut_ptr(),
        };
        // SAFETY: prctl reads the program, which lives until it returns; the filter concerns this
        // thread alone.
        unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(
                    libc::PR_SET_SECCOMP,
                    libc::SECCOMP_MODE_FILTER,
                    &raw const program,
                ) == 0
        }
    }
}
