//! Walreceiver's writes: what a standby gets from the wire, as it comes.
//!
//! `XLogWalRcvWrite` writes each received chunk in one pwrite at the byte where it begins. The
//! sender (`XLogSendPhysical`) begins where it stopped, at an 8-byte boundary, and sends what there
//! is, at most 128 KiB; a chunk of full length is cut back to a page boundary.

use crate::files::PAGE_BYTES;

/// The shortest chunk.
pub(super) const LEAST_BYTES: u64 = 128;
/// The longest chunk (MAX_SEND_SIZE, 16 pages).
pub(super) const MOST_BYTES: u64 = 128 << 10;
/// The longest of the ordinary chunks.
const SMALL_BYTES: u64 = 8192;
/// One chunk of so many is a long one: about as much WAL in it as in the others.
const CYCLE_CHUNKS: u64 = 64;
/// Its place among them; a short walk has its share of both.
const LONG_CHUNK: u64 = 15;
/// Mean length, for estimates: 63 of about 1,940 bytes, one of about 127,000.
pub(super) const MEAN_BYTES: u64 = 3_890;
/// WAL records begin at multiples of this (MAXALIGN).
const ALIGN_BYTES: u64 = 8;

/// One write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Its first byte.
    pub(super) at: u64,
    /// Its length.
    pub(super) bytes: u64,
}

/// The chunks that cover the first `bytes` of a segment, by `seed`: lengths spread evenly over the
/// powers of two from 128 bytes to 8 KiB, and now and then 128 KiB.
pub(super) fn chunks(bytes: u64, seed: u64) -> Vec<Piece> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes {
        let wanted = if out.len() as u64 % CYCLE_CHUNKS == LONG_CHUNK {
            // Cut back to a page boundary, as the sender does.
            (at + MOST_BYTES) / PAGE_BYTES * PAGE_BYTES - at
        } else {
            let octaves = (SMALL_BYTES as f64 / LEAST_BYTES as f64).log2();
            let length = LEAST_BYTES as f64 * (rng.f64() * octaves).exp2();
            (length as u64).next_multiple_of(ALIGN_BYTES)
        };
        let piece = Piece {
            at,
            bytes: wanted.min(bytes - at),
        };
        at += piece.bytes;
        out.push(piece);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 16 << 20;

    #[test]
    fn they_cover_the_segment_without_gap_or_overlap() {
        for bytes in [8192, 256 << 10, SEGMENT] {
            let pieces = chunks(bytes, 7);
            let mut at = 0;
            for piece in &pieces {
                assert_eq!(piece.at, at);
                assert!(piece.bytes > 0);
                at += piece.bytes;
            }
            assert_eq!(at, bytes);
        }
    }

    #[test]
    fn they_begin_at_eight_bytes_and_rarely_at_a_page() {
        let pieces = chunks(SEGMENT, 7);
        assert!(pieces.iter().all(|p| p.at % ALIGN_BYTES == 0));
        let at_page = pieces.iter().filter(|p| p.at % 4096 == 0).count();
        assert!(at_page * 20 < pieces.len(), "{at_page} of {}", pieces.len());
    }

    #[test]
    fn lengths_are_as_the_sender_makes_them() {
        let pieces = chunks(SEGMENT, 7);
        // The last one is cut off by the segment's end.
        let (_, whole) = pieces.split_last().unwrap();
        let (long, small): (Vec<&Piece>, Vec<&Piece>) =
            whole.iter().partition(|p| p.bytes > SMALL_BYTES);
        assert!(small.iter().all(|p| p.bytes >= LEAST_BYTES));
        assert!(small.iter().any(|p| p.bytes < 160) && small.iter().any(|p| p.bytes > 7_000));
        assert!(long.iter().all(|p| p.bytes > MOST_BYTES - PAGE_BYTES));
        assert!(long.iter().all(|p| p.bytes <= MOST_BYTES));
        assert!(
            long.iter()
                .all(|p| (p.at + p.bytes).is_multiple_of(PAGE_BYTES))
        );
        assert_eq!(long.len(), (whole.len() + 48) / 64);
        let mean = SEGMENT / pieces.len() as u64;
        assert!(
            (MEAN_BYTES * 9 / 10..MEAN_BYTES * 11 / 10).contains(&mean),
            "{mean}"
        );
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(chunks(SEGMENT, 7), chunks(SEGMENT, 7));
        assert_ne!(chunks(SEGMENT, 7), chunks(SEGMENT, 8));
    }
}
