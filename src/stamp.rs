//! What tells one run from another: the time in UTC, and an id made of it.

use jiff::Timestamp;

/// Digits of Crockford's base 32: no I, L, O, U (<https://www.crockford.com/base32.html>).
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Now, as RFC 3339 with milliseconds.
#[must_use]
pub fn now() -> String {
    format!("{:.3}", Timestamp::now())
}

/// Twelve characters: ten of milliseconds, so that ids sort by time, and two of chance.
#[must_use]
pub fn run_id() -> String {
    let ms = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0);
    id(ms, fastrand::u64(..))
}

fn id(ms: u64, chance: u64) -> String {
    let bits = (ms << 10) | (chance & 0x3ff);
    (0..12)
        .rev()
        .map(|place| char::from(DIGITS[((bits >> (5 * place)) & 31) as usize]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_stamp_has_milliseconds_and_is_utc() {
        let stamp = now();
        assert_eq!(stamp.len(), "2026-11-30T10:42:07.120Z".len(), "{stamp}");
        assert!(stamp.ends_with('Z') && &stamp[19..20] == ".", "{stamp}");
    }

    #[test]
    fn ids_sort_by_time() {
        // 1469918176385 ms is 01ARYZ6S41 by the ULID specification.
        assert_eq!(id(1_469_918_176_385, 0x3ff), "01ARYZ6S41ZZ");
        assert!(id(2000, 0) > id(1999, 0x3ff));
        assert_eq!(run_id().len(), 12);
    }
}
