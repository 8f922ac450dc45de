//! The engine on a scripted target: order, counts, rounds, early ends, partial rows.

mod fake;

use std::sync::{Arc, atomic::Ordering};

use fake::{Fake, Script, commit, group, probe, run};
use walprobe_probes::{
    contract::{Comparison, Fault, Stop},
    report::{Cold, ColdProof, Row, RowStatus, Us, Verdict},
};

/// A little noise, so that intervals have a width.
fn wobble(n: u64, ns: u64) -> u64 {
    ns + (n * 7919 % 101) * ns / 10_000
}

fn last(told: &[(Vec<Row>, bool)]) -> &[Row] {
    let (rows, done) = told.last().expect("rows are told");
    assert!(done, "the last rows are final");
    assert_eq!(told.iter().filter(|(_, done)| *done).count(), 1);
    rows
}

fn row<'r>(rows: &'r [Row], comparison: &str, case: &str) -> &'r Row {
    rows.iter()
        .find(|r| r.comparison == comparison && r.case == case)
        .unwrap_or_else(|| panic!("no row {comparison}/{case}"))
}

#[test]
fn a_slower_case_is_found_and_everything_is_counted() {
    let fake = Fake::new();
    let p = probe(
        &fake,
        &[
            ("a", commit(|n| wobble(n, 200_000))),
            ("b", commit(|n| wobble(n, 260_000))),
            ("c", commit(|n| wobble(n + 50, 200_000))),
        ],
    );
    let told = run(&p, &group(&["a", "b", "c"]), 20.0, 1 << 40, 1);
    let rows = last(&told);
    let (a, b, c) = (
        row(rows, "commit", "a"),
        row(rows, "commit", "b"),
        row(rows, "commit", "c"),
    );
    assert_eq!(a.verdict, Some(Verdict::Baseline));
    assert_eq!(a.ratio, Some(1.0));
    assert_eq!(b.verdict, Some(Verdict::Slower));
    assert!((b.ratio.unwrap() - 1.3).abs() < 0.01, "{:?}", b.ratio);
    assert_eq!(c.verdict, Some(Verdict::Tie));
    for r in rows {
        assert_eq!(r.status, RowStatus::Ok);
        assert!(r.rounds >= 12);
        // Calibration and discarded operations are in none of these.
        assert_eq!(r.flushes, Some(r.ops));
        assert_eq!(r.syncs, Some(r.ops));
        assert_eq!(r.flushes_per_op, Some(1.0));
        assert_eq!(r.wal_bytes, Some(512 * r.ops));
        assert_eq!(r.bytes_written, Some(8192 * r.ops));
        assert_eq!(r.device_bytes_written, Some(8192 * r.ops));
        let blocks = r.blocks.as_ref().unwrap();
        assert_eq!(blocks.ops.iter().sum::<u64>(), r.ops);
        assert_eq!(blocks.round, (0..r.rounds).collect::<Vec<_>>());
        assert_eq!(
            r.histogram.as_ref().unwrap().count.iter().sum::<u64>(),
            r.ops
        );
        assert_eq!(
            r.per_second.as_ref().unwrap().ops.iter().sum::<u64>(),
            r.ops
        );
        let phases = &r.phases;
        assert!(phases["sync"].mean_us > phases["write"].mean_us);
    }
    // The operation is timed, what lies between operations is not.
    assert!(
        (a.mean_us.unwrap().as_us() - 201.0).abs() < 1.0,
        "{:?}",
        a.mean_us
    );
}

#[test]
fn cases_alternate_in_seeded_random_order_and_each_block_is_settled() {
    let orders = |seed| {
        let fake = Fake::new();
        let p = probe(
            &fake,
            &[
                ("a", commit(|n| wobble(n, 100_000))),
                ("b", commit(|n| wobble(n, 150_000))),
            ],
        );
        run(&p, &group(&["a", "b"]), 5.0, 1 << 40, seed);
        let log = fake.log.lock().unwrap().clone();
        let rounds: Vec<String> = log.iter().filter(|l| l.contains('@')).cloned().collect();
        for at in 0..log.len() {
            // A block is announced, then settled, before the next is announced.
            if log[at].contains("@1") {
                assert_eq!(log[at + 2], "settle", "{:?}", &log[at..at + 3]);
            }
        }
        rounds
    };
    let first = orders(1);
    assert_eq!(first, orders(1), "the seed fixes the order");
    assert_ne!(first, orders(2), "another seed, another order");
    for round in 0..12 {
        let blocks = first
            .iter()
            .filter(|l| l.ends_with(&format!("@{round}")))
            .count();
        // Round 0 also announces opening and calibration, once each.
        assert_eq!(blocks, if round == 0 { 6 } else { 2 }, "round {round}");
    }
    let a_first = (1..12)
        .filter(|r| {
            let at = |c: &str| first.iter().position(|l| *l == format!("{c}@{r}"));
            at("a") < at("b")
        })
        .count();
    assert!(
        (1..11).contains(&a_first),
        "the order varies: a came first {a_first} times of 11"
    );
}

