//! Regular files, as the writing child handles them: whose they are, and their replacement.
//!
//! A document is written into a file without a name, which gets one when it is whole: a
//! writer that is killed leaves nothing. Where a file is to be replaced it is renamed over
//! it, after a last look whether it still is the one that was seen before.

use std::{
    fs::{self, File, Metadata},
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::{
        fd::AsRawFd as _,
        unix::fs::{FileTypeExt as _, MetadataExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid, fchmod, fchown, linkat},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cannot_write;

/// Files larger than this are not ours.
const OURS_BYTES: u64 = 256 << 20;
/// How a JSON file of ours begins.
const JSON_START: &str = "{\n  \"schema\":";
/// How a CSV file of ours begins, in every version of the format.
const CSV_START: &str = "schema,run_id,";
/// How a postgresql.conf fragment of ours begins.
const CONF_START: &str = "# walprobe ";
/// Bytes of the file's name in the name of one beside it: both fit into a name's 255.
const NAME_BYTES: usize = 200;
/// Random characters at the end of such a name.
const RANDOM: usize = 6;

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
            let name = given_path
                .file_name()
                .ok_or(io::ErrorKind::IsADirectory)?;
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

fn start(format: &str) -> &'static str {
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

/// A file beside the one to write, gone when dropped.
enum Aside {
    Unnamed(File),
    /// Where the filesystem has no files without a name.
    Named(tempfile::NamedTempFile),
}

impl Aside {
    fn new(path: &Path) -> io::Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        match rustix::fs::open(parent(path), flags, mode) {
            Ok(file) => Ok(Self::Unnamed(file.into())),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
                tempfile::Builder::new()
                    .prefix(&prefix(path))
                    .rand_bytes(RANDOM)
                    .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
                    .tempfile_in(parent(path))
                    .map(Self::Named)
                    .map_err(|e| system_part(&e))
            }
            Err(e) => Err(e.into()),
        }
    }

    fn file(&mut self) -> &mut File {
        match self {
            Self::Unnamed(file) => file,
            Self::Named(file) => file.as_file_mut(),
        }
    }

    /// Gives it the name. Without `replace` nothing may have it.
    fn place(self, path: &Path, replace: bool) -> io::Result<()> {
        match self {
            Self::Unnamed(file) if replace => {
                let random: String = std::iter::repeat_with(fastrand::alphanumeric)
                    .take(RANDOM)
                    .collect();
                let name = parent(path).join(prefix(path) + &random);
                name_it(&file, &name)?;
                fs::rename(&name, path).inspect_err(|_| {
                    let _ = fs::remove_file(&name);
                })
            }
            Self::Unnamed(file) => name_it(&file, path),
            Self::Named(file) if replace => file.persist(path).map(drop).map_err(|e| e.error),
            Self::Named(file) => file
                .persist_noclobber(path)
                .map(drop)
                .map_err(|e| e.error),
        }
    }
}

fn name_it(file: &File, name: &Path) -> io::Result<()> {
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, open, CWD, name, AtFlags::SYMLINK_FOLLOW)?;
    Ok(())
}

/// How the names of files beside `path` begin.
fn prefix(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut end = name.len().min(NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!(".{}.walprobe-", &name[..end])
}

/// Removes what a killed writer left: files named as ours are, regular, this user's, with
/// one name, older than the run, and empty or with the start of a document of ours.
fn sweep(path: &Path, format: &str, before_s: i64) {
    let prefix = prefix(path);
    let Ok(entries) = fs::read_dir(parent(path)) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(random) = name.to_str().and_then(|n| n.strip_prefix(&prefix)) else {
            continue;
        };
        if random.len() != RANDOM || !random.bytes().all(|b| b.is_ascii_alphanumeric()) {
            continue;
        }
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let own = metadata.uid() == rustix::process::geteuid().as_raw();
        if metadata.is_file()
            && own
            && metadata.nlink() == 1
            && metadata.mtime() < before_s
            && begins_like_ours(format, &entry.path())
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn begins_like_ours(format: &str, path: &Path) -> bool {
    let start = start(format).as_bytes();
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|f| f.take(start.len() as u64).read_to_end(&mut bytes));
    read.is_ok() && start.starts_with(&bytes)
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    }
}

/// tempfile adds the temporary's path, which is not what the user asked for.
fn system_part(e: &io::Error) -> io::Error {
    let source = e.get_ref().and_then(|inner| inner.source());
    match source.and_then(|s| s.downcast_ref::<io::Error>()) {
        Some(inner) => inner
            .raw_os_error()
            .map_or_else(|| inner.kind().into(), io::Error::from_raw_os_error),
        None => e.kind().into(),
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
