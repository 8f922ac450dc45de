//! Space, block sizes, alignments: fstatfs(2), statvfs(3) and statx(2).
//!
//! Free space is `f_bavail * f_frsize`: what an ordinary user can still take. ZFS counts
//! in units of the record size, so `f_bsize` would be right there by luck only.

use std::os::fd::BorrowedFd;

use super::{Held, absent, either, known, place::Place, put, roots::why};
use crate::{
    report::{Fact, FactMap},
    sys::statx::{self, Answers},
};

/// `fs.*_bytes`, `fs.magic` and `statx.*`.
pub(super) fn facts(place: &Place, facts: &mut FactMap) {
    let Held {
        statx, file, space, ..
    } = &place.held;
    let space = space.as_ref().map_err(Clone::clone);
    put(
        facts,
        "fs.magic",
        either(space.clone().map(|s| format!("{:#x}", s.magic)), "statfs"),
    );
    let mut bytes = |name, of: fn(&super::Space) -> u64| {
        put(facts, name, either(space.clone().map(of), "statvfs"));
    };
    bytes("fs.block_bytes", |s| s.block_bytes);
    bytes("fs.fragment_bytes", |s| s.fragment_bytes);
    bytes("fs.total_bytes", |s| s.total_bytes);
    bytes("fs.free_bytes", |s| s.free_bytes);

    match (file, statx) {
        (Some(answers), _) => statx_facts(answers, "statx of a file in the directory", facts),
        (None, Ok(answers)) => statx_facts(answers, "statx of the directory", facts),
        (None, Err(why)) => {
            for name in STATX {
                put(facts, name, absent("statx", why));
            }
        }
    }
}

const STATX: [&str; 4] = [
    "statx.blksize_bytes",
    "statx.dio_mem_align_bytes",
    "statx.dio_offset_align_bytes",
    "statx.atomic_write_max_bytes",
];

/// The `statx.*` facts of an open regular file: a directory does not tell all of them.
#[must_use]
pub fn of_file(fd: BorrowedFd<'_>) -> FactMap {
    let mut facts = FactMap::new();
    match statx::of_fd(fd) {
        Ok(answers) => statx_facts(&answers, "statx of a scratch file", &mut facts),
        Err(e) => {
            for name in STATX {
                put(
                    &mut facts,
                    name,
                    absent("statx", why("statx", "a scratch file", &e)),
                );
            }
        }
    }
    facts
}

fn statx_facts(answers: &Answers, source: &str, facts: &mut FactMap) {
    let [blksize, memory, offset, atomic] = STATX;
    put(facts, blksize, known(answers.blksize, source));
    let number = |value: Option<u32>, zero: &str| -> Fact {
        match value {
            Some(0) => absent(source, zero),
            Some(n) => known(n, source),
            None if answers.is_file => absent(source, "not reported by kernel or filesystem"),
            None => absent(source, "reported for regular files only"),
        }
    };
    let direct = "0: direct I/O is not supported";
    put(
        facts,
        memory,
        number(answers.dio_align.map(|a| a.0), direct),
    );
    put(
        facts,
        offset,
        number(answers.dio_align.map(|a| a.1), direct),
    );
    let untorn = "0: no write is atomic";
    put(
        facts,
        atomic,
        number(answers.atomic_write.map(|a| a.1), untorn),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(answers: &Answers) -> FactMap {
        let mut facts = FactMap::new();
        statx_facts(answers, "statx", &mut facts);
        facts
    }

    #[test]
    fn an_absent_bit_a_zero_and_a_number_are_told_apart() {
        let file = Answers {
            is_file: true,
            blksize: 4096,
            ..Answers::default()
        };
        let why = |facts: &FactMap, name: &str| facts[name].why.clone().unwrap();
        let facts = told(&file);
        assert_eq!(facts["statx.blksize_bytes"].value, 4096);
        assert!(facts["statx.dio_mem_align_bytes"].value.is_null());
        assert!(why(&facts, "statx.dio_mem_align_bytes").contains("not reported"));

        let facts = told(&Answers {
            dio_align: Some((0, 0)),
            atomic_write: Some((0, 0)),
            ..file.clone()
        });
        assert!(facts["statx.dio_offset_align_bytes"].value.is_null());
        assert!(why(&facts, "statx.dio_offset_align_bytes").contains("not supported"));
        assert!(why(&facts, "statx.atomic_write_max_bytes").contains("atomic"));

        let facts = told(&Answers {
            dio_align: Some((4, 512)),
            atomic_write: Some((4096, 16_384)),
            ..file
        });
        assert_eq!(facts["statx.dio_mem_align_bytes"].value, 4);
        assert_eq!(facts["statx.dio_offset_align_bytes"].value, 512);
        assert_eq!(facts["statx.atomic_write_max_bytes"].value, 16_384);
        assert!(facts.values().all(|f| f.why.is_none()));

        let facts = told(&Answers::default());
        assert!(why(&facts, "statx.atomic_write_max_bytes").contains("regular files only"));
    }
}