#[test]
fn a_fault_ends_its_case_and_keeps_what_was_measured() {
    let fake = Fake::new();
    let failing: Script = {
        let inner = commit(|n| wobble(n, 100_000));
        Arc::new(move |n, fake, lap| {
            if n > 700 {
                return Err(Fault::new("fdatasync", 5, "seg-b"));
            }
            inner(n, fake, lap)
        })
    };
    let p = probe(
        &fake,
        &[("a", commit(|n| wobble(n, 100_000))), ("b", failing)],
    );
    let told = run(&p, &group(&["a", "b"]), 5.0, 1 << 40, 1);
    let rows = last(&told);
    let (a, b) = (row(rows, "commit", "a"), row(rows, "commit", "b"));
    assert_eq!(a.status, RowStatus::Ok);
    assert!(a.rounds >= 12, "the group goes on: {}", a.rounds);
    assert_eq!(b.status, RowStatus::Fault);
    assert_eq!(b.reason_code.as_deref(), Some("errno"));
    let fault = b.fault.as_ref().unwrap();
    assert_eq!(
        (
            fault.call.as_str(),
            fault.errno_name.as_str(),
            fault.operation
        ),
        ("fdatasync", "EIO", 701)
    );
    assert_ne!(b.verdict, Some(Verdict::Faster));
}

#[test]
fn a_call_that_is_not_there_is_unsupported_and_a_refused_case_is_skipped() {
    let fake = Fake::new();
    let missing: Script =
        Arc::new(|_, _, _| Err(Fault::new("fallocate", libc::EOPNOTSUPP, "seg-b")));
    let mut p = probe(
        &fake,
        &[
            ("a", commit(|n| wobble(n, 100_000))),
            ("b", missing),
            ("c", commit(|n| wobble(n, 1))),
        ],
    );
    p.refuse = Some(("c".into(), Stop::Skip("need-root", "needs root".into())));
    let told = run(&p, &group(&["a", "b", "c"]), 3.0, 1 << 40, 1);
    let rows = last(&told);
    assert_eq!(row(rows, "commit", "b").status, RowStatus::Unsupported);
    assert_eq!(row(rows, "commit", "b").ops, 0);
    let c = row(rows, "commit", "c");
    assert_eq!(
        (c.status, c.reason_code.as_deref()),
        (RowStatus::Skipped, Some("need-root"))
    );
    assert_eq!(row(rows, "commit", "a").status, RowStatus::Ok);
}

#[test]
fn without_a_baseline_nothing_is_judged() {
    let fake = Fake::new();
    let mut p = probe(
        &fake,
        &[
            ("a", commit(|_| 1_000)),
            ("b", commit(|n| wobble(n, 100_000))),
        ],
    );
    p.refuse = Some(("a".into(), Stop::Skip("need-root", String::new())));
    let told = run(&p, &group(&["a", "b"]), 3.0, 1 << 40, 1);
    let b = row(last(&told), "commit", "b");
    assert!(b.ops > 0);
    assert_eq!((b.verdict, b.ratio), (None, None));
}

#[test]
fn time_ends_a_group_and_no_verdict_comes_before_twelve_rounds() {
    let fake = Fake::new();
    let p = probe(
        &fake,
        &[
            ("a", commit(|n| wobble(n, 80_000_000))),
            ("b", commit(|n| wobble(n, 160_000_000))),
        ],
    );
    let told = run(&p, &group(&["a", "b"]), 2.0, 1 << 40, 1);
    let rows = last(&told);
    let b = row(rows, "commit", "b");
    assert!(b.rounds > 0 && b.rounds < 12, "{}", b.rounds);
    assert_eq!(b.verdict, Some(Verdict::Inconclusive));
    assert!(b.doubts.iter().any(|d| d.code == "few-rounds"));
    assert!(fake.log.lock().unwrap().iter().any(|l| l == "close:a"));
}

