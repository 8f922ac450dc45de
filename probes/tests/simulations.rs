//! What the statistics promise, held against noise of known kinds and against recorded traces.
//!
//! All runs are seeded: a test gives the same counts each time. `docs/method.md` shows the
//! figures; this prints them:
//!
//! ```text
//! cargo test --release -p walprobe-probes --test simulations -- --ignored --nocapture
//! ```

mod sim;

use fastrand::Rng;
use sim::{
    blocks::{alike, drifts, quantile_coverage, shaped, stationary},
    group::{End, Group, Order, RUNS, WRONG_AT_MOST, found_in_blocks},
    noise::{self, Model, POSITION},
    traces::TRACES,
};
use walprobe_probes::{
    report::{Margins, Verdict},
    stats::paired::{LOOKS, hodges_lehmann, is_look, judge, rounds_to_settle},
};

/// Equal cases: faster or slower in at most 18 of 1,000, whenever measuring ends.
fn seldom_wrong(model: Model) {
    for end in [End::LastLook, End::Anywhere] {
        let tally = Group::pair(model, 1.0, end).tally();
        assert!(
            tally.different() <= WRONG_AT_MOST,
            "{}, {end:?}: {tally:?}",
            model.name
        );
        assert!(
            tally.covered >= RUNS as usize - WRONG_AT_MOST,
            "{}: {tally:?}",
            model.name
        );
        assert!(tally.actionable <= 2, "{}, {end:?}: {tally:?}", model.name);
    }
}

/// A tenth more and a tenth less: found in at least 950 of 1,000, never the wrong way round.
fn finds_a_tenth(model: Model) {
    for ratio in [1.1, 1.0 / 1.1] {
        let tally = Group::pair(model, ratio, End::LastLook).tally();
        let (right, wrong) = if ratio > 1.0 {
            (tally.slower, tally.faster)
        } else {
            (tally.faster, tally.slower)
        };
        assert!(right >= 950, "{}: {tally:?}", model.name);
        assert_eq!(wrong + tally.tie, 0, "{}: {tally:?}", model.name);
        assert!(
            tally.covered >= RUNS as usize - WRONG_AT_MOST,
            "{}: {tally:?}",
            model.name
        );
    }
}

#[test]
fn equal_cases_under_heavy_tailed_operations() {
    seldom_wrong(noise::HEAVY_TAILED);
}

#[test]
fn equal_cases_under_a_round_effect() {
    seldom_wrong(noise::ROUND_EFFECT);
}

#[test]
fn equal_cases_under_outliers_and_drift() {
    seldom_wrong(noise::OUTLIERS_AND_DRIFT);
}

#[test]
fn equal_cases_under_an_effect_of_position() {
    seldom_wrong(POSITION);
}

#[test]
fn equal_cases_on_ext4() {
    seldom_wrong(TRACES[0]);
}

#[test]
fn equal_cases_on_xfs() {
    seldom_wrong(TRACES[1]);
}

#[test]
fn equal_cases_on_btrfs() {
    seldom_wrong(TRACES[2]);
}

#[test]
fn a_tenth_under_heavy_tailed_operations() {
    finds_a_tenth(noise::HEAVY_TAILED);
}

#[test]
fn a_tenth_under_a_round_effect() {
    finds_a_tenth(noise::ROUND_EFFECT);
}

#[test]
fn a_tenth_under_outliers_and_drift() {
    finds_a_tenth(noise::OUTLIERS_AND_DRIFT);
}

/// The margins' own edges: 3% is not called 10%, and 5% is not called a tie.
#[test]
fn differences_at_the_margins() {
    let at_tie = Group::pair(noise::OUTLIERS_AND_DRIFT, 1.05, End::LastLook).tally();
    assert!(
        at_tie.tie <= WRONG_AT_MOST && at_tie.faster == 0,
        "{at_tie:?}"
    );
    assert_eq!(at_tie.actionable, 0, "{at_tie:?}");
    let at_action = Group::pair(noise::OUTLIERS_AND_DRIFT, 1.1, End::LastLook).tally();
    assert!(at_action.actionable <= WRONG_AT_MOST, "{at_action:?}");
}

/// A case whose group goes on for the sake of others is judged by all rounds: that is wrong less
/// often than the look that settled it first.
#[test]
fn later_rounds_correct_an_early_look() {
    let group = Group {
        ratios: vec![1.0; 3],
        ..Group::pair(noise::ROUND_EFFECT, 1.0, End::LastLook)
    };
    let margins = Margins::default();
    let different = |v: Verdict| matches!(v, Verdict::Faster | Verdict::Slower);
    let (mut wrong, mut wrong_frozen) = ([0; 3], 0);
    for seed in 0..RUNS {
        let run = group.run(seed);
        for (case, count) in wrong.iter_mut().enumerate() {
            *count += usize::from(different(run.judged[case].verdict));
            let looks = LOOKS.iter().filter(|n| **n <= run.rounds);
            let mut seen = looks.map(|n| judge(&run.log_ratios[case][..*n], &margins));
            let first = seen.find(|j| j.settled);
            wrong_frozen += usize::from(first.is_some_and(|j| different(j.verdict)));
        }
    }
    assert!(wrong.iter().all(|n| *n <= WRONG_AT_MOST), "{wrong:?}");
    assert!(
        2 * wrong.iter().sum::<usize>() < wrong_frozen,
        "{wrong:?} {wrong_frozen}"
    );
}

