//! Null distributions: Wilcoxon's signed-rank statistic, the normal and Student's t.
//!
//! Signed ranks: F. Wilcoxon, Individual comparisons by ranking methods, Biometrics
//! Bulletin 1 (1945). Exact up to [`EXACT`] pairs, by the recurrence over the ranks
//! (rank `n` is in the sum or not, each with probability one half); beyond, the normal
//! approximation with continuity correction. Normal quantile: M. J. Wichura, Algorithm
//! AS 241, Applied Statistics 37 (1988), the seven-digit version. Student's t: expansion
//! in the normal quantile, Abramowitz and Stegun 26.7.5.

use std::sync::OnceLock;

use super::paired::LEVEL;

/// Most pairs for which the signed-rank distribution is computed exactly.
pub const EXACT: usize = 100;

/// How many Walsh averages may be cut off at each end so that what remains covers the centre
/// with at least `level`; none where `n` pairs cannot reach `level` at all.
#[must_use]
pub fn signed_rank_depth(n: usize, level: f64) -> Option<usize> {
    // Every judgement asks at one level: its table is made once.
    static AT_LEVEL: OnceLock<Vec<Option<usize>>> = OnceLock::new();
    if n == 0 || !(0.0..1.0).contains(&level) {
        return None;
    }
    if n > EXACT {
        return approximate_depth(n, level);
    }
    if level.to_bits() == LEVEL.to_bits() {
        return AT_LEVEL.get_or_init(|| exact_depths(EXACT, level))[n];
    }
    exact_depths(n, level)[n]
}

/// Depths for 0 to `most` pairs.
fn exact_depths(most: usize, level: f64) -> Vec<Option<usize>> {
    let mut probability = vec![0.0; most * (most + 1) / 2 + 1];
    probability[0] = 1.0;
    let mut depths = vec![None];
    for n in 1..=most {
        for sum in (0..=n * (n + 1) / 2).rev() {
            let with = if sum < n { 0.0 } else { probability[sum - n] };
            probability[sum] = 0.5 * (probability[sum] + with);
        }
        let mut both_tails = 0.0;
        let within = probability.iter().take_while(|&&p| {
            both_tails += 2.0 * p;
            both_tails <= 1.0 - level
        });
        depths.push(within.count().checked_sub(1));
    }
    depths
}

fn approximate_depth(n: usize, level: f64) -> Option<usize> {
    let n = n as f64;
    let mean = n * (n + 1.0) / 4.0;
    let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    let depth = (mean - 0.5 - normal_quantile(0.5 + level / 2.0) * deviation).floor();
    (depth >= 0.0).then_some(depth as usize)
}

/// The value that a standard normal variable stays below with probability `p`.
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    let q = p.clamp(1e-300, 1.0 - 1e-16) - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * poly(
            &[
                3.387_132_717_9,
                50.434_271_938,
                159.291_132_02,
                59.109_374_72,
            ],
            r,
        ) / poly(&[1.0, 17.895_169_469, 78.757_757_664, 67.187_563_6], r);
    }
    let r = (-(0.5 - q.abs()).ln()).sqrt();
    let far = if r <= 5.0 {
        let r = r - 1.6;
        poly(
            &[
                1.423_437_277_7,
                2.756_815_39,
                1.306_728_481_6,
                0.170_238_211_03,
            ],
            r,
        ) / poly(&[1.0, 0.737_001_642_5, 0.120_211_329_75], r)
    } else {
        let r = r - 5.0;
        poly(
            &[
                6.657_905_115,
                3.081_226_386,
                0.428_682_943_37,
                0.017_337_203_997,
            ],
            r,
        ) / poly(&[1.0, 0.241_978_942_25, 0.012_258_202_635], r)
    };
    far.copysign(q)
}