#[test]
fn the_budget_ends_a_group_before_it_is_overspent() {
    let fake = Fake::new();
    let p = probe(
        &fake,
        &[
            ("a", commit(|n| wobble(n, 100_000))),
            ("b", commit(|n| wobble(n, 101_000))),
        ],
    );
    run(&p, &group(&["a", "b"]), 60.0, 4 << 20, 1);
    let written = walprobe_probes::contract::Counters::read(fake.as_ref()).device_bytes_written;
    assert!(written <= 4 << 20, "{written}");
    assert!(written > 1 << 20, "and it was used: {written}");
}

#[test]
fn an_unreached_case_is_skipped_with_the_reason() {
    let fake = Fake::new();
    fake.budget.store(0, Ordering::Relaxed);
    let p = probe(
        &fake,
        &[("a", commit(|_| 100_000)), ("b", commit(|_| 100_000))],
    );
    let told = run(&p, &group(&["a", "b"]), 3.0, 1 << 40, 1);
    for r in last(&told) {
        assert_eq!(
            (r.status, r.reason_code.as_deref()),
            (RowStatus::Skipped, Some("budget"))
        );
    }
}

#[test]
fn an_interruption_keeps_what_was_measured() {
    let fake = Fake::new();
    let stopping: Script = {
        let inner = commit(|n| wobble(n, 1_000_000));
        Arc::new(move |n, fake, lap| {
            if n == 900 {
                fake.pulse.stop();
            }
            inner(n, fake, lap)
        })
    };
    let p = probe(
        &fake,
        &[("a", commit(|n| wobble(n, 1_000_000))), ("b", stopping)],
    );
    let told = run(&p, &group(&["a", "b"]), 60.0, 1 << 40, 1);
    let b = row(last(&told), "commit", "b");
    assert_eq!(b.status, RowStatus::Ok);
    assert!(b.ops > 0 && b.ops < 900, "{}", b.ops);
    let blocks = b.blocks.as_ref().unwrap();
    assert_eq!(
        blocks.ops.iter().sum::<u64>(),
        b.ops,
        "an unfinished block is told as such"
    );
}

#[test]
fn rows_so_far_are_told_while_it_runs() {
    let fake = Fake::new();
    // An alternating difference never settles.
    let p = probe(
        &fake,
        &[
            ("a", commit(|_| 1_000_000)),
            (
                "b",
                commit(|n| if n / 40 % 2 == 0 { 800_000 } else { 1_250_000 }),
            ),
        ],
    );
    let told = run(&p, &group(&["a", "b"]), 8.0, 1 << 40, 1);
    assert!(told.len() > 3, "{}", told.len());
    let ops: Vec<u64> = told
        .iter()
        .map(|(rows, _)| row(rows, "commit", "a").ops)
        .collect();
    assert!(
        ops.is_sorted() && ops[0] > 0 && ops[0] < *ops.last().unwrap(),
        "{ops:?}"
    );
}

/// A life: made (2 ms, 2 flushes), four commits that stand for sixteen (1 ms), removed (3 ms).
fn life(make_ns: u64) -> Script {
    Arc::new(move |n, fake, lap| {
        lap.leg("get", 1.0);
        lap.start();
        fake.pass(wobble(n, make_ns));
        fake.count(|c| c.flushes += 2);
        lap.mark("create");
        lap.done();
        lap.leg("commit", 4.0);
        for _ in 0..4 {
            lap.start();
            fake.pass(1_000_000);
            fake.count(|c| c.flushes += 1);
            lap.mark("write");
            lap.done();
            lap.wal(65536);
        }
        lap.life("life");
        lap.leg("remove", 1.0);
        lap.start();
        fake.pass(3_000_000);
        fake.count(|c| c.flushes += 1);
        lap.mark("unlink");
        lap.done();
        lap.life("total");
        Ok(())
    })
}

