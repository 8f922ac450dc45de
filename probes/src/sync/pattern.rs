//! What an operation writes, and where: pure, so that it can be tested without a file.

use serde_json::{Value, json};

use crate::{contract::Case, files::PAGE_BYTES};

/// The writes of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Walks a segment as XLogWrite does: each commit writes the whole pages its record touches in
    /// one call, so the tail page is written again until it is full.
    Commit {
        /// WAL a commit.
        bytes: u64,
    },
    /// Walks it in full writes, several before a flush.
    Bulk {
        /// Calls an operation.
        writes: u64,
        /// Bytes a call.
        write_bytes: u64,
    },
    /// The file's first bytes each time, as pg_test_fsync does.
    AtStart {
        /// Calls an operation.
        writes: u64,
        /// Bytes a call.
        write_bytes: u64,
    },
}

impl Pattern {
    /// The pattern in a case's `params`.
    pub(crate) fn params(self) -> Vec<(&'static str, Value)> {
        match self {
            Self::Commit { bytes } => vec![("commit_bytes", json!(bytes))],
            Self::Bulk {
                writes,
                write_bytes,
            } => vec![
                ("wal_bytes", json!(writes * write_bytes)),
                ("writes", json!(writes)),
                ("write_bytes", json!(write_bytes)),
            ],
            Self::AtStart {
                writes,
                write_bytes,
            } => vec![
                ("offset_bytes", json!(0)),
                ("writes", json!(writes)),
                ("write_bytes", json!(write_bytes)),
            ],
        }
    }

    /// The pattern that a case's `params` name.
    pub(crate) fn of(case: &Case) -> Option<Self> {
        let number = |key| case.params.get(key).and_then(Value::as_u64);
        if let Some(bytes) = number("commit_bytes") {
            return Some(Self::Commit { bytes });
        }
        let (writes, write_bytes) = (number("writes")?, number("write_bytes")?);
        Some(if number("offset_bytes").is_some() {
            Self::AtStart {
                writes,
                write_bytes,
            }
        } else {
            Self::Bulk {
                writes,
                write_bytes,
            }
        })
    }

    /// Calls an operation.
    pub(crate) const fn writes(self) -> u64 {
        match self {
            Self::Commit { .. } => 1,
            Self::Bulk { writes, .. } | Self::AtStart { writes, .. } => writes,
        }
    }

    /// WAL an operation.
    pub(crate) const fn wal_bytes(self) -> u64 {
        match self {
            Self::Commit { bytes } => bytes,
            Self::Bulk {
                writes,
                write_bytes,
            }
            | Self::AtStart {
                writes,
                write_bytes,
            } => writes * write_bytes,
        }
    }

    /// Bytes that most operations hand to the kernel.
    pub(crate) fn op_bytes(self) -> u64 {
        match self {
            Self::Commit { bytes } => pages(0, bytes).1,
            _ => self.wal_bytes(),
        }
    }

    /// Bytes that an operation hands to the kernel at most: a record may touch one page more than
    /// its length says.
    pub(crate) fn most_bytes(self) -> u64 {
        match self {
            Self::Commit { bytes } => bytes.next_multiple_of(PAGE_BYTES) + PAGE_BYTES,
            _ => self.wal_bytes(),
        }
    }

    /// Offset and length of the operation's first write at `insert_at`, which moves on; the further
    /// writes follow it and are as long. Where the file ends, it is begun again.
    pub(crate) fn next(self, insert_at: &mut u64, file_bytes: u64) -> (u64, u64) {
        if *insert_at + self.wal_bytes() > file_bytes {
            *insert_at = 0;
        }
        match self {
            Self::Commit { bytes } => {
                let touched = pages(*insert_at, bytes);
                *insert_at += bytes;
                touched
            }
            Self::Bulk { write_bytes, .. } => {
                let start = *insert_at;
                *insert_at += self.wal_bytes();
                (start, write_bytes)
            }
            Self::AtStart { write_bytes, .. } => (0, write_bytes),
        }
    }
}

/// Start and length of the whole pages that `bytes` of WAL from `at` on touch.
const fn pages(at: u64, bytes: u64) -> (u64, u64) {
    let start = at / PAGE_BYTES * PAGE_BYTES;
    (start, (at + bytes).next_multiple_of(PAGE_BYTES) - start)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: u64 = 4 << 20;

    fn firsts(pattern: Pattern, ops: usize) -> Vec<(u64, u64)> {
        let mut at = 0;
        (0..ops).map(|_| pattern.next(&mut at, FILE)).collect()
    }

    #[test]
    fn a_commit_writes_the_whole_pages_it_touches() {
        assert_eq!(pages(0, 512), (0, 8192));
        assert_eq!(pages(7680, 512), (0, 8192));
        assert_eq!(pages(8192, 512), (8192, 8192));
        assert_eq!(pages(8000, 512), (0, 16384));
        assert_eq!(pages(0, 65536), (0, 65536));
    }

    #[test]
    fn the_tail_page_is_written_again_until_it_is_full() {
        let seen = firsts(Pattern::Commit { bytes: 512 }, 17);
        assert!(seen[..16].iter().all(|w| *w == (0, 8192)));
        assert_eq!(seen[16], (8192, 8192));
    }

    #[test]
    fn no_write_is_longer_than_the_buffer_or_reaches_behind_the_file() {
        for bytes in [1, 512, 1000, 8192, 65536, 100_000] {
            let pattern = Pattern::Commit { bytes };
            for (start, length) in firsts(pattern, 20_000) {
                assert!(length <= pattern.most_bytes(), "{bytes}: {length}");
                assert!(start + length <= FILE, "{bytes}: {start}+{length}");
            }
        }
    }

    #[test]
    fn bulk_walks_the_file_and_begins_again() {
        let pattern = Pattern::Bulk {
            writes: 16,
            write_bytes: 65536,
        };
        let starts: Vec<u64> = firsts(pattern, 5).iter().map(|w| w.0 >> 20).collect();
        assert_eq!(starts, [0, 1, 2, 3, 0]);
    }

    #[test]
    fn params_name_the_pattern_whole() {
        let two = (16, 8192);
        for pattern in [
            Pattern::Commit { bytes: 65536 },
            Pattern::Bulk {
                writes: two.0,
                write_bytes: two.1,
            },
            Pattern::AtStart {
                writes: two.0,
                write_bytes: two.1,
            },
        ] {
            let case = Case {
                params: pattern.params().into_iter().collect(),
                ..Case::default()
            };
            assert_eq!(Pattern::of(&case), Some(pattern));
        }
        assert_eq!(Pattern::of(&Case::default()), None);
    }
}
