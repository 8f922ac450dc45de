//! Sizes as people write them: `512`, `8KiB`, `16MB`.
//!
//! Ki, Mi, Gi, Ti and the bare letters count in 1024, as dd and fio do; kB, MB, GB, TB in
//! 1000. PostgreSQL's own `16MB` means 16 MiB: an option that takes only such sizes says so.

/// Parses a size in bytes.
///
/// # Errors
/// What is wrong with it.
pub fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = factor(unit.trim()).ok_or_else(|| {
        format!(
            "'{unit}' is not a unit: use none, KiB, MiB, GiB, TiB (1024) or kB, MB, GB, TB (1000)"
        )
    })?;
    let bytes = if number.contains('.') {
        let number: f64 = number
            .parse()
            .map_err(|_| format!("'{number}' is not a number"))?;
        let bytes = number * factor as f64;
        if bytes.fract() != 0.0 || bytes >= 9.0e15 {
            return Err("it is not a whole number of bytes".to_owned());
        }
        bytes as u64
    } else {
        let number: u64 = number
            .parse()
            .map_err(|_| format!("'{number}' is not a number"))?;
        number.checked_mul(factor).ok_or("it is too large")?
    };
    if bytes == 0 {
        return Err("it must be more than 0".to_owned());
    }
    Ok(bytes)
}

fn factor(unit: &str) -> Option<u64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    })
}

/// Parses a WAL segment size: what `initdb --wal-segsize` takes.
///
/// # Errors
/// What is wrong with it.
pub fn parse_segment(text: &str) -> Result<u64, String> {
    let bytes = parse(text)?;
    if bytes.is_power_of_two() && (1 << 20..=1 << 30).contains(&bytes) {
        return Ok(bytes);
    }
    let meant = text.trim().to_ascii_lowercase();
    let hint = match meant
        .strip_suffix("mb")
        .or_else(|| meant.strip_suffix("gb"))
    {
        Some(_) => " (here MB is 1000000 bytes: PostgreSQL's 16MB is written 16MiB)",
        None => "",
    };
    Err(format!("it must be a power of two from 1MiB to 1GiB{hint}"))
}

/// A size as [`parse`] takes it, exact: `4GiB`.
#[must_use]
pub fn spell(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [
        ("TiB", 1 << 40),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
    ];
    let whole = |(_, factor): &&(&str, u64)| bytes > 0 && bytes.is_multiple_of(*factor);
    match UNITS.iter().find(whole) {
        Some((unit, factor)) => format!("{}{unit}", bytes / factor),
        None => bytes.to_string(),
    }
}

/// A size in the largest unit that leaves at most one decimal wrong by little.
#[must_use]
pub fn show(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() == 0.0 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_1024_and_of_1000() {
        for (text, bytes) in [
            ("512", 512),
            ("512B", 512),
            ("8KiB", 8 << 10),
            ("8k", 8 << 10),
            ("16 MiB", 16 << 20),
            ("16MB", 16_000_000),
            ("1kB", 1000),
            ("1GiB", 1 << 30),
            ("1.5GiB", 3 << 29),
            ("2T", 2 << 40),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn nonsense_is_told_apart() {
        for (text, part) in [
            ("", "not a number"),
            ("MiB", "not a number"),
            ("-1", "not a unit"),
            ("8 potatoes", "not a unit"),
            ("1.2.3k", "not a number"),
            ("0.3k", "whole number"),
            ("0", "more than 0"),
            ("99999999999TiB", "too large"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn segments_are_what_initdb_takes() {
        assert_eq!(parse_segment("64MiB"), Ok(64 << 20));
        for text in ["17MiB", "512k", "2GiB"] {
            assert!(parse_segment(text).unwrap_err().contains("power of two"));
        }
        assert!(parse_segment("16MB").unwrap_err().contains("16MiB"));
    }

    #[test]
    fn a_spelled_size_is_read_back() {
        let sizes = [
            (1, "1"),
            (1023, "1023"),
            (8 << 10, "8KiB"),
            (3 << 29, "1536MiB"),
            (4 << 30, "4GiB"),
            (2_000_000_000, "1953125KiB"),
            (1 << 50, "1024TiB"),
        ];
        for (bytes, text) in sizes {
            assert_eq!(spell(bytes), text);
            assert_eq!(parse(text), Ok(bytes));
        }
    }

    #[test]
    fn sizes_are_shown_short() {
        assert_eq!(show(512), "512 B");
        assert_eq!(show(16 << 20), "16 MiB");
        assert_eq!(show(1_893_400_000), "1.8 GiB");
    }
}
