//! OpenZFS in an emulated machine: `tests/lab/boot` starts it, runs a command, ends it.
//!
//! Its temporary files lie in the trial's work folder. Killed, it ends with everything that it
//! started; what it left is swept with the work folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::{Finished, Invocation};
use crate::work::WorkFolder;
use crate::{Checked, Problem};

/// What `tests/lab/boot` ends with where there is no image or no qemu.
const MISSING: i32 = 127;
/// What it ends with where the time was over.
const LATE: i32 = 124;
/// For its way down after the machine's own limit.
const GRACE: Duration = Duration::from_secs(30);

/// The machine: its scripts, and what it is told.
#[derive(Clone, Debug)]
pub struct Lab {
    scripts: PathBuf,
    options: Vec<String>,
}

impl Lab {
    /// By the scripts in `scripts` (the project's `tests/lab`).
    #[must_use]
    pub fn new(scripts: impl Into<PathBuf>) -> Self {
        Self {
            scripts: scripts.into(),
            options: Vec::new(),
        }
    }

    /// With an option of `boot` and its value.
    #[must_use]
    pub fn option(mut self, name: &str, value: impl ToString) -> Self {
        self.options.extend([name.to_owned(), value.to_string()]);
        self
    }

    /// Runs a command there, in `share`, which it sees as `/share`. The machine's own console goes
    /// into the file `console` of the work folder.
    ///
    /// # Errors
    /// A missing means `zfs`; or it did not come back in time.
    pub fn run(
        &self,
        work: &WorkFolder,
        share: &Path,
        command: &[&str],
        limit: Duration,
    ) -> Checked<Finished> {
        let console = work.path().join("console");
        // Killed ourselves, we take it with us: it ends the machine and removes its folder.
        let finished = Invocation::new("setpriv")
            .args(["--pdeathsig", "TERM", "--"])
            .arg(self.scripts.join("boot"))
            .args(&self.options)
            .args(["--seconds", &limit.as_secs().to_string()])
            .arg("--share")
            .arg(share)
            .arg("--console")
            .arg(&console)
            .arg("--")
            .args(command)
            .env("TMPDIR", work.path())
            .run(limit + GRACE)?;
        match finished.status.code() {
            Some(MISSING) => Err(Problem::missing("zfs", finished.stderr.trim_end())),
            Some(LATE) => {
                let said = fs::read_to_string(&console).unwrap_or_default();
                Err(format!("{}\nconsole: {said}", finished.stderr.trim_end()).into())
            }
            _ => Ok(finished),
        }
    }
}
