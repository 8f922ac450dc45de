//! Files of the user's that walprobe must not touch: ordinary ones, and ones
//! that look like its own.
//!
//! The look-alikes have the names that a scratch folder and the files in it have,
//! and contents that are not walprobe's; one is a link to a folder outside the
//! directory, so that following it would show there.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::command::run;
use crate::tree::Tree;

/// How a scratch folder's name begins.
pub const SCRATCH_PREFIX: &str = "walprobe-";

/// A directory with the user's files, as they were planted.
#[derive(Debug)]
pub struct Bystanders {
    dir: PathBuf,
    elsewhere: PathBuf,
    before: (Tree, Tree),
}

impl Bystanders {
    /// Plants them in `dir`; `elsewhere` is a folder outside it that links point to.
    ///
    /// # Errors
    /// A file cannot be made.
    pub fn plant(dir: &Path, elsewhere: &Path) -> Result<Self, String> {
        plant(dir, elsewhere)
            .map_err(|error| format!("cannot plant files in {}: {error}", dir.display()))?;
        Ok(Self {
            dir: dir.to_path_buf(),
            elsewhere: elsewhere.to_path_buf(),
            before: (Tree::read(dir)?, Tree::read(elsewhere)?),
        })
    }

    /// Gives everything, the directory too, to another user.
    ///
    /// # Errors
    /// chown refuses.
    pub fn owned_by(self, user: &str) -> Result<Self, String> {
        for folder in [&self.dir, &self.elsewhere] {
            let folder = folder.display().to_string();
            run("chown", &["-R", "-h", &format!("{user}:{user}"), &folder])?;
        }
        Ok(Self {
            before: (Tree::read(&self.dir)?, Tree::read(&self.elsewhere)?),
            ..self
        })
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Everything is as it was planted, and nothing was added.
    ///
    /// # Errors
    /// Every difference.
    pub fn untouched(&self) -> Result<(), String> {
        self.before.0.unchanged(&self.dir)?;
        self.before.1.unchanged(&self.elsewhere)
    }

    /// Scratch folders that are in the directory now: none of ours.
    #[must_use]
    pub fn scratch_folders(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.dir) else {
            return Vec::new();
        };
        entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with(SCRATCH_PREFIX) && !LOOK_ALIKES.contains(&&*name)
            })
            .collect()
    }
}

const LOOK_ALIKES: [&str; 4] = [
    "walprobe-01JDW3K9ZQ4T-abcdef",
    "walprobe-01JDW3K9ZQ4V-abcdef",
    "walprobe-01JDW3K9ZQ4W-abcdef",
    "walprobe-01JDW3K9ZQ4X-abcdef",
];

fn plant(dir: &Path, elsewhere: &Path) -> std::io::Result<()> {
    // 2001: a rewritten file shows by its time.
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let write = |path: PathBuf, content: &[u8], mode: u32| -> std::io::Result<()> {
        fs::write(&path, content)?;
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        File::options().write(true).open(&path)?.set_modified(old)
    };

    let treasure = elsewhere.join("treasure");
    write(treasure.clone(), b"not in the directory\n", 0o644)?;
    write(elsewhere.join("seg-1"), b"nor this\n", 0o600)?;

    write(dir.join("notes.txt"), b"the user's\n", 0o644)?;
    write(dir.join(".hidden"), b"", 0o600)?;
    write(dir.join("seg-1"), b"a segment of the user's\n", 0o600)?;
    write(dir.join("undo"), b"[]\n", 0o600)?;
    write(
        dir.join("big"),
        &(0..1_u32 << 18)
            .flat_map(u32::to_le_bytes)
            .collect::<Vec<_>>(),
        0o640,
    )?;
    fs::hard_link(dir.join("notes.txt"), dir.join("notes-too.txt"))?;
    symlink(&treasure, dir.join("seg-2"))?;
    symlink("nowhere", dir.join("dangling"))?;
    fs::create_dir_all(dir.join("folder/empty"))?;
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        dir.join("fifo"),
        rustix::fs::Mode::from_raw_mode(0o600),
    )?;

    let [folder, link, file, linked_undo] = LOOK_ALIKES.map(|name| dir.join(name));
    fs::create_dir(&folder)?;
    write(folder.join("seg-1"), b"keep me\n", 0o600)?;
    let undo = format!(
        "umount {}\nrm {}\n",
        elsewhere.display(),
        treasure.display()
    );
    write(folder.join("undo"), undo.as_bytes(), 0o600)?;
    fs::create_dir(folder.join("nested"))?;
    write(folder.join("nested/seg-2"), b"me too\n", 0o600)?;
    fs::set_permissions(&folder, Permissions::from_mode(0o700))?;

    symlink(elsewhere, link)?;
    write(file, b"a file with a scratch folder's name\n", 0o600)?;

    fs::create_dir(&linked_undo)?;
    symlink(&treasure, linked_undo.join("undo"))?;
    symlink(elsewhere, linked_undo.join("seg-1"))?;
    fs::set_permissions(&linked_undo, Permissions::from_mode(0o700))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::WorkFolder;

    #[test]
    fn look_alikes_are_not_taken_for_scratch_and_are_missed_when_gone()
    -> Result<(), Box<dyn std::error::Error>> {
        let work = WorkFolder::new(&std::env::temp_dir())?;
        let bystanders = Bystanders::plant(&work.folder("dir")?, &work.folder("elsewhere")?)?;
        assert_eq!(bystanders.scratch_folders(), Vec::<PathBuf>::new());
        assert_eq!(bystanders.untouched(), Ok(()));

        let scratch = bystanders.dir().join("walprobe-01JDW3K9ZQ4T-zzzzzz");
        fs::create_dir(&scratch)?;
        assert_eq!(bystanders.scratch_folders(), [scratch.as_path()]);
        assert!(bystanders.untouched().is_err());
        fs::remove_dir(&scratch)?;
        assert_eq!(bystanders.untouched(), Ok(()));

        fs::remove_file(work.path().join("elsewhere/seg-1"))?;
        assert!(bystanders.untouched().is_err());
        Ok(())
    }
}