fn life_group() -> walprobe_probes::contract::Group {
    let mut g = group(&["old", "new"]);
    for case in &mut g.cases {
        case.prepare_each_op = true;
        case.max_ops = 4;
    }
    g.compare = vec![Comparison {
        legs: &["get", "commit", "remove"],
        total: Some("total"),
        detail: Some("commit"),
        ..Comparison::judged("life", "life", "old")
    }];
    g
}

#[test]
fn a_life_is_extrapolated_and_its_legs_are_told_apart() {
    let fake = Fake::new();
    fake.settle_ns.store(5_000_000, Ordering::Relaxed);
    fake.settle_bytes.store(4096, Ordering::Relaxed);
    let proof = ColdProof {
        hook: "fadvise".into(),
        data: "cold".into(),
        metadata: "unknown".into(),
        resident_pages: Some(0),
        pages: Some(4096),
        residency_by: Some("cachestat".into()),
        witness_bytes: Some(1000),
        witness_read_bytes: Some(1000),
    };
    let mut p = probe(
        &fake,
        &[("old", life(2_000_000)), ("new", life(12_000_000))],
    );
    p.proof = Some(proof);
    let told = run(&p, &life_group(), 20.0, 1 << 40, 3);
    let rows = last(&told);
    let (old, new) = (row(rows, "life", "old"), row(rows, "life", "new"));
    // 2 ms + 4 x 4 x 1 ms, and wobble below 1%.
    assert!(
        (old.mean_us.unwrap().as_us() - 18_000.0).abs() < 30.0,
        "{:?}",
        old.mean_us
    );
    assert_eq!(new.verdict, Some(Verdict::Slower));
    assert!(
        (new.ratio.unwrap() - 28.0 / 18.0).abs() < 0.01,
        "{:?}",
        new.ratio
    );
    // The total has 3 ms of removal and the deferred 5 ms a block in.
    let per_life = 5.0 / (old.ops / old.rounds) as f64;
    let total = old.observations["total_mean_us"].as_f64().unwrap();
    assert!(
        (total - (21_000.0 + per_life * 1000.0)).abs() < 30.0,
        "{total}"
    );
    let total_ratio = new.observations["total_ratio"].as_f64().unwrap();
    assert!(
        (total_ratio - (31.0 + per_life) / (21.0 + per_life)).abs() < 0.01,
        "{total_ratio}"
    );
    assert_eq!(old.observations["deferred_ms"].as_f64(), Some(5.0));
    assert_eq!(old.observations["deferred_bytes"].as_u64(), Some(4096));
    assert_eq!(old.observations["commits"].as_u64(), Some(4 * old.ops));
    assert_eq!(
        old.observations["commit_p50_us"]
            .as_f64()
            .map(|us| (us / 10.0).round()),
        Some(100.0)
    );
    assert_eq!(old.flushes, Some(7 * old.ops));
    // Preparation read a megabyte each time; none of it is the life's.
    assert_eq!(old.own_bytes_read, Some(0));
    assert_eq!(old.observations["read_per_wal_byte"].as_f64(), Some(0.0));
    assert_eq!(old.cold, Some(Cold::Proven));
    let sum = old.cold_proof.as_ref().unwrap();
    assert_eq!(
        sum.pages,
        Some(4096 * old.ops),
        "one proof an operation, calibration's not among them"
    );
}

#[test]
fn one_unproven_block_spoils_the_claim() {
    let mut sum = ColdProof {
        data: "cold".into(),
        metadata: "cold".into(),
        pages: Some(10),
        ..ColdProof::default()
    };
    sum.add(&ColdProof {
        data: "not-cold".into(),
        metadata: "unknown".into(),
        pages: Some(10),
        ..ColdProof::default()
    });
    assert_eq!(sum.verdict(), Cold::NotCold);
    assert_eq!(sum.metadata, "unknown");
    assert_eq!(sum.pages, Some(20));
}

/// Blocks of slow operations are short: a verdict comes long before a 99th percentile.
#[test]
fn a_faster_case_goes_on_until_its_tail_is_known() {
    let told = |tail| {
        let fake = Fake::new();
        let p = probe(
            &fake,
            &[
                ("a", commit(|n| wobble(n, 20_000_000))),
                ("b", commit(|n| wobble(n, 2_000_000))),
            ],
        );
        let mut group = group(&["a", "b"]);
        group.compare[0].tail = tail;
        let told = run(&p, &group, 200.0, 1 << 40, 1);
        row(last(&told), "commit", "b").clone()
    };
    let settled = told(false);
    assert_eq!(settled.verdict, Some(Verdict::Faster));
    assert!(settled.ops < 1000, "{} operations", settled.ops);
    let known = told(true);
    assert_eq!(known.verdict, Some(Verdict::Faster));
    assert!(known.ops >= 1000, "{} operations", known.ops);
    assert!(known.p99_ratio_high.is_some_and(|high| high < 0.2));
}