/// The value that Student's t with `freedom` degrees stays below with probability `p`; four
/// digits from ten degrees on, two from five.
#[must_use]
pub fn student_quantile(p: f64, freedom: f64) -> f64 {
    let z = normal_quantile(p);
    let s = z * z;
    let terms = [
        poly(&[1.0, 1.0], s) / 4.0,
        poly(&[3.0, 16.0, 5.0], s) / 96.0,
        poly(&[-15.0, 17.0, 19.0, 3.0], s) / 384.0,
        poly(&[-945.0, -1920.0, 1482.0, 776.0, 79.0], s) / 92_160.0,
    ];
    z * (1.0 + poly(&terms, 1.0 / freedom) / freedom)
}

/// `c[0] + c[1] x + c[2] x^2 ...`
fn poly(c: &[f64], x: f64) -> f64 {
    c.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P(sum <= k) by trying every set of ranks.
    fn tail(n: u32, k: u32) -> f64 {
        let sums = (0u32..1 << n).filter(|set| {
            let sum: u32 = (0..n).filter(|i| set >> i & 1 == 1).map(|i| i + 1).sum();
            sum <= k
        });
        sums.count() as f64 / f64::from(1u32 << n)
    }

    #[test]
    fn depth_is_the_greatest_that_keeps_the_level() {
        for n in 1..=14 {
            for level in [0.5, 0.9, 0.95, 0.99, LEVEL] {
                match signed_rank_depth(n as usize, level) {
                    Some(k) => {
                        assert!(
                            2.0 * tail(n, k as u32) <= 1.0 - level,
                            "n {n} level {level}"
                        );
                        assert!(
                            2.0 * tail(n, k as u32 + 1) > 1.0 - level,
                            "n {n} level {level}"
                        );
                    }
                    None => assert!(2.0 * tail(n, 0) > 1.0 - level, "n {n} level {level}"),
                }
            }
        }
    }

    #[test]
    fn published_critical_values() {
        // Two-sided 0.05 and 0.01, as in the tables of Wilcoxon and Wilcox (1964).
        for (n, five, one) in [
            (10, 8, 3),
            (15, 25, 15),
            (20, 52, 37),
            (25, 89, 68),
            (50, 434, 373),
        ] {
            assert_eq!(signed_rank_depth(n, 0.95), Some(five), "{n}");
            assert_eq!(signed_rank_depth(n, 0.99), Some(one), "{n}");
        }
        assert_eq!(signed_rank_depth(9, LEVEL), None);
        assert_eq!(signed_rank_depth(10, LEVEL), Some(0));
    }

    #[test]
    fn approximation_joins_the_exact_depths() {
        for level in [0.9, 0.95, LEVEL] {
            let exact = signed_rank_depth(EXACT, level).unwrap();
            let approximate = approximate_depth(EXACT, level).unwrap();
            assert!(
                exact.abs_diff(approximate) * 100 <= exact,
                "{level}: {exact} {approximate}"
            );
        }
    }

    #[test]
    fn no_level_makes_no_depth() {
        for level in [f64::NAN, -1.0, 1.0, 2.0] {
            assert_eq!(signed_rank_depth(50, level), None);
            assert_eq!(signed_rank_depth(500, level), None);
        }
        assert_eq!(signed_rank_depth(0, 0.5), None);
    }

    #[test]
    fn quantiles_of_the_tables() {
        for (p, z) in [
            (0.5, 0.0),
            (0.975, 1.959_964),
            (0.001, -3.090_232),
            (1.0 - 1e-9, 5.997_807),
        ] {
            assert!((normal_quantile(p) - z).abs() < 1e-5, "{p}");
        }
        // t of 0.975 and 0.999.
        for (freedom, a, b) in [
            (5.0, 2.571, 5.893),
            (11.0, 2.201, 4.025),
            (30.0, 2.042, 3.385),
        ] {
            assert!((student_quantile(0.975, freedom) / a - 1.0).abs() < 0.005);
            assert!((student_quantile(0.999, freedom) / b - 1.0).abs() < 0.02);
        }
    }
}
