#![doc = include_str!("../../docs/probes/prealloc.md")]

use std::collections::BTreeMap;

use rustix::fs::OFlags;
use serde_json::{Value, json};

use crate::{
    contract::{
        Card, Case, Comparison, Fault, Group, Lab, Observations, Probe, Run, Series, Stop, Trial,
    },
    engine::lap::Lap,
    facts::Facts,
    files::{FILL_BYTES, PAGE_BYTES, WalFile},
    request::{Profile, Request},
    segment::{Init, Maker},
    sys::fiemap,
};

/// How much of a segment is walked: what fits the profile's write budget at least twelve times, where
/// a filesystem that never overwrites in place writes ten times a small commit's own bytes.
fn walked(request: &Request, facts: &Facts) -> u64 {
    let copies = facts.text("fs.in_place") == Some("no");
    match (request.profile, copies) {
        (Profile::Quick, _) => 256 << 10,
        (Profile::Normal, true) => 512 << 10,
        (Profile::Normal, false) => 1 << 20,
        (Profile::Thorough, true) => 4 << 20,
        (Profile::Thorough, false) => request.segment_bytes,
    }
}
/// WAL a commit.
const COMMIT_BYTES: u64 = 8192;

/// Classic zero-fill, fallocate, or a hole?
pub struct Prealloc;

static CARD: Card = Card {
    id: "prealloc",
    question: "zero-fill, fallocate or a sparse file: what does each commit cost then?",
    needs: &[],
    page: include_str!("../../docs/probes/prealloc.md"),
};

/// Methods by name, the server's default first.
const METHODS: [(&str, Init); 3] = [
    ("zero-fill", Init::ZeroFill),
    ("fallocate", Init::Fallocate),
    ("sparse", Init::Sparse),
];

impl Probe for Prealloc {
    fn card(&self) -> &'static Card {
        &CARD
    }

    fn plan(&self, request: &Request, facts: &Facts) -> Vec<Group> {
        let segment = request.segment_bytes;
        let commit = request
            .commit_bytes
            .unwrap_or(COMMIT_BYTES)
            .next_multiple_of(PAGE_BYTES);
        let walked = walked(request, facts).min(segment) / commit * commit;
        if walked == 0 {
            return Vec::new();
        }
        let case = |name: &str, init: Init| {
            let filled = if init == Init::ZeroFill { segment } else { 0 };
            Case {
                name: name.to_owned(),
                params: [
                    ("commit_bytes", json!(commit)),
                    ("walked_bytes", json!(walked)),
                    ("segment_bytes", json!(segment)),
                ]
                .into(),
                max_ops: 4,
                op_bytes: filled + 2 * walked,
                file_bytes: segment,
                op_syncs: 2 * walked / commit + 5,
                ..Case::default()
            }
        };
        let judged = |id: &str| Comparison::judged(id, series(id), METHODS[0].0);
        vec![Group {
            probe: CARD.id,
            weight: 1.5,
            cases: METHODS.iter().map(|(n, i)| case(n, *i)).collect(),
            compare: vec![
                judged("create"),
                judged("first-pass"),
                judged("second-pass"),
                Comparison {
                    legs: &["create", "first-pass"],
                    ..judged("life")
                },
            ],
        }]
    }

    fn open(&self, case: &Case, lab: &mut Lab<'_>) -> Result<Run, Stop> {
        let (_, init) = METHODS
            .iter()
            .find(|(n, _)| *n == case.name)
            .ok_or_else(|| Stop::Broken(format!("no method {}", case.name)))?;
        let param = |name: &str| {
            case.params
                .get(name)
                .and_then(Value::as_u64)
                .unwrap_or(PAGE_BYTES)
        };
        let maker = Maker::new(
            lab.scratch()?.folder()?,
            param("segment_bytes"),
            param("walked_bytes"),
            param("commit_bytes"),
            lab.request.seed,
        );
        Ok(Run::Alone(Box::new(Life {
            init: *init,
            tmp: format!("tmp-prealloc-{}", case.name),
            name: format!("seg-prealloc-{}", case.name),
            maker,
            inspected: None,
        })))
    }
}

fn series(id: &str) -> Series {
    match id {
        "create" => "create",
        "first-pass" => "first-pass",
        "second-pass" => "second-pass",
        _ => "life",
    }
}

/// A segment's life: made, walked, walked again, removed. Its first life, which calibration does
/// not count, is inspected after each step.
struct Life {
    init: Init,
    tmp: String,
    name: String,
    maker: Maker,
    inspected: Option<BTreeMap<Series, Observations>>,
}

impl Trial for Life {
    fn op(&mut self, lap: &mut Lap<'_>) -> Result<(), Fault> {
        let mut seen = self.inspected.is_none().then(BTreeMap::new);
        let free_before = match &seen {
            Some(_) => Some(free_bytes(&self.maker)?),
            None => None,
        };
        let outcome = self.live(lap, seen.as_mut(), free_before);
        lap.leg("", 0.0);
        // Whatever happened, the next life begins without this one's file.
        let removed = self.maker.folder().unlink(&self.name);
        if outcome.is_err() {
            let _ = self.maker.folder().unlink(&self.tmp);
        }
        if outcome? {
            removed?;
        }
        if seen.is_some() {
            self.inspected = seen;
        }
        Ok(())
    }

