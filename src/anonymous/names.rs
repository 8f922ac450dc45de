//! The names of a report and what stands in their place.

use serde_json::Value;

use crate::error::quote;

/// Keys whose strings are prose or quotations: words and paths in them are replaced too.
const TEXTS: &[&str] = &[
    "source",
    "why",
    "text",
    "reason",
    "hint",
    "file",
    "model",
    "left_behind",
    "seen",
    "means",
    "advice",
    "cost",
    "applies_when",
    "not_when",
    "undo",
];
/// Keys whose strings are ours and are read by programs.
const OURS: &[&str] = &["pointer", "evidence", "id", "rule", "setting", "argv"];

/// Names and their placeholders.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Replaced wherever they stand.
    paths: Vec<(String, String)>,
    /// Replaced as whole words, in texts only.
    words: Vec<(String, String)>,
}

impl Names {
    /// A name that may be an ordinary word.
    pub(super) fn word(&mut self, word: &str, placeholder: &str) {
        if !word.is_empty() {
            self.words.push((word.to_owned(), placeholder.to_owned()));
        }
    }

    /// A path.
    pub(super) fn path(&mut self, path: &str, placeholder: &str) {
        if path.trim_matches('/').is_empty() || self.paths.iter().any(|(p, _)| p == path) {
            return;
        }
        self.paths.push((path.to_owned(), placeholder.to_owned()));
        // Commands in hints have it quoted.
        let quoted = quote(path);
        if quoted != path {
            self.paths.push((quoted, placeholder.to_owned()));
        }
        // The longer first: a path within another is not cut.
        self.paths.sort_by_key(|(p, _)| std::cmp::Reverse(p.len()));
    }

    /// What may be a path or a bare word.
    pub(super) fn given(&mut self, given: &str, placeholder: &str) {
        let bare = given.trim_end_matches('/');
        if bare.trim_matches(['.', '/']).is_empty() {
            return;
        }
        if bare.contains('/') {
            self.path(bare, placeholder);
        } else {
            self.word(bare, placeholder);
        }
    }

    /// The placeholder of a name, a new one of its kind where it has none.
    pub(super) fn numbered(&mut self, name: &str, kind: &str) -> String {
        let mut known = self.paths.iter().chain(&self.words);
        if let Some((_, placeholder)) = known.find(|(n, _)| n == name) {
            return placeholder.clone();
        }
        let prefix = format!("{kind}-");
        let known = self.paths.iter().chain(&self.words);
        let before = known.filter(|(_, p)| p.starts_with(&prefix));
        let placeholder = format!("{prefix}{}", before.count() + 1);
        self.given(name, &placeholder);
        placeholder
    }

    /// A device's name: the kernel's own ones have no underscore, `md_home` is a person's.
    pub(super) fn device(&mut self, name: &str) -> String {
        if name.contains('_') {
            self.numbered(name, "DEVICE")
        } else {
            name.to_owned()
        }
    }

    /// Replaces them in every string of a document.
    pub(super) fn replace_in(&self, document: &mut Value) {
        self.walk("", document);
    }

    fn walk(&self, key: &str, value: &mut Value) {
        match value {
            Value::String(text) if !OURS.contains(&key) => *text = self.replaced(key, text),
            Value::Array(items) => items.iter_mut().for_each(|v| self.walk(key, v)),
            Value::Object(map) => map.iter_mut().for_each(|(key, v)| self.walk(key, v)),
            _ => {}
        }
    }

    fn replaced(&self, key: &str, text: &str) -> String {
        let mut out = text.to_owned();
        for (path, placeholder) in &self.paths {
            out = replace_word(&out, path, placeholder);
        }
        if TEXTS.contains(&key) {
            // Paths first: in those that stay, a part is not that word.
            out = hide_paths(&hide_uuids(&out));
            for (word, placeholder) in &self.words {
                out = replace_word(&out, word, placeholder);
            }
        }
        out
    }
}

/// Replaces `word` where it is not part of a longer one.
fn replace_word(text: &str, word: &str, by: &str) -> String {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (at, _) in text.match_indices(word) {
        let end = at + word.len();
        let inner = |c: char| part(c) && word.starts_with(part);
        let cut = text[..at].ends_with(inner)
            || (!word.contains('/') && text[..at].ends_with('/'))
            || text[end..].starts_with(part);
        if at >= done && !cut {
            out.push_str(&text[done..at]);
            out.push_str(by);
            done = end;
        }
    }
    out + &text[done..]
}

