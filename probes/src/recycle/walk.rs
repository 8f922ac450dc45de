//! How a segment is walked: which pieces are written, and when they are made durable.

use serde_json::{Value, json};

use crate::{
    contract::{Case, Fault, Pulse, Series},
    engine::lap::Lap,
    files::{PAGE_BYTES, WalFile},
    recycle::{
        chunks::{self, Piece},
        number,
    },
    segment::Weights,
    sys::buffer::{Buffer, stamp},
};

/// The series of the sync at the end of a walk without any other.
pub(super) const FINISH: Series = "finish";

/// A way to write WAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// Whole pages, a sync each: XLogWrite.
    Pages(u64),
    /// The same, no sync but one at the segment's end.
    Bulk(u64),
    /// Unaligned chunks, a sync each: XLogWalRcvWrite.
    Chunks,
}

impl Pattern {
    /// The pattern that a case's params name.
    pub(super) fn of(case: &Case) -> Self {
        let commit_bytes = number(case, "commit_bytes").max(PAGE_BYTES);
        match case.params.get("pattern").and_then(Value::as_str) {
            Some("chunks") => Self::Chunks,
            Some("bulk") => Self::Bulk(commit_bytes),
            _ => Self::Pages(commit_bytes),
        }
    }

    /// Params of the cases that write so.
    pub(super) fn params(self) -> Vec<(&'static str, Value)> {
        match self {
            Self::Pages(bytes) => {
                vec![("pattern", json!("pages")), ("commit_bytes", json!(bytes))]
            }
            Self::Bulk(bytes) => vec![("pattern", json!("bulk")), ("commit_bytes", json!(bytes))],
            Self::Chunks => vec![
                ("pattern", json!("chunks")),
                ("chunk_min_bytes", json!(chunks::LEAST_BYTES)),
                ("chunk_max_bytes", json!(chunks::MOST_BYTES)),
            ],
        }
    }

    /// Syncs of a walk over `bytes`.
    pub(super) const fn syncs(self, bytes: u64) -> u64 {
        match self {
            Self::Pages(commit) => bytes / commit,
            Self::Bulk(_) => 1,
            Self::Chunks => bytes / chunks::MEAN_BYTES + 1,
        }
    }
}

/// The pieces of one walk, the same at each operation and in each case of a comparison.
pub(super) struct Walk {
    pieces: Vec<Piece>,
    bulk: bool,
    content: Buffer,
    written: u64,
}

impl Walk {
    /// A walk over the first `bytes` of a segment.
    pub(super) fn new(pattern: Pattern, bytes: u64, seed: u64) -> Self {
        let pieces = match pattern {
            Pattern::Pages(commit) | Pattern::Bulk(commit) => (0..bytes / commit)
                .map(|n| Piece {
                    at: n * commit,
                    bytes: commit,
                })
                .collect(),
            Pattern::Chunks => chunks::chunks(bytes, seed),
        };
        let longest = pieces.iter().map(|p| p.bytes).max().unwrap_or(PAGE_BYTES);
        let mut content = Buffer::new(longest as usize, 4096);
        content.fill_incompressible(seed);
        Self {
            pieces,
            bulk: matches!(pattern, Pattern::Bulk(_)),
            content,
            written: 0,
        }
    }

    /// Walks, each commit a sample of `leg`. Ends early when the run is interrupted; then false.
    pub(super) fn timed(
        &mut self,
        file: &WalFile,
        leg: Series,
        weights: Weights,
        lap: &mut Lap<'_>,
    ) -> Result<bool, Fault> {
        for at in 0..self.pieces.len() {
            if lap.interrupted() {
                return Ok(false);
            }
            let piece = self.pieces[at];
            // By its last byte: what a piece touches first is what it may have to read.
            lap.leg(leg, weights.at(piece.at + piece.bytes - 1));
            let data = self.next_content(piece);
            lap.start();
            file.pwrite_all(data, piece.at)?;
            lap.mark("write");
            if !self.bulk {
                file.fdatasync()?;
                lap.mark("sync");
            }
            lap.done();
            lap.wal(piece.bytes);
            lap.wrote(piece.bytes);
            lap.synced(u64::from(!self.bulk));
        }
        if self.bulk {
            lap.leg(FINISH, weights.mean());
            lap.start();
            file.fdatasync()?;
            lap.mark("sync");
            lap.done();
            lap.synced(1);
        }
        Ok(true)
    }

    /// The same, untimed: it gives a segment its past. Where blocks stay in place, it leaves no trace
    /// which of them were made durable together: then one sync is enough.
    pub(super) fn untimed(
        &mut self,
        file: &WalFile,
        in_place: bool,
        pulse: &Pulse,
    ) -> Result<(), Fault> {
        for at in 0..self.pieces.len() {
            if pulse.stopped() {
                return Ok(());
            }
            let piece = self.pieces[at];
            file.pwrite_all(self.next_content(piece), piece.at)?;
            if !(self.bulk || in_place) {
                file.fdatasync()?;
            }
            pulse.beat();
        }
        file.fdatasync()
    }

    fn next_content(&mut self, piece: Piece) -> &[u8] {
        self.written += 1;
        let content = &mut self.content[..piece.bytes as usize];
        stamp(content, self.written);
        content
    }
}
