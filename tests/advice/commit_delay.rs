//! commit-delay: a delay to test, the defaults, or nothing.

use serde_json::json;
use walprobe::advise::advise;
use walprobe_probes::report::{
    Doubt, DurabilityVerdict, Finding, PhaseFigures, Report, Row, Us, Verdict, Weight,
};

use super::build::{
    With, delay, failed, finding, ground, not_tested, of, report, row, skipped, target, verdict,
};

type Span = (f64, f64, f64);
const DELAY: &str = "commit_delay";
const SIBLINGS: &str = "commit_siblings";
const GAIN: Span = (0.70, 0.66, 0.74);
const SAME: Span = (0.99, 0.96, 1.02);
const SLOWER: Span = (1.20, 1.15, 1.25);
const UNSETTLED: Span = (0.90, 0.75, 1.10);

fn of_counts(spans: &[(u64, Span)]) -> Report {
    let rows: Vec<Row> = spans
        .iter()
        .flat_map(|(clients, span)| delay(*clients, "", *span))
        .collect();
    report(target(Some("yes"), rows))
}

fn winning() -> Report {
    let mut report = of_counts(&[(8, GAIN), (16, GAIN)]);
    for clients in [8, 16] {
        let rows = delay(clients, "-think", SAME);
        report.targets[0].rows.extend(rows);
    }
    report
}

fn advised(mut report: Report) -> Report {
    advise(&mut report);
    report
}

fn action(report: &Report) -> (&str, Option<&str>, &str) {
    let Finding {
        action,
        value,
        confidence,
        ..
    } = finding(report, DELAY);
    (action, value.as_deref(), confidence)
}

/// Neither setting has a finding, and both have this reason.
#[track_caller]
fn says_nothing(report: Report, code: &str) -> String {
    let report = advised(report);
    for setting in [DELAY, SIBLINGS] {
        assert_eq!(not_tested(&report, setting).reason_code, code, "{setting}");
    }
    let not = not_tested(&report, DELAY);
    format!("{} {}", not.reason, not.hint.clone().unwrap_or_default())
}

#[test]
fn two_neighbours_that_gain_are_worth_a_test() {
    let report = advised(winning());
    // A starting point to test, with clients that do nothing else: never more than medium.
    assert_eq!(action(&report), ("change", Some("4000"), "medium"));
    let change = finding(&report, DELAY);
    assert!(change.undo.is_some() && change.cost.is_some());
    assert!(
        change.advice.contains("test commit_delay = 4000"),
        "{}",
        change.advice
    );
    for word in [
        "8 clients",
        "16 clients",
        "0.70",
        "7.9 commits a flush instead of 4.0",
    ] {
        assert!(change.seen.contains(word), "{word}: {}", change.seen);
    }
    for pointer in [
        "/rows/1/ratio_high",
        "/rows/3/ratio_high",
        "/rows/1/observations/delay_us",
    ] {
        let cited = |e: &walprobe_probes::report::Evidence| e.pointer.ends_with(pointer);
        assert!(change.evidence.iter().any(cited), "{pointer}");
    }
    let siblings = finding(&report, SIBLINGS);
    assert_eq!(
        (siblings.action.as_str(), siblings.value.as_deref()),
        ("keep", Some("5"))
    );
}

#[test]
fn no_gain_keeps_both_defaults() {
    let report = advised(of_counts(&[(8, SAME), (16, SLOWER)]));
    assert_eq!(action(&report), ("keep", Some("0"), "high"));
    assert_eq!(finding(&report, SIBLINGS).value.as_deref(), Some("5"));
    let effect = finding(&report, DELAY).effect.as_ref().expect("an effect");
    assert_eq!((effect.ratio, effect.of.as_str()), (0.99, "delay-8"));
}

/// Clients without a delay met flushes of so many microseconds.
fn met(report: &mut Report, us: u64) {
    for clients in [8, 16] {
        let base = of(
            report,
            &format!("commit/delay-{clients}/fdatasync@{clients}"),
        );
        let sync = PhaseFigures {
            mean_us: Us(us * 1_000),
            p50_us: Us(us * 1_000),
            p99_us: None,
            max_us: Us(us * 1_000),
        };
        base.phases.insert("sync".to_owned(), sync);
    }
}

