//! Does a directory belong to a PostgreSQL server? Looks, never writes.
//!
//! A benchmark inside a live `pg_wal` or data directory competes with the server, is
//! copied by base backups, and can fill the one filesystem that must not fill. Signs are
//! looked for in the directory itself, in its name, and in every directory above it.

use std::{os::fd::AsFd, path::Path};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};

/// Entries read before giving up on finding a segment; the other signs are looked up by name.
const MAX_ENTRIES: usize = 200_000;
/// Directories above that are looked at.
const MAX_LEVELS: usize = 64;

/// What speaks for a server's directory, as words that follow "it looks like"; none if nothing does.
#[must_use]
pub fn signs(dir: impl AsFd, path: &Path) -> Option<String> {
    let dir = dir.as_fd();
    for (name, kinds, what) in [
        ("PG_VERSION", FILE, "a PostgreSQL data directory"),
        ("postmaster.pid", FILE, "a PostgreSQL data directory"),
        ("pg_wal", FOLDER, "a PostgreSQL data directory"),
        ("pg_xlog", FOLDER, "a PostgreSQL data directory"),
        ("archive_status", FOLDER, "a live pg_wal directory"),
    ] {
        if has(dir, name, kinds) {
            return Some(format!("{what} ({name} is in it)"));
        }
    }
    if let Some(name) = telling_entry(dir) {
        return Some(if is_tablespace_version(&name) {
            format!("a PostgreSQL tablespace ({name} is in it)")
        } else {
            format!("a pg_wal directory or a WAL archive ({name} is in it)")
        });
    }
    if path
        .file_name()
        .and_then(|n| n.to_str())
        .is_some_and(is_tablespace_version)
    {
        return Some("a part of a PostgreSQL tablespace (by its name)".to_owned());
    }
    above(dir)
}

const FILE: &[FileType] = &[FileType::RegularFile];
/// `pg_wal` is often a symbolic link to another filesystem.
const FOLDER: &[FileType] = &[FileType::Directory, FileType::Symlink];

fn has(dir: impl AsFd, name: &str, kinds: &[FileType]) -> bool {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|s| kinds.contains(&FileType::from_raw_mode(s.st_mode)))
}

fn telling_entry(dir: impl AsFd) -> Option<String> {
    let entries = Dir::read_from(dir).ok()?;
    entries
        .take(MAX_ENTRIES)
        .map_while(Result::ok)
        .filter_map(|e| e.file_name().to_str().ok().map(str::to_owned))
        .find(|n| is_segment(n) || is_tablespace_version(n))
}

/// A WAL segment's name, whole or with a suffix as archives have (`.partial`, `.gz`).
fn is_segment(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    stem.len() == 24
        && stem
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b))
}

/// `PG_18_202506291`: what a server makes in a tablespace's directory.
fn is_tablespace_version(name: &str) -> bool {
    let Some((major, catalogue)) = name.strip_prefix("PG_").and_then(|r| r.split_once('_')) else {
        return false;
    };
    let number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    number(major) && catalogue.len() == 9 && number(catalogue)
}

/// Inside a data directory, at any depth. `..` is followed by descriptor: the way that was
/// given may have gone through symbolic links.
fn above(dir: impl AsFd) -> Option<String> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut here = openat(dir, ".", flags, Mode::empty()).ok()?;
    let mut id = identity(&here)?;
    for _ in 0..MAX_LEVELS {
        here = openat(&here, "..", flags, Mode::empty()).ok()?;
        let up = identity(&here)?;
        if up == id {
            return None;
        }
        id = up;
        if has(&here, "PG_VERSION", FILE)
            && ["global", "base", "pg_wal", "pg_xlog"]
                .iter()
                .any(|n| has(&here, n, FOLDER))
        {
            return Some(
                "a part of a PostgreSQL data directory (PG_VERSION is in a directory above)"
                    .to_owned(),
            );
        }
    }
    None
}

fn identity(dir: impl AsFd) -> Option<(u64, u64)> {
    let stat = rustix::fs::fstat(dir).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert!(is_segment("000000010000000000000001"));
        assert!(is_segment("0000000100000A2F000000FE.partial"));
        assert!(
            !is_segment("00000001000000000000000a"),
            "servers write upper case"
        );
        assert!(!is_segment("0000000100000000000000010"));
        assert!(!is_segment(".000000010000000000000001"));
        assert!(is_tablespace_version("PG_18_202506291"));
        assert!(is_tablespace_version("PG_9.6_201608131"));
        assert!(!is_tablespace_version("PG_VERSION"));
        assert!(!is_tablespace_version("PG_18_x"));
    }
}
