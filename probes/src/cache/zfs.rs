//! `zfs`: export and import of the pool that holds the directory. Every dataset of the pool goes
//! away for that time: only by name. The ARC keeps files through an unmount; an export empties it.
//!
//! What would not come back is refused before anything is exported: a dataset that is mounted by
//! hand (`mountpoint=legacy`) or whose key would have to be loaded again. A pool in use is refused
//! by `zpool export` itself, which is never forced. Once exported the pool is imported whatever
//! happens to the run; the words for doing it by hand are on stderr before.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::Once,
    time::Duration,
};

use super::{let_go, limit, proof::After, stop};
use crate::{
    contract::{Lab, Pulse, Stop},
    program::{Program, find},
};

pub(super) fn run(lab: &Lab<'_>) -> Result<After, Stop> {
    let folder = lab.scratch()?.place();
    let tools = Tools::new(limit(lab.request))?;
    let dataset = tools.dataset(&folder, lab.pulse)?;
    let pool = dataset.split('/').next().unwrap_or(&dataset).to_owned();
    tools.comes_back(&dataset, lab.pulse)?;
    let import = tools.import(&pool, lab.pulse)?;
    tell_once(&pool, &import);
    let_go(lab, |_| {
        let zpool = |words: &[OsString]| {
            Program::new(&tools.zpool, tools.limit)
                .args(words)
                .in_root()
                .not_stopped()
                .run(lab.pulse)
                .map_err(stop)
        };
        let exported = zpool(&["export".into(), pool.clone().into()]);
        // One that failed leaves the pool as it was; one that was killed may not have.
        let still_there = || zpool(&["list".into(), "-H".into(), pool.clone().into()]).is_ok();
        if exported.is_err() && still_there() {
            return exported.map(drop);
        }
        let imported = zpool(&import).map_err(|failed| match failed {
            Stop::Skip(code, why) => {
                let words = by_hand(&import);
                Stop::Skip(code, format!("{why}; the pool is exported: run {words}"))
            }
            other => other,
        });
        exported.and(imported).map(drop)
    })
}

fn by_hand(import: &[OsString]) -> String {
    let words: Vec<_> = import.iter().map(|w| w.to_string_lossy()).collect();
    format!("zpool {}", words.join(" "))
}

/// A kill between the two leaves the pool exported, and nobody else knows.
fn tell_once(pool: &str, import: &[OsString]) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        eprintln!(
            "note: pool {pool} is exported and imported before each cold operation; \
             should walprobe be killed meanwhile: {}",
            by_hand(import)
        );
    });
}

/// The dataset that holds a path.
pub(crate) fn dataset_of(path: &Path, lab: &Lab<'_>) -> Result<String, Stop> {
    Tools::new(limit(lab.request))?.dataset(path, lab.pulse)
}

/// The programs of OpenZFS.
struct Tools {
    zfs: PathBuf,
    zpool: PathBuf,
    limit: Duration,
}

impl Tools {
    fn new(limit: Duration) -> Result<Self, Stop> {
        let tool = |name: &str| {
            find(OsStr::new(name)).ok_or_else(|| {
                let why = format!("there is no program {name}");
                Stop::Skip("need-tool", why)
            })
        };
        Ok(Self {
            zfs: tool("zfs")?,
            zpool: tool("zpool")?,
            limit,
        })
    }

    fn ask<S: AsRef<OsStr>>(
        &self,
        program: &Path,
        words: impl IntoIterator<Item = S>,
        pulse: &Pulse,
    ) -> Result<String, Stop> {
        Program::new(program, self.limit)
            .args(words)
            .in_root()
            .run(pulse)
            .map(|said| said.trim().to_owned())
            .map_err(stop)
    }

    /// The dataset that holds a path, as `zfs` itself says.
    fn dataset(&self, folder: &Path, pulse: &Pulse) -> Result<String, Stop> {
        let words = ["list", "-H", "-o", "name"].map(OsStr::new);
        let words = words.into_iter().chain([folder.as_os_str()]);
        match self.ask(&self.zfs, words, pulse) {
            Ok(name) if !name.is_empty() && !name.contains(char::is_whitespace) => Ok(name),
            Ok(name) => Err(Stop::Skip(
                "filesystem",
                format!("no one dataset holds the directory: {name}"),
            )),
            Err(Stop::Skip(_, why)) => Err(Stop::Skip(
                "filesystem",
                format!("no dataset holds the directory: {why}"),
            )),
            Err(other) => Err(other),
        }
    }

    /// An import mounts the dataset again by itself.
    fn comes_back(&self, dataset: &str, pulse: &Pulse) -> Result<(), Stop> {
        let words = ["get", "-H", "-o", "value", "mountpoint,keystatus", dataset];
        let values = self.ask(&self.zfs, words, pulse)?;
        let values: Vec<&str> = values.lines().map(str::trim).collect();
        let why = match values[..] {
            ["legacy" | "none" | "-", ..] => "is not mounted by zfs: an import would not mount it",
            [_, "-" | "none"] => return Ok(()),
            [_, _] => "is encrypted: an import would need its key",
            _ => "does not tell its mountpoint and keystatus",
        };
        let why = format!("--drop-caches zfs: {dataset} {why}");
        Err(Stop::Skip("need-hook", why))
    }

    /// The words after `zpool` that import the pool as it is now.
    fn import(&self, pool: &str, pulse: &Pulse) -> Result<Vec<OsString>, Stop> {
        let devices = self.ask(&self.zpool, ["list", "-v", "-H", "-P", pool], pulse)?;
        let altroot = ["get", "-H", "-o", "value", "altroot", pool];
        let altroot = self.ask(&self.zpool, altroot, pulse)?;
        Ok(import_words(pool, &devices, &altroot))
    }
}

/// A pool is looked for among the devices only, unless told where else its members are.
fn import_words(pool: &str, devices: &str, altroot: &str) -> Vec<OsString> {
    let folders: BTreeSet<&Path> = devices
        .lines()
        .filter_map(|line| line.split('\t').map(str::trim).find(|w| !w.is_empty()))
        .filter(|name| name.starts_with('/'))
        .filter_map(|name| Path::new(name).parent())
        .collect();
    let mut words = vec![OsString::from("import")];
    if folders.iter().any(|f| !f.starts_with("/dev")) {
        for folder in folders {
            words.extend([OsString::from("-d"), folder.into()]);
        }
    }
    if altroot != "-" && !altroot.is_empty() {
        words.extend(["-R", altroot].map(OsString::from));
    }
    words.push(pool.into());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_finds_its_members_again() {
        let words = |devices: &str, altroot: &str| {
            let words = import_words("tank", devices, altroot);
            let words: Vec<_> = words.iter().map(|w| w.to_str().unwrap()).collect();
            words.join(" ")
        };
        let disks = "tank\t1G\t2M\n\tmirror-0\t1G\n\t/dev/disk/by-id/a\t-\n\t/dev/sdb1\t-\n";
        assert_eq!(words(disks, "-"), "import tank");
        let files = "tank\t1G\n\t/srv/pool/a\t-\n\t/srv/pool/b\t-\n\t/dev/sdc\t-\n";
        assert_eq!(
            words(files, "/mnt"),
            "import -d /dev -d /srv/pool -R /mnt tank"
        );
    }
}