#[test]
fn the_tail_needs_its_operations() {
    let fake = Fake::new();
    let p = probe(
        &fake,
        &[
            ("a", commit(|n| wobble(n, 50_000))),
            ("b", commit(|n| wobble(n, 100_000))),
        ],
    );
    let told = run(&p, &group(&["a", "b"]), 10.0, 1 << 40, 1);
    for r in last(&told) {
        assert_eq!(r.p99_us.is_some(), r.ops >= 1000, "{} ops", r.ops);
        assert_eq!(r.p999_us.is_some(), r.ops >= 10_000);
        assert!(r.ops >= 1000, "a fast case gets its tail: {}", r.ops);
        assert!(
            r.p50_us <= r.p95_us
                && r.p95_us <= r.p99_us
                && r.p99_us <= r.max_us.map(|m| Us(m.0 + 1))
        );
    }
    let b = row(last(&told), "commit", "b");
    assert!(
        (b.p99_ratio.unwrap() - 2.0).abs() < 0.1,
        "{:?}",
        b.p99_ratio
    );
    assert!((b.p50_ratio.unwrap() - 2.0).abs() < 0.1);
}

#[test]
fn rounds_asked_for_by_number_are_all_counted_and_alternate() {
    let fake = Fake::new();
    let p = probe(
        &fake,
        &[
            ("a", commit(|n| wobble(n, 200_000))),
            ("b", commit(|n| wobble(n, 200_000))),
        ],
    );
    let mut asked = group(&["a", "b"]);
    for case in &mut asked.cases {
        case.rounds = 5;
    }
    let told = run(&p, &asked, 20.0, 1 << 40, 1);
    for r in last(&told) {
        assert_eq!((r.ops, r.rounds), (5, 5), "{}", r.case);
        // Nothing was done that is not counted.
        assert_eq!(r.observations["ops_seen"], 5);
    }
    let log = fake.log.lock().unwrap();
    for round in 1..5 {
        let end = format!("@{round}");
        let blocks: Vec<_> = log.iter().filter(|l| l.ends_with(&end)).collect();
        assert_eq!(blocks.len(), 2, "round {round}: {blocks:?}");
    }
}

#[test]
fn rounds_asked_for_by_number_end_with_the_time_and_the_budget() {
    for (seconds, bytes, ended_by) in [(0.001, 1 << 40, "time"), (20.0, 5 * 8192, "budget")] {
        let fake = Fake::new();
        let p = probe(
            &fake,
            &[("a", commit(|_| 200_000)), ("b", commit(|_| 200_000))],
        );
        let mut asked = group(&["a", "b"]);
        for case in &mut asked.cases {
            case.rounds = 1000;
        }
        let told = run(&p, &asked, seconds, bytes, 1);
        for r in last(&told) {
            assert!(r.ops > 0 && r.ops < 1000, "{ended_by}: {}", r.ops);
            assert_eq!(r.status, RowStatus::Ok);
        }
    }
}

#[test]
fn a_baseline_without_a_row_is_compared_with_all_the_same() {
    let fake = Fake::new();
    let p = probe(
        &fake,
        &[
            ("a", commit(|n| wobble(n, 200_000))),
            ("b", commit(|n| wobble(n, 260_000))),
        ],
    );
    let mut hidden = group(&["a", "b"]);
    hidden.compare[0].names = vec![("b".to_owned(), "b".to_owned())];
    let told = run(&p, &hidden, 20.0, 1 << 40, 1);
    let rows = last(&told);
    assert_eq!(rows.len(), 1);
    let b = row(rows, "commit", "b");
    assert_eq!(b.verdict, Some(Verdict::Slower));
    assert!((b.ratio.unwrap() - 1.3).abs() < 0.01, "{:?}", b.ratio);
    let base = b.observations["baseline_mean_us"].as_f64().unwrap();
    assert!((base - 201.0).abs() < 1.0, "{base}");
}
