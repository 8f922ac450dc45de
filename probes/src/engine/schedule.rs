//! Shares time and write budget among groups, in their order.
//!
//! Pure. A group may take what the groups after it do not need. Where there is not enough for
//! all, the earlier ones get their need and the later ones are skipped with the reason, because
//! a few settled comparisons are worth more than many unsettled ones.

/// What a group probably needs for the first verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Need {
    /// Seconds.
    pub seconds: f64,
    /// Device bytes.
    pub bytes: f64,
    /// Share of what is left over, relative to the other groups'.
    pub weight: f64,
}

/// What a group may take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Seconds.
    pub seconds: f64,
    /// Device bytes.
    pub bytes: f64,
}

/// The share of the first of `needs` (itself and those after it), of what is left.
#[must_use]
pub fn share(needs: &[Need], left: Share) -> Share {
    let Some((own, later)) = needs.split_first() else {
        return left;
    };
    let weights: f64 = needs.iter().map(|n| n.weight).sum();
    let part = if weights > 0.0 {
        own.weight / weights
    } else {
        1.0
    };
    let split = |left: f64, own: f64, later: f64| {
        let spare = left - own - later;
        if spare > 0.0 {
            own + spare * part
        } else {
            own.min(left.max(0.0))
        }
    };
    Share {
        seconds: split(
            left.seconds,
            own.seconds,
            later.iter().map(|n| n.seconds).sum(),
        ),
        bytes: split(left.bytes, own.bytes, later.iter().map(|n| n.bytes).sum()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn need(seconds: f64, bytes: f64) -> Need {
        Need {
            seconds,
            bytes,
            weight: 1.0,
        }
    }

    #[test]
    fn plenty_is_split_by_weight_on_top_of_the_need() {
        let s = share(
            &[need(2.0, 100.0), need(4.0, 300.0)],
            Share {
                seconds: 26.0,
                bytes: 1000.0,
            },
        );
        assert_eq!((s.seconds, s.bytes), (12.0, 400.0));
    }

    #[test]
    fn scarcity_serves_the_earlier_group_whole() {
        let left = Share {
            seconds: 5.0,
            bytes: 350.0,
        };
        let s = share(&[need(3.0, 100.0), need(4.0, 300.0)], left);
        assert_eq!((s.seconds, s.bytes), (3.0, 100.0));
        let s = share(&[need(9.0, 900.0)], left);
        assert_eq!((s.seconds, s.bytes), (5.0, 350.0));
    }
}
