//! Writes of one size at cold places: their time, and what had to be read first.

use std::collections::BTreeMap;

use serde_json::json;

use crate::{
    align::{
        ground::{Shape, Shared, settle_where_late, since},
        number,
        plan::{self, ODD},
    },
    cache,
    contract::{Case, Fault, Lab, Observations, Series, Stop, Trial},
    engine::lap::Lap,
    facts::Facts,
    files::WalFile,
    report::ColdProof,
    request::Profile,
    sys::buffer::Buffer,
};

/// A write alone.
pub(super) const SERIES: Series = "write";

/// Rounds, and writes of each case in a round.
pub(super) fn often(profile: Profile, facts: &Facts) -> (u64, u64) {
    // Each write of a filesystem that never overwrites in place takes some metadata with it.
    let copies = facts.text("fs.in_place") == Some("no");
    match profile {
        Profile::Thorough => (16, 4),
        _ if copies => (3, 2),
        _ => (5, 2),
    }
}

/// A case of `writes` writes of `bytes` a round.
pub(super) fn case(name: &str, bytes: u64, writes: u64, rounds: u64, shape: &Shape) -> Case {
    let at = if name == ODD.0 { "odd" } else { "aligned" };
    let mut params = BTreeMap::from_iter(plan::params(shape));
    params.extend([
        ("write_bytes", json!(bytes)),
        ("writes", json!(writes)),
        ("offset", json!(at)),
    ]);
    Case {
        name: name.to_owned(),
        params,
        max_ops: 1,
        rounds,
        op_bytes: writes * bytes + shape.drop_bytes(writes),
        op_syncs: 1,
        ..Case::default()
    }
}

/// One operation is a round's writes, a sample each.
pub(super) struct Sweep {
    ground: Shared,
    bytes: u64,
    odd: bool,
    writes: u64,
    content: Buffer,
    stamped: u64,
    file: Option<WalFile>,
    spots: Vec<u64>,
    before: Option<u64>,
    /// Writes so far, and the bytes that they made be read.
    done: (u64, u64),
}

impl Sweep {
    pub(super) fn open(case: &Case, lab: &mut Lab<'_>) -> Result<Self, Stop> {
        let bytes = number(case, "write_bytes");
        let mut content = Buffer::new(bytes as usize, 4096);
        content.fill_incompressible(lab.request.seed);
        Ok(Self {
            ground: Shared::of(case, lab)?,
            bytes,
            odd: case.name == ODD.0,
            writes: number(case, "writes"),
            content,
            stamped: 0,
            file: None,
            spots: Vec::new(),
            before: None,
            done: (0, 0),
        })
    }
}

impl Trial for Sweep {
    fn prepare(&mut self, lab: &mut Lab<'_>) -> Result<Option<ColdProof>, Stop> {
        let mut ground = self.ground.lock();
        let handed = ground.take(self.writes, lab)?;
        self.spots = handed
            .places
            .iter()
            .map(|&place| ground.spot(place, self.bytes, self.odd, lab))
            .collect();
        self.file = Some(ground.open()?);
        self.before = cache::from_storage(lab);
        Ok(Some(handed.proof))
    }

    fn op(&mut self, lap: &mut Lap<'_>) -> Result<(), Fault> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        lap.leg(SERIES, 1.0);
        for &at in &self.spots {
            self.stamped += 1;
            self.content.stamp(self.stamped);
            lap.start();
            file.pwrite_all(&self.content, at)?;
            lap.mark("write");
            lap.done();
            lap.wrote(self.bytes);
        }
        lap.leg("", 0.0);
        Ok(())
    }

    fn observe(
        &mut self,
        lab: &mut Lab<'_>,
        seen: &mut BTreeMap<Series, Observations>,
    ) -> Result<(), Stop> {
        // No descriptor stays open: the next drop may unmount the filesystem.
        self.file = None;
        settle_where_late(lab)?;
        let Some(read) = since(self.before, lab) else {
            return Ok(());
        };
        self.done.0 += self.spots.len() as u64;
        self.done.1 += read;
        let (writes, read) = self.done;
        let each = read as f64 / writes.max(1) as f64;
        let seen = seen.entry("").or_default();
        seen.insert(
            "read_per_write_bytes".to_owned(),
            json!((each * 10.0).round() / 10.0),
        );
        Ok(())
    }
}