#[test]
fn a_delay_that_was_no_half_of_a_flush_says_nothing_against_one() {
    let kept = |us| {
        let mut report = of_counts(&[(8, SAME), (16, SLOWER)]);
        met(&mut report, us);
        report
    };
    assert_eq!(action(&advised(kept(8_000))), ("keep", Some("0"), "high"));
    for us in [1_000, 40_000] {
        let said = says_nothing(kept(us), "inconclusive");
        assert!(said.contains("the leader slept 4000 us"), "{said}");
    }
    // A gain is one, whatever the flush.
    let mut report = winning();
    met(&mut report, 1_000);
    assert_eq!(action(&advised(report)).0, "change");
}

#[test]
fn a_gain_that_may_be_beyond_the_margin_is_kept_away_with_less_confidence() {
    let short = (0.86, 0.76, 0.96);
    let of_both = advised(of_counts(&[(8, short), (16, short)]));
    assert_eq!(action(&of_both), ("keep", Some("0"), "low"));
    let of_one = advised(of_counts(&[(8, short), (16, SAME)]));
    assert_eq!(action(&of_one), ("keep", Some("0"), "medium"));
}

#[test]
fn a_gain_of_one_number_of_clients_is_not_enough() {
    for spans in [
        [(8, GAIN), (16, SAME)],
        [(8, SLOWER), (16, GAIN)],
        [(8, (0.90, 0.87, 0.93)), (16, GAIN)],
    ] {
        let report = advised(of_counts(&spans));
        assert_eq!(finding(&report, DELAY).action, "keep", "{spans:?}");
    }
    // 8 and 32 both gain, but are no neighbours.
    let report = advised(of_counts(&[(8, GAIN), (16, SAME), (32, GAIN)]));
    assert_eq!(finding(&report, DELAY).action, "keep");
    let report = advised(of_counts(&[(8, SAME), (16, GAIN), (32, GAIN)]));
    assert_eq!(finding(&report, DELAY).action, "change");
}

#[test]
fn a_single_number_of_clients_says_nothing_and_names_the_command() {
    let told = says_nothing(of_counts(&[(16, GAIN)]), "not-planned");
    assert!(
        told.contains("walprobe commit /mnt/t --clients 16,32"),
        "{told}"
    );
    let told = says_nothing(of_counts(&[(200, GAIN)]), "not-planned");
    assert!(told.contains("--clients 100,200"), "{told}");
    says_nothing(of_counts(&[(16, UNSETTLED)]), "not-planned");
    let report = advised(of_counts(&[(16, SAME)]));
    assert_eq!(finding(&report, DELAY).action, "keep");
}

#[test]
fn an_unsettled_neighbour_leaves_it_open() {
    for spans in [
        [(8, UNSETTLED), (16, GAIN)],
        [(8, GAIN), (16, UNSETTLED)],
        [(8, UNSETTLED), (16, UNSETTLED)],
    ] {
        let told = says_nothing(of_counts(&spans), "inconclusive");
        assert!(
            told.contains("walprobe commit /mnt/t --only 'commit/delay-*' --time "),
            "{told}"
        );
    }
    // It does not matter beside one that does not gain.
    let report = advised(of_counts(&[(8, UNSETTLED), (16, SAME)]));
    assert_eq!(action(&report), ("keep", Some("0"), "medium"));
}

#[test]
fn slow_commits_that_become_slower_keep_the_default() {
    let mut worse = winning();
    let id = "commit/delay-16/fdatasync@16+delay";
    *of(&mut worse, id) = of(&mut worse, id).clone().p99((1.5, 1.3, 1.8));
    let report = advised(worse.clone());
    assert_eq!(finding(&report, DELAY).action, "keep");
    let seen = &finding(&report, DELAY).seen;
    assert!(seen.contains("the 99th percentile becomes 1.50"), "{seen}");
    // Not known is not "no worse".
    *of(&mut worse, id) = of(&mut worse, id).clone().p99((1.1, 0.9, 1.4));
    says_nothing(worse.clone(), "inconclusive");
    of(&mut worse, id).p99_ratio_high = None;
    says_nothing(worse, "inconclusive");
}

