//! Direct I/O: which lengths, offsets and addresses are accepted, what statx says of them, and
//! whether the cache is really passed by.

use rustix::{fs::OFlags, io::Errno};
use serde_json::{Value, json};

use crate::{
    align::plan::DIRECT,
    cache,
    contract::{Case, Lab, Observations, Stop, Study},
    engine::lap::Lap,
    files::WalFile,
    folder::Folder,
    sync::behaviour::direct::{Kind, WRITE_BYTES, watched},
    sys::{buffer::Buffer, errno, statx},
};

const FILE: &str = "file-align-direct";
/// Long enough for the longest write at the largest offset.
const BYTES: u64 = 2 << 20;
/// Lengths and offsets.
const STEPS: [u64; 13] = [
    1,
    512,
    1 << 10,
    2 << 10,
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
];
/// Alignments of the memory; the buffer's own is twice the largest.
const MEMORY_STEPS: [usize; 7] = [1, 4, 64, 512, 1024, 2048, 4096];
/// Read directly from a file that is in the cache.
const READ_BYTES: u64 = 1 << 20;

/// The case.
pub(super) fn case() -> Case {
    Case {
        name: DIRECT.to_owned(),
        params: [("file_bytes", json!(BYTES))].into(),
        // The file, what is accepted at each step, and the writes that are watched.
        op_bytes: 2 * BYTES,
        op_syncs: 2,
        file_bytes: BYTES,
        ..Case::default()
    }
}

/// The least that a call accepts of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Accepts {
    length: Option<u64>,
    offset: Option<u64>,
    memory: Option<u64>,
}

impl Accepts {
    /// `call` gets the memory's offset from a well aligned address, the length and the offset in the
    /// file. EINVAL is an answer; any other errno ends it.
    fn of(
        mut call: impl FnMut(usize, u64, u64) -> rustix::io::Result<usize>,
    ) -> Result<Self, Errno> {
        let mut takes = |memory: usize, length: u64, offset: u64| loop {
            match call(memory, length, offset) {
                Ok(n) => return Ok(n as u64 == length),
                Err(Errno::INVAL) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(e) => return Err(e),
            }
        };
        let mut accepts = Self::default();
        for length in STEPS {
            if takes(0, length, 0)? {
                accepts.length = Some(length);
                break;
            }
        }
        let Some(length) = accepts.length else {
            return Ok(accepts);
        };
        for offset in STEPS {
            if takes(0, length, offset)? {
                accepts.offset = Some(offset);
                break;
            }
        }
        for memory in MEMORY_STEPS {
            if takes(memory, length, 0)? {
                accepts.memory = Some(memory as u64);
                break;
            }
        }
        Ok(accepts)
    }

    /// Whether all that statx allows is accepted.
    fn keeps(&self, (memory, offset): (u32, u32)) -> bool {
        let within = |accepted: Option<u64>, said: u32| accepted.is_some_and(|a| a <= said.into());
        within(self.memory, memory) && within(self.offset, offset) && within(self.length, offset)
    }

    fn told(&self, call: &str, seen: &mut Observations) {
        for (what, bytes) in [
            ("length", self.length),
            ("offset", self.offset),
            ("memory", self.memory),
        ] {
            seen.insert(format!("{call}_least_{what}_bytes"), json!(bytes));
        }
    }
}

/// See the module docs.
pub(super) struct Direct {
    folder: Folder,
}

impl Direct {
    pub(super) fn open(case: &Case, lab: &mut Lab<'_>) -> Result<Self, Stop> {
        lab.hooks.charge(case.op_bytes)?;
        Ok(Self {
            folder: lab.scratch()?.folder()?,
        })
    }

    fn tell(
        &self,
        file: &WalFile,
        lab: &mut Lab<'_>,
        lap: &mut Lap<'_>,
        seen: &mut Observations,
    ) -> Result<(), Stop> {
        let said = statx::of_fd(file.fd()).ok().and_then(|a| a.dio_align);
        seen.insert(
            "statx_dio_mem_align_bytes".to_owned(),
            json!(said.map(|a| a.0)),
        );
        seen.insert(
            "statx_dio_offset_align_bytes".to_owned(),
            json!(said.map(|a| a.1)),
        );
        let mut put = |name: &str, value: Value| seen.insert(name.to_owned(), value);
        let direct = match WalFile::open(&self.folder, FILE, OFlags::DIRECT) {
            Ok(direct) => direct,
            Err(fault) if fault.errno == libc::EINVAL => {
                put("direct", json!("refused at open"));
                put("fails_call", json!(fault.call));
                put("fails_errno", json!(errno::name(fault.errno)));
                return Ok(());
            }
            Err(fault) => return Err(fault.into()),
        };
        let longest = STEPS[STEPS.len() - 1] as usize;
        let most = MEMORY_STEPS[MEMORY_STEPS.len() - 1];
        let mut memory = Buffer::new(longest + most, 2 * most);
        memory.fill_incompressible(lab.request.seed);
        let mut stamp = 0;
        let writes = Accepts::of(|at, length, offset| {
            stamp += 1;
            let content = &mut memory[at..at + length as usize];
            crate::sys::buffer::stamp(content, stamp);
            let done = rustix::io::pwrite(direct.fd(), content, offset);
            lap.pulse().beat();
            done
        })
        .map_err(|e| direct.fault("pwrite", e.raw_os_error()))?;
        let reads = Accepts::of(|at, length, offset| {
            let content = &mut memory[at..at + length as usize];
            let done = rustix::io::pread(direct.fd(), content, offset);
            lap.pulse().beat();
            done
        })
        .map_err(|e| direct.fault("pread", e.raw_os_error()))?;
        let by_reading = passes_when_read(file, &direct, &mut memory, lab)?;
        drop(direct);
        let kind = match writes.length {
            None => None,
            Some(length) if length > WRITE_BYTES => Some(Kind::Unknown),
            Some(_) => {
                file.fsync()?;
                // All of its pages are in the cache by now, if it has one for them.
                Some(watched(&self.folder, FILE, file, lab, lap)?)
            }
        };
        put("direct", json!(word(kind, writes, by_reading)));
        put("direct_read", json!(read_word(by_reading)));
        if kind.is_none() {
            put("fails_call", json!("pwrite"));
            put("fails_errno", json!(errno::name(libc::EINVAL)));
        }
        // 0 says that there is no direct I/O.
        let keeps = said.filter(|a| a.0 > 0 && a.1 > 0);
        let keeps = keeps.map(|a| writes.keeps(a) && reads.keeps(a));
        put("agrees", json!(keeps));
        writes.told("write", seen);
        reads.told("read", seen);
        Ok(())
    }
}

