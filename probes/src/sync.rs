#![doc = include_str!("../../docs/probes/sync.md")]

use rustix::fs::OFlags;
use serde_json::json;

use crate::{
    contract::{
        Card, Case, Comparison, Fault, Group, Lab, Observations, Probe, Run, Stop, Study, Trial,
    },
    engine::lap::Lap,
    facts::Facts,
    files::{FILL_BYTES, O_DSYNC, O_SYNC, PAGE_BYTES, WalFile, durable_rename},
    folder::Folder,
    request::Request,
    sys::{buffer::Buffer, errno},
};

/// What is walked: fully written, then begun again as the next segment.
const FILE_BYTES: u64 = 4 << 20;
/// WAL a commit by default.
const COMMIT_BYTES: u64 = 512;
/// Directory syncs of the behaviour case.
const DIRECTORY_SYNCS: u64 = 8;

/// Which wal_sync_method makes a commit durable soonest?
pub struct Sync;

static CARD: Card = Card {
    id: "sync",
    question: "which wal_sync_method makes a commit durable soonest?",
    needs: &[],
    page: include_str!("../../docs/probes/sync.md"),
};

/// The server's methods on Linux, the default first (issue_xlog_fsync, get_sync_bit).
const METHODS: [&str; 4] = ["fdatasync", "fsync", "open_datasync", "open_sync"];

impl Probe for Sync {
    fn card(&self) -> &'static Card {
        &CARD
    }

    fn plan(&self, request: &Request, _facts: &Facts) -> Vec<Group> {
        let commit_bytes = request.commit_bytes.unwrap_or(COMMIT_BYTES);
        let commit = |name: &str| Case {
            name: name.to_owned(),
            params: [
                ("commit_bytes", json!(commit_bytes)),
                ("file_bytes", json!(FILE_BYTES)),
            ]
            .into(),
            discard_ops: 4,
            op_bytes: pages(0, commit_bytes).1,
            file_bytes: FILE_BYTES,
            op_syncs: 1,
            ..Case::default()
        };
        vec![
            Group {
                probe: CARD.id,
                weight: 2.0,
                cases: METHODS.iter().map(|m| commit(m)).collect(),
                compare: vec![Comparison::judged("commit", "commit", METHODS[0])],
            },
            Group {
                probe: CARD.id,
                weight: 0.0,
                cases: vec![Case {
                    name: "directory-fsync".to_owned(),
                    params: [("syncs", json!(DIRECTORY_SYNCS))].into(),
                    op_bytes: DIRECTORY_SYNCS * PAGE_BYTES,
                    op_syncs: 4 * DIRECTORY_SYNCS,
                    ..Case::default()
                }],
                compare: vec![Comparison::plain("behaviour", "sync")],
            },
        ]
    }

    fn open(&self, case: &Case, lab: &mut Lab<'_>) -> Result<Run, Stop> {
        let folder = lab.scratch()?.folder()?;
        if case.name == "directory-fsync" {
            lab.hooks.charge(case.op_bytes)?;
            return Ok(Run::Once(Box::new(DirectoryFsync { folder })));
        }
        let (flags, sync) = match case.name.as_str() {
            "fdatasync" => (OFlags::empty(), Method::Fdatasync),
            "fsync" => (OFlags::empty(), Method::Fsync),
            "open_datasync" => (O_DSYNC, Method::Open),
            "open_sync" => (O_SYNC, Method::Open),
            other => return Err(Stop::Broken(format!("no method {other}"))),
        };
        lab.hooks.charge(FILE_BYTES)?;
        let name = format!("seg-sync-{}", case.name);
        {
            let file = WalFile::create(&folder, &name)?;
            file.zero_fill(FILE_BYTES, &vec![0; FILL_BYTES as usize], lab.pulse)?;
            file.fsync()?;
        }
        let commit_bytes = case.params["commit_bytes"].as_u64().unwrap_or(COMMIT_BYTES);
        // A record may touch one page more than its length says.
        let mut content = Buffer::new(
            (commit_bytes.next_multiple_of(PAGE_BYTES) + PAGE_BYTES) as usize,
            4096,
        );
        content.fill_incompressible(lab.request.seed);
        Ok(Run::Alone(Box::new(Commit {
            file: WalFile::open(&folder, &name, flags)?,
            folder,
            name,
            sync,
            commit_bytes,
            insert_at: 0,
            content,
            written: 0,
        })))
    }
}

