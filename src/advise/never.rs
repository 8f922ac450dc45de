//! Values that no rule may recommend, whatever was measured: each trades durability for
//! time, or is meant for developers only.

/// Settings and the value of each that is never recommended; `None` bars every value.
const NEVER: &[(&str, Option<Barred>)] = &[
    ("fsync", Some(Barred::Off)),
    ("full_page_writes", Some(Barred::Off)),
    ("data_sync_retry", Some(Barred::On)),
    ("debug_io_direct", None),
    ("io_direct", None),
    ("zfs.sync", Some(Barred::Word("disabled"))),
    ("sync", Some(Barred::Word("disabled"))),
    ("barrier", Some(Barred::Off)),
];

/// Words of mount options that turn barriers off or forget what was synced.
const NEVER_MOUNTED: &[&str] = &[
    "nobarrier",
    "barrier=0",
    "barrier=none",
    "barrier=off",
    "volatile",
];

#[derive(Clone, Copy, Debug)]
enum Barred {
    On,
    Off,
    Word(&'static str),
}

/// Whether `value` is never recommended for `setting`.
#[must_use]
pub fn never(setting: &str, value: &str) -> bool {
    let setting = setting.trim().to_ascii_lowercase();
    let value = value
        .trim()
        .trim_matches(|c| c == '\'' || c == '"')
        .to_ascii_lowercase();
    let barred = NEVER.iter().any(|(name, barred)| {
        *name == setting
            && match barred {
                None => true,
                Some(Barred::On) => boolean(&value) == Some(true),
                Some(Barred::Off) => boolean(&value) == Some(false),
                Some(Barred::Word(word)) => value == *word,
            }
    });
    barred
        || value
            .split([',', ' '])
            .any(|option| NEVER_MOUNTED.contains(&option) || option == "sync=disabled")
}

/// A boolean as PostgreSQL reads it: whole words and their unambiguous beginnings.
fn boolean(value: &str) -> Option<bool> {
    let begins = |word: &str, least: usize| value.len() >= least && word.starts_with(value);
    if value == "1" || begins("true", 1) || begins("yes", 1) || begins("on", 2) {
        Some(true)
    } else if value == "0" || begins("false", 1) || begins("no", 1) || begins("off", 2) {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::never;

    #[test]
    fn every_spelling_is_barred() {
        for value in ["off", "OFF", " of ", "'off'", "0", "false", "f", "no", "n"] {
            assert!(never("fsync", value), "fsync = {value}");
            assert!(
                never("full_page_writes", value),
                "full_page_writes = {value}"
            );
        }
        for value in ["on", "1", "t", "yes"] {
            assert!(never("data_sync_retry", value), "data_sync_retry = {value}");
        }
        assert!(never("debug_io_direct", "wal"));
        assert!(never("zfs.sync", "disabled"));
        assert!(never("mount.options", "rw,nobarrier"));
        assert!(never("mount.options", "rw,relatime,barrier=0"));
    }

    #[test]
    fn their_safe_values_are_not() {
        assert!(!never("fsync", "on"));
        assert!(!never("data_sync_retry", "off"));
        assert!(!never("zfs.sync", "standard"));
        assert!(!never("wal_recycle", "off"));
        assert!(!never("wal_sync_method", "fsync"));
        assert!(!never("mount.options", "rw,barrier=1"));
    }
}
