//! How a new segment gets its space: the methods, and the making itself.

use rustix::{fs::fstatfs, io::retry_on_intr};

use crate::{
    contract::{Fault, Phase, Pulse},
    engine::lap::Lap,
    files::{FILL_BYTES, PAGE_BYTES, WalFile},
    pause,
    segment::Maker,
    sys::fallocate::{Mode, fallocate, posix_fallocate},
};

/// How a new segment gets its space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Init {
    /// Zeros, 1 MiB a call: wal_init_zero=on since PostgreSQL 18.
    ZeroFill,
    /// Zeros, a page a call: PostgreSQL up to 13.
    ZeroFill8k,
    /// fallocate(2), mode 0.
    Fallocate,
    /// The C library's posix_fallocate(3): in one call, or 1 MiB a call where the library emulates it
    /// and one call could take for ever.
    PosixFallocate {
        /// 1 MiB a call.
        piecewise: bool,
    },
    /// What glibc does where the filesystem has no fallocate(2): one zero byte a block.
    GlibcEmulation,
    /// One byte at the end: wal_init_zero=off.
    Sparse,
    /// `FALLOC_FL_ZERO_RANGE`.
    ZeroRange,
    /// `FALLOC_FL_WRITE_ZEROES`, Linux 6.17.
    WriteZeroes,
    /// fallocate(2), then zeros over it.
    FallocateZeroFill,
    /// Nothing: the file grows by each commit.
    Append,
}

/// How far a segment's making came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// All of it; so many bytes were handed to the kernel.
    Whole(u64),
    /// An emulation that took longer than [`EMULATION_LIMIT_NS`], or an interruption, after so many
    /// bytes of the segment.
    Cut(u64),
}

/// Time that an emulation may take. It writes one byte a block, and a filesystem that makes each
/// write wait for something takes minutes for a segment.
pub const EMULATION_LIMIT_NS: u64 = 10_000_000_000;

/// Blocks between two looks at the clock: 1 MiB of blocks of 4 KiB.
const BLOCKS_A_LOOK: u64 = 256;

/// Who watches the making.
pub(super) enum Watch<'w, 'l> {
    /// It is timed.
    Lap(&'w mut Lap<'l>),
    /// It is not.
    Pulse(&'w Pulse),
}

impl Watch<'_, '_> {
    const fn pulse(&self) -> &Pulse {
        match self {
            Self::Lap(lap) => lap.pulse(),
            Self::Pulse(pulse) => pulse,
        }
    }

    fn mark(&mut self, phase: Phase) {
        if let Self::Lap(lap) = self {
            lap.mark(phase);
        }
    }

    /// The emulation has had its time, or the run must end.
    fn over(&self) -> bool {
        let late = match self {
            Self::Lap(lap) => lap.since_mark_ns() > EMULATION_LIMIT_NS,
            Self::Pulse(_) => false,
        };
        late || self.pulse().stopped()
    }
}

impl Maker {
    /// Length of a segment that `init` has just made.
    #[must_use]
    pub fn made_bytes(&self, init: Init) -> u64 {
        if init == Init::Append {
            0
        } else {
            self.segment_bytes
        }
    }

    /// Gives a new, empty file its space, in the open sample of `lap`.
    ///
    /// # Errors
    /// The call that failed.
    pub fn fill(&self, file: &WalFile, init: Init, lap: &mut Lap<'_>) -> Result<Made, Fault> {
        self.init(file, init, Watch::Lap(lap))
    }