/// Where the time ends between looks, all rounds are used: more is found than at the last look.
#[test]
fn the_end_between_looks_counts() {
    let group = Group::pair(noise::ROUND_EFFECT, 1.1, End::Anywhere);
    let (mut all, mut last_look) = (0, 0);
    for seed in 0..RUNS {
        let run = group.run(seed);
        let looked = LOOKS
            .iter()
            .rev()
            .find(|n| **n <= run.rounds)
            .expect("a look");
        let then = judge(&run.log_ratios[0][..*looked], &Margins::default());
        all += usize::from(run.judged[0].verdict == Verdict::Slower);
        last_look += usize::from(then.verdict == Verdict::Slower);
    }
    assert!(all > last_look + 50, "{all} {last_look}");
}

/// For the same operations many short rounds find what few long ones miss: what slows a
/// filesystem down comes in waves, and only blocks close to each other share a wave.
#[test]
fn many_short_rounds_beat_few_long_ones() {
    for model in TRACES {
        let (short, long) = (found_in_blocks(model, 1), found_in_blocks(model, 4));
        assert!(short > long + 200, "{}: {short} {long}", model.name);
    }
}

/// What the bounds above guard against does break them.
#[test]
fn careless_procedures_are_found_out() {
    let margins = Margins::default();
    let group = Group::pair(TRACES[2], 1.0, End::LastLook);
    let (mut each_fourth, mut at_95) = (0, 0);
    for seed in 0..RUNS {
        let logs = &group.run(seed).log_ratios[0];
        let different = |n: usize| {
            let verdict = judge(&logs[..n], &margins).verdict;
            matches!(verdict, Verdict::Faster | Verdict::Slower)
        };
        each_fourth += usize::from((LOOKS[0]..=logs.len()).step_by(4).any(different));
        let excludes = |n: usize| {
            let i = hodges_lehmann(&logs[..n], 0.95).expect("enough rounds");
            (i.low > 0.0 || i.high < 0.0) && i.estimate.abs() > margins.differ.ln_1p()
        };
        at_95 += usize::from(
            (LOOKS[0]..=logs.len())
                .filter(|n| is_look(*n))
                .any(excludes),
        );
    }
    assert!(each_fourth > WRONG_AT_MOST, "{each_fourth}");
    assert!(at_95 > 3 * WRONG_AT_MOST, "{at_95}");

    let fixed = Group {
        order: Order::Fixed,
        ..Group::pair(POSITION, 1.0, End::LastLook)
    };
    let tally = fixed.tally();
    assert!(tally.faster > 900, "{tally:?}");
}

/// Most comparisons that are inconclusive after 24 rounds are settled after as many rounds as
/// were foretold.
#[test]
fn foretold_rounds_settle() {
    let margins = Margins::default();
    let (mut foretold, mut settled) = (0, 0);
    for seed in 0..RUNS / 2 {
        let mut rng = Rng::with_seed(seed);
        let centre = 0.1 * rng.f64();
        let mut round = || centre + 0.12 * (noise::normal(&mut rng) - noise::normal(&mut rng));
        let mut logs: Vec<f64> = (0..24).map(|_| round()).collect();
        match rounds_to_settle(&logs, &margins) {
            Some(all) if all < 1_000 => {
                logs.extend((24..all).map(|_| round()));
                foretold += 1;
                settled += usize::from(judge(&logs, &margins).settled);
            }
            _ => {}
        }
    }
    assert!(foretold > 200, "{foretold}");
    assert!(settled * 10 > foretold * 6, "{settled} of {foretold}");
}

#[test]
fn intervals_of_quantile_ratios_hold_the_truth() {
    for (rounds, ops, q) in [(6, 84, 0.5), (12, 84, 0.5), (12, 84, 0.99)] {
        let (covered, _) = quantile_coverage(rounds, ops, q, 150);
        assert!(
            covered >= 147,
            "{rounds} rounds, {ops} ops, {q}: {covered} of 150"
        );
    }
}

#[test]
fn drift_is_seldom_told_where_there_is_none() {
    for n in [12, 24, 96] {
        for model in [noise::HEAVY_TAILED, noise::ROUND_EFFECT] {
            let (drifted, burst) = drifts(RUNS, stationary(model, n));
            assert!(
                drifted <= 10 && burst <= 5,
                "{}, {n} blocks: {drifted} {burst}",
                model.name
            );
        }
        let (drifted, burst) = drifts(RUNS, alike(n, 0.6));
        assert!(
            drifted <= 50 && burst <= 50,
            "{n} blocks: {drifted} {burst}"
        );
    }
}

#[test]
fn drift_and_the_end_of_a_burst_are_told() {
    let (drifted, _) = drifts(RUNS, shaped(24, |at| 1.0 + at));
    assert!(drifted >= 950, "{drifted}");
    let (drifted, _) = drifts(RUNS, shaped(48, |at| 1.5 - 0.5 * at));
    assert!(drifted >= 950, "{drifted}");
    let (_, burst) = drifts(RUNS, shaped(24, |at| if at < 0.4 { 1.0 } else { 2.0 }));
    assert!(burst >= 950, "{burst}");
    // A pause in the middle is not the end of a burst.
    let pause = |at| if (0.4..0.6).contains(&at) { 2.0 } else { 1.0 };
    let (_, burst) = drifts(RUNS, shaped(24, pause));
    assert!(burst <= 5, "{burst}");
}

/// The tables of `docs/method.md`.
#[test]
#[ignore = "prints figures, asserts nothing"]
fn figures() {
    sim::figures::print();
}
