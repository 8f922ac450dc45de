//! How the commits of a walked part stand for those of a whole segment.

/// The first ones, the *opening*, stand for themselves: what is done once a segment is done there,
/// as reading an old file's extents or indirect blocks. The others stand for all the rest. Were the
/// opening multiplied like the others, three reads a segment would count as a hundred.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    opening_bytes: u64,
    rest: f64,
    mean: f64,
}

impl Weights {
    /// Of `walked` bytes of a segment, with an opening of `opening`; where nothing would be left
    /// after it, there is none. Bytes each.
    #[must_use]
    pub fn new(segment: u64, walked: u64, opening: u64) -> Self {
        let opening_bytes = if opening < walked { opening } else { 0 };
        let share = |all: u64, part: u64| all as f64 / part.max(1) as f64;
        Self {
            opening_bytes,
            rest: share(
                segment.saturating_sub(opening_bytes),
                walked - opening_bytes,
            ),
            mean: share(segment, walked),
        }
    }

    /// Each commit counts the same.
    #[must_use]
    pub const fn even(weight: f64) -> Self {
        Self {
            opening_bytes: 0,
            rest: weight,
            mean: weight,
        }
    }

    /// Of the commit that begins at this byte.
    #[must_use]
    pub const fn at(&self, byte: u64) -> f64 {
        if byte < self.opening_bytes {
            1.0
        } else {
            self.rest
        }
    }

    /// Of something that is done for all that was walked.
    #[must_use]
    pub const fn mean(&self) -> f64 {
        self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 16 << 20;
    const COMMIT: u64 = 8 << 10;

    /// What a life takes whose commits take this long.
    fn life(walked: u64, opening: u64, took: impl Fn(u64) -> f64) -> f64 {
        let weights = Weights::new(SEGMENT, walked, opening);
        (0..walked / COMMIT)
            .map(|n| weights.at(n * COMMIT) * took(n))
            .sum()
    }

    #[test]
    fn what_is_done_once_is_counted_once() {
        let took = |n| if n == 0 { 30.0 } else { 1.0 };
        let whole = life(SEGMENT, COMMIT, took);
        assert_eq!(whole, 30.0 + 2047.0);
        let part = life(256 << 10, COMMIT, took);
        assert!((part - whole).abs() < 1e-6, "{part}");
        // Without an opening it would count 64 times.
        assert!((life(256 << 10, 0, took) - 64.0 * 61.0).abs() < 1e-6);
    }

    #[test]
    fn what_is_done_for_each_record_is_counted_for_each() {
        let record = 128 << 10;
        let took = |n| if n % 16 == 0 { 11.0 } else { 1.0 };
        let whole = life(SEGMENT, record, took);
        let part = life(256 << 10, record, took);
        assert!((part - whole).abs() < 1e-6, "{part}, {whole}");
    }

    #[test]
    fn a_part_as_small_as_its_opening_has_none() {
        let weights = Weights::new(SEGMENT, 128 << 10, 128 << 10);
        assert_eq!((weights.at(0), weights.mean()), (128.0, 128.0));
        assert_eq!(Weights::new(SEGMENT, SEGMENT, COMMIT).at(COMMIT), 1.0);
        assert_eq!(Weights::even(0.0).at(0), 0.0);
    }
}
