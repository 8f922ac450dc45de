//! Makes, mounts and undoes a filesystem of our own.
//!
//! Each step (loop device, mount) is noted as soon as it is made and undone in
//! reverse order when [`Mounted`] is dropped, also after a panic: thaw, unmount,
//! detach, remove. [`Mounted::undo`] does the same and reports. The device lock is
//! held from before the first step until after the last.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::command::run;
use crate::lock::DeviceLock;
use crate::loops::{attach, detach};
use crate::means::{self, Checked, Problem};
pub(crate) use crate::mount_table::fuse_devices_below;
pub use crate::mount_table::mount_points_below;
use crate::recipe::{Base, Kind, Recipe};
use crate::stale;
use crate::stopwatch::poll;
use crate::work::WorkFolder;

/// A mounted filesystem of a trial's own.
#[derive(Debug)]
pub struct Mounted {
    steps: Vec<Step>,
    point: PathBuf,
    device: Option<String>,
    // In this order: the folder goes before the lock.
    work: WorkFolder,
    _lock: DeviceLock,
}

#[derive(Debug)]
enum Step {
    Mount(PathBuf),
    Loop { device: String, image: PathBuf },
}

impl Mounted {
    /// Makes and mounts what the recipe says, in a new work folder under `base`.
    ///
    /// # Errors
    /// A missing means, or a step that failed; what was made before it is undone.
    pub fn new(base: &Path, recipe: &Recipe) -> Checked<Self> {
        possible(recipe)?;
        let lock = DeviceLock::acquire()?;
        stale::sweep(base)?;
        let work = WorkFolder::new(base)?;
        if recipe.on == Base::Disk && recipe.kind != Kind::Tmpfs && in_memory(work.path())? {
            return Err(Problem::missing(
                "loop",
                format!(
                    "{} is in memory: set WALPROBE_TEST_DIR to a folder on a disk",
                    base.display()
                ),
            ));
        }
        let point = work.folder("mnt")?;
        let mut mounted = Self {
            steps: Vec::new(),
            point,
            device: None,
            work,
            _lock: lock,
        };
        mounted.build(recipe)?;
        Ok(mounted)
    }

    fn build(&mut self, recipe: &Recipe) -> Result<(), String> {
        let point = self.point.clone();
        let options = recipe.mount.as_deref();
        match recipe.kind {
            Kind::Tmpfs => {
                let size = format!("size={},mode=755", recipe.size_bytes);
                self.mount("tmpfs", "tmpfs", &point, Some(&join(&size, options)))
            }
            Kind::Overlay => {
                let disk = self.work.folder("disk")?;
                let below = Recipe {
                    kind: Kind::Ext4,
                    ..recipe.clone()
                };
                let device = self.make_device(&below)?;
                self.mount("ext4", &device, &disk, None)?;
                let folder = |name: &str| -> Result<String, String> {
                    let path = disk.join(name);
                    fs::create_dir(&path)
                        .map_err(|error| format!("cannot make {}: {error}", path.display()))?;
                    Ok(path.display().to_string())
                };
                let layers = format!(
                    "lowerdir={},upperdir={},workdir={}",
                    folder("lower")?,
                    folder("upper")?,
                    folder("work")?
                );
                self.mount("overlay", "overlay", &point, Some(&join(&layers, options)))
            }
            // `possible` refused it.
            Kind::Zfs => Err("ZFS is made in the lab".to_owned()),
            Kind::Ext4 | Kind::Xfs | Kind::Btrfs => {
                let device = self.make_device(recipe)?;
                self.mount(recipe.kind.name(), &device, &point, options)
            }
        }
    }

    /// An image, its loop device, and a filesystem on it.
    fn make_device(&mut self, recipe: &Recipe) -> Result<String, String> {
        let folder = match recipe.on {
            Base::Disk => self.work.path().to_path_buf(),
            Base::Tmpfs => {
                let folder = self.work.folder("memory")?;
                self.mount("tmpfs", "tmpfs", &folder, Some("size=90%"))?;
                folder
            }
            Base::Small(bytes) => {
                let folder = self.work.folder("small")?;
                let device = self.attach_new(&self.work.path().join("small-image"), bytes)?;
                // No journal and nothing reserved: what is free is free for the image.
                let options = ["-q", "-F", "-m", "0", "-O", "^has_journal", &device];
                run("mkfs.ext4", &options)?;
                self.mount("ext4", &device, &folder, None)?;
                folder
            }
        };
        let device = self.attach_new(&folder.join("image"), recipe.size_bytes)?;
        // Nothing may be left to do in the background: its writes would be counted as the
        // measured program's.
        let (program, always): (&str, &[&str]) = match recipe.kind {
            Kind::Xfs => ("mkfs.xfs", &["-q", "-f", "-K"]),
            Kind::Btrfs => ("mkfs.btrfs", &["-q", "-f", "-K"]),
            _ => (
                "mkfs.ext4",
                &[
                    "-q",
                    "-F",
                    "-E",
                    "lazy_itable_init=0,lazy_journal_init=0,nodiscard",
                ],
            ),
        };
        let mut arguments: Vec<&str> = always.to_vec();
        arguments.extend(recipe.mkfs.iter().map(String::as_str));
        arguments.push(&device);
        run(program, &arguments)?;
        self.device = Some(device.clone());
        Ok(device)
    }

