//! Without root: everything passes or is a skip with its reason.
//!
//! As root, the binary is copied to where everyone may run it and started as user 65534
//! (nobody); then this test binary itself is, with fewer kills. As an ordinary user the other
//! trials are that already.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use libtest_mimic::Trial;
use walprobe_probes::report::RowStatus;
use walprobe_test_support::bystanders::Bystanders;
use walprobe_test_support::command::run;
use walprobe_test_support::document::{Document, id};
use walprobe_test_support::process::{Invocation, copy_for_all};
use walprobe_test_support::work::{self, WorkFolder};
use walprobe_test_support::{Checked, Problem, guards, means, stale, trial};

use crate::refused::refused;
use crate::{LIMIT, TMP, exe};

const NOBODY: &str = "65534";

pub(crate) fn trials(_seed: u64) -> Vec<Trial> {
    vec![
        trial("user::all", all),
        trial("user::not-writable", not_writable),
        trial("user::safety", safety),
    ]
}

/// A place that an ordinary user can reach, and the binary in it.
struct Open {
    work: WorkFolder,
    exe: PathBuf,
}

impl Open {
    fn new() -> Checked<Self> {
        means::privileged("root")?;
        means::tool("setpriv")?;
        let base = [work::base(TMP), env::temp_dir(), "/var/tmp".into()]
            .into_iter()
            .find(|folder| everyone_may_pass(folder))
            .ok_or_else(|| Problem::missing("root", "no folder that everyone may pass"))?;
        stale::sweep(&base)?;
        let work = WorkFolder::new(&base)?;
        let exe = copy_for_all(&exe(), work.path())?;
        Ok(Self { work, exe })
    }

    fn as_nobody(program: &Path) -> Checked<Invocation> {
        Ok(Invocation::new(means::tool("setpriv")?)
            .arg(format!("--reuid={NOBODY}"))
            .arg(format!("--regid={NOBODY}"))
            .args(["--clear-groups", "--no-new-privs", "--"])
            .arg(program))
    }
}

fn everyone_may_pass(folder: &Path) -> bool {
    fs::create_dir_all(folder).is_ok()
        && folder.canonicalize().is_ok_and(|folder| {
            folder
                .ancestors()
                .all(|one| fs::metadata(one).is_ok_and(|metadata| metadata.mode() & 0o5 == 0o5))
        })
}

fn all() -> Checked {
    let open = Open::new()?;
    let dir = open.work.folder("dir")?;
    let bystanders = Bystanders::plant(&dir, &open.work.folder("elsewhere")?)?.owned_by(NOBODY)?;
    let finished = Open::as_nobody(&open.exe)?
        .arg("all")
        .arg(&dir)
        .args(["--profile", "quick", "--format", "json"])
        .run(LIMIT)?;
    finished.expect_code(0)?;
    let document = Document::read(&finished.stdout)?;
    // Also: no row that was not measured without its reason.
    document.check()?;
    guards::check(&document.report)?;
    let target = &document.report.targets[0];
    for row in &target.rows {
        if row.status == RowStatus::Fault {
            return Err(format!("{}: {:?}", id(row), row.reason).into());
        }
    }
    // It may make no filesystem of its own, and was not told to fill this one.
    let full = document.row("enospc/full/zero-fill");
    if full.and_then(|row| row.reason_code.as_deref()) != Some("need-root") {
        return Err(format!("enospc/full/zero-fill: {full:?}").into());
    }
    let measured = document.row("sync/commit/fdatasync");
    if !measured.is_some_and(|row| row.status == RowStatus::Ok) {
        return Err(format!("sync/commit/fdatasync: {measured:?}").into());
    }
    Ok(bystanders.untouched()?)
}

fn not_writable() -> Checked {
    let open = Open::new()?;
    let dir = open.work.folder("dir")?;
    let bystanders = Bystanders::plant(&dir, &open.work.folder("elsewhere")?)?;
    let finished = Open::as_nobody(&open.exe)?
        .arg("all")
        .arg(&dir)
        .args(["--profile", "quick", "--format", "json"])
        .run(LIMIT)?;
    refused(&finished)?;
    Ok(bystanders.untouched()?)
}

/// This very test, as an ordinary user.
fn safety() -> Checked {
    let open = Open::new()?;
    let test = copy_for_all(&env::current_exe()?, open.work.path())?;
    let base = open.work.folder("base")?;
    run("chown", &[NOBODY, &base.display().to_string()])?;
    let finished = Open::as_nobody(&test)?
        .args(["--skip", "user::"])
        .env("WALPROBE_TEST_EXE", &open.exe)
        .env("WALPROBE_TEST_DIR", &base)
        .env("WALPROBE_TEST_KILLS", "3")
        .env("WALPROBE_REQUIRE", "")
        .run(Duration::from_secs(900))?;
    let output = String::from_utf8_lossy(&finished.stdout);
    finished
        .expect_code(0)
        .map_err(|error| format!("{error}\n{output}"))?;
    if output.contains("ignored\n") {
        return Err(format!("a skip without its reason:\n{output}").into());
    }
    Ok(())
}
