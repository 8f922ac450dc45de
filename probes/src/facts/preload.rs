//! Libraries that are loaded into programs before their own (ld.so(8)).
//!
//! libeatmydata and its like make every fsync a lie. This program's own calls may not go
//! through them, but those of a server started in the same environment do. Both places are
//! read: `LD_PRELOAD` in this process's environment as it was started, and
//! `/etc/ld.so.preload`, which concerns every program.

use super::{Roots, absent, known};
use crate::report::Fact;

const ENVIRON: &str = "/proc/self/environ";
const EVERYONE: &str = "/etc/ld.so.preload";

/// Parts of the names of libraries whose purpose is to swallow syncs.
const SWALLOWERS: &[&str] = &["eatmydata", "nosync", "fakesync", "libnofsync"];

/// The library exists to answer syncs without doing them.
#[must_use]
pub fn swallows_syncs(library: &str) -> bool {
    let name = library.rsplit('/').next().unwrap_or(library).to_lowercase();
    SWALLOWERS.iter().any(|part| name.contains(part))
}

/// `host.preload`: the libraries, separated by spaces, or `none`.
pub(super) fn fact(roots: &Roots) -> Fact {
    let environ = roots.bytes(ENVIRON).map(|bytes| {
        bytes
            .split(|&b| b == 0)
            .find_map(|variable| variable.strip_prefix(b"LD_PRELOAD="))
            .map(words)
            .unwrap_or_default()
    });
    let everyone = if roots.at(EVERYONE).exists() {
        roots.bytes(EVERYONE).map(|bytes| words(&bytes))
    } else {
        Ok(Vec::new())
    };
    let mut source = Vec::new();
    let mut found = Vec::new();
    for (place, list) in [(ENVIRON, &environ), (EVERYONE, &everyone)] {
        if let Ok(list) = list
            && !list.is_empty()
        {
            source.push(place);
            found.extend(list.iter().cloned());
        }
    }
    if !found.is_empty() {
        return known(found.join(" "), source.join(", "));
    }
    match environ.and(everyone) {
        Ok(_) => known("none", format!("{ENVIRON}, {EVERYONE}")),
        Err(why) => absent(format!("{ENVIRON}, {EVERYONE}"), why),
    }
}

fn words(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes)
        .split(|c: char| c == ':' || c.is_whitespace())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(environ: Option<&str>, everyone: Option<&str>) -> Fact {
        let root = tempfile::tempdir().unwrap();
        let roots = Roots {
            proc: root.path().join("proc"),
            sys: root.path().join("sys"),
            root: root.path().to_owned(),
            recorded: None,
        };
        for dir in ["proc/self", "etc"] {
            std::fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        if let Some(text) = environ {
            std::fs::write(root.path().join("proc/self/environ"), text).unwrap();
        }
        if let Some(text) = everyone {
            std::fs::write(root.path().join("etc/ld.so.preload"), text).unwrap();
        }
        fact(&roots)
    }

    #[test]
    fn both_places_are_read() {
        let fact = told(
            Some("A=1\0LD_PRELOAD=/l/liba.so:libb.so c.so\0B=LD_PRELOAD=x\0"),
            Some("/l/libd.so\n"),
        );
        assert_eq!(fact.value, "/l/liba.so libb.so c.so /l/libd.so");
        assert_eq!(fact.source, "/proc/self/environ, /etc/ld.so.preload");
        assert_eq!(told(Some("A=1\0"), None).value, "none");
        assert_eq!(told(Some(""), Some("libd.so")).source, "/etc/ld.so.preload");
        let unread = told(None, None);
        assert!(unread.value.is_null());
        assert!(unread.why.unwrap().contains("ENOENT"));
    }

    #[test]
    fn swallowers_are_known_by_the_file_not_the_folder() {
        for library in [
            "libeatmydata.so",
            "/usr/lib/x/libeatmydata.so.1",
            "nosync.so",
        ] {
            assert!(swallows_syncs(library), "{library}");
        }
        for library in ["libjemalloc.so.2", "/opt/eatmydata/libjemalloc.so", "none"] {
            assert!(!swallows_syncs(library), "{library}");
        }
    }
}
