//! The tables of `docs/method.md`.

use super::{
    blocks::{alike, drifts, quantile_coverage, shaped, stationary},
    group::{End, Group, RUNS, found_in_blocks},
    noise::{self, MODELS, POSITION},
    traces::TRACES,
};

pub(crate) fn print() {
    for (ratio, title) in [(1.0, "equal"), (1.1, "a tenth slower")] {
        for cases in [1, 3] {
            for end in [End::LastLook, End::Anywhere] {
                eprintln!("\n{title}, {cases} judged, {end:?} (of 1,000)");
                eprintln!(
                    "| noise | faster | slower | tie | inconclusive | covered | beyond 10% | rounds |"
                );
                for model in MODELS.iter().chain([&POSITION]).chain(&TRACES) {
                    let mut ratios = vec![1.0; cases];
                    ratios[0] = ratio;
                    let pair = Group::pair(*model, ratio, end);
                    let t = Group { ratios, ..pair }.tally();
                    let rounds = t.rounds as f64 / t.runs as f64;
                    eprintln!(
                        "| {} | {} | {} | {} | {} | {} | {} | {rounds:.0} |",
                        model.name,
                        t.faster,
                        t.slower,
                        t.tie,
                        t.inconclusive,
                        t.covered,
                        t.actionable
                    );
                }
            }
        }
    }
    eprintln!("\na tenth found in 96 short rounds, 48, 24, 12 long ones (of 1,000)");
    for model in TRACES {
        let found = [1, 2, 4, 8].map(|longer| found_in_blocks(model, longer));
        eprintln!("| {} | {found:?} |", model.name);
    }
    eprintln!("\ncarry-over, equal cases (of 1,000): cases, carried over, different");
    for cases in [2, 4] {
        for carried_over in [0.02, 0.05, 0.1] {
            let group = Group {
                carried_over,
                ratios: vec![1.0; cases - 1],
                ..Group::pair(noise::OUTLIERS_AND_DRIFT, 1.0, End::LastLook)
            };
            eprintln!(
                "| {cases} | {carried_over} | {} |",
                group.tally().different()
            );
        }
    }
    eprintln!("\nquantile ratios (of 1,000): covered, width in logs");
    for (rounds, ops) in [(12, 84), (24, 42), (96, 11), (96, 100)] {
        for q in [0.5, 0.99] {
            let (covered, width) = quantile_coverage(rounds, ops, q, RUNS);
            eprintln!("| {rounds} | {ops} | {q} | {covered} | {width:.2} |");
        }
    }
    eprintln!("\ndrift, burst told (of 1,000)");
    for n in [12, 24, 48, 96] {
        let show = |name: &str, (a, b): (usize, usize)| eprintln!("| {n} | {name} | {a} | {b} |");
        for model in [noise::HEAVY_TAILED, noise::ROUND_EFFECT] {
            show(model.name, drifts(RUNS, stationary(model, n)));
        }
        show("correlation 0.3", drifts(RUNS, alike(n, 0.3)));
        show("correlation 0.6", drifts(RUNS, alike(n, 0.6)));
        show("correlation 0.8", drifts(RUNS, alike(n, 0.8)));
        show("+20%", drifts(RUNS, shaped(n, |at| 1.0 + 0.2 * at)));
        show("+50%", drifts(RUNS, shaped(n, |at| 1.0 + 0.5 * at)));
        show("+100%", drifts(RUNS, shaped(n, |at| 1.0 + at)));
        show(
            "x1.7 from 40% on",
            drifts(RUNS, shaped(n, |at| if at < 0.4 { 1.0 } else { 1.7 })),
        );
    }
}