    fn observe(
        &mut self,
        _lab: &mut Lab<'_>,
        seen: &mut BTreeMap<Series, Observations>,
    ) -> Result<(), Stop> {
        if seen.is_empty()
            && let Some(inspected) = &self.inspected
        {
            seen.clone_from(inspected);
            let common = seen.entry("").or_default();
            common.insert("walked_pct".to_owned(), json!(self.maker.walked_pct()));
        }
        Ok(())
    }
}

impl Life {
    /// False when interrupted.
    fn live(
        &mut self,
        lap: &mut Lap<'_>,
        mut seen: Option<&mut BTreeMap<Series, Observations>>,
        free_before: Option<u64>,
    ) -> Result<bool, Fault> {
        self.maker
            .create_timed(self.init, &self.tmp, &self.name, "create", lap)?;
        let file = WalFile::open(self.maker.folder(), &self.name, OFlags::empty())?;
        if let (Some(seen), Some(free_before)) = (seen.as_deref_mut(), free_before) {
            lap.leg("", 0.0);
            let gone = free_before.saturating_sub(free_bytes(&self.maker)?);
            created(&file, self.maker.segment_bytes, gone, lap.pulse(), seen)?;
        }
        let weight = self.maker.weight();
        if !self.maker.walk_timed(&file, "first-pass", weight, lap)? {
            return Ok(false);
        }
        lap.life("life");
        if let Some(seen) = seen.as_deref_mut() {
            lap.leg("", 0.0);
            space(
                &file,
                self.maker.walked_bytes,
                seen.entry("first-pass").or_default(),
            )?;
            space(
                &file,
                self.maker.segment_bytes,
                seen.entry("life").or_default(),
            )?;
        }
        if !self.maker.walk_timed(&file, "second-pass", 0.0, lap)? {
            return Ok(false);
        }
        if let Some(seen) = seen {
            lap.leg("", 0.0);
            space(
                &file,
                self.maker.walked_bytes,
                seen.entry("second-pass").or_default(),
            )?;
        }
        Ok(true)
    }
}

fn free_bytes(maker: &Maker) -> Result<u64, Fault> {
    let stat = maker.folder().statvfs()?;
    Ok(stat.f_bfree.saturating_mul(stat.f_frsize))
}

/// What a new segment is: its length, its content, the space it holds and how.
fn created(
    file: &WalFile,
    segment_bytes: u64,
    free_gone: u64,
    pulse: &crate::contract::Pulse,
    seen: &mut BTreeMap<Series, Observations>,
) -> Result<(), Fault> {
    let mut own = Observations::new();
    space(file, segment_bytes, &mut own)?;
    let unwritten = own.get("unwritten_pct").cloned().unwrap_or(Value::Null);
    let allocated = own.get("allocated_bytes").cloned().unwrap_or(Value::Null);
    let length = u64::try_from(file.stat()?.st_size).unwrap_or(0);
    let mut zero = true;
    let mut piece = vec![0; FILL_BYTES as usize];
    let mut at = 0;
    while at < length.min(segment_bytes) {
        let part = (length.min(segment_bytes) - at).min(FILL_BYTES) as usize;
        file.pread_all(&mut piece[..part], at)?;
        zero &= piece[..part].iter().all(|b| *b == 0);
        at += part as u64;
        pulse.beat();
    }
    seen.insert("create", own);
    let common = seen.entry("").or_default();
    let mut put = |name: &str, value: Value| common.insert(name.to_owned(), value);
    put("supported", json!(true));
    put("length_right", json!(length == segment_bytes));
    put("content_zero", json!(zero));
    put("create_unwritten_pct", unwritten);
    put("create_allocated_bytes", allocated);
    put("create_free_bytes_gone", json!(free_gone));
    Ok(())
}

/// Extents and space of the file's first `bytes`. A filesystem without FIEMAP says nothing about extents.
fn space(file: &WalFile, bytes: u64, seen: &mut Observations) -> Result<(), Fault> {
    let stat = file.stat()?;
    seen.insert(
        "allocated_bytes".to_owned(),
        json!(u64::try_from(stat.st_blocks).unwrap_or(0) * 512),
    );
    match fiemap::extents(file.fd(), bytes) {
        Ok(extents) => {
            let pct = 100.0 * extents.unwritten_bytes as f64 / bytes as f64;
            seen.insert("extents".to_owned(), json!(extents.count));
            seen.insert(
                "unwritten_pct".to_owned(),
                json!((pct * 100.0).round() / 100.0),
            );
        }
        Err(e)
            if e.raw_os_error()
                .is_some_and(crate::sys::errno::is_unsupported) =>
        {
            seen.insert("fiemap".to_owned(), json!("unsupported"));
        }
        Err(e) => {
            return Err(file.fault(
                "ioctl(FS_IOC_FIEMAP)",
                e.raw_os_error().unwrap_or(libc::EIO),
            ));
        }
    }
    Ok(())
}