    pub(super) fn init(
        &self,
        file: &WalFile,
        init: Init,
        mut watch: Watch<'_, '_>,
    ) -> Result<Made, Fault> {
        let bytes = self.segment_bytes;
        let raw = |mode| {
            retry_on_intr(|| as_rustix(fallocate(file.fd(), mode, 0, bytes)))
                .map_err(|e| file.fault("fallocate", e.raw_os_error()))
        };
        match init {
            Init::ZeroFill => {
                pause::here("filling");
                file.zero_fill(bytes, &self.zeros, watch.pulse())?;
                watch.mark("fill");
                Ok(Made::Whole(bytes))
            }
            Init::ZeroFill8k => {
                let page = &self.zeros[..self.zeros.len().min(PAGE_BYTES as usize)];
                file.zero_fill(bytes, page, watch.pulse())?;
                watch.mark("fill");
                Ok(Made::Whole(bytes))
            }
            Init::Fallocate | Init::ZeroRange | Init::WriteZeroes => {
                raw(match init {
                    Init::ZeroRange => Mode::ZeroRange,
                    Init::WriteZeroes => Mode::WriteZeroes,
                    _ => Mode::Allocate,
                })?;
                watch.mark("fallocate");
                Ok(Made::Whole(0))
            }
            Init::FallocateZeroFill => {
                raw(Mode::Allocate)?;
                watch.mark("fallocate");
                file.zero_fill(bytes, &self.zeros, watch.pulse())?;
                watch.mark("fill");
                Ok(Made::Whole(bytes))
            }
            Init::PosixFallocate { piecewise } => by_libc(file, bytes, piecewise, &mut watch),
            Init::GlibcEmulation => emulate(file, bytes, &mut watch),
            Init::Sparse => {
                file.sparse(bytes)?;
                watch.mark("fill");
                Ok(Made::Whole(1))
            }
            Init::Append => Ok(Made::Whole(0)),
        }
    }

    /// Writes the whole file anew, a page a call, and makes that durable with one fdatasync
    /// (test_fallocate's rewrite). Ends early when the run is interrupted.
    ///
    /// # Errors
    /// The call that failed.
    pub fn rewrite(&mut self, file: &WalFile, pulse: &Pulse) -> Result<(), Fault> {
        let mut at = 0;
        while at < self.segment_bytes && !pulse.stopped() {
            let part = (self.segment_bytes - at).min(self.commit_bytes);
            let page = self.next_content();
            file.pwrite_all(&page[..part as usize], at)?;
            at += part;
            pulse.beat();
        }
        file.fdatasync()
    }
}

fn as_rustix(result: std::io::Result<()>) -> rustix::io::Result<()> {
    result.map_err(|e| rustix::io::Errno::from_io_error(&e).unwrap_or(rustix::io::Errno::IO))
}

/// posix_fallocate(3), EINTR retried.
///
/// # Errors
/// What it returned.
pub(crate) fn posix(file: &WalFile, offset: u64, bytes: u64) -> Result<(), Fault> {
    retry_on_intr(|| as_rustix(posix_fallocate(file.fd(), offset, bytes)))
        .map_err(|e| file.fault("posix_fallocate", e.raw_os_error()))
}

fn by_libc(
    file: &WalFile,
    bytes: u64,
    piecewise: bool,
    watch: &mut Watch<'_, '_>,
) -> Result<Made, Fault> {
    let step = if piecewise { FILL_BYTES } else { bytes };
    let mut at = 0;
    while at < bytes {
        if at > 0 && watch.over() {
            return Ok(Made::Cut(at));
        }
        let part = (bytes - at).min(step);
        posix(file, at, part)?;
        watch.pulse().beat();
        at += part;
    }
    watch.mark("fallocate");
    Ok(Made::Whole(0))
}

/// The step of glibc's emulation on a filesystem that tells this block size.
pub(crate) fn emulation_step(f_bsize: u64) -> u64 {
    match f_bsize {
        0 => 512,
        size => size.min(4096),
    }
}

/// As glibc does: the last byte of each block is written, the last block's being the file's; where
/// the file has the block already, its byte is read first and left alone unless it is 0.
fn emulate(file: &WalFile, bytes: u64, watch: &mut Watch<'_, '_>) -> Result<Made, Fault> {
    let stat = fstatfs(file.fd()).map_err(|e| file.fault("fstatfs", e.raw_os_error()))?;
    let step = emulation_step(u64::try_from(stat.f_bsize).unwrap_or(0));
    let length = u64::try_from(file.stat()?.st_size).unwrap_or(0);
    let mut written = 0;
    let mut block = 0;
    let mut at = bytes.saturating_sub(1) % step;
    while at < bytes {
        if block % BLOCKS_A_LOOK == BLOCKS_A_LOOK - 1 {
            watch.pulse().beat();
            if watch.over() {
                return Ok(Made::Cut(at));
            }
        }
        let mut byte = [0];
        if at < length {
            file.pread_all(&mut byte, at)?;
        }
        if byte == [0] {
            file.pwrite_all(&[0], at)?;
            written += 1;
        }
        at += step;
        block += 1;
    }
    watch.mark("fill");
    Ok(Made::Whole(written))
}

#[cfg(test)]
mod tests;
