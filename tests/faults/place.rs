//! A mounted test filesystem in a work folder, with the loop device below it if it has one.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use walprobe_faultfs::{Faultfs, Script};
use walprobe_test_support::document::Document;
use walprobe_test_support::lock::DeviceLock;
use walprobe_test_support::process::{Finished, Invocation, binary};
use walprobe_test_support::work::{self, WorkFolder};
use walprobe_test_support::{Checked, loops, means, stale};

use crate::TMP;

/// After this a command that should have come back has not.
pub(crate) const LIMIT: Duration = Duration::from_secs(240);
const IMAGE_BYTES: usize = 192 << 20;

/// Undone when dropped, in the order of its fields: unmounted, detached, removed.
pub(crate) struct Place {
    pub(crate) faultfs: Faultfs,
    device: Option<Attached>,
    pub(crate) work: WorkFolder,
    _lock: Option<DeviceLock>,
}

impl Place {
    /// Mounts it, on a loop device if flushes are to be counted.
    pub(crate) fn new(script: &str, on_device: bool) -> Checked<Self> {
        means::fuse()?;
        let lock = if on_device {
            means::loop_devices()?;
            Some(DeviceLock::acquire()?)
        } else {
            None
        };
        let base = work::base(TMP);
        stale::sweep(&base)?;
        let work = WorkFolder::new(&base)?;
        let device = on_device
            .then(|| Attached::new(work.path().join("image")))
            .transpose()?;
        let point = work.folder("mnt")?;
        let script = Script::parse(script).map_err(|error| format!("the script: {error}"))?;
        let below = device.as_ref().map(|attached| Path::new(&attached.device));
        let faultfs = Faultfs::mount(script, &point, below)?;
        Ok(Self {
            faultfs,
            device,
            work,
            _lock: lock,
        })
    }

    pub(crate) fn point(&self) -> &Path {
        self.faultfs.point()
    }

    /// The loop device below it.
    pub(crate) fn device(&self) -> Option<&str> {
        self.device
            .as_ref()
            .map(|attached| attached.device.as_str())
    }

    /// `walprobe clean`, on it.
    pub(crate) fn walprobe_clean(&self) -> Invocation {
        Invocation::new(binary(env!("CARGO_BIN_EXE_walprobe")))
            .arg("clean")
            .arg(self.point())
    }

    /// walprobe with these arguments, on it.
    pub(crate) fn walprobe(&self, arguments: &[&str]) -> Invocation {
        Invocation::new(binary(env!("CARGO_BIN_EXE_walprobe")))
            .args(arguments)
            .args(["--seed", "7", "--format", "json"])
            .arg(self.point())
    }

    /// Undoes everything, and says what could not be undone.
    pub(crate) fn undo(self) -> Result<(), String> {
        let Self {
            faultfs,
            device,
            work: _work,
            _lock,
        } = self;
        faultfs.unmount()?;
        device.map_or(Ok(()), |attached| attached.detach())
    }
}

/// The report of a run that ended as it should, and is whole.
pub(crate) fn document(finished: &Finished, code: i32) -> Result<Document, String> {
    finished.expect_code(code)?;
    let document = Document::read(&finished.stdout)?;
    document.check()?;
    Ok(document)
}

/// A loop device on an image whose blocks are all there: a sync of it then writes no metadata.
struct Attached {
    device: String,
    image: PathBuf,
}

impl Attached {
    fn new(image: PathBuf) -> Result<Self, String> {
        let zeros = vec![0; 1 << 20];
        let made = File::create_new(&image).and_then(|mut file| {
            (0..IMAGE_BYTES / zeros.len()).try_for_each(|_| file.write_all(&zeros))?;
            file.sync_all()
        });
        made.map_err(|error| format!("cannot make {}: {error}", image.display()))?;
        let device = loops::attach(&image)?;
        Ok(Self { device, image })
    }

    fn detach(&self) -> Result<(), String> {
        loops::detach(&self.device, &self.image)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Err(error) = self.detach() {
            eprintln!("left behind: {error}");
        }
    }
}
