//! Regular files, as the writing child handles them: whose they are, and their replacement.
//!
//! A document is written into a file without a name, which gets one when it is whole: a
//! writer that is killed leaves nothing. Where a file is to be replaced it is renamed over
//! it, after a last look whether it still is the one that was seen before.

use std::{
    fs::{self, File, Metadata},
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::{Gid, Mode, Uid, fchmod, fchown};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    aside::{Aside, parent, sweep},
    cannot_write,
};

/// Files larger than this are not ours.
const OURS_BYTES: u64 = 256 << 20;
/// How a JSON file of ours begins.
const JSON_START: &str = "{\n  \"schema\":";
/// How a CSV file of ours begins, in every version of the format.
const CSV_START: &str = "schema,run_id,";
/// How a postgresql.conf fragment of ours begins.
const CONF_START: &str = "# walprobe ";

/// What a file was when it was last seen or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    pub(super) dev: u64,
    pub(super) ino: u64,
    size: u64,
    mtime_s: i64,
    mtime_ns: i64,
}

/// Where an output goes.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Checked {
    /// A regular file, there or to be made.
    File { path: PathBuf, stamp: Option<Stamp> },
    /// A FIFO or a character device.
    Direct { path: PathBuf },
    /// It cannot be used, or may not.
    Refused {
        message: String,
        hint: Option<String>,
    },
}

/// One document to save.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Save {
    pub(super) format: String,
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// What is there as far as we know; nothing else is replaced.
    pub(super) expected: Option<Stamp>,
    /// It is to survive a crash.
    pub(super) last: bool,
    /// Leftovers beside the file that are older than this (seconds since 1970) go.
    pub(super) sweep_before_s: Option<i64>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            dev: metadata.dev(),
            ino: metadata.ino(),
            size: metadata.size(),
            mtime_s: metadata.mtime(),
            mtime_ns: metadata.mtime_nsec(),
        }
    }
}

/// Where a document goes, if it may. Leaves nothing behind.
pub(super) fn check(format: &str, given: &str, force: bool) -> Checked {
    look(format, given, force).unwrap_or_else(|e| Checked::Refused {
        message: cannot_write(given, &e),
        hint: None,
    })
}

fn look(format: &str, given: &str, force: bool) -> io::Result<Checked> {
    let refused = |why: &str, hint: Option<&str>| {
        Ok(Checked::Refused {
            message: format!("cannot write {given}: {why}"),
            hint: hint.map(str::to_owned),
        })
    };
    let given_path = Path::new(given);
    let path = match given_path.symlink_metadata() {
        Ok(_) => given_path.canonicalize()?,
        Err(e) if e.kind() == io::ErrorKind::NotFound && !given.ends_with('/') => {
            let name = given_path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
            let path = parent(given_path).canonicalize()?.join(name);
            Aside::new(&path)?;
            return Ok(Checked::File { path, stamp: None });
        }
        Err(e) => return Err(e),
    };
    let metadata = path.metadata()?;
    let kind = metadata.file_type();
    if kind.is_fifo() || kind.is_char_device() {
        return Ok(Checked::Direct { path });
    }
    if !kind.is_file() {
        return refused(not_a_place(kind), None);
    }
    if !force && !ours(format, &path)? {
        let why = format!("it is not {} of walprobe", document(format));
        return refused(&why, Some("--force replaces it"));
    }
    if !force && metadata.nlink() > 1 {
        let why = "it has other names (hard links), which would keep the old document";
        return refused(why, Some("--force replaces it under this name only"));
    }
    Aside::new(&path)?;
    let stamp = Some(Stamp::of(&metadata));
    Ok(Checked::File { path, stamp })
}

/// Why nothing is written to a file of this type.
pub(super) fn not_a_place(kind: fs::FileType) -> &'static str {
    if kind.is_block_device() {
        "it is a block device"
    } else if kind.is_dir() {
        "it is a directory"
    } else if kind.is_socket() {
        "it is a socket"
    } else {
        "it is no file, FIFO or character device"
    }
}

fn document(format: &str) -> &'static str {
    match format {
        "json" => "a JSON report",
        "csv" => "a CSV report",
        _ => "a file of settings",
    }
}

/// Whether walprobe wrote the file, as a document of this format.
fn ours(format: &str, path: &Path) -> io::Result<bool> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    if length == 0 || length > OURS_BYTES {
        return Ok(false);
    }
    let mut reader = BufReader::new(file);
    if format == "json" {
        let Ok(document) = serde_json::from_reader::<_, Value>(reader) else {
            return Ok(false);
        };
        return Ok(document["schema"].is_u64() && document["tool"]["name"] == "walprobe");
    }
    let mut line = Vec::new();
    reader.by_ref().take(4096).read_until(b'\n', &mut line)?;
    Ok(line.starts_with(start(format).as_bytes()))
}

pub(super) fn start(format: &str) -> &'static str {
    match format {
        "json" => JSON_START,
        "csv" => CSV_START,
        _ => CONF_START,
    }
}

/// Saves a document. What the file is now.
pub(super) fn save(save: &Save) -> io::Result<Stamp> {
    if let Some(before_s) = save.sweep_before_s {
        sweep(&save.path, &save.format, before_s);
    }
    let there = match save.path.symlink_metadata() {
        Ok(metadata) => Some(metadata),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    };
    if let Some(there) = &there {
        let Some(expected) = save.expected else {
            return Err(io::Error::other(
                "it appeared during the run, and is not replaced",
            ));
        };
        if !still(&expected, there, save)? {
            return Err(io::Error::other(
                "it was changed by others during the run, and is not replaced",
            ));
        }
    }
    let mut aside = Aside::new(&save.path)?;
    let file = aside.file();
    file.write_all(save.text.as_bytes())?;
    if let Some(there) = &there {
        take_after(file, there)?;
    }
    if save.last {
        file.sync_all()?;
    }
    let stamp = Stamp::of(&file.metadata()?);
    aside.place(&save.path, there.is_some())?;
    if save.last {
        // The new name too; where a directory cannot be synced nothing is lost but that.
        let _ = File::open(parent(&save.path)).and_then(|dir| dir.sync_all());
    }
    Ok(stamp)
}

/// Whether it is the file that was seen or written last.
fn still(expected: &Stamp, there: &Metadata, save: &Save) -> io::Result<bool> {
    let stamp = Stamp::of(there);
    if !there.is_file() || (stamp.dev, stamp.ino) != (expected.dev, expected.ino) {
        return Ok(false);
    }
    Ok(stamp == *expected || ours(&save.format, &save.path)?)
}

/// Owner and mode of the old file, as far as we may.
fn take_after(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        let (owner, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
        if fchown(file, Some(owner), Some(group)).is_err() {
            let _ = fchown(file, None, Some(group));
        }
    }
    fchmod(file, Mode::from_raw_mode(old.mode() & 0o777))?;
    Ok(())
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
