//! Aligned buffers whose content no filesystem can compress or deduplicate.
//!
//! Direct I/O asks for aligned memory (open(2), `O_DIRECT`); the buffer is over-allocated
//! and the aligned part of it used, so no unsafe code is needed. Content is random, and a
//! counter in each 512 bytes makes each write differ from the one before it.

use std::ops::{Deref, DerefMut};

/// Distance of the counters that [`stamp`] writes.
const SECTOR_BYTES: usize = 512;

/// An aligned byte buffer of fixed length. Not `Clone`: a copy would lie elsewhere.
#[derive(Debug)]
pub struct Buffer {
    memory: Vec<u8>,
    offset: usize,
    len: usize,
}

impl Buffer {
    /// A zeroed buffer of `len` bytes that starts at a multiple of `align` (a power of two).
    ///
    /// # Panics
    /// When `align` is not a power of two.
    #[must_use]
    pub fn new(len: usize, align: usize) -> Self {
        assert!(
            align.is_power_of_two(),
            "alignment {align} is no power of two"
        );
        let memory = vec![0; len + align - 1];
        let address = memory.as_ptr().addr();
        let offset = address.next_multiple_of(align) - address;
        Self {
            memory,
            offset,
            len,
        }
    }

    /// Fills it with bytes that depend on `seed` alone and do not compress.
    pub fn fill_incompressible(&mut self, seed: u64) {
        fastrand::Rng::with_seed(seed).fill(self);
    }

    /// [`stamp`]s all of it.
    pub fn stamp(&mut self, counter: u64) {
        stamp(self, counter);
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.offset..self.offset + self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.offset..self.offset + self.len]
    }
}

/// Writes `counter` at the start of each 512 bytes of `bytes`, as much of it as fits.
pub fn stamp(bytes: &mut [u8], counter: u64) {
    let mark = counter.to_le_bytes();
    for sector in bytes.chunks_mut(SECTOR_BYTES) {
        let n = sector.len().min(mark.len());
        sector[..n].copy_from_slice(&mark[..n]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn start_and_length_are_as_asked(len in 0usize..70_000, shift in 0u32..16) {
            let buffer = Buffer::new(len, 1 << shift);
            prop_assert_eq!(buffer.len(), len);
            prop_assert_eq!(buffer.as_ptr().addr() % (1 << shift), 0);
        }
    }

    #[test]
    fn content_depends_on_the_seed_and_uses_all_byte_values() {
        let mut a = Buffer::new(65_536, 4096);
        let mut b = Buffer::new(65_536, 512);
        a.fill_incompressible(7);
        b.fill_incompressible(7);
        assert_eq!(a[..], b[..]);
        b.fill_incompressible(8);
        assert_ne!(a[..], b[..]);
        let mut seen = [0u32; 256];
        for &byte in a.iter() {
            seen[usize::from(byte)] += 1;
        }
        // 256 expected of each; a run of equal bytes or text would be far off.
        assert!(seen.iter().all(|&n| (128..512).contains(&n)));
    }

    #[test]
    fn every_sector_carries_the_counter_and_nothing_else_changes() {
        let mut buffer = Buffer::new(2048 + 4, 4096);
        buffer.fill_incompressible(1);
        let before = buffer.to_vec();
        buffer.stamp(0x0102_0304_0506_0708);
        for at in [0, 512, 1024, 1536] {
            assert_eq!(buffer[at..at + 8], [8, 7, 6, 5, 4, 3, 2, 1]);
            let rest = at + 8..(at + 512).min(2048);
            assert_eq!(buffer[rest.clone()], before[rest]);
        }
        assert_eq!(buffer[2048..], [8, 7, 6, 5]);
    }
}
