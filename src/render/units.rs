//! Figures as people read them: three significant digits and a unit.
//!
//! Only for text that people read; JSON and CSV carry the figures themselves.

/// A count that may have a fraction: whole from 100 on.
#[must_use]
pub fn number(value: f64) -> String {
    format!("{value:.*}", decimals(value))
}

/// Decimals that leave three significant digits, and no more than three decimals.
fn decimals(value: f64) -> usize {
    let size = value.abs();
    if size >= 99.95 || value == 0.0 {
        0
    } else if size >= 9.995 {
        1
    } else if size >= 0.0995 {
        2
    } else {
        3
    }
}

/// A time given in microseconds.
#[must_use]
pub fn time(us: f64) -> String {
    // 999.5 is where three digits would round to 1000.
    if us < 999.5 {
        format!("{} us", number(us))
    } else if us < 999_500.0 {
        format!("{} ms", number(us / 1_000.0))
    } else {
        format!("{} s", number(us / 1_000_000.0))
    }
}

/// A ratio, two decimals where it matters.
#[must_use]
pub fn ratio(value: f64) -> String {
    number(value)
}

/// A ratio with its interval: `1.52 (1.44-1.61)`.
#[must_use]
pub fn interval(estimate: f64, low: Option<f64>, high: Option<f64>) -> String {
    match (low, high) {
        (Some(low), Some(high)) => {
            let d = decimals(estimate);
            format!("{estimate:.d$} ({low:.d$}-{high:.d$})")
        }
        _ => ratio(estimate),
    }
}

/// A share of 0 to 100.
#[must_use]
pub fn percent(value: f64) -> String {
    if (value - value.round()).abs() < 0.05 {
        format!("{value:.0}%")
    } else {
        format!("{value:.1}%")
    }
}

/// Bytes, in powers of 1024; exact multiples without a fraction.
#[must_use]
pub fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut scaled = value;
    let mut unit = 0;
    while scaled.abs() >= 1023.5 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    if scaled.fract() == 0.0 {
        format!("{scaled:.0} {}", UNITS[unit])
    } else {
        format!("{} {}", number(scaled), UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        for (us, text) in [
            (0.0, "0 us"),
            (0.025, "0.025 us"),
            (5.9, "5.90 us"),
            (14.0, "14.0 us"),
            (240.0, "240 us"),
            (999.4, "999 us"),
            (999.6, "1.00 ms"),
            (4410.2, "4.41 ms"),
            (44_102.0, "44.1 ms"),
            (999_499.0, "999 ms"),
            (999_600.0, "1.00 s"),
            (12_345_678.0, "12.3 s"),
        ] {
            assert_eq!(time(us), text, "{us}");
        }
        assert_eq!(number(9.996), "10.0");
        assert_eq!(number(99.96), "100");
        assert_eq!(number(9800.0), "9800");
    }

    #[test]
    fn ratios_bytes_shares() {
        assert_eq!(interval(1.52, Some(1.44), Some(1.61)), "1.52 (1.44-1.61)");
        assert_eq!(interval(12.34, Some(11.8), Some(12.95)), "12.3 (11.8-12.9)");
        assert_eq!(
            interval(0.0981, Some(0.093), Some(0.1043)),
            "0.098 (0.093-0.104)"
        );
        assert_eq!(interval(1.0, None, None), "1.00");
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(bytes(8192.0), "8 KiB");
        assert_eq!(bytes(16_777_216.0), "16 MiB");
        assert_eq!(bytes(7_500_000_000.0), "6.98 GiB");
        assert_eq!(bytes(0.0), "0 B");
        assert_eq!(percent(100.0), "100%");
        assert_eq!(percent(7.5), "7.5%");
    }
}
