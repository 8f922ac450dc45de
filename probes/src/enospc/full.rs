//! One way to prepare segments, on a disk that gets full.

use serde_json::json;

use super::{
    ballast::{Ballast, free_bytes, is_full},
    calls,
    place::{MARK, Place, room},
    postgres,
    through::{Failure, Writer, answer, slow},
};
use crate::{
    contract::{Fault, Lab, Observations, Stop, Study},
    engine::lap::Lap,
    files::WalFile,
    segment::{Init, Maker},
    sys::errno,
};

/// A page, whose loss can be told.
pub(super) const PAGE: u64 = 8192;
/// A case's own time.
const LIMIT_NS: u64 = 20_000_000_000;
/// Sparse segments take hardly any space: of those that "fit" so many times over, no more are made.
const OVERSOLD: u64 = 2;

/// What a segment was before the disk got full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    /// Prepared by a method, never written.
    New(Init),
    /// Zero-filled and written through once: one that is recycled.
    Old,
}

/// See the module docs.
pub(super) struct Full {
    pub(super) case: String,
    pub(super) past: Past,
    pub(super) segment_bytes: u64,
    pub(super) segments: usize,
    pub(super) commit_bytes: u64,
    /// Only whether what was prepared can be written.
    pub(super) brief: bool,
}

impl Full {
    fn init(&self) -> Init {
        match self.past {
            Past::New(init) => init,
            Past::Old => Init::ZeroFill,
        }
    }

    /// Bytes that making a segment writes.
    fn made_bytes(&self) -> u64 {
        match self.init() {
            Init::Fallocate | Init::Sparse | Init::ZeroRange => 0,
            _ => self.segment_bytes,
        }
    }

    fn name(&self, kind: &str, what: &str) -> String {
        format!("{kind}{MARK}{what}")
    }
}

impl Study for Full {
    fn run(
        &mut self,
        lab: &mut Lab<'_>,
        _lap: &mut Lap<'_>,
        seen: &mut Observations,
    ) -> Result<(), Stop> {
        let mut place = Place::open(&self.case, lab)?;
        let outcome = self.fill(&mut place, lab, seen);
        place.believe(outcome, seen)
    }
}

impl Full {
    fn fill(
        &self,
        place: &mut Place<'_>,
        lab: &mut Lab<'_>,
        seen: &mut Observations,
    ) -> Result<(), Stop> {
        let until = lab.clock.now_ns() + LIMIT_NS;
        place.tell(seen);
        let seed = lab.request.seed;
        let mut writer = Writer::new(self.segment_bytes, self.commit_bytes, seed);
        let maker = |place: &Place<'_>| -> Result<Maker, Fault> {
            let bytes = self.segment_bytes;
            let folder = place.folder().folder()?;
            Ok(Maker::new(folder, bytes, bytes, PAGE, seed))
        };
        let ballast = self.name("file", "ballast");
        let mut ballast = Ballast::create(place.folder(), &ballast, seed ^ 1)?;
        let names = self.prepare(&maker(place)?, place, &mut ballast, &mut writer, until, lab)?;
        if !self.brief && matches!(self.past, Past::New(_)) {
            self.create_until_full(&maker(place)?, place, until, lab, seen)?;
        }
        ballast.fill_up(lab)?;
        seen.insert("free_bytes".to_owned(), json!(free_bytes(place.folder())?));
        crate::pause::here("full");
        if ballast.late {
            return Err(slow(0));
        }

        let failure = writer.walk(place.folder(), &names, until, lab)?;
        // Any other error is no answer of a full disk.
        if let Some(failure) = failure.as_ref().filter(|f| !is_full(f.fault.errno)) {
            return Err(failure.fault.clone().into());
        }
        self.tell_walk(failure.as_ref(), &writer, seen);
        ballast.close();
        let how = place.drop_caches()?;
        let uncached = how == "fadvise";
        let lost = writer.lost(place.folder(), &names, uncached, lab)?;
        seen.insert("acked_commits".to_owned(), json!(writer.commits()));
        seen.insert("acked_lost".to_owned(), json!(lost));
        seen.insert("read_back".to_owned(), json!(how));
        if !self.brief {
            ballast.reopen(place.folder())?;
            // What was given back meanwhile is taken again.
            ballast.fill_up(lab)?;
            let maker = maker(place)?;
            let spare = self.name("old", "spare");
            calls::when_full(
                place.folder(),
                &maker,
                self.init(),
                &spare,
                until,
                lab,
                seen,
            )?;
        }
        seen.insert("line".to_owned(), json!(Self::line(seen)));
        Ok(())
    }
}

