//! What is filled: the filesystem itself where `--fill` says so, else a pocket of its kind.

use std::time::Duration;

use serde_json::json;

use super::person::Person;
use crate::{
    cache,
    contract::{Lab, Observations, Stop},
    facts::{Family, family},
    folder::Folder,
    pocket::{dataset::Dataset, format::Format, image::Pocket},
    program::Failure,
    removal,
};

/// What a ballast leaves under `--fill`, as in the mailing-list thread's experiment.
const FILL_ROOM: u64 = 32 << 20;
/// Segments that it leaves room for in a pocket.
const POCKET_ROOM: u64 = 12;
/// A child dataset's quota.
const QUOTA: &str = "64M";
/// What the names of our files on the filesystem that is filled have in them.
pub(super) const MARK: &str = "-enospc-";

/// Bytes that the ballast leaves before segments are made.
pub(super) const fn room(fill: bool, segment_bytes: u64) -> u64 {
    if fill {
        FILL_ROOM
    } else {
        POCKET_ROOM * segment_bytes
    }
}

/// A filesystem that may be filled. What was made for it is undone when dropped.
pub(super) struct Place<'s> {
    folder: Folder,
    kind: Kind<'s>,
    /// What is read again may come from a cache that cannot be emptied (ZFS).
    cached: bool,
}

enum Kind<'s> {
    Fill(#[expect(dead_code, reason = "held for its drop")] Person),
    Pocket(Box<Pocket<'s>>),
    Dataset(String),
}

impl<'s> Place<'s> {
    /// The place of a case.
    ///
    /// # Errors
    /// A skip that says what is missing.
    pub(super) fn open(case: &str, lab: &Lab<'s>) -> Result<Self, Stop> {
        let scratch = lab
            .scratch
            .ok_or_else(|| Stop::Broken("a full disk needs a scratch folder".to_owned()))?;
        let kind = lab.facts.text("fs.type").unwrap_or("of unknown type");
        let is_zfs = family(kind) == Family::Zfs;
        if lab.request.fill {
            return Ok(Self {
                folder: scratch.folder()?,
                kind: Kind::Fill(Person::of(scratch)?),
                cached: is_zfs,
            });
        }
        if !rustix::process::geteuid().is_root() {
            return Err(Stop::Skip(
                "need-root",
                "root can fill a small filesystem of the same kind instead; else --fill fills this one"
                    .to_owned(),
            ));
        }
        if is_zfs {
            return Self::dataset(case, lab);
        }
        let Some(format) = Format::like(lab.facts) else {
            return Err(Stop::Skip(
                "need-option",
                format!("walprobe makes no small {kind} filesystem; --fill fills this one"),
            ));
        };
        let limit = Duration::from_secs_f64(lab.request.op_timeout_s.max(1.0));
        let pocket = Pocket::make(scratch, format, limit, lab.pulse).map_err(with_hint)?;
        Ok(Self {
            folder: pocket.folder().folder()?,
            kind: Kind::Pocket(Box::new(pocket)),
            cached: false,
        })
    }

    fn dataset(case: &str, lab: &Lab<'s>) -> Result<Self, Stop> {
        let scratch = lab.scratch()?;
        let purpose: String = format!("full{case}")
            .bytes()
            .filter(u8::is_ascii_lowercase)
            .take(20)
            .map(char::from)
            .collect();
        let parent = cache::zfs::dataset_of(&scratch.place(), lab)?;
        let limit = Duration::from_secs_f64(lab.request.op_timeout_s.max(1.0));
        let quota = [("quota", QUOTA)];
        let made = Dataset::create(scratch, &parent, &purpose, &quota, limit, lab.pulse);
        let dataset = made.map_err(|failure| match failure {
            Failure::Interrupted => Stop::Interrupted,
            Failure::Told(why) => with_hint(Stop::Skip(
                "need-tool",
                format!("no child dataset with a quota: {why}"),
            )),
        })?;
        Ok(Self {
            folder: dataset.folder()?,
            kind: Kind::Dataset(format!(
                "child dataset {purpose} of {parent}, quota={QUOTA}"
            )),
            cached: true,
        })
    }

    pub(super) const fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Says what was filled, so that nobody takes a pocket for the filesystem itself.
    pub(super) fn tell(&self, seen: &mut Observations) {
        let (place, what) = match &self.kind {
            Kind::Fill(_) => ("fill", "the filesystem itself".to_owned()),
            Kind::Pocket(pocket) => {
                let format = pocket.format();
                seen.insert("pocket_bytes".to_owned(), json!(format.bytes));
                seen.insert("pocket_options".to_owned(), format.options_value());
                ("pocket", format.told())
            }
            Kind::Dataset(what) => ("pocket", what.clone()),
        };
        seen.insert("place".to_owned(), json!(place));
        seen.insert("place_what".to_owned(), json!(what));
    }

    /// What a case told, unless others filled the filesystem below a pocket meanwhile: where its image
    /// cannot grow, no answer is the pocket's own.
    ///
    /// # Errors
    /// What ended the case, or a skip.
    pub(super) fn believe(
        &self,
        outcome: Result<(), Stop>,
        seen: &mut Observations,
    ) -> Result<(), Stop> {
        let Kind::Pocket(pocket) = &self.kind else {
            return outcome;
        };
        match pocket.starved() {
            Some(free) if outcome != Err(Stop::Interrupted) => {
                seen.retain(|name, _| name.starts_with("p"));
                Err(Stop::Skip(
                    "space",
                    format!(
                        "others filled the filesystem below the pocket meanwhile: {free} bytes of it are free"
                    ),
                ))
            }
            _ => outcome,
        }
    }

    /// Puts what was written out of the cache as far as can be; how. No file may be open.
    ///
    /// # Errors
    /// The call that failed.
    pub(super) fn drop_caches(&mut self) -> Result<&'static str, Stop> {
        if let Kind::Pocket(pocket) = &mut self.kind {
            let again = pocket.mount_again()?;
            self.folder = pocket.folder().folder()?;
            return Ok(if again { "mounted-again" } else { "in-memory" });
        }
        Ok(if self.cached { "cached" } else { "fadvise" })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // A pocket goes as a whole; elsewhere the next case needs the space.
        if matches!(self.kind, Kind::Pocket(_)) {
            return;
        }
        let Ok(dir) = self.folder.fd() else { return };
        let names = removal::entries(std::os::fd::AsFd::as_fd(&*dir)).unwrap_or_default();
        for name in names.iter().filter_map(|n| std::str::from_utf8(n).ok()) {
            if name.contains(MARK) {
                // What stays goes with the scratch folder.
                let _ = self.folder.unlink(name);
            }
        }
    }
}

fn with_hint(stop: Stop) -> Stop {
    match stop {
        Stop::Skip(code, why) => Stop::Skip(code, format!("{why}; --fill fills this one instead")),
        other => other,
    }
}