#[derive(Clone, Copy)]
enum Method {
    Fdatasync,
    Fsync,
    Open,
}

/// Walks a segment as XLogWrite does: each commit writes the whole pages its record touches in one
/// pwrite, so the tail page is written again until it is full.
struct Commit {
    file: WalFile,
    folder: Folder,
    name: String,
    sync: Method,
    commit_bytes: u64,
    insert_at: u64,
    content: Buffer,
    written: u64,
}

/// Start and length of the whole pages that `bytes` of WAL from `at` on touch.
fn pages(at: u64, bytes: u64) -> (u64, u64) {
    let start = at / PAGE_BYTES * PAGE_BYTES;
    ((start), (at + bytes).next_multiple_of(PAGE_BYTES) - start)
}

impl Trial for Commit {
    fn op(&mut self, lap: &mut Lap<'_>) -> Result<(), Fault> {
        if self.insert_at + self.commit_bytes > FILE_BYTES {
            self.insert_at = 0;
        }
        let (start, length) = pages(self.insert_at, self.commit_bytes);
        self.insert_at += self.commit_bytes;
        self.written += 1;
        self.content.stamp(self.written);
        let content = &self.content[..length as usize];
        lap.leg("commit", 1.0);
        lap.start();
        self.file.pwrite_all(content, start)?;
        lap.mark("write");
        match self.sync {
            Method::Fdatasync => {
                self.file.fdatasync()?;
                lap.mark("sync");
            }
            Method::Fsync => {
                self.file.fsync()?;
                lap.mark("sync");
            }
            Method::Open => {}
        }
        lap.done();
        lap.wal(self.commit_bytes);
        lap.wrote(length);
        lap.synced(1);
        Ok(())
    }

    fn close(&mut self, _lab: &mut Lab<'_>) -> Result<(), Stop> {
        Ok(self.folder.unlink(&self.name)?)
    }
}

/// Is fsync of a directory accepted? PostgreSQL needs it after each rename; it forgives EBADF and
/// EINVAL (fsync_fname_ext), nothing else.
struct DirectoryFsync {
    folder: Folder,
}

impl Study for DirectoryFsync {
    fn run(
        &mut self,
        _lab: &mut Lab<'_>,
        lap: &mut Lap<'_>,
        seen: &mut Observations,
    ) -> Result<(), Stop> {
        for n in 0..DIRECTORY_SYNCS {
            if lap.interrupted() {
                return Err(Stop::Interrupted);
            }
            let name = format!("file-directory-{n}");
            WalFile::create(&self.folder, &format!("tmp-directory-{n}"))?;
            self.folder.rename(&format!("tmp-directory-{n}"), &name)?;
            lap.leg("sync", 1.0);
            lap.start();
            let outcome = self.folder.sync_dir();
            lap.mark("sync");
            match outcome {
                Ok(()) => {
                    lap.done();
                    lap.synced(1);
                }
                Err(fault) => {
                    seen.insert("accepted".to_owned(), json!(false));
                    seen.insert("fails_errno".to_owned(), json!(errno::name(fault.errno)));
                    let forgiven = matches!(fault.errno, libc::EBADF | libc::EINVAL);
                    seen.insert("postgres_tolerates".to_owned(), json!(forgiven));
                    self.folder.unlink(&name)?;
                    return Err(fault.into());
                }
            }
            lap.leg("", 0.0);
            self.folder.unlink(&name)?;
        }
        seen.insert("accepted".to_owned(), json!(true));
        let name = "file-directory-renamed";
        WalFile::create(&self.folder, "tmp-directory")?;
        durable_rename(&self.folder, "tmp-directory", name)?;
        self.folder.unlink(name)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::pages;

    #[test]
    fn a_commit_writes_the_whole_pages_it_touches() {
        assert_eq!(pages(0, 512), (0, 8192));
        assert_eq!(pages(7680, 512), (0, 8192));
        assert_eq!(pages(8192, 512), (8192, 8192));
        assert_eq!(pages(8000, 512), (0, 16384));
        assert_eq!(pages(0, 65536), (0, 65536));
    }
}
