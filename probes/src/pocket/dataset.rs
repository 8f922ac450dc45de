//! A ZFS dataset below the one that holds the directory, mounted in the scratch folder.
//!
//! It is `PARENT/walprobe-RUNID-PURPOSE` and carries the run's id as a user property from its
//! first moment (zfs-create(8) sets properties and makes the dataset in one step). The undo file
//! names it before it is made. `canmount=noauto`: neither a restart nor an import of the pool
//! mounts it where the scratch folder was. While `zfs` changes something it has the undo file as
//! its stdin, and so the run's lock: should walprobe be killed meanwhile, a `clean` waits for the
//! change to be done, and sees what it made.

use std::{
    sync::{Arc, OnceLock, PoisonError, RwLock},
    time::Duration,
};

use crate::{
    contract::{Fault, Pulse},
    folder::Folder,
    program::Failure,
    scratch::{DATASET_PREFIX, Scratch},
    undo::{Action, Undo},
};

#[cfg(test)]
pub(crate) mod fake;
mod make;
mod remove;
#[cfg(test)]
mod tests;
mod zfs;

use make::{Making, altroot, give_up, point, refused};
pub(crate) use remove::undo;
use zfs::{Zfs, program, told};

/// The user property that holds the run's id.
const RUN: &str = "walprobe:run";

/// A dataset that this run made. It goes with the scratch folder.
#[derive(Debug)]
pub(crate) struct Dataset {
    zfs: Zfs,
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

    /// Closes its folder, so that it can be unmounted.
    pub(crate) fn let_go(&self) {
        self.folder.anchor().let_go();
    }
}

/// The dataset of a scratch folder that its cold cases live in, made when it is first asked for.
#[derive(Debug, Default)]
pub(crate) struct Slot(RwLock<Option<Result<Arc<Dataset>, String>>>);

/// What a slot holds, or why it holds nothing.
pub(crate) type Held = Result<Arc<Dataset>, String>;

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
            Ok(dataset) => Ok(Arc::new(dataset)),
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
