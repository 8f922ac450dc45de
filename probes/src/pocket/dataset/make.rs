//! What it takes to make one: the parent must do, it must come out as its parent is, and be mounted
//! in the scratch folder.

use std::{
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    time::Duration,
};

use rustix::{
    fs::{AtFlags, Mode, OFlags},
    io::Errno,
};

use super::{
    RUN, pool_of,
    zfs::{Properties, Zfs, told},
};
use crate::{
    contract::Pulse,
    folder::{self, Anchor, Folder},
    paths, pause,
    program::{Failure, Program},
    scratch::Scratch,
    target::real_path,
    undo::Action,
};

/// A snapshot would keep the dataset from being destroyed; the usual tools look at this one.
const NO_SNAPSHOTS: &str = "com.sun:auto-snapshot=false";
/// The longest name (`ZFS_MAX_DATASET_NAME_LEN` less the NUL).
pub(super) const NAME_BYTES: usize = 255;
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

/// Why no child of `parent` is made.
pub(super) fn refused(parent: &str, properties: &Properties, name: &str) -> Result<(), String> {
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
pub(super) fn altroot(
    zpool: &Path,
    limit: Duration,
    name: &str,
    pulse: &Pulse,
) -> Result<String, Failure> {
    let words = ["get", "-H", "-o", "value", "altroot", pool_of(name)];
    let said = Program::new(zpool, limit)
        .args(words)
        .in_root()
        .run(pulse)?;
    Ok(said.trim().to_owned())
}

/// The value of `mountpoint` that leads into the scratch folder.
pub(super) fn point(scratch: &Scratch, folder: &str, altroot: &str) -> Result<String, String> {
    let held = scratch.fd().map_err(|e| e.to_string())?;
    let real = real_path(held.as_fd());
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

pub(super) struct Making<'a> {
    pub(super) zfs: &'a Zfs,
    pub(super) scratch: &'a Scratch,
    pub(super) name: &'a str,
    pub(super) folder: &'a str,
    pub(super) pulse: &'a Pulse,
}

impl Making<'_> {
    pub(super) fn make(
        &self,
        point: &str,
        own: &[(&str, &str)],
        parents: &Properties,
    ) -> Result<Folder, Failure> {
        let scratch = self.scratch.fd().map_err(|e| told(&e))?;
        let fault = |call, e| told(&folder::fault(call, e, self.folder));
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
        pause::here("dataset");
        self.alike(own, parents)?;
        self.zfs.change(&["mount", self.name], log, self.pulse)?;
        pause::here("dataset");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let top = rustix::fs::openat(&scratch, self.folder, flags, Mode::empty())
            .map_err(|e| fault("openat", e))?;
        let device = |fd: &OwnedFd| {
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
pub(super) fn give_up(scratch: &Scratch, action: &Action, folder: &str) {
    if action.undo(scratch.run_id()).is_ok() {
        // Not noted: undone again, which does no harm. So does a folder that stays.
        let _ = scratch.undo().did_undo(action);
        if let Ok(held) = scratch.fd() {
            let _: Result<(), Errno> = rustix::fs::unlinkat(&held, folder, AtFlags::REMOVEDIR);
        }
    }
}
