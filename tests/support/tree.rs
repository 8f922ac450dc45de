//! What a directory holds: names, types, modes, owners, contents, times.
//!
//! Two readings are compared to show that a directory is exactly as it was. Left
//! out is only what a run that makes and removes its own folder must change: the
//! modification time of the top directory itself.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// One reading of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree(BTreeMap<PathBuf, Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    kind: &'static str,
    mode: u32,
    owner: (u32, u32),
    links: u64,
    modified: Option<(i64, i64)>,
    content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    None,
    File { bytes: u64, hash: u64 },
    Link(PathBuf),
}

impl Tree {
    /// Reads a directory and all below it; follows no link and opens only regular files.
    ///
    /// # Errors
    /// Something cannot be read.
    pub fn read(root: &Path) -> Result<Self, String> {
        let mut entries = BTreeMap::new();
        let mut left = vec![root.to_path_buf()];
        while let Some(path) = left.pop() {
            let say = |error| format!("cannot read {}: {error}", path.display());
            let metadata = fs::symlink_metadata(&path).map_err(say)?;
            if metadata.is_dir() {
                for entry in fs::read_dir(&path).map_err(say)? {
                    left.push(entry.map_err(say)?.path());
                }
            }
            let name = path.strip_prefix(root).unwrap_or(&path).to_path_buf();
            let mut entry = Entry::read(&path, &metadata).map_err(say)?;
            if name.as_os_str().is_empty() {
                entry.modified = None;
                entry.links = 0;
            }
            entries.insert(name, entry);
        }
        Ok(Self(entries))
    }

    /// What differs, one line each; empty where nothing does.
    #[must_use]
    pub fn differences(&self, after: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for (path, entry) in &self.0 {
            match after.0.get(path) {
                None => lines.push(format!("{} is gone", path.display())),
                Some(now) if now != entry => {
                    lines.push(format!("{}: was {entry:?}, is {now:?}", path.display()));
                }
                Some(_) => {}
            }
        }
        for path in after.0.keys().filter(|path| !self.0.contains_key(*path)) {
            lines.push(format!("{} is new", path.display()));
        }
        lines
    }

    /// Fails where the directory is no longer as this reading says.
    ///
    /// # Errors
    /// Every difference.
    pub fn unchanged(&self, root: &Path) -> Result<(), String> {
        let lines = self.differences(&Self::read(root)?);
        if lines.is_empty() {
            return Ok(());
        }
        Err(format!(
            "{} is not as it was: {}",
            root.display(),
            lines.join("; ")
        ))
    }
}

impl Entry {
    fn read(path: &Path, metadata: &Metadata) -> std::io::Result<Self> {
        let kind = metadata.file_type();
        let (kind, content) = if kind.is_file() {
            ("file", read_file(path)?)
        } else if kind.is_dir() {
            ("folder", Content::None)
        } else if kind.is_symlink() {
            ("link", Content::Link(fs::read_link(path)?))
        } else if kind.is_fifo() {
            ("fifo", Content::None)
        } else {
            ("other", Content::None)
        };
        Ok(Self {
            kind,
            mode: metadata.mode(),
            owner: (metadata.uid(), metadata.gid()),
            links: metadata.nlink(),
            modified: Some((metadata.mtime(), metadata.mtime_nsec())),
            content,
        })
    }
}

fn read_file(path: &Path) -> std::io::Result<Content> {
    let mut file = fs::File::open(path)?;
    let mut hasher = DefaultHasher::new();
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hasher.write(&buffer[..read]);
        bytes += read as u64;
    }
    Ok(Content::File {
        bytes,
        hash: hasher.finish(),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::work::WorkFolder;

    /// Each change must show; the time of the top directory must not.
    #[test]
    fn every_change_shows() -> Result<(), Box<dyn std::error::Error>> {
        let work = WorkFolder::new(&std::env::temp_dir())?;
        let root = work.folder("tree")?;
        fs::create_dir(root.join("below"))?;
        fs::write(root.join("below/file"), "one")?;
        std::os::unix::fs::symlink("file", root.join("below/link"))?;
        let before = Tree::read(&root)?;

        fs::write(root.join("new"), "")?;
        assert_eq!(
            before.differences(&Tree::read(&root)?),
            ["new is new".to_owned()]
        );
        fs::remove_file(root.join("new"))?;
        assert_eq!(before.unchanged(&root), Ok(()));

        let modified = fs::metadata(root.join("below/file"))?.modified()?;
        fs::write(root.join("below/file"), "two")?;
        fs::File::options()
            .write(true)
            .open(root.join("below/file"))?
            .set_modified(modified)?;
        assert!(before.unchanged(&root).is_err(), "same size, other content");
        fs::write(root.join("below/file"), "one")?;
        assert!(before.unchanged(&root).is_err(), "same content, other time");
        let file = fs::File::options()
            .write(true)
            .open(root.join("below/file"))?;
        file.set_modified(modified)?;
        assert_eq!(before.unchanged(&root), Ok(()));

        fs::set_permissions(root.join("below"), fs::Permissions::from_mode(0o700))?;
        assert!(before.unchanged(&root).is_err(), "mode");
        Ok(())
    }
}
