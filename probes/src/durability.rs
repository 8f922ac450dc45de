#![doc = include_str!("../../docs/probes/durability.md")]

use serde_json::json;

use crate::{
    contract::{Card, Case, Comparison, Group, Lab, Observations, Probe, Run, Stop, Study},
    engine::lap::Lap,
    facts::{Facts, Roots, mountstats},
    files::{PAGE_BYTES, WalFile},
    request::Request,
    sys::{buffer::Buffer, sync_range},
};

mod windows;

use windows::Windows;

/// Syncs of each kind.
pub const SYNCS: u64 = 64;

/// Does a sync reach the device?
pub struct Durability;

static CARD: Card = Card {
    id: "durability",
    question: "does a sync reach the device?",
    needs: &[],
    page: include_str!("../../docs/probes/durability.md"),
};

impl Probe for Durability {
    fn card(&self) -> &'static Card {
        &CARD
    }

    fn plan(&self, request: &Request, _facts: &Facts) -> Vec<Group> {
        let writes = request.syncs.unwrap_or(SYNCS).max(1);
        let case = |name: &str, syncs: u64| Case {
            name: name.to_owned(),
            params: [
                ("writes", json!(writes)),
                ("write_bytes", json!(PAGE_BYTES)),
                ("syncs", json!(syncs)),
            ]
            .into(),
            op_bytes: 3 * writes * PAGE_BYTES,
            file_bytes: writes * PAGE_BYTES,
            op_syncs: syncs + 1,
            ..Case::default()
        };
        vec![Group {
            probe: CARD.id,
            weight: 0.0,
            cases: vec![
                case("fdatasync", writes),
                case("fsync-extending", writes),
                case("write-only", 0),
            ],
            compare: vec![Comparison::plain("check", "commit")],
        }]
    }

    fn open(&self, case: &Case, lab: &mut Lab<'_>) -> Result<Run, Stop> {
        lab.hooks.charge(case.op_bytes)?;
        let kind = match case.name.as_str() {
            "fdatasync" => Kind::Fdatasync,
            "fsync-extending" => Kind::FsyncExtending,
            _ => Kind::WriteOnly,
        };
        Ok(Run::Once(Box::new(Check {
            kind,
            writes: case.params["writes"].as_u64().unwrap_or(SYNCS),
        })))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Fdatasync,
    FsyncExtending,
    WriteOnly,
}

struct Check {
    kind: Kind,
    writes: u64,
}

impl Study for Check {
    fn run(
        &mut self,
        lab: &mut Lab<'_>,
        lap: &mut Lap<'_>,
        seen: &mut Observations,
    ) -> Result<(), Stop> {
        let name = "file-durability";
        let folder = lab.scratch()?.folder()?;
        let file = WalFile::create_anew(&folder, name)?;
        let mut page = Buffer::new(PAGE_BYTES as usize, 4096);
        page.fill_incompressible(lab.request.seed);
        if self.kind != Kind::FsyncExtending {
            let zeros = vec![0; PAGE_BYTES as usize];
            file.zero_fill(self.writes * PAGE_BYTES, &zeros, lab.pulse)?;
            file.fsync()?;
        }
        lab.hooks.settle()?;
        let mut windows = Windows::new(lab.counters);
        // With data=journal a write that is waited for commits the journal, and flushes.
        let flushes_too = lab.facts.text("fs.journal_mode") == Some("journal");
        let mut beside = self.kind != Kind::WriteOnly && lab.counters.has_device() && !flushes_too;
        let roots = Roots::default();
        let requests_before = mountstats::read(lab.facts, &roots);
        for n in 0..self.writes {
            if lap.interrupted() {
                return Err(Stop::Interrupted);
            }
            page.stamp(n + 1);
            lap.leg("commit", 1.0);
            windows.open(lab.counters, lab.clock);
            lap.start();
            file.pwrite_all(&page, n * PAGE_BYTES)?;
            lap.mark("write");
            match self.kind {
                Kind::Fdatasync => file.fdatasync()?,
                Kind::FsyncExtending => file.fsync()?,
                Kind::WriteOnly => {}
            }
            if self.kind != Kind::WriteOnly {
                lap.mark("sync");
                lap.synced(1);
            }
            lap.done();
            lap.wrote(PAGE_BYTES);
            windows.close(lab.counters, lab.clock);
            if beside {
                lap.leg("", 0.0);
                windows.open_beside(lab.counters);
                file.pwrite_all(&page, n * PAGE_BYTES)?;
                beside = sync_range::write_and_wait(file.fd(), n * PAGE_BYTES, PAGE_BYTES).is_ok();
                if beside {
                    windows.close_beside(lab.counters);
                }
            }
        }
        lap.leg("", 0.0);
        windows.tell(seen);
        if lab.counters.has_device() {
            seen.insert(
                "quiet_flushes_per_s".to_owned(),
                json!((lab.quiet.flushes_per_s * 100.0).round() / 100.0),
            );
        }
        if let (Some(earlier), Some(now)) = (requests_before, mountstats::read(lab.facts, &roots)) {
            let sent = now.since(earlier);
            seen.insert("nfs_writes".to_owned(), json!(sent.writes));
            seen.insert("nfs_commits".to_owned(), json!(sent.commits));
        }
        file.close()?;
        folder.unlink(name)?;
        Ok(())
    }
}
