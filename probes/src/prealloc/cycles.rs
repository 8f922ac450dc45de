//! test_fallocate's experiment: make a file, rewrite it, throw it away, and again.
//!
//! One sync a rewrite, not one a commit: the price of an extent that is written for the first time is
//! spread over a whole segment, and making the file and writing it are one sum. Kept for
//! comparison with old numbers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    CARD,
    libc_way::{self, LibcWay},
    life::too_slow,
};
use crate::{
    contract::{Case, Comparison, Fault, Group, Lab, Observations, Run, Series, Stop, Trial},
    engine::lap::Lap,
    files::{PAGE_BYTES, WalFile},
    request::Request,
    segment::{Init, Made, Maker},
};

/// Methods by test_fallocate's names.
const METHODS: [(&str, Init); 3] = [
    ("classic", Init::ZeroFill8k),
    ("posix_fallocate", Init::PosixFallocate { piecewise: false }),
    ("glibc-emulation", Init::GlibcEmulation),
];

/// The group, where cycles are asked for.
pub(super) fn group(request: &Request) -> Option<Group> {
    let cycles = request.cycles.filter(|n| *n > 0)?;
    let rewrites = request.rewrites.unwrap_or(1);
    let file_bytes = request.segment_bytes;
    let case = |name: &str| Case {
        name: name.to_owned(),
        params: [
            ("cycles", json!(cycles)),
            ("rewrites", json!(rewrites)),
            ("file_bytes", json!(file_bytes)),
        ]
        .into(),
        rounds: cycles,
        op_bytes: file_bytes.saturating_mul(rewrites.saturating_add(1)),
        file_bytes,
        op_syncs: rewrites,
        ..Case::default()
    };
    Some(Group {
        probe: CARD.id,
        weight: 0.5,
        cases: METHODS.iter().map(|(name, _)| case(name)).collect(),
        compare: vec![Comparison::judged("cycles", "cycle", METHODS[0].0)],
    })
}

/// Opens one of the group's cases; none for another group's.
pub(super) fn open(case: &Case, lab: &mut Lab<'_>) -> Result<Option<Run>, Stop> {
    if !case.params.contains_key("cycles") {
        return Ok(None);
    }
    let (name, init) = METHODS
        .iter()
        .find(|(n, _)| *n == case.name)
        .ok_or_else(|| Stop::Broken(format!("no method {}", case.name)))?;
    let param = |name: &str| case.params.get(name).and_then(Value::as_u64).unwrap_or(0);
    let folder = lab.scratch()?.folder()?;
    let (init, libc) = libc_way::settle(*init, &folder, lab)?;
    let bytes = param("file_bytes");
    Ok(Some(Run::Alone(Box::new(Cycle {
        method: name,
        init,
        file: format!("seg-cycles-{name}"),
        maker: Maker::new(folder, bytes, bytes, PAGE_BYTES, lab.request.seed),
        rewrites: param("rewrites"),
        done: 0,
        total_ns: 0,
        ending: libc.as_ref().and_then(LibcWay::refusal),
        libc,
    }))))
}

struct Cycle {
    method: &'static str,
    init: Init,
    file: String,
    maker: Maker,
    rewrites: u64,
    done: u64,
    total_ns: u64,
    libc: Option<LibcWay>,
    /// Why the case ends, to be told once what was seen is told.
    ending: Option<Stop>,
}

impl Trial for Cycle {
    fn op(&mut self, lap: &mut Lap<'_>) -> Result<(), Fault> {
        if self.ending.is_some() {
            return Ok(());
        }
        let outcome = self.cycle(lap);
        if !matches!(outcome, Ok(true)) {
            let _ = self.maker.folder().unlink(&self.file);
        }
        outcome.map(|_| ())
    }

    fn observe(
        &mut self,
        _lab: &mut Lab<'_>,
        seen: &mut BTreeMap<Series, Observations>,
    ) -> Result<(), Stop> {
        let common = seen.entry("").or_default();
        if let Some(libc) = &self.libc {
            libc.tell(common);
        }
        if self.done > 0 {
            let total_s = self.total_ns as f64 / 1e9;
            let line = line(self.method, self.done, self.rewrites, total_s);
            common.insert("line".to_owned(), json!(line));
            common.insert("total_s".to_owned(), json!((total_s * 1e6).round() / 1e6));
        }
        match self.ending.take() {
            None => Ok(()),
            Some(stop) => {
                if matches!(stop, Stop::Skip(..)) {
                    common.insert("emulation_bounded".to_owned(), json!(true));
                }
                Err(stop)
            }
        }
    }
}

impl Cycle {
    /// False when interrupted or stopped.
    fn cycle(&mut self, lap: &mut Lap<'_>) -> Result<bool, Fault> {
        lap.leg("cycle", 1.0);
        lap.start();
        let file = WalFile::create(self.maker.folder(), &self.file)?;
        let wrote = match self.maker.fill(&file, self.init, lap)? {
            Made::Whole(wrote) => wrote,
            Made::Cut(done) => {
                if !lap.interrupted() {
                    self.ending = Some(too_slow(done, self.maker.segment_bytes));
                }
                return Ok(false);
            }
        };
        for _ in 0..self.rewrites {
            self.maker.rewrite(&file, lap.pulse())?;
            lap.mark("rewrite");
            if lap.interrupted() {
                return Ok(false);
            }
        }
        file.close()?;
        lap.mark("close");
        self.maker.folder().unlink(&self.file)?;
        lap.mark("unlink");
        self.total_ns += lap.done();
        self.done += 1;
        let rewritten = self.maker.segment_bytes * self.rewrites;
        lap.wal(rewritten);
        lap.wrote(wrote + rewritten);
        lap.synced(self.rewrites);
        Ok(true)
    }
}

/// The method's line, with what was done rather than what was asked for.
fn line(method: &str, cycles: u64, rewrites: u64, total_s: f64) -> String {
    format!(
        "method: {method}. {cycles} open/close iterations, {rewrites} rewrite in {total_s:.4} s"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_was_done() {
        assert_eq!(
            line("classic", 10, 2, 1.234_56),
            "method: classic. 10 open/close iterations, 2 rewrite in 1.2346 s"
        );
    }

    #[test]
    fn cycles_are_planned_only_where_asked_for() {
        let request = |cycles| Request {
            cycles,
            segment_bytes: 16 << 20,
            ..Request::default()
        };
        assert!(group(&request(None)).is_none());
        assert!(group(&request(Some(0))).is_none());
        let planned = group(&request(Some(7))).unwrap();
        assert_eq!(planned.fixed_rounds(), Some(7));
        assert_eq!(
            planned.cases[0].op_bytes,
            32 << 20,
            "made and rewritten once"
        );
    }
}