impl Full {
    /// The segments, and one more that is freed later; by name.
    fn prepare(
        &self,
        maker: &Maker,
        place: &Place<'_>,
        ballast: &mut Ballast,
        writer: &mut Writer,
        until: u64,
        lab: &mut Lab<'_>,
    ) -> Result<Vec<String>, Stop> {
        let mut names = Vec::new();
        for n in 0..self.segments {
            let name = self.name("seg", &n.to_string());
            lab.hooks.charge(self.made_bytes())?;
            maker.create(self.init(), &self.name("tmp", "new"), &name, lab.pulse)?;
            names.push(name);
        }
        if !self.brief {
            let spare = self.name("old", "spare");
            maker.create(Init::ZeroFill, &self.name("tmp", "new"), &spare, lab.pulse)?;
        }
        lab.hooks.charge(names.len() as u64 * self.segment_bytes)?;
        if self.past == Past::Old {
            if let Some(failure) = writer.walk(place.folder(), &names, until, lab)? {
                return Err(failure.fault.into());
            }
            writer.forget();
        }
        place.folder().syncfs()?;
        if !self.brief {
            ballast.leave(room(lab.request.fill, self.segment_bytes), lab)?;
        }
        Ok(names)
    }

    /// Makes segments until one cannot be made.
    fn create_until_full(
        &self,
        maker: &Maker,
        place: &Place<'_>,
        until: u64,
        lab: &mut Lab<'_>,
        seen: &mut Observations,
    ) -> Result<(), Stop> {
        let folder = place.folder();
        let shown = free_bytes(folder)?;
        let most = OVERSOLD * (shown / self.segment_bytes + 1);
        let temporary = self.name("tmp", "new");
        let mut made = 0;
        let failed = loop {
            if lab.pulse.stopped() {
                return Err(Stop::Interrupted);
            }
            if lab.clock.now_ns() > until {
                return Err(slow(made * self.segment_bytes));
            }
            if made == most {
                break None;
            }
            lab.hooks.charge(self.made_bytes())?;
            let name = self.name("seg", &format!("more-{made}"));
            match maker.create(self.init(), &temporary, &name, lab.pulse) {
                Ok(()) => made += 1,
                Err(fault) if is_full(fault.errno) => break Some(fault),
                Err(fault) => return Err(fault.into()),
            }
            lab.pulse.beat();
        };
        let got = made * self.segment_bytes;
        let mut tell = |name: &str, value| seen.insert(name.to_owned(), value);
        tell("shown_free_bytes", json!(shown));
        tell("created_segments", json!(made));
        tell("short_bytes", json!(shown.saturating_sub(got)));
        if let Some(fault) = &failed {
            tell("create_fails_at", json!(fault.call));
            tell("create_fails_errno", json!(errno::name(fault.errno)));
            tell("postgres_create", json!(postgres::CREATE));
            let half = WalFile::open(folder, &temporary, rustix::fs::OFlags::empty());
            let half = half.ok().map(|file| file.stat()).transpose()?;
            tell("half_made", json!(half.is_some()));
            if let Some(stat) = half {
                tell("half_made_bytes", json!(stat.st_size));
                // As the server does.
                tell(
                    "half_made_unlink",
                    json!(answer(&folder.unlink(&temporary))),
                );
            }
        }
        // What they took goes to the ballast.
        for n in 0..made {
            folder.unlink(&self.name("seg", &format!("more-{n}")))?;
        }
        folder.syncfs()?;
        Ok(())
    }

    fn tell_walk(&self, failure: Option<&Failure>, writer: &Writer, seen: &mut Observations) {
        let mut tell = |name: &str, value| seen.insert(name.to_owned(), value);
        let whole = self.segments as u64 * self.segment_bytes;
        tell("reserved", json!(failure.is_none()));
        tell("prepared_bytes", json!(whole));
        tell("through_bytes", json!(writer.acked_bytes()));
        if let Some(failure) = failure {
            tell("fails_at", json!(failure.fault.call));
            tell("fails_errno", json!(errno::name(failure.fault.errno)));
            tell("fails_at_bytes", json!(failure.at_bytes));
            if let Some(second) = &failure.second_sync {
                tell("second_sync", json!(second));
            }
            tell("postgres_write", json!(postgres::write(failure.fault.call)));
        }
    }

    /// One line for people.
    fn line(seen: &Observations) -> String {
        let text = |name: &str| seen.get(name).and_then(|v| v.as_str()).unwrap_or("");
        let number = |name: &str| seen.get(name).and_then(serde_json::Value::as_u64);
        let place = match text("place") {
            "fill" => "on the filesystem itself".to_owned(),
            _ => format!("in a pocket ({})", text("place_what")),
        };
        let through = if seen.get("reserved") == Some(&json!(true)) {
            "written through on the full disk".to_owned()
        } else {
            format!(
                "{} fails with {} after {} of {} bytes",
                text("fails_at"),
                text("fails_errno"),
                number("fails_at_bytes").unwrap_or(0),
                number("prepared_bytes").unwrap_or(0)
            )
        };
        let lost = number("acked_lost").unwrap_or(0);
        let acked = number("acked_commits").unwrap_or(0);
        let create = match text("create_fails_at") {
            "" => String::new(),
            call => format!(
                "; making more fails at {call} ({})",
                text("create_fails_errno")
            ),
        };
        let on = match seen.get("recovers").and_then(serde_json::Value::as_bool) {
            Some(true) => "; goes on once a segment is freed",
            Some(false) => "; does NOT go on once a segment is freed",
            None => "",
        };
        format!("{place}: {through}; {lost} of {acked} acknowledged commits lost{create}{on}")
    }
}
