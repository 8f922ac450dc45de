//! `/proc/self/mountinfo` (proc_pid_mountinfo(5)): which mount an id means.
//!
//! Lines are bytes: paths need not be text, and white space in them is written in octal.
//! A mount is found by its id, never by the longest matching path, which bind mounts and
//! overmounts would mislead. The last field takes the rest of the line, since some
//! filesystems have written their options with spaces.
//!
//! <https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html>

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its id, as statx tells it.
    pub id: u64,
    /// The id of the mount it is attached to.
    pub parent: u64,
    /// The filesystem's device, as `st_dev`: major, minor.
    pub dev: (u32, u32),
    /// The directory of the filesystem that is seen at the mount point.
    pub root: PathBuf,
    /// Where it is seen.
    pub point: PathBuf,
    /// Options of the mount.
    pub options: String,
    /// `ext4`, `fuse.sshfs`, `nfs4`.
    pub fs_type: String,
    /// What was mounted: a device, a server, or any word.
    pub source: String,
    /// Options of the filesystem, still escaped: a comma in a path is no separator.
    pub super_options: String,
}

impl Mount {
    /// The mount's and the filesystem's options, those that both have once.
    #[must_use]
    pub fn all_options(&self) -> String {
        let mut all: Vec<&str> = self.options.split(',').filter(|o| !o.is_empty()).collect();
        let own = all.clone();
        let read_only = self.super_option("ro").is_some();
        for option in split(&self.super_options) {
            // The mount's own ro or rw stands first; a read-only filesystem overrules it.
            if !own.contains(&option) && !matches!(option, "ro" | "rw") && !option.is_empty() {
                all.push(option);
            }
        }
        if read_only {
            for option in &mut all {
                if *option == "rw" {
                    *option = "ro";
                }
            }
        }
        text(unescape(all.join(",").as_bytes()))
    }

    /// The value of a filesystem's option, unescaped; empty for one that has none.
    #[must_use]
    pub fn super_option(&self, name: &str) -> Option<String> {
        split(&self.super_options).into_iter().find_map(|option| {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            (key == name).then(|| text(unescape(value.as_bytes())))
        })
    }

    /// As [`super_option`](Self::super_option), for a path: also a comma may be escaped.
    #[must_use]
    pub fn super_path(&self, name: &str) -> Option<PathBuf> {
        self.super_option(name)
            .map(|value| PathBuf::from(value.replace("\\,", ",").replace("\\\\", "\\")))
    }
}

/// Parses a whole file; a line that is no mount is left out.
#[must_use]
pub fn parse(bytes: &[u8]) -> Vec<Mount> {
    bytes
        .split(|&b| b == b'\n')
        .filter_map(parse_line)
        .collect()
}

/// Parses one line; none if it is no mount.
#[must_use]
pub fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&b| b == b' ');
    let id = number(fields.next()?)?;
    let parent = number(fields.next()?)?;
    let dev = std::str::from_utf8(fields.next()?).ok()?.split_once(':')?;
    let dev = (dev.0.parse().ok()?, dev.1.parse().ok()?);
    let root = path(fields.next()?);
    let point = path(fields.next()?);
    let options = text(unescape(fields.next()?));
    // Zero or more optional fields, then a hyphen.
    fields.find(|field| *field == b"-")?;
    let fs_type = text(unescape(fields.next()?));
    let source = text(unescape(fields.next()?));
    let rest: Vec<&[u8]> = fields.collect();
    if fs_type.is_empty() || rest.is_empty() {
        return None;
    }
    Some(Mount {
        id,
        parent,
        dev,
        root,
        point,
        options,
        fs_type,
        source,
        super_options: text(rest.join(&b' ')),
    })
}

fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn path(field: &[u8]) -> PathBuf {
    Path::new(&OsString::from_vec(unescape(field))).to_path_buf()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Splits options at commas that no backslash precedes.
fn split(options: &str) -> Vec<&str> {
    let bytes = options.as_bytes();
    let mut parts = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b',' => {
                parts.push(&options[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    parts.push(&options[start.min(options.len())..]);
    parts
}

/// Undoes `\ooo`.
pub(super) fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let code = (first == b'\\')
            .then(|| tail.get(..3))
            .flatten()
            .filter(|d| d.iter().all(|b| (b'0'..=b'7').contains(b)))
            .map(|d| d.iter().fold(0u32, |sum, b| sum * 8 + u32::from(b - b'0')))
            .and_then(|code| u8::try_from(code).ok());
        match code {
            Some(code) => {
                out.push(code);
                rest = &tail[3..];
            }
            None => {
                out.push(first);
                rest = tail;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_field_of_a_usual_line() {
        let line =
            b"36 35 98:1 /sub /mnt rw,noatime shared:1 master:2 - ext3 /dev/root rw,nobarrier";
        assert_eq!(
            parse_line(line).unwrap(),
            Mount {
                id: 36,
                parent: 35,
                dev: (98, 1),
                root: "/sub".into(),
                point: "/mnt".into(),
                options: "rw,noatime".into(),
                fs_type: "ext3".into(),
                source: "/dev/root".into(),
                super_options: "rw,nobarrier".into(),
            }
        );
    }

    #[test]
    fn escapes_odd_bytes_and_empty_fields() {
        let line = b"1 2 0:3 / /a\\040b\\134c\\011\xff\\012 rw - tmpfs  rw,size=1k and more";
        let mount = parse_line(line).unwrap();
        assert_eq!(mount.point.as_os_str().as_bytes(), b"/a b\\c\t\xff\n");
        assert_eq!(mount.source, "");
        assert_eq!(mount.super_options, "rw,size=1k and more");
        // Not octal, or too large for a byte: left as it is.
        assert_eq!(unescape(b"\\9x\\7\\777\\040"), b"\\9x\\7\\777 ");
    }

    #[test]
    fn options_of_mount_and_filesystem_are_merged() {
        let mount = |options: &str, super_options: &str| Mount {
            options: options.into(),
            super_options: super_options.into(),
            ..parse_line(b"1 2 0:3 / / rw - ext4 /dev/x rw").unwrap()
        };
        assert_eq!(mount("rw,relatime", "rw").all_options(), "rw,relatime");
        assert_eq!(
            mount("ro,relatime", "rw,nobarrier").all_options(),
            "ro,relatime,nobarrier"
        );
        assert_eq!(
            mount("rw", "ro,data=ordered").all_options(),
            "ro,data=ordered"
        );
        let overlay = mount("rw", "rw,upperdir=/u\\134,1\\040x,volatile,a\\,b=c");
        assert_eq!(overlay.super_path("upperdir").unwrap(), Path::new("/u\\"));
        assert_eq!(overlay.super_option("volatile").unwrap(), "");
        assert_eq!(overlay.super_option("volat"), None);
        let comma = mount("rw", "rw,upperdir=/u\\,v\\040w,workdir=/x");
        assert_eq!(comma.super_path("upperdir").unwrap(), Path::new("/u,v w"));
        assert_eq!(comma.super_path("workdir").unwrap(), Path::new("/x"));
    }

    #[test]
    fn lines_that_are_no_mounts_are_refused() {
        for line in [
            &b""[..],
            b"1",
            b"x 2 0:3 / / rw - ext4 /dev/x rw",
            b"1 2 03 / / rw - ext4 /dev/x rw",
            b"1 2 0:3 / / rw ext4 /dev/x rw",
            b"1 2 0:3 / / rw - ext4 /dev/x",
            b"1 2 0:3 / / rw -  /dev/x rw",
        ] {
            assert_eq!(parse_line(line), None, "{}", String::from_utf8_lossy(line));
        }
    }

    fn escape(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for &b in bytes {
            if matches!(b, b' ' | b'\t' | b'\n' | b'\\' | b'#') {
                out.extend_from_slice(format!("\\{b:03o}").as_bytes());
            } else {
                out.push(b);
            }
        }
        out
    }

    proptest! {
        #[test]
        fn any_line_is_parsed_or_refused(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&line);
        }

        #[test]
        fn any_path_comes_back(
            path in proptest::collection::vec(1u8..=255, 1..40),
            optional in 0usize..4,
        ) {
            let mut line = b"7 1 8:1 / ".to_vec();
            line.extend(escape(&path));
            line.extend_from_slice(b" rw ");
            line.extend(b"shared:5 ".repeat(optional));
            line.extend_from_slice(b"- xfs /dev/sda1 rw");
            let mount = parse_line(&line).unwrap();
            prop_assert_eq!(mount.point.as_os_str().as_bytes(), &path[..]);
            prop_assert_eq!(mount.fs_type, "xfs");
        }

        #[test]
        fn split_loses_nothing(options in "[a-z,=\\\\/]{0,40}") {
            prop_assert_eq!(split(&options).join(","), options);
        }
    }

    /// What this system mounts is understood, line for line.
    #[test]
    fn the_running_systems_own_table() {
        let bytes = std::fs::read("/proc/self/mountinfo").unwrap();
        let lines = bytes.split(|&b| b == b'\n').filter(|l| !l.is_empty());
        assert_eq!(parse(&bytes).len(), lines.count());
    }
}
