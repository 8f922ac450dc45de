//! A ZFS dataset below the one that holds the directory, mounted in the scratch folder.
//!
//! It is `PARENT/walprobe-RUNID-PURPOSE` and carries the run's id as a user property from its
//! first moment (zfs-create(8) sets properties and makes the dataset in one step). The undo file
//! names it before it is made. `canmount=noauto`: neither a restart nor an import of the pool
//! mounts it where the scratch folder was. While `zfs` changes something it has the undo file as
//! its stdin, and so the run's lock: should walprobe be killed meanwhile, a `clean` waits for the
//! change to be done, and sees what it made.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::{OnceLock, PoisonError, RwLock},
    time::Duration,
};

use rustix::{
    fs::{AtFlags, Mode, OFlags},
    io::Errno,
};

use crate::{
    contract::{Fault, Pulse},
    folder::{Anchor, Folder},
    paths,
    program::{Failure, Program, find},
    scratch::{DATASET_PREFIX, Scratch},
    undo::{Action, Undo},
};

#[cfg(test)]
pub(crate) mod fake;
mod remove;
#[cfg(test)]
mod tests;

pub(crate) use remove::undo;

/// The user property that holds the run's id.
const RUN: &str = "walprobe:run";
/// A snapshot would keep the dataset from being destroyed; the usual tools look at this one.
const NO_SNAPSHOTS: &str = "com.sun:auto-snapshot=false";
/// The longest name (`ZFS_MAX_DATASET_NAME_LEN` less the NUL).
const NAME_BYTES: usize = 255;
/// What decides how a dataset writes and reads; a child has them from its parent.
const ALIKE: [&str; 17] = [
    "recordsize",
    "compression",
    "sync",
    "logbias",
    "primarycache",
    "secondarycache",
    "checksum",
    "copies",
    "dedup",
    "atime",
    "relatime",
    "special_small_blocks",
    "redundant_metadata",
    "direct",
    "prefetch",
    "dnodesize",
    "encryption",
];

/// A property: its value, and where that comes from (`local`, `default`, `inherited from ...`).
type Properties = BTreeMap<String, (String, String)>;

/// The program `zfs`.
#[derive(Debug)]
struct Zfs {
    path: PathBuf,
    limit: Duration,
}

impl Zfs {
    fn find(limit: Duration) -> Result<Self, Failure> {
        let path = program("zfs")?;
        Ok(Self { path, limit })
    }

    fn ask(&self, words: &[&str], pulse: &Pulse) -> Result<String, Failure> {
        Program::new(&self.path, self.limit)
            .args(words)
            .in_root()
            .not_stopped()
            .run(pulse)
    }

    /// Changes something, the lock of `log` held until it is done.
    fn change(&self, words: &[&str], log: &Undo, pulse: &Pulse) -> Result<(), Failure> {
        let lock = log.lock_held().map_err(|e| told(&e))?;
        Program::new(&self.path, self.limit)
            .args(words)
            .stdin(lock)
            .in_root()
            .not_stopped()
            .run(pulse)
            .map(drop)
    }

    fn properties(&self, name: &str, pulse: &Pulse) -> Result<Properties, Failure> {
        let words = ["get", "-Hp", "-o", "property,value,source", "all", name];
        let said = self.ask(&words, pulse)?;
        let line = |line: &str| {
            let mut words = line.split('\t').map(str::to_owned);
            Some((words.next()?, (words.next()?, words.next()?)))
        };
        Ok(said.lines().filter_map(line).collect())
    }
}

fn program(name: &str) -> Result<PathBuf, Failure> {
    find(OsStr::new(name)).ok_or_else(|| Failure::Told(format!("there is no program {name}")))
}

fn told(fault: &Fault) -> Failure {
    Failure::Told(fault.to_string())
}

/// A dataset that this run made. It goes with the scratch folder, or by [`Dataset::destroy`].
#[derive(Debug)]
pub(crate) struct Dataset {
    zfs: Zfs,
    zpool: PathBuf,
    name: String,
    parent: String,
    folder: Folder,
    /// Why nothing can be said any more of what is measured on it.
    spoilt: OnceLock<String>,
}