#[test]
fn think_time_can_only_speak_against_it() {
    let mut worse = winning();
    let id = "commit/delay-8-think/fdatasync@8+delay";
    *of(&mut worse, id) = row(id, "fdatasync@8", SLOWER);
    let report = advised(worse);
    assert_eq!(finding(&report, DELAY).action, "keep");
    assert!(finding(&report, DELAY).seen.contains("think time"));
    let without = advised(of_counts(&[(8, GAIN), (16, GAIN)]));
    assert_eq!(action(&without), ("change", Some("4000"), "low"));
}

#[test]
fn a_delay_that_no_sleep_can_keep_is_not_set() {
    let mut coarse = winning();
    for row in &mut coarse.targets[0].rows {
        *row = row
            .clone()
            .seen("delay_us", json!(20))
            .seen("delay_really_us", json!(75.0));
    }
    let report = advised(coarse);
    assert_eq!(finding(&report, DELAY).action, "keep");
    let seen = &finding(&report, DELAY).seen;
    assert!(seen.contains("a sleep of 20 us takes 75 us"), "{seen}");
}

#[test]
fn leaders_that_slept_differently_decide_nothing() {
    let mut odd = winning();
    let id = "commit/delay-16/fdatasync@16+delay";
    *of(&mut odd, id) = of(&mut odd, id).clone().seen("delay_us", json!(3_000));
    says_nothing(odd.clone(), "inconclusive");
    of(&mut odd, id).observations.clear();
    says_nothing(odd, "inconclusive");
}

#[test]
fn what_was_not_measured_is_told() {
    let told = says_nothing(report(target(Some("yes"), vec![])), "not-planned");
    assert!(
        told.contains("walprobe commit /mnt/t --only 'commit/delay-*'"),
        "{told}"
    );
    let mut fault = winning();
    for clients in [8, 16] {
        let base = format!("fdatasync@{clients}");
        let id = format!("commit/delay-{clients}/{base}");
        *of(&mut fault, &id) = failed(&id, &base, "fdatasync", "EIO");
    }
    assert!(says_nothing(fault, "errno").contains("EIO"));
    let mut late = winning();
    let id = "commit/delay-16/fdatasync@16+delay";
    *of(&mut late, id) = skipped(id, "fdatasync@16", "time", "the time was spent");
    says_nothing(late, "time");
    let mut few = winning();
    for id in [
        "commit/delay-8/fdatasync@8+delay",
        "commit/delay-16/fdatasync@16+delay",
    ] {
        of(&mut few, id).rounds = 5;
        of(&mut few, id).verdict = Some(Verdict::Inconclusive);
    }
    says_nothing(few, "inconclusive");
}

#[test]
fn without_durability_nothing_is_said() {
    for (durability, code) in [
        (DurabilityVerdict::NotDurable, "not-durable"),
        (DurabilityVerdict::NoFlushSeen, "no-flush-seen"),
    ] {
        let mut lost = winning();
        lost.targets[0].durability = verdict(durability);
        says_nothing(lost, code);
    }
    let mut unshown = winning();
    unshown.targets[0].durability = verdict(DurabilityVerdict::NotProvable);
    let report = advised(unshown);
    assert_eq!(not_tested(&report, DELAY).reason_code, "not-provable");
    let mut kept = of_counts(&[(8, SAME), (16, SAME)]);
    kept.targets[0].durability = verdict(DurabilityVerdict::NotProvable);
    assert_eq!(action(&advised(kept)), ("keep", Some("0"), "low"));
}

#[test]
fn doubts_and_limits_take_confidence() {
    let mut busy = winning();
    of(&mut busy, "commit/delay-8/fdatasync@8")
        .doubts
        .push(Doubt {
            code: "cpu-bound".to_owned(),
            value: None,
            unit: None,
            text: String::new(),
        });
    let report = advised(busy);
    assert_eq!(action(&report).2, "low");
    assert!(finding(&report, DELAY).means.contains("cpu-bound"));
    let mut limited = winning();
    let virt = ground("virtual-device", Weight::Limits);
    limited.targets[0].durability.grounds.push(virt);
    assert_eq!(action(&advised(limited)).2, "low");
}
