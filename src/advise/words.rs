//! Figures as people read them: no more digits than they bear, always with their unit.

use walprobe_probes::report::{DurabilityVerdict, Us};

use super::gain::Interval;

/// `0.98 (0.96 to 1.01)`.
#[must_use]
pub fn interval(interval: Interval) -> String {
    format!(
        "{} ({} to {})",
        ratio(interval.ratio),
        ratio(interval.low),
        ratio(interval.high)
    )
}

/// A ratio: two decimals, three where it is small, one where it is large.
#[must_use]
pub fn ratio(ratio: f64) -> String {
    if ratio < 0.1 {
        format!("{ratio:.3}")
    } else if ratio < 10.0 {
        format!("{ratio:.2}")
    } else {
        format!("{ratio:.1}")
    }
}

/// A duration in the unit that suits it.
#[must_use]
pub fn time(us: Us) -> String {
    let us = us.as_us();
    if us < 10.0 {
        format!("{us:.1} us")
    } else if us < 10_000.0 {
        format!("{us:.0} us")
    } else if us < 10_000_000.0 {
        format!("{:.1} ms", us / 1_000.0)
    } else {
        format!("{:.1} s", us / 1_000_000.0)
    }
}

/// A size; binary units where they divide it.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    for (unit, size) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if bytes >= size && bytes.is_multiple_of(size) {
            return format!("{} {unit}", bytes / size);
        }
    }
    format!("{bytes} bytes")
}

/// What a verdict that is neither good nor bad leaves open.
#[must_use]
pub const fn unshown(verdict: DurabilityVerdict) -> &'static str {
    match verdict {
        DurabilityVerdict::NotTested => "nobody asked whether a sync reaches the device",
        _ => "whether a sync reaches the device cannot be shown",
    }
}

/// `a, b and c`.
#[must_use]
pub fn list<S: AsRef<str>>(items: &[S], last: &str) -> String {
    match items {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [head @ .., tail] => {
            let head: Vec<&str> = head.iter().map(AsRef::as_ref).collect();
            format!("{} {last} {}", head.join(", "), tail.as_ref())
        }
    }
}

/// An argument as a shell takes it.
#[must_use]
pub fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !argument.is_empty() && !argument.starts_with('-') && argument.chars().all(plain) {
        argument.to_owned()
    } else if argument.starts_with('-') {
        format!("'./{}'", argument.replace('\'', r"'\''"))
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_bear_their_unit() {
        assert_eq!(time(Us(6_100)), "6.1 us");
        assert_eq!(time(Us(240_000)), "240 us");
        assert_eq!(time(Us(12_340_000)), "12.3 ms");
        assert_eq!(bytes(512), "512 bytes");
        assert_eq!(bytes(65_536), "64 KiB");
        assert_eq!(bytes(16 << 20), "16 MiB");
        assert_eq!(ratio(0.0251), "0.025");
        assert_eq!(ratio(12.34), "12.3");
    }

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(list::<&str>(&[], "and"), "");
        assert_eq!(list(&["a"], "and"), "a");
        assert_eq!(list(&["a", "b", "c"], "or"), "a, b or c");
    }

    #[test]
    fn a_command_can_be_pasted() {
        assert_eq!(quoted("/mnt/t"), "/mnt/t");
        assert_eq!(quoted("/mnt/my data"), "'/mnt/my data'");
        assert_eq!(quoted("/mnt/it's"), r"'/mnt/it'\''s'");
        assert_eq!(quoted("-x"), "'./-x'");
    }
}