impl Dataset {
    /// Makes it below `parent` with `properties` of its own, and mounts it. All else that decides
    /// how it writes and reads must be as the parent's.
    ///
    /// # Errors
    /// Why there is none; what was made of it is undone again, or left to the scratch folder's removal.
    pub(crate) fn create(
        scratch: &Scratch,
        parent: &str,
        purpose: &str,
        properties: &[(&str, &str)],
        limit: Duration,
        pulse: &Pulse,
    ) -> Result<Self, Failure> {
        if !rustix::process::geteuid().is_root() {
            return Err(Failure::Told("only root may mount a dataset".to_owned()));
        }
        let (zfs, zpool) = (Zfs::find(limit)?, program("zpool")?);
        let of_parent = zfs.properties(parent, pulse)?;
        let name = remove::name_for(parent, scratch.run_id(), purpose);
        refused(parent, &of_parent, &name).map_err(Failure::Told)?;
        let folder = format!("{DATASET_PREFIX}{purpose}");
        let altroot = altroot(&zpool, limit, &name, pulse)?;
        let point = point(scratch, &folder, &altroot).map_err(Failure::Told)?;
        let action = Action::Dataset { name: name.clone() };
        scratch.undo().will(action.clone()).map_err(|e| told(&e))?;
        let made = Making {
            zfs: &zfs,
            scratch,
            name: &name,
            folder: &folder,
            pulse,
        }
        .make(&point, properties, &of_parent);
        match made {
            Ok(folder) => Ok(Self {
                zfs,
                zpool,
                name,
                parent: parent.to_owned(),
                folder,
                spoilt: OnceLock::new(),
            }),
            Err(why) => {
                give_up(scratch, &action, &folder);
                Err(why)
            }
        }
    }

    /// A handle on its top folder.
    pub(crate) fn folder(&self) -> Result<Folder, Fault> {
        self.folder.folder()
    }

    /// Sets a property of it.
    pub(crate) fn set(
        &self,
        property: &str,
        value: &str,
        log: &Undo,
        pulse: &Pulse,
    ) -> Result<(), Failure> {
        let assignment = format!("{property}={value}");
        self.zfs
            .change(&["set", &assignment, &self.name], log, pulse)
    }

    /// Puts a property back to what it has from its parent. Where that fails the dataset is spoilt.
    pub(crate) fn inherit(&self, property: &str, log: &Undo, pulse: &Pulse) -> Result<(), Failure> {
        let words = ["inherit", property, &self.name];
        let inherited = self.zfs.change(&words, log, pulse).and_then(|()| {
            let words = ["get", "-Hp", "-o", "value", property];
            let value = |name: &str| self.zfs.ask(&[&words[..], &[name]].concat(), pulse);
            let (own, parents) = (value(&self.name)?, value(&self.parent)?);
            if own == parents {
                return Ok(());
            }
            let (own, parents, parent) = (own.trim(), parents.trim(), &self.parent);
            let why = format!("{property} is {own}, that of {parent} {parents}");
            Err(Failure::Told(format!("{}: {why}", self.name)))
        });
        if let Err(Failure::Told(why)) = &inherited {
            let _ = self.spoilt.set(why.clone());
        }
        inherited
    }

    /// Why what is measured on it would mean nothing, where that is so.
    pub(crate) fn spoilt(&self) -> Option<&str> {
        self.spoilt.get().map(String::as_str)
    }

    /// Makes everything durable that was written to it, and the pool's transaction group done with
    /// (zpool-sync(8)): syncfs(2) would only commit the intent log.
    pub(crate) fn sync(&self, pulse: &Pulse) -> Result<(), Failure> {
        self.folder.syncfs().map_err(|e| told(&e))?;
        Program::new(&self.zpool, self.zfs.limit)
            .args(["sync", pool_of(&self.name)])
            .in_root()
            .not_stopped()
            .run(pulse)
            .map(drop)
    }

    /// Closes its folder, so that it can be unmounted.
    pub(crate) fn let_go(&self) {
        self.folder.anchor().let_go();
    }
}

/// The dataset of a scratch folder that its cold cases live in, made when it is first asked for.
#[derive(Debug, Default)]
pub(crate) struct Slot(RwLock<Option<Result<std::sync::Arc<Dataset>, String>>>);

/// What a slot holds, or why it holds nothing.
pub(crate) type Held = Result<std::sync::Arc<Dataset>, String>;

impl Slot {
    /// What it holds; none where nobody has asked for it yet.
    pub(crate) fn held(&self) -> Option<Held> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// What it holds; made by `make` the first time, and never tried again.
    pub(crate) fn get(
        &self,
        make: impl FnOnce() -> Result<Dataset, Failure>,
    ) -> Result<Held, Failure> {
        let mut slot = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = &*slot {
            return Ok(held.clone());
        }
        let held = match make() {
            Ok(dataset) => Ok(std::sync::Arc::new(dataset)),
            Err(Failure::Told(why)) => Err(why),
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
        };
        *slot = Some(held.clone());
        Ok(held)
    }

    /// Lets what it holds go.
    pub(crate) fn let_go(&self) {
        if let Some(Ok(dataset)) = self.held() {
            dataset.let_go();
        }
    }
}

fn pool_of(dataset: &str) -> &str {
    dataset.split('/').next().unwrap_or(dataset)
}

/// Why no child of `parent` is made.
fn refused(parent: &str, properties: &Properties, name: &str) -> Result<(), String> {
    let value = |name: &str| {
        properties
            .get(name)
            .map_or("-", |(value, _)| value.as_str())
    };
    let why = match () {
        () if value("type") != "filesystem" => "is not a filesystem of ZFS",
        () if matches!(value("mountpoint"), "legacy" | "none" | "-") => "is not mounted by zfs",
        () if value("canmount") == "off" => "has canmount=off",
        () if !matches!(value("encryption"), "off" | "-") => "is encrypted",
        () if value("zoned") == "on" => "is delegated to a container (zoned)",
        () if name.len() > NAME_BYTES => "has too long a name",
        () => return Ok(()),
    };
    Err(format!("{parent} {why}"))
}

