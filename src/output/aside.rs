//! Files beside the one to write: without a name where the filesystem has that, so that a
//! writer that is killed leaves nothing; and the removal of named ones that were left.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::{fd::AsRawFd as _, unix::fs::MetadataExt as _},
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, linkat},
    io::Errno,
};

use super::file::start;

/// Bytes of the file's name in the name of one beside it: both fit into a name's 255.
const NAME_BYTES: usize = 200;
/// Random characters at the end of such a name.
const RANDOM: usize = 6;

/// A file beside the one to write, gone when dropped.
pub(super) enum Aside {
    Unnamed(File),
    /// Where the filesystem has no files without a name.
    Named(tempfile::NamedTempFile),
}

impl Aside {
    pub(super) fn new(path: &Path) -> io::Result<Self> {
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

    pub(super) fn file(&mut self) -> &mut File {
        match self {
            Self::Unnamed(file) => file,
            Self::Named(file) => file.as_file_mut(),
        }
    }

    /// Gives it the name. Without `replace` nothing may have it.
    pub(super) fn place(self, path: &Path, replace: bool) -> io::Result<()> {
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
            Self::Named(file) => file.persist_noclobber(path).map(drop).map_err(|e| e.error),
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
pub(super) fn sweep(path: &Path, format: &str, before_s: i64) {
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

pub(super) fn parent(path: &Path) -> &Path {
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
