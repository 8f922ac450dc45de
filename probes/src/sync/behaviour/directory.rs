//! fsync of a directory, and the durable rename that needs it.

use serde_json::json;

use crate::{
    contract::{Fault, Lab, Observations, Phase, Stop, Study},
    engine::lap::Lap,
    files::{WalFile, synced},
    folder::Folder,
    sys::errno,
};

use super::{RENAMES, SERIES};

/// What the server forgives of a directory's fsync (fsync_fname_ext); nothing else.
const FORGIVEN: [i32; 2] = [libc::EBADF, libc::EINVAL];

/// Is fsync of a directory accepted? PostgreSQL needs it after each rename.
pub(super) struct DirectoryFsync {
    pub(super) folder: Folder,
}

impl Study for DirectoryFsync {
    fn run(
        &mut self,
        _lab: &mut Lab<'_>,
        lap: &mut Lap<'_>,
        seen: &mut Observations,
    ) -> Result<(), Stop> {
        for n in 0..RENAMES {
            if lap.interrupted() {
                return Err(Stop::Interrupted);
            }
            let (tmp, name) = (format!("tmp-directory-{n}"), format!("file-directory-{n}"));
            WalFile::create_anew(&self.folder, &tmp)?.close()?;
            self.folder.rename(&tmp, &name)?;
            lap.leg(SERIES, 1.0);
            lap.start();
            let outcome = self.folder.sync_dir();
            lap.mark("sync");
            if let Err(fault) = outcome {
                seen.insert("accepted".to_owned(), json!(false));
                refused(&fault, seen);
                self.folder.unlink(&name)?;
                return Err(fault.into());
            }
            lap.done();
            lap.synced(1);
            lap.leg("", 0.0);
            self.folder.unlink(&name)?;
        }
        seen.insert("accepted".to_owned(), json!(true));
        Ok(())
    }
}

fn refused(fault: &Fault, seen: &mut Observations) {
    let forgiven = FORGIVEN.contains(&fault.errno);
    seen.insert("fails_errno".to_owned(), json!(errno::name(fault.errno)));
    seen.insert("postgres_tolerates".to_owned(), json!(forgiven));
}

/// The server's durable_rename, step by step.
pub(super) struct DurableRename {
    pub(super) folder: Folder,
}

impl DurableRename {
    /// The steps in their order; the first that fails, by name.
    fn steps(&self, old: &str, new: &str, lap: &mut Lap<'_>) -> Result<(), (Phase, Fault)> {
        let mut step = |phase: Phase, outcome: Result<(), Fault>| {
            lap.mark(phase);
            outcome.map_err(|fault| (phase, fault))
        };
        step("fsync_old", synced(&self.folder, old))?;
        step("rename", self.folder.rename(old, new))?;
        step("fsync_new", synced(&self.folder, new))?;
        step("fsync_directory", self.folder.sync_dir())
    }
}

impl Study for DurableRename {
    fn run(
        &mut self,
        _lab: &mut Lab<'_>,
        lap: &mut Lap<'_>,
        seen: &mut Observations,
    ) -> Result<(), Stop> {
        for n in 0..RENAMES {
            if lap.interrupted() {
                return Err(Stop::Interrupted);
            }
            let (tmp, name) = (format!("tmp-rename-{n}"), format!("file-rename-{n}"));
            let file = WalFile::create_anew(&self.folder, &tmp)?;
            file.pwrite_all(&[1; 512], 0)?;
            file.close()?;
            lap.leg(SERIES, 1.0);
            lap.start();
            if let Err((step, fault)) = self.steps(&tmp, &name, lap) {
                seen.insert("accepted".to_owned(), json!(false));
                seen.insert("fails_step".to_owned(), json!(step));
                refused(&fault, seen);
                return Err(fault.into());
            }
            lap.done();
            lap.wrote(512);
            lap.synced(3);
            lap.leg("", 0.0);
            self.folder.unlink(&name)?;
        }
        seen.insert("accepted".to_owned(), json!(true));
        Ok(())
    }
}
