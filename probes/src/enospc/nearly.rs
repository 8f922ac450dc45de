//! Commits while the disk gets full: does it get slower and slower?

use serde_json::json;

use super::{
    ballast::{Ballast, free_bytes, is_full},
    full::PAGE,
    place::{MARK, Place},
    postgres,
    through::slow,
};
use crate::{
    contract::{Lab, Observations, Series, Stop, Study},
    engine::lap::Lap,
    files::WalFile,
    segment::{Init, Maker},
    sys::{buffer::Buffer, errno},
};

/// The series of its commits.
pub(super) const SERIES: Series = "commit";

/// See the module docs.
pub(super) struct Nearly {
    pub(super) case: String,
    pub(super) free_pct: u64,
    pub(super) segment_bytes: u64,
    pub(super) commits: u64,
    pub(super) limit_ns: u64,
}

impl Study for Nearly {
    fn run(
        &mut self,
        lab: &mut Lab<'_>,
        lap: &mut Lap<'_>,
        seen: &mut Observations,
    ) -> Result<(), Stop> {
        let place = Place::open(&self.case, lab)?;
        let outcome = self.fill(&place, lab, lap, seen);
        place.believe(outcome, seen)
    }
}

impl Nearly {
    fn fill(
        &self,
        place: &Place<'_>,
        lab: &mut Lab<'_>,
        lap: &mut Lap<'_>,
        seen: &mut Observations,
    ) -> Result<(), Stop> {
        place.tell(seen);
        let folder = place.folder();
        let seed = lab.request.seed;
        let maker = Maker::new(
            folder.folder()?,
            self.segment_bytes,
            self.segment_bytes,
            PAGE,
            seed,
        );
        let (tmp, name) = (format!("tmp{MARK}new"), format!("seg{MARK}0"));
        lab.hooks.charge(self.segment_bytes + self.commits * PAGE)?;
        maker.create(Init::ZeroFill, &tmp, &name, lab.pulse)?;
        let vfs = folder.statvfs()?;
        // As df(1) counts: of what is used and what this user may have.
        let used = vfs.f_blocks.saturating_sub(vfs.f_bfree);
        let wanted = (used + vfs.f_bavail).saturating_mul(vfs.f_frsize) / 100 * self.free_pct;
        let free = free_bytes(folder)?;
        if free < wanted {
            let why = format!("{free} bytes are free, which is less than {wanted} already");
            return Err(Stop::Skip("space", why));
        }
        let mut ballast = Ballast::create(folder, &format!("file{MARK}ballast"), seed ^ 1)?;
        ballast.leave(wanted, lab)?;
        if ballast.late {
            return Err(slow(0));
        }
        folder.syncfs()?;
        let file = WalFile::open(folder, &name, rustix::fs::OFlags::empty())?;
        seen.insert("free_bytes".to_owned(), json!(free_bytes(folder)?));
        self.commits(&file, lab, lap, seen)
    }

    fn commits(
        &self,
        file: &WalFile,
        lab: &Lab<'_>,
        lap: &mut Lap<'_>,
        seen: &mut Observations,
    ) -> Result<(), Stop> {
        let mut page = Buffer::new(PAGE as usize, 4096);
        page.fill_incompressible(lab.request.seed);
        let until = lab.clock.now_ns() + self.limit_ns;
        lap.leg(SERIES, 1.0);
        let mut done = 0;
        let mut late = false;
        while done < self.commits {
            if lap.interrupted() {
                return Err(Stop::Interrupted);
            }
            late = lab.clock.now_ns() > until;
            if late {
                break;
            }
            let offset = done * PAGE % self.segment_bytes;
            page.stamp(done + 1);
            lap.start();
            let written = file.pwrite_all(&page, offset);
            lap.mark("write");
            let synced = written.and_then(|()| file.fdatasync());
            lap.mark("sync");
            match synced {
                Ok(()) => {
                    lap.done();
                    lap.wal(PAGE);
                    lap.wrote(PAGE);
                    lap.synced(1);
                    done += 1;
                }
                // Full before its time: the row says where.
                Err(fault) if is_full(fault.errno) => {
                    seen.insert("fails_at".to_owned(), json!(fault.call));
                    seen.insert("fails_errno".to_owned(), json!(errno::name(fault.errno)));
                    seen.insert("fails_at_bytes".to_owned(), json!(done * PAGE));
                    let told = postgres::write(fault.call);
                    seen.insert("postgres_write".to_owned(), json!(told));
                    break;
                }
                Err(fault) => return Err(fault.into()),
            }
        }
        lap.leg("", 0.0);
        seen.insert("commits".to_owned(), json!(done));
        seen.insert("ended_by_time".to_owned(), json!(late));
        if late && done == 0 {
            return Err(slow(0));
        }
        Ok(())
    }
}
