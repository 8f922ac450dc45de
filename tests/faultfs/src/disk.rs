//! The block device below, where there is one: data goes there by direct I/O when it is
//! synced, and a flush after it, so that the kernel counts both on that device.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// What is allocated, written and read at once.
pub(crate) const BLOCK_BYTES: u64 = 4096;
/// Most bytes moved by one call.
const MOST_BYTES: usize = 1 << 20;

/// Space for blocks: on a device, or in memory only.
#[derive(Debug)]
pub(crate) struct Disk {
    device: Option<File>,
    used: Vec<bool>,
    free: u64,
    next: usize,
}

impl Disk {
    pub(crate) fn new(device: Option<&Path>, size_bytes: u64) -> Result<Self, String> {
        let mut size_bytes = size_bytes;
        let device = device
            .map(|path| {
                let say = |error| format!("cannot use {}: {error}", path.display());
                let file = OpenOptions::new()
                    .read(true)
                    .write(true)
                    .custom_flags(OFlags::DIRECT.bits().cast_signed())
                    .open(path)
                    .map_err(say)?;
                if !file.metadata().map_err(say)?.file_type().is_block_device() {
                    return Err(format!("{} is not a block device", path.display()));
                }
                let end = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0));
                size_bytes = size_bytes.min(end.map_err(|error| say(error.into()))?);
                Ok(file)
            })
            .transpose()?;
        let blocks = usize::try_from(size_bytes / BLOCK_BYTES).map_err(|e| e.to_string())?;
        Ok(Self {
            device,
            used: vec![false; blocks],
            free: blocks as u64,
            next: 0,
        })
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.used.len() as u64
    }

    pub(crate) fn free(&self) -> u64 {
        self.free
    }

    /// The next free block, or none.
    pub(crate) fn allocate(&mut self) -> Option<u32> {
        if self.free == 0 {
            return None;
        }
        let count = self.used.len();
        let place = (self.next..count)
            .chain(0..self.next)
            .find(|place| !self.used[*place])?;
        self.used[place] = true;
        self.free -= 1;
        self.next = (place + 1) % count;
        u32::try_from(place).ok()
    }

    pub(crate) fn release(&mut self, block: u32) {
        let place = &mut self.used[block as usize];
        if std::mem::replace(place, false) {
            self.free += 1;
        }
    }

    /// Writes runs of neighbouring blocks, each with its content.
    pub(crate) fn write(&self, blocks: &[(u32, &[u8])]) -> std::io::Result<()> {
        let Some(device) = &self.device else {
            return Ok(());
        };
        let mut buffer = Aligned::new();
        for run in runs(blocks, |(block, _)| *block) {
            let bytes = buffer.slice(run.len() * BLOCK_BYTES as usize);
            bytes.fill(0);
            for (place, (_, content)) in run.iter().enumerate() {
                let at = place * BLOCK_BYTES as usize;
                bytes[at..at + content.len()].copy_from_slice(content);
            }
            device.write_all_at(bytes, u64::from(run[0].0) * BLOCK_BYTES)?;
        }
        Ok(())
    }

    /// Reads blocks; what they hold is in memory already, so only the reading counts.
    pub(crate) fn read(&self, blocks: &[u32]) -> std::io::Result<()> {
        let Some(device) = &self.device else {
            return Ok(());
        };
        let mut buffer = Aligned::new();
        for run in runs(blocks, |block| *block) {
            let bytes = buffer.slice(run.len() * BLOCK_BYTES as usize);
            device.read_exact_at(bytes, u64::from(run[0]) * BLOCK_BYTES)?;
        }
        Ok(())
    }

    pub(crate) fn flush(&self) -> std::io::Result<()> {
        self.device.as_ref().map_or(Ok(()), File::sync_data)
    }
}

/// Parts whose blocks follow each other, none longer than one call moves.
fn runs<T>(list: &[T], block: impl Fn(&T) -> u32) -> impl Iterator<Item = &[T]> {
    list.chunk_by(move |one, next| block(one) + 1 == block(next))
        .flat_map(|run| run.chunks(MOST_BYTES / BLOCK_BYTES as usize))
}

/// Memory at an address that direct I/O takes.
struct Aligned(Vec<u8>);

impl Aligned {
    fn new() -> Self {
        Self(vec![0; MOST_BYTES + BLOCK_BYTES as usize])
    }

    fn slice(&mut self, len: usize) -> &mut [u8] {
        let at = self.0.as_ptr().align_offset(BLOCK_BYTES as usize);
        &mut self.0[at..at + len]
    }
}
