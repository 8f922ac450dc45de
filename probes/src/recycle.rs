#![doc = include_str!("../../docs/probes/recycle.md")]

use std::collections::BTreeMap;

use rustix::fs::OFlags;
use serde_json::{Value, json};

use crate::{
    cache::{self, Pair},
    contract::{
        Card, Case, Comparison, Fault, Group, Lab, Observations, Probe, Run, Series, Stop, Trial,
    },
    engine::lap::Lap,
    facts::Facts,
    files::{WalFile, durable_rename, durable_unlink},
    report::ColdProof,
    request::{DropCaches, Profile, Request},
    segment::{Init, Maker},
};

/// Is an old segment cheaper to overwrite than a new one is to make?
pub struct Recycle;

static CARD: Card = Card {
    id: "recycle",
    question: "is an old, cold segment cheaper to overwrite than a new one is to make?",
    needs: &[],
    page: include_str!("../../docs/probes/recycle.md"),
};

/// The group's cases, and how each gets its segment: an old one, or a new one made by a method.
/// A new segment has no past that could be cold, so the two comparisons of a group share it.
const CASES: [(&str, Option<Init>); 4] = [
    ("recycle+zero@cold", None),
    ("recycle+zero@warm", None),
    ("new+zero", Some(Init::ZeroFill)),
    ("new+sparse", Some(Init::Sparse)),
];

/// The server's default: wal_recycle=on, wal_init_zero=on.
const BASELINE: &str = "recycle+zero";

/// Groups: suffix of the comparisons' ids, WAL a commit.
const LIVES: [(&str, u64); 2] = [("", 64 << 10), ("-8k", 8 << 10)];

/// How much of a segment is walked: what fits the profile's write budget at least twelve times, where
/// a filesystem that never overwrites in place writes ten times a small commit's own bytes.
fn walked(request: &Request, facts: &Facts, commit_bytes: u64) -> u64 {
    let small = commit_bytes < 64 << 10;
    let copies = facts.text("fs.in_place") == Some("no");
    let wanted = match request.profile {
        Profile::Quick => 1 << 20,
        Profile::Normal => (if small { 1 << 20 } else { 4 << 20 }) / if copies { 2 } else { 1 },
        Profile::Thorough if small && copies => 4 << 20,
        Profile::Thorough => request.segment_bytes,
    };
    wanted.min(request.segment_bytes) / commit_bytes * commit_bytes
}

impl Probe for Recycle {
    fn card(&self) -> &'static Card {
        &CARD
    }

    fn plan(&self, request: &Request, facts: &Facts) -> Vec<Group> {
        LIVES
            .iter()
            .filter(|(suffix, _)| request.profile != Profile::Quick || suffix.is_empty())
            .filter(|(_, commit)| request.segment_bytes >= *commit)
            .map(|&(suffix, commit)| group(request, facts, suffix, commit))
            .collect()
    }

    fn open(&self, case: &Case, lab: &mut Lab<'_>) -> Result<Run, Stop> {
        let (_, init) = CASES
            .iter()
            .find(|(n, _)| *n == case.name)
            .ok_or_else(|| Stop::Broken(format!("no case {}", case.name)))?;
        let param = |name: &str| case.params.get(name).and_then(Value::as_u64).unwrap_or(0);
        let mut life = Life {
            init: *init,
            cold: case.name.ends_with("@cold"),
            name: format!("seg-recycle-{}", case.name),
            old: format!("old-recycle-{}", case.name),
            tmp: format!("tmp-recycle-{}", case.name),
            witness: format!("witness-recycle-{}", case.name),
            maker: Maker::new(
                lab.scratch()?.folder()?,
                param("segment_bytes"),
                param("walked_bytes"),
                param("commit_bytes"),
                lab.request.seed,
            ),
            warm_pct: None,
        };
        if life.init.is_none() {
            life.make_old(lab)?;
        }
        Ok(Run::Alone(Box::new(life)))
    }
}

fn group(request: &Request, facts: &Facts, suffix: &str, commit: u64) -> Group {
    let segment = request.segment_bytes;
    let walked = walked(request, facts, commit);
    let case = |name: &str, init: Option<Init>| {
        let filled = if init == Some(Init::ZeroFill) {
            segment
        } else {
            0
        };
        let cold = name.ends_with("@cold");
        // The old one and its witness.
        let olds = u64::from(init.is_none()) + u64::from(cold);
        let mut params = std::collections::BTreeMap::from([
            ("commit_bytes", json!(commit)),
            ("walked_bytes", json!(walked)),
            ("segment_bytes", json!(segment)),
        ]);
        if init.is_none() {
            params.insert("cache", json!(if cold { "cold" } else { "warm" }));
        }
        Case {
            name: name.to_owned(),
            params,
            prepare_each_op: init.is_none(),
            max_ops: 4,
            op_bytes: filled + walked,
            file_bytes: segment * (olds + 1),
            op_syncs: walked / commit + 6,
            ..Case::default()
        }
    };
    let compare = |id: &str, old: &str| Comparison {
        legs: &["get", "commit", "remove"],
        total: Some("total"),
        detail: Some("commit"),
        names: [
            (BASELINE, old),
            ("new+zero", "new+zero"),
            ("new+sparse", "new+sparse"),
        ]
        .map(|(row, own)| (row.to_owned(), own.to_owned()))
        .to_vec(),
        ..Comparison::judged(&format!("{id}{suffix}"), "life", BASELINE)
    };
    Group {
        probe: CARD.id,
        weight: 1.5,
        cases: CASES.iter().map(|(name, init)| case(name, *init)).collect(),
        compare: vec![
            compare("life", "recycle+zero@warm"),
            compare("life-cold", "recycle+zero@cold"),
        ],
    }
}