impl Study for Direct {
    fn run(
        &mut self,
        lab: &mut Lab<'_>,
        lap: &mut Lap<'_>,
        seen: &mut Observations,
    ) -> Result<(), Stop> {
        let file = WalFile::create(&self.folder, FILE)?;
        let mut content = Buffer::new(BYTES as usize, 4096);
        content.fill_incompressible(lab.request.seed);
        let told = file
            .pwrite_all(&content, 0)
            .and_then(|()| file.fsync())
            .map_err(Stop::from)
            .and_then(|()| self.tell(&file, lab, lap, seen));
        drop(file);
        told.and(self.folder.unlink(FILE).map_err(Stop::from))
    }
}

/// What direct writes are. A device takes no single bytes: who accepts them does not pass them on.
fn word(kind: Option<Kind>, writes: Accepts, by_reading: Option<bool>) -> &'static str {
    match kind {
        None => "refused at write",
        Some(Kind::Real) => "real",
        Some(Kind::Buffered) => "ignored",
        Some(Kind::Unknown) if writes.length == Some(1) => "ignored",
        Some(Kind::Unknown) => read_word(by_reading),
    }
}

const fn read_word(passes: Option<bool>) -> &'static str {
    match passes {
        Some(true) => "real",
        Some(false) => "ignored",
        None => "unknown",
    }
}

/// Reads the file into the cache, then directly: what then comes from storage passed the cache by.
/// None where it cannot be told.
fn passes_when_read(
    file: &WalFile,
    direct: &WalFile,
    memory: &mut Buffer,
    lab: &mut Lab<'_>,
) -> Result<Option<bool>, Stop> {
    lab.hooks.settle()?;
    let part = &mut memory[..READ_BYTES as usize];
    file.pread_all(part, 0)?;
    lab.pulse.beat();
    let before = cache::from_storage(lab);
    match rustix::io::retry_on_intr(|| rustix::io::pread(direct.fd(), &mut *part, 0)) {
        Ok(n) if n as u64 == READ_BYTES => {}
        Ok(_) | Err(Errno::INVAL) => return Ok(None),
        Err(e) => return Err(direct.fault("pread", e.raw_os_error()).into()),
    }
    let read = super::ground::since(before, lab);
    Ok(read.and_then(|read| match read {
        read if read * 10 >= READ_BYTES * 9 => Some(true),
        read if read * 10 <= READ_BYTES => Some(false),
        _ => None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filesystem that takes multiples of these and nothing else.
    fn takes(length: u64, offset: u64, memory: u64) -> Accepts {
        let accepts = Accepts::of(|at, len, off| {
            let fits = len.is_multiple_of(length)
                && off.is_multiple_of(offset)
                && (at as u64).is_multiple_of(memory);
            if fits {
                Ok(len as usize)
            } else {
                Err(Errno::INVAL)
            }
        });
        accepts.unwrap()
    }

    #[test]
    fn the_least_of_each_is_found() {
        let of = |length, offset, memory| Accepts {
            length: Some(length),
            offset: Some(offset),
            memory: Some(memory),
        };
        assert_eq!(takes(512, 512, 4), of(512, 512, 4));
        assert_eq!(takes(4096, 131_072, 512), of(4096, 131_072, 512));
        assert_eq!(takes(1, 1, 1), of(1, 1, 1));
        assert_eq!(takes(1 << 30, 1, 1), Accepts::default());
    }

    #[test]
    fn an_errno_that_is_no_answer_ends_it() {
        assert_eq!(Accepts::of(|_, _, _| Err(Errno::IO)), Err(Errno::IO));
        // Less than asked for is not accepted.
        assert_eq!(Accepts::of(|_, _, _| Ok(0)), Ok(Accepts::default()));
    }

    #[test]
    fn what_statx_says_holds_where_no_more_is_asked_for() {
        let fine = takes(512, 512, 4);
        assert!(fine.keeps((4, 512)) && fine.keeps((512, 4096)));
        assert!(!fine.keeps((1, 512)) && !fine.keeps((4, 256)));
        assert!(!Accepts::default().keeps((512, 512)));
    }

    #[test]
    fn single_bytes_never_reach_a_device() {
        let any = takes(1, 1, 1);
        let pages = takes(4096, 4096, 4096);
        assert_eq!(word(Some(Kind::Unknown), any, Some(true)), "ignored");
        assert_eq!(word(Some(Kind::Unknown), pages, Some(true)), "real");
        assert_eq!(word(Some(Kind::Unknown), pages, None), "unknown");
        assert_eq!(word(Some(Kind::Buffered), pages, Some(true)), "ignored");
        assert_eq!(word(None, Accepts::default(), None), "refused at write");
    }
}