/// UUIDs name a filesystem or a machine.
fn hide_uuids(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let fresh = !out.ends_with(|c: char| c.is_ascii_alphanumeric());
        if fresh && rest.get(..36).is_some_and(uuid) {
            out.push_str("UUID");
            rest = &rest[36..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

fn uuid(text: &str) -> bool {
    text.char_indices().all(|(at, c)| match at {
        8 | 13 | 18 | 23 => c == '-',
        _ => c.is_ascii_hexdigit(),
    })
}

/// Replaces every absolute path that is not the kernel's.
fn hide_paths(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let begins = !out.ends_with(|c: char| c.is_alphanumeric() || "/_-.+*@%)".contains(c));
        let length = from
            .find(|c: char| c.is_whitespace() || "\"'(),;:<>|`".contains(c))
            .unwrap_or(from.len());
        let path = from[..length].trim_end_matches('.');
        if begins && path.len() > 1 {
            out.push_str(&shown(path));
            rest = &from[path.len()..];
        } else {
            out.push('/');
            rest = &from[1..];
        }
    }
    out + rest
}

/// What is shown of a path: all of the kernel's own, but for names that people gave.
fn shown(path: &str) -> String {
    let below = |root: &str| path.strip_prefix(root);
    if let Some(device) = below("/dev/") {
        return if device.contains(['/', '_']) {
            "PATH".to_owned()
        } else {
            path.to_owned()
        };
    }
    for (root, name) in [
        ("/sys/fs/cgroup/", "GROUP"),
        ("/proc/spl/kstat/zfs/", "POOL"),
    ] {
        if let Some((_, last)) = below(root).and_then(|rest| rest.rsplit_once('/')) {
            return format!("{root}{name}/{last}");
        }
    }
    let kernel = [
        "/proc/",
        "/sys/",
        "/targets/",
        "/host/",
        "/etc/ld.so.preload",
    ];
    if kernel.iter().any(|root| path.starts_with(root)) {
        return path.to_owned();
    }
    "PATH".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_people_are_hidden_and_the_kernels_are_not() {
        for (text, shown) in [
            ("pwrite of /srv/a b: EIO", "pwrite of PATH b: EIO"),
            ("see /proc/self/mountinfo, /sys/block/vda/stat", ""),
            ("read/write and/or 1/2, n/a", ""),
            ("`/home/bob/x`.", "`PATH`."),
            ("file /mnt/x.", "file PATH."),
            ("/dev/sda1 and /dev/mapper/db1-root", "/dev/sda1 and PATH"),
            (
                "/sys/fs/cgroup/user.slice/bob/memory.max",
                "/sys/fs/cgroup/GROUP/memory.max",
            ),
            ("/sys/fs/cgroup/memory.max", ""),
        ] {
            let expected = if shown.is_empty() { text } else { shown };
            assert_eq!(hide_paths(text), expected);
        }
    }

    #[test]
    fn uuids_are_hidden() {
        assert_eq!(
            hide_uuids("/sys/fs/btrfs/01234567-89ab-cdef-0123-456789abcdef/x"),
            "/sys/fs/btrfs/UUID/x"
        );
        assert_eq!(hide_uuids("caf\u{e9} 0123-4567"), "caf\u{e9} 0123-4567");
    }

    #[test]
    fn a_name_is_replaced_as_a_whole() {
        assert_eq!(
            replace_word("/a/b, /a/bc, /a/b/c", "/a/b", "D"),
            "D, /a/bc, D/c"
        );
        assert_eq!(
            replace_word("db1 db10 xdb1 db1.", "db1", "H"),
            "H db10 xdb1 H."
        );
        assert_eq!(replace_word("/proc/sys/vm/x", "vm", "H"), "/proc/sys/vm/x");
        assert_eq!(replace_word("in /a/b: x", "/a/b", "D"), "in D: x");
    }

    #[test]
    fn the_same_name_has_the_same_placeholder() {
        let mut names = Names::default();
        assert_eq!(names.numbered("/a", "FILE"), "FILE-1");
        assert_eq!(names.numbered("/a/b", "FILE"), "FILE-2");
        assert_eq!(names.numbered("/a", "MOUNT"), "FILE-1");
        let mut value = serde_json::json!({"reason": "/a/b/c in /a", "id": "/a"});
        names.replace_in(&mut value);
        assert_eq!(
            value,
            serde_json::json!({"reason": "FILE-2/c in FILE-1", "id": "/a"})
        );
    }
}