    /// A sparse image and its loop device.
    fn attach_new(&mut self, image: &Path, bytes: u64) -> Result<String, String> {
        File::create_new(image)
            .and_then(|file| file.set_len(bytes))
            .map_err(|error| format!("cannot make {}: {error}", image.display()))?;
        let device = attach(image)?;
        self.steps.push(Step::Loop {
            device: device.clone(),
            image: image.to_path_buf(),
        });
        Ok(device)
    }

    fn mount(
        &mut self,
        kind: &str,
        source: &str,
        point: &Path,
        options: Option<&str>,
    ) -> Result<(), String> {
        let point_text = point.display().to_string();
        let mut arguments = vec!["-t", kind];
        if let Some(options) = options {
            arguments.extend(["-o", options]);
        }
        arguments.extend([source, &point_text]);
        run("mount", &arguments)?;
        self.steps.push(Step::Mount(point.to_path_buf()));
        Ok(())
    }

    /// The mount point.
    #[must_use]
    pub fn point(&self) -> &Path {
        &self.point
    }

    /// The work folder, outside the mounted filesystem.
    #[must_use]
    pub fn work(&self) -> &Path {
        self.work.path()
    }

    /// The filesystem's loop device, as `/dev/loop0`; none for tmpfs.
    #[must_use]
    pub fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }

    /// Mounts again with other options.
    ///
    /// # Errors
    /// mount refuses.
    pub fn remount(&self, options: &str) -> Result<(), String> {
        let options = format!("remount,{options}");
        run(
            "mount",
            &["-o", &options, &self.point.display().to_string()],
        )
        .map(drop)
    }

    /// Unmounts it and mounts it anew, as after a repair.
    ///
    /// # Errors
    /// umount or mount refuses.
    pub fn again(&self, kind: Kind) -> Result<(), String> {
        let device = self.device.as_deref().ok_or("no loop device")?;
        let point = self.point.display().to_string();
        unmount(&self.point)?;
        run("mount", &["-t", kind.name(), device, &point]).map(drop)
    }

    /// Freezes the filesystem: from now on a write to it does not return, and no
    /// signal ends the call.
    ///
    /// # Errors
    /// fsfreeze refuses.
    pub fn freeze(&self) -> Result<Frozen, String> {
        // The guard first: a freeze that is half done is thawed too.
        let frozen = Frozen(self.point.clone());
        run("fsfreeze", &["--freeze", &self.point.display().to_string()])?;
        Ok(frozen)
    }

    /// Undoes everything, and says what could not be undone.
    ///
    /// # Errors
    /// A mount or loop device that is still there.
    pub fn undo(mut self) -> Result<(), String> {
        let problems = self.undo_steps();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems.join("; "))
        }
    }

    fn undo_steps(&mut self) -> Vec<String> {
        let mut problems = Vec::new();
        while let Some(step) = self.steps.pop() {
            let undone = match step {
                Step::Mount(point) => unmount(&point),
                Step::Loop { device, image } => detach(&device, &image),
            };
            problems.extend(undone.err());
        }
        problems
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        for problem in self.undo_steps() {
            eprintln!("left behind: {problem}");
        }
    }
}

/// A frozen filesystem; thawed when dropped.
#[derive(Debug)]
pub struct Frozen(PathBuf);

impl Frozen {
    /// Thaws it.
    pub fn thaw(self) {}
}

impl Drop for Frozen {
    fn drop(&mut self) {
        thaw(&self.0);
    }
}

/// Thaws the filesystem; nothing happens where it is not frozen.
pub fn thaw(point: &Path) {
    let _ = run("fsfreeze", &["--unfreeze", &point.display().to_string()]);
}

/// Everything the recipe needs is there.
fn possible(recipe: &Recipe) -> Checked {
    means::loop_devices()?;
    means::kernel_filesystem(recipe.kind.name())?;
    match recipe.kind {
        Kind::Ext4 | Kind::Overlay => means::tool("mkfs.ext4").map(drop),
        Kind::Xfs => means::tool("mkfs.xfs").map(drop),
        Kind::Btrfs => means::tool("mkfs.btrfs").map(drop),
        Kind::Tmpfs => Ok(()),
        Kind::Zfs => Err("ZFS is made in the lab".into()),
    }
}

fn in_memory(path: &Path) -> Result<bool, String> {
    const RAMFS: u64 = 0x8584_58f6;
    let magic = magic(path)?;
    Ok(magic == Kind::Tmpfs.magic() || magic == RAMFS)
}

/// The type of the filesystem that `path` lies on, as statfs(2) says.
///
/// # Errors
/// statfs fails.
pub fn magic(path: &Path) -> Result<u64, String> {
    let statfs = rustix::fs::statfs(path)
        .map_err(|error| format!("cannot statfs {}: {error}", path.display()))?;
    // The field's width and sign differ by platform; the types are 32 bits.
    Ok(statfs.f_type as u64 & 0xffff_ffff)
}

fn join(first: &str, then: Option<&str>) -> String {
    then.map_or_else(|| first.to_owned(), |then| format!("{first},{then}"))
}

/// Unmounts; waits for a dying process, and in the end unmounts lazily and says so.
pub(crate) fn unmount(point: &Path) -> Result<(), String> {
    let text = point.display().to_string();
    thaw(point);
    let mut last = String::new();
    let done = poll(Duration::from_secs(10), || {
        run("umount", &[&text]).map_err(|error| last = error).ok()
    });
    if done.is_some() {
        return Ok(());
    }
    let lazily = run("umount", &["--lazy", &text]);
    Err(match lazily {
        Ok(_) => format!("{last} (unmounted lazily)"),
        Err(_) => last,
    })
}
