//! Mounts and unmounts it. The program that mounts it also serves it: when that dies, its end
//! of `/dev/fuse` closes and the kernel ends every call that waits; what is left then is a
//! dead mount point, which unmounts at once.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use fuser::{BackgroundSession, Config, Session, SessionACL};
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags};

use crate::answer::{Answers, Held, Shared, lock};
use crate::disk::Disk;
use crate::script::Script;
use crate::state::{Counts, State};

/// A mounted filesystem; unmounted when dropped.
#[derive(Debug)]
pub struct Faultfs {
    point: PathBuf,
    /// Its directory below `/sys/fs/fuse/connections`.
    connection: PathBuf,
    state: Shared,
    held: Arc<Mutex<Held>>,
    session: Option<BackgroundSession>,
}

impl Faultfs {
    /// Mounts it. With a block device, of type `fuseblk`: data goes to that device when it is
    /// synced, with a flush; without, of type `fuse`, with all data in memory.
    ///
    /// # Errors
    /// `/dev/fuse`, the device or mount(2) refuses.
    pub fn mount(script: Script, point: &Path, device: Option<&Path>) -> Result<Self, String> {
        let disk = Disk::new(device, script.size_bytes)?;
        let state = Arc::new(Mutex::new(State::new(script, disk)));
        let held = Arc::default();
        let fuse = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .map_err(|error| format!("cannot open /dev/fuse: {error}"))?;
        let (kind, source) = match device {
            Some(device) => ("fuseblk.faultfs", device),
            None => ("fuse.faultfs", Path::new("faultfs")),
        };
        let mut options = format!(
            "fd={},rootmode=40755,user_id=0,group_id=0,default_permissions,allow_other",
            fuse.as_raw_fd()
        );
        if device.is_some() {
            options.push_str(",blksize=4096");
        }
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        nix::mount::mount(
            Some(source),
            point,
            Some(kind),
            flags,
            Some(options.as_str()),
        )
        .map_err(|errno| format!("cannot mount {kind} on {}: {errno}", point.display()))?;
        // From here on a failure must unmount; the session answers the kernel's first request.
        let mut mounted = Self {
            point: point.to_owned(),
            connection: PathBuf::new(),
            state: Arc::clone(&state),
            held: Arc::clone(&held),
            session: None,
        };
        let answers = Answers::new(state, held);
        let session = Session::from_fd(
            answers,
            OwnedFd::from(fuse),
            SessionACL::All,
            Config::default(),
        )
        .and_then(Session::spawn)
        .map_err(|error| format!("cannot serve {}: {error}", point.display()))?;
        mounted.session = Some(session);
        mounted.connection = connection(point)?;
        Ok(mounted)
    }

    /// Where it is mounted.
    #[must_use]
    pub fn point(&self) -> &Path {
        &self.point
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        lock(&self.state).counts.clone()
    }

    /// All records are cold from now on.
    pub fn drop_caches(&self) {
        lock(&self.state).drop_caches();
    }

    /// Another script from now on. Calls are counted on; sizes stay.
    pub fn follow(&self, script: Script) {
        lock(&self.state).script = script;
    }

    /// What a crash now would leave: files with the content that an honoured sync has made
    /// durable, under the names that an honoured sync of their directory has.
    #[must_use]
    pub fn durable(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        lock(&self.state).tree.durable()
    }

    /// What is written there now, durable or not; none where there is no such file.
    #[must_use]
    pub fn live(&self, path: &Path) -> Option<Vec<u8>> {
        let state = &mut *lock(&self.state);
        let number = state.tree.at(path).ok()?;
        let image = state.tree.image(number).ok()?;
        Some(image.read(0, image.len()).to_vec())
    }

    /// Answers the calls that hang, with EIO; it goes on serving.
    pub fn let_go(&self) {
        lock(&self.state).counts.hanging = 0;
        *lock(&self.held) = Held::default();
    }

    /// Ends every call that waits for an answer, also the hanging ones, and serves no more:
    /// from now on every call fails with ENOTCONN.
    ///
    /// # Errors
    /// The kernel's abort file cannot be written.
    pub fn abort(&self) -> Result<(), String> {
        let path = self.connection.join("abort");
        fs::write(&path, "1").map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    /// Unmounts it.
    ///
    /// # Errors
    /// umount(2) refuses.
    pub fn unmount(mut self) -> Result<(), String> {
        self.end()
    }

    fn end(&mut self) -> Result<(), String> {
        let Some(session) = self.session.take() else {
            return unmounted(&self.point);
        };
        // Whoever still waits for an answer would keep it busy.
        let is_hanging = lock(&self.state).counts.hanging > 0;
        let aborted = if is_hanging { self.abort() } else { Ok(()) };
        let done = unmounted(&self.point);
        *lock(&self.held) = Held::default();
        if done.is_err() {
            // The thread ends with the process: it still has something to serve.
            drop(session);
            return done;
        }
        session
            .join()
            .map_err(|error| format!("serving {}: {error}", self.point.display()))?;
        aborted
    }
}

impl Drop for Faultfs {
    fn drop(&mut self) {
        if (self.session.is_some() || is_mounted(&self.point))
            && let Err(error) = self.end()
        {
            eprintln!("left behind: {error}");
        }
    }
}

/// Unmounts; lazily, where something still uses it, and says so.
fn unmounted(point: &Path) -> Result<(), String> {
    let say = |errno| format!("cannot unmount {}: {errno}", point.display());
    // A dying process may still hold something there.
    let mut last = Ok(());
    for _ in 0..100 {
        last = nix::mount::umount(point);
        if last != Err(Errno::EBUSY) {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    last.or_else(|errno| {
        nix::mount::umount2(point, MntFlags::MNT_DETACH).map_err(say)?;
        Err(format!("{} (unmounted lazily)", say(errno)))
    })
}

fn is_mounted(point: &Path) -> bool {
    let device = |path: &Path| fs::symlink_metadata(path).map(|is| is.dev());
    match (device(point), point.parent().map(device)) {
        (Ok(own), Some(Ok(above))) => own != above,
        // A dead mount point cannot be asked.
        (Err(error), _) => error.kind() == io::ErrorKind::NotConnected,
        _ => false,
    }
}

/// The connection's directory is named by the minor number of the anonymous device, or of a
/// `fuseblk` by its whole number.
fn connection(point: &Path) -> Result<PathBuf, String> {
    let say = |error: io::Error| format!("cannot stat {}: {error}", point.display());
    let device = fs::symlink_metadata(point).map_err(say)?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    // The kernel's own numbering: 12 bits, then 20.
    let number = u64::from(major) << 20 | u64::from(minor);
    let path = Path::new("/sys/fs/fuse/connections").join(number.to_string());
    if path.is_dir() || mount_control() && path.is_dir() {
        Ok(path)
    } else {
        Err(format!("{} is not there", path.display()))
    }
}

/// The control filesystem is mounted by most systems at boot; here, if it is not.
fn mount_control() -> bool {
    let point = Path::new("/sys/fs/fuse/connections");
    nix::mount::mount(
        Some("fusectl"),
        point,
        Some("fusectl"),
        MsFlags::empty(),
        None::<&str>,
    )
    .is_ok()
}