/// Where everything of the pool is mounted below; `-` for none.
fn altroot(zpool: &Path, limit: Duration, name: &str, pulse: &Pulse) -> Result<String, Failure> {
    let words = ["get", "-H", "-o", "value", "altroot", pool_of(name)];
    let said = Program::new(zpool, limit)
        .args(words)
        .in_root()
        .run(pulse)?;
    Ok(said.trim().to_owned())
}

/// The value of `mountpoint` that leads into the scratch folder.
fn point(scratch: &Scratch, folder: &str, altroot: &str) -> Result<String, String> {
    let held = scratch.fd().map_err(|e| e.to_string())?;
    let real = crate::target::real_path(std::os::fd::AsFd::as_fd(&*held));
    let real = real.ok_or("the scratch folder's path is not known")?;
    let path = real.join(folder);
    let inside = match altroot {
        "" | "-" => path.clone(),
        root => match path.strip_prefix(root) {
            Ok(below) => Path::new("/").join(below),
            Err(_) => {
                return Err(format!(
                    "{} is not below the altroot {root}",
                    paths::show(&path)
                ));
            }
        },
    };
    match inside.to_str() {
        Some(text) if !text.contains(char::is_control) => Ok(text.to_owned()),
        _ => Err(format!("{} cannot be a mountpoint", paths::show(&path))),
    }
}

struct Making<'a> {
    zfs: &'a Zfs,
    scratch: &'a Scratch,
    name: &'a str,
    folder: &'a str,
    pulse: &'a Pulse,
}

impl Making<'_> {
    fn make(
        &self,
        point: &str,
        own: &[(&str, &str)],
        parents: &Properties,
    ) -> Result<Folder, Failure> {
        let scratch = self.scratch.fd().map_err(|e| told(&e))?;
        let fault = |call, e| told(&crate::folder::fault(call, e, self.folder));
        rustix::fs::mkdirat(&scratch, self.folder, Mode::RWXU).map_err(|e| fault("mkdirat", e))?;
        let assignments: Vec<String> = [
            "canmount=noauto".to_owned(),
            format!("mountpoint={point}"),
            format!("{RUN}={}", self.scratch.run_id()),
            NO_SNAPSHOTS.to_owned(),
        ]
        .into_iter()
        .chain(
            own.iter()
                .map(|(property, value)| format!("{property}={value}")),
        )
        .collect();
        let mut words = vec!["create"];
        words.extend(assignments.iter().flat_map(|a| ["-o", a]));
        words.push(self.name);
        let log = self.scratch.undo();
        self.zfs.change(&words, log, self.pulse)?;
        crate::pause::here("dataset");
        self.alike(own, parents)?;
        self.zfs.change(&["mount", self.name], log, self.pulse)?;
        crate::pause::here("dataset");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let top = rustix::fs::openat(&scratch, self.folder, flags, Mode::empty())
            .map_err(|e| fault("openat", e))?;
        let device = |fd: &std::os::fd::OwnedFd| {
            rustix::fs::fstat(fd)
                .map(|s| s.st_dev)
                .map_err(|e| fault("fstat", e))
        };
        if device(&top)? == device(&scratch)? {
            let why = format!("{} was not mounted in the scratch folder", self.name);
            return Err(Failure::Told(why));
        }
        let umask_takes = self.scratch.umask_takes();
        Ok(Folder::new(Anchor::new(top), self.folder, umask_takes))
    }

    /// It was made as its parent is.
    fn alike(&self, own: &[(&str, &str)], parents: &Properties) -> Result<(), Failure> {
        let made = self.zfs.properties(self.name, self.pulse)?;
        let value = |of: &Properties, name: &str| of.get(name).map(|(value, _)| value.clone());
        for property in ALIKE {
            let (has, wanted) = (value(&made, property), value(parents, property));
            if has != wanted && own.iter().all(|(name, _)| *name != property) {
                let text = |v: Option<String>| v.unwrap_or_else(|| "missing".to_owned());
                return Err(Failure::Told(format!(
                    "{property} of a child dataset is {}, not {} as its parent's",
                    text(has),
                    text(wanted)
                )));
            }
        }
        Ok(())
    }
}

/// Undoes what was made; what cannot be stays announced, for the scratch folder's removal.
fn give_up(scratch: &Scratch, action: &Action, folder: &str) {
    if action.undo(scratch.run_id()).is_ok() {
        // Not noted: undone again, which does no harm. So does a folder that stays.
        let _ = scratch.undo().did_undo(action);
        if let Ok(held) = scratch.fd() {
            let _: Result<(), Errno> = rustix::fs::unlinkat(&held, folder, AtFlags::REMOVEDIR);
        }
    }
}
