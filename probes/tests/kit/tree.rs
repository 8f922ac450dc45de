//! A directory's whole content as one value, so that "exactly as before" is one comparison.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

/// Every entry below a directory: kind, inode, owner, mode, times, content.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Tree(BTreeMap<PathBuf, String>);

/// Reads a tree. The directory's own times are not in it: making and removing changes them.
pub(crate) fn of(dir: &Path) -> Tree {
    let mut entries = BTreeMap::new();
    walk(dir, Path::new(""), &mut entries);
    Tree(entries)
}

impl Tree {
    /// One number for all of it (FNV-1a).
    pub(crate) fn hash(&self) -> u64 {
        let text = format!("{:?}", self.0);
        hash(text.as_bytes())
    }

    /// Names at the top.
    pub(crate) fn top(&self) -> Vec<&Path> {
        self.0
            .keys()
            .map(PathBuf::as_path)
            .filter(|p| p.components().count() == 1)
            .collect()
    }

    /// Fails with the difference.
    #[track_caller]
    pub(crate) fn assert_same(&self, before: &Self, when: &str) {
        let mut difference = String::new();
        for (path, entry) in &before.0 {
            match self.0.get(path) {
                Some(now) if now == entry => {}
                Some(now) => {
                    let _ = writeln!(difference, "changed {path:?}: {entry} -> {now}");
                }
                None => {
                    let _ = writeln!(difference, "gone    {path:?}: {entry}");
                }
            }
        }
        for (path, entry) in &self.0 {
            if !before.0.contains_key(path) {
                let _ = writeln!(difference, "new     {path:?}: {entry}");
            }
        }
        assert!(difference.is_empty(), "{when}:\n{difference}");
        assert_eq!(self.hash(), before.hash(), "{when}");
    }
}

fn walk(dir: &Path, below: &Path, entries: &mut BTreeMap<PathBuf, String>) {
    let Ok(list) = fs::read_dir(dir) else { return };
    for entry in list.map(|e| e.expect("read_dir")) {
        let path = entry.path();
        let name = below.join(entry.file_name());
        let meta = fs::symlink_metadata(&path).expect("lstat");
        let kind = meta.file_type();
        let content = if kind.is_file() {
            fs::read(&path).map_or_else(|e| e.to_string(), |b| format!("{:016x}", hash(&b)))
        } else if kind.is_symlink() {
            format!("-> {:?}", fs::read_link(&path).expect("readlink"))
        } else {
            format!("dir {} fifo {}", kind.is_dir(), kind.is_fifo())
        };
        let (ino, nlink, mode) = (meta.ino(), meta.nlink(), meta.mode());
        let (uid, gid, size) = (meta.uid(), meta.gid(), meta.size());
        let (mtime, nanos) = (meta.mtime(), meta.mtime_nsec());
        entries.insert(
            name.clone(),
            format!("ino {ino} nlink {nlink} mode {mode:o} {uid}:{gid} size {size} at {mtime}.{nanos} {content}"),
        );
        if kind.is_dir() {
            walk(&path, &name, entries);
        }
    }
}

fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
    })
}
