//! Paths as text, and back.
//!
//! A Linux path is bytes without NUL; reports and messages are UTF-8. [`show`] is for
//! people: what a terminal would act on (control characters, direction marks) and bytes
//! that are not UTF-8 appear as escapes, a backslash is doubled so that the text is
//! unambiguous, everything else stands as it is. [`to_request`] is for
//! [`Request::dir`](crate::request::Request): the path itself where it is UTF-8, else
//! each foreign byte as NUL and two hexadecimal digits, which no path can contain.

use std::{
    ffi::OsString,
    fmt::Write as _,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

/// A path for people: one line, valid UTF-8, unambiguous.
#[must_use]
pub fn show(path: &Path) -> String {
    show_bytes(path.as_os_str().as_bytes())
}

/// A file name for people, as [`show`].
#[must_use]
pub fn show_bytes(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "\"\"".to_owned();
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' | '\n' | '\t' | '\r' => text.extend(c.escape_default()),
                c if c.is_ascii_control() => push_hex(&mut text, "\\x", c as u8),
                c if c.is_control() || is_invisible(c) => text.extend(c.escape_unicode()),
                c => text.push(c),
            }
        }
        for &byte in chunk.invalid() {
            push_hex(&mut text, "\\x", byte);
        }
    }
    text
}

/// A path as [`Request::dir`](crate::request::Request) carries it.
#[must_use]
pub fn to_request(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for &byte in chunk.invalid() {
            push_hex(&mut text, "\0", byte);
        }
    }
    text
}

/// The path that [`to_request`] was given. A NUL that it did not write stays, and no path
/// with a NUL can be opened.
#[must_use]
pub fn from_request(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        match (first, after.split_first_chunk::<2>().and_then(from_hex)) {
            (0, Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

fn push_hex(text: &mut String, mark: &str, byte: u8) {
    // Writing to a String cannot fail.
    let _ = write!(text, "{mark}{byte:02x}");
}

fn from_hex((digits, _): (&[u8; 2], &[u8])) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok()?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u8::from_str_radix(text, 16).ok()
}

/// Format characters that change how the text around them is shown.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ffi::OsStr;

    fn path(bytes: &[u8]) -> &Path {
        Path::new(OsStr::from_bytes(bytes))
    }

    #[test]
    fn ordinary_paths_stand_as_they_are() {
        for plain in ["/mnt/zfs/my data", "/srv/b\u{fc}cher", "rel/./x'y\"z"] {
            assert_eq!(show(Path::new(plain)), plain);
            assert_eq!(to_request(Path::new(plain)), plain);
        }
    }

    #[test]
    fn what_a_terminal_would_act_on_is_escaped() {
        assert_eq!(show(path(b"/a\nb\x1b[2J\\n")), r"/a\nb\x1b[2J\\n");
        assert_eq!(show(path(b"/\xff\xfe/x")), r"/\xff\xfe/x");
        assert_eq!(show(Path::new("/\u{202e}x")), r"/\u{202e}x");
        assert_eq!(show(Path::new("")), "\"\"");
    }

    proptest! {
        #[test]
        fn any_path_survives_the_request(bytes in proptest::collection::vec(1_u8.., 0..40)) {
            let text = to_request(path(&bytes));
            prop_assert_eq!(from_request(&text), path(&bytes));
        }

        #[test]
        fn different_paths_are_shown_differently(
            a in proptest::collection::vec(prop_oneof![Just(b'\\'), Just(b'x'), Just(b'n'), Just(b'\n'), Just(b'f'), Just(0xff)], 1..6),
            b in proptest::collection::vec(prop_oneof![Just(b'\\'), Just(b'x'), Just(b'n'), Just(b'\n'), Just(b'f'), Just(0xff)], 1..6),
        ) {
            prop_assert_eq!(a == b, show_bytes(&a) == show_bytes(&b));
        }
    }
}