/// A segment's life: got, walked, let go. A recycled one was written before, and goes on to be the
/// old one of the next life.
struct Life {
    init: Option<Init>,
    cold: bool,
    name: String,
    old: String,
    tmp: String,
    witness: String,
    maker: Maker,
    warm_pct: Option<f64>,
}

impl Life {
    /// An old segment is one that has lived: made as the server makes it, walked in the comparison's
    /// own pattern with incompressible content, settled. The witness is its sister.
    fn make_old(&mut self, lab: &mut Lab<'_>) -> Result<(), Stop> {
        let names: &[&String] = if self.cold {
            &[&self.old, &self.witness]
        } else {
            &[&self.old]
        };
        for name in names {
            lab.hooks
                .charge(self.maker.segment_bytes + self.maker.walked_bytes)?;
            self.maker
                .create(Init::ZeroFill, &self.tmp, name, lab.pulse)?;
            let file = WalFile::open(self.maker.folder(), name, OFlags::empty())?;
            self.maker.walk(&file, lab.pulse)?;
        }
        lab.hooks.settle()?;
        Ok(())
    }
}

impl Trial for Life {
    fn prepare(&mut self, lab: &mut Lab<'_>) -> Result<Option<ColdProof>, Stop> {
        if self.init.is_some() {
            return Ok(None);
        }
        if !self.cold {
            let pct = cache::warm(
                self.maker.folder(),
                &self.old,
                self.maker.segment_bytes,
                lab,
            )?;
            self.warm_pct = match (self.warm_pct, pct) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            return Ok(None);
        }
        let hook = cache::hook(lab.request.drop_caches);
        if hook == DropCaches::None {
            // The user asked for no drop: say truly how warm it is.
            cache::warm(
                self.maker.folder(),
                &self.old,
                self.maker.segment_bytes,
                lab,
            )?;
        }
        let pair = Pair {
            file: &self.old,
            witness: &self.witness,
            bytes: self.maker.segment_bytes,
        };
        cache::drop_and_prove(self.maker.folder(), pair, hook, lab).map(Some)
    }

    fn op(&mut self, lap: &mut Lap<'_>) -> Result<(), Fault> {
        let folder = self.maker.folder();
        match self.init {
            Some(init) => self
                .maker
                .create_timed(init, &self.tmp, &self.name, "get", lap)?,
            None => {
                lap.leg("get", 1.0);
                lap.start();
                durable_rename(folder, &self.old, &self.name)?;
                lap.mark("rename");
                lap.done();
                lap.synced(3);
            }
        }
        let file = WalFile::open(self.maker.folder(), &self.name, OFlags::empty())?;
        let weight = self.maker.weight();
        let whole = self.maker.walk_timed(&file, "commit", weight, lap)?;
        drop(file);
        if whole {
            lap.life("life");
        }
        lap.leg("remove", 1.0);
        if self.init.is_some() {
            lap.start();
            durable_unlink(self.maker.folder(), &self.name)?;
            lap.mark("unlink");
            lap.done();
            lap.synced(1);
        } else {
            // Recycling is one rename a life, and `get` was it: this one only turns the segment round.
            lap.leg("", 0.0);
            self.maker.folder().rename(&self.name, &self.old)?;
        }
        if whole {
            lap.life("total");
        }
        Ok(())
    }

    fn observe(
        &mut self,
        _lab: &mut Lab<'_>,
        seen: &mut BTreeMap<Series, Observations>,
    ) -> Result<(), Stop> {
        let common = seen.entry("").or_default();
        common.insert("walked_pct".to_owned(), json!(self.maker.walked_pct()));
        if let Some(pct) = self.warm_pct {
            common.insert(
                "warm_resident_pct".to_owned(),
                json!((pct * 100.0).round() / 100.0),
            );
        }
        Ok(())
    }

    fn close(&mut self, _lab: &mut Lab<'_>) -> Result<(), Stop> {
        if self.init.is_none() {
            self.maker.folder().unlink(&self.old)?;
            if self.cold {
                self.maker.folder().unlink(&self.witness)?;
            }
        }
        Ok(())
    }
}
