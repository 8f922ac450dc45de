use std::{
    os::unix::fs::FileExt as _,
    sync::atomic::{AtomicU64, Ordering},
};

use super::*;
use crate::{
    contract::{Clock, Counters, Counts, Noise},
    engine::tally::Tally,
    folder::Folder,
    sys::errno::is_unsupported,
};

/// A clock that moves on at every reading.
struct Ticking {
    now_ns: AtomicU64,
    tick_ns: u64,
}

impl Clock for Ticking {
    fn now_ns(&self) -> u64 {
        self.now_ns.fetch_add(self.tick_ns, Ordering::Relaxed)
    }
}

struct Nothing;

impl Counters for Nothing {
    fn read(&self) -> Counts {
        Counts::default()
    }
    fn flushes_by_device(&self) -> Vec<(String, u64)> {
        Vec::new()
    }
    fn noise(&self) -> Noise {
        Noise::default()
    }
    fn has_device(&self) -> bool {
        false
    }
}

const SEGMENT_BYTES: u64 = 4 << 20;
const NAME: &str = "seg-test";

/// Fills a file that holds `before`; what came of it, and what the file holds then.
fn filled(init: Init, before: &[u8], tick_ns: u64) -> (Result<Made, Fault>, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let opened = std::fs::File::open(dir.path()).unwrap();
    let folder = Folder::of_test(opened.into());
    let file = WalFile::create(&folder, NAME).unwrap();
    file.pwrite_all(before, 0).unwrap();
    let maker = Maker::new(folder, SEGMENT_BYTES, SEGMENT_BYTES, 8192, 1);
    let clock = Ticking {
        now_ns: AtomicU64::new(0),
        tick_ns,
    };
    let (pulse, mut tally) = (Pulse::default(), Tally::default());
    let mut lap = Lap::new(&clock, &Nothing, &pulse, &mut tally);
    lap.start();
    let made = maker.fill(&file, init, &mut lap);
    (made, std::fs::read(dir.path().join(NAME)).unwrap())
}

#[test]
fn every_method_makes_zeros_of_the_right_length() {
    for (init, wrote) in [
        (Init::ZeroFill, SEGMENT_BYTES),
        (Init::ZeroFill8k, SEGMENT_BYTES),
        (Init::Fallocate, 0),
        (Init::PosixFallocate { piecewise: false }, 0),
        (Init::PosixFallocate { piecewise: true }, 0),
        (Init::GlibcEmulation, SEGMENT_BYTES / 4096),
        (Init::Sparse, 1),
        (Init::ZeroRange, 0),
        (Init::WriteZeroes, 0),
        (Init::FallocateZeroFill, SEGMENT_BYTES),
        (Init::Append, 0),
    ] {
        let (made, content) = filled(init, &[], 1);
        match made {
            Ok(made) => assert_eq!(made, Made::Whole(wrote), "{init:?}"),
            Err(fault) => {
                assert!(is_unsupported(fault.errno), "{init:?}: {fault}");
                eprintln!("not here: {init:?}: {fault}");
                continue;
            }
        }
        let length = if init == Init::Append {
            0
        } else {
            SEGMENT_BYTES
        };
        assert_eq!(content.len() as u64, length, "{init:?}");
        assert!(content.iter().all(|b| *b == 0), "{init:?}");
    }
}

#[test]
fn the_emulation_leaves_alone_what_is_there() {
    let (made, content) = filled(Init::GlibcEmulation, &[7; 3 * 4096], 1);
    assert_eq!(made, Ok(Made::Whole(SEGMENT_BYTES / 4096 - 3)));
    assert!(content[..3 * 4096].iter().all(|b| *b == 7));
    assert!(content[3 * 4096..].iter().all(|b| *b == 0));
}

#[test]
fn the_emulation_writes_the_last_byte_of_each_block() {
    let dir = tempfile::tempdir().unwrap();
    let opened = std::fs::File::open(dir.path()).unwrap();
    let folder = Folder::of_test(opened.into());
    let file = WalFile::create(&folder, NAME).unwrap();
    let pulse = Pulse::default();
    // An odd length: the last byte is the file's, the others a block apart from it.
    let made = emulate(&file, 3 * 4096 + 10, &mut Watch::Pulse(&pulse)).unwrap();
    assert_eq!(made, Made::Whole(4));
    let reader = std::fs::File::open(dir.path().join(NAME)).unwrap();
    assert_eq!(reader.metadata().unwrap().len(), 3 * 4096 + 10);
    let mut last = [1];
    reader.read_exact_at(&mut last, 3 * 4096 + 9).unwrap();
    assert_eq!(last, [0]);
}

#[test]
fn the_step_of_the_emulation() {
    assert_eq!(emulation_step(0), 512);
    assert_eq!(emulation_step(1024), 1024);
    assert_eq!(emulation_step(4096), 4096);
    assert_eq!(emulation_step(1 << 20), 4096);
}

#[test]
fn an_emulation_that_takes_too_long_is_cut_short() {
    let (made, content) = filled(Init::GlibcEmulation, &[], EMULATION_LIMIT_NS + 1);
    let Ok(Made::Cut(done)) = made else {
        panic!("{made:?}");
    };
    assert!(done > 0 && done < SEGMENT_BYTES, "{done}");
    assert!((content.len() as u64) < SEGMENT_BYTES);
    // By pieces, what the C library does is bounded too; where nothing is emulated, nothing is cut.
    for (piecewise, cut) in [(true, true), (false, false)] {
        let init = Init::PosixFallocate { piecewise };
        match filled(init, &[], EMULATION_LIMIT_NS + 1).0 {
            Err(fault) => assert!(is_unsupported(fault.errno), "{fault}"),
            Ok(made) => assert_eq!(matches!(made, Made::Cut(_)), cut, "{piecewise}"),
        }
    }
    let just = EMULATION_LIMIT_NS / 100;
    assert!(matches!(
        filled(Init::GlibcEmulation, &[], just).0,
        Ok(Made::Whole(_))
    ));
}
