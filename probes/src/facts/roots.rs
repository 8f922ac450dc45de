//! Where facts are read: the running system, or a recorded tree.
//!
//! A recorded tree has `proc`, `sys` and other paths below it as they were, and
//! `stat.json`: what system calls answered, by path, for files that the stack leads to.
//! `output/PROGRAM-ARGUMENT` is what a program wrote, by its last argument.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use super::{Held, program};
use crate::sys::errno;

/// See the module docs.
#[derive(Clone, Debug)]
pub struct Roots {
    /// `/proc`.
    pub proc: PathBuf,
    /// `/sys`.
    pub sys: PathBuf,
    /// `/`, for everything else.
    pub root: PathBuf,
    /// What system calls answer, by path; they are asked where this is `None`.
    pub recorded: Option<BTreeMap<String, Held>>,
}

impl Default for Roots {
    fn default() -> Self {
        Self {
            proc: "/proc".into(),
            sys: "/sys".into(),
            root: "/".into(),
            recorded: None,
        }
    }
}

impl Roots {
    /// A recorded tree.
    ///
    /// # Errors
    /// When `stat.json` cannot be read or parsed.
    pub fn recorded(tree: &Path) -> io::Result<Self> {
        let tree = tree.canonicalize()?;
        let text = fs::read(tree.join("stat.json"))?;
        Ok(Self {
            proc: tree.join("proc"),
            sys: tree.join("sys"),
            recorded: Some(serde_json::from_slice(&text)?),
            root: tree,
        })
    }

    /// Where `path`, as on the running system, really lies.
    #[must_use]
    pub fn at(&self, path: &str) -> PathBuf {
        let below = |prefix: &str| {
            path.strip_prefix(prefix)
                .filter(|rest| rest.is_empty() || rest.starts_with('/'))
                .map(|rest| rest.trim_start_matches('/'))
        };
        if let Some(rest) = below("/proc") {
            self.proc.join(rest)
        } else if let Some(rest) = below("/sys") {
            self.sys.join(rest)
        } else {
            self.root.join(path.trim_start_matches('/'))
        }
    }

    /// A file's content.
    pub(super) fn bytes(&self, path: &str) -> Result<Vec<u8>, String> {
        fs::read(self.at(path)).map_err(|e| why("read", path, &e))
    }

    /// A file's text without white space around it.
    pub(super) fn text(&self, path: &str) -> Result<String, String> {
        let bytes = self.bytes(path)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// A symbolic link's content.
    pub(super) fn link(&self, path: &str) -> Result<String, String> {
        fs::read_link(self.at(path))
            .map(|to| to.to_string_lossy().into_owned())
            .map_err(|e| why("readlink", path, &e))
    }

    /// What system calls say of the file at an absolute path.
    pub(super) fn held(&self, path: &Path) -> Result<Held, String> {
        let name = path.to_string_lossy();
        if !path.is_absolute() {
            return Err(format!("{name} is relative to an unknown directory"));
        }
        match &self.recorded {
            None => Held::of_path(path),
            Some(recorded) => recorded
                .get(name.as_ref())
                .cloned()
                .ok_or_else(|| format!("statx of {name}: not recorded")),
        }
    }

    /// What a program writes to its standard output.
    pub(super) fn program(&self, name: &str, arguments: &[&str]) -> Result<String, String> {
        if self.recorded.is_none() {
            return program::output(name, arguments);
        }
        let last = arguments.last().copied().unwrap_or_default();
        let file = format!("output/{name}-{}", last.replace('/', "_"));
        fs::read_to_string(self.root.join(file)).map_err(|_| format!("no program {name}"))
    }

    /// Whether system calls may be asked.
    pub(super) const fn is_live(&self) -> bool {
        self.recorded.is_none()
    }
}

/// A failed reading, in a fact's words.
pub(super) fn why(call: &str, path: &str, e: &io::Error) -> String {
    match e.raw_os_error() {
        Some(number) => format!("{call} of {path}: {}", errno::name(number)),
        None => format!("{call} of {path}: {e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_led_to_their_root() {
        let roots = Roots {
            proc: "/a/p".into(),
            sys: "/a/s".into(),
            root: "/a".into(),
            recorded: None,
        };
        for (path, at) in [
            ("/proc/self/mountinfo", "/a/p/self/mountinfo"),
            ("/proc", "/a/p"),
            ("/process/x", "/a/process/x"),
            ("/sys/block", "/a/s/block"),
            ("/system", "/a/system"),
            ("/etc/ld.so.preload", "/a/etc/ld.so.preload"),
        ] {
            assert_eq!(roots.at(path), Path::new(at));
        }
    }

    #[test]
    fn what_cannot_be_read_names_call_path_and_errno() {
        let roots = Roots::default();
        assert_eq!(
            roots.text("/proc/nonexistent").unwrap_err(),
            "read of /proc/nonexistent: ENOENT"
        );
        assert!(
            roots
                .held(Path::new("a/b"))
                .unwrap_err()
                .contains("relative")
        );
    }
}
