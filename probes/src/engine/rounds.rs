//! Drives one group: calibration, then rounds of blocks in seeded random order, until its
//! judged comparisons are settled or its share of time or budget is spent.

use crate::{
    contract::{Group, Lab, Probe, Run, Stop},
    engine::{
        case::{BlockCost, BlockPlan, CaseRun, State, stop_of},
        lap::Lap,
        rows,
        sizing::{self, Cost, Size},
    },
    report::{Margins, Row, Verdict},
    stats::paired::Sequential,
};

/// What a group may take, and how its verdicts are judged.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The end of the group's share on the engine's clock.
    pub deadline_ns: u64,
    /// The end of everything: up to here a group may go that has not had its first verdict.
    pub hard_deadline_ns: u64,
    /// Device bytes of the group's share.
    pub bytes: u64,
    /// Device bytes that a group may take that has not had its first verdict.
    pub hard_bytes: u64,
    /// Margins of verdicts.
    pub margins: Margins,
    /// How often rows so far are told, in nanoseconds of the engine's clock.
    pub tell_every_ns: u64,
}

/// The paired figures of one comparison's case.
#[derive(Debug, Default)]
pub struct Pairing {
    /// Log ratios of the comparison's series.
    pub ratio: Sequential,
    /// Log ratios of whole lives, deferred cost in.
    pub total: Sequential,
}

/// A group under way: what rows are made of.
pub struct GroupRun<'g> {
    /// The plan.
    pub group: &'g Group,
    /// The cases, in plan order.
    pub cases: Vec<CaseRun>,
    /// `[comparison][case]`.
    pub pairs: Vec<Vec<Pairing>>,
    /// Measured rounds.
    pub rounds: u64,
    /// Time a round takes.
    pub round_ns: u64,
    /// Why it ended before its comparisons were settled: `time`, `budget`, `interrupted`.
    pub ended_by: Option<&'static str>,
}

/// Runs a group. `tell` gets rows so far about every `tell_every_ns`, and last the final ones
/// with `true`.
pub fn run_group(
    probe: &dyn Probe,
    group: &Group,
    lab: &mut Lab<'_>,
    limits: &Limits,
    tell: &mut dyn FnMut(Vec<Row>, bool),
) {
    let mut run = GroupRun {
        group,
        cases: Vec::new(),
        pairs: group
            .compare
            .iter()
            .map(|_| group.cases.iter().map(|_| Pairing::default()).collect())
            .collect(),
        rounds: 0,
        round_ns: 0,
        ended_by: None,
    };
    for (at, case) in group.cases.iter().enumerate() {
        announce(group, at, 0, lab);
        let opened = if lab.pulse.stopped() {
            Err(stopped(lab, limits))
        } else {
            probe.open(case, lab)
        };
        let mut under_way = CaseRun::new(case.clone(), State::Finished);
        match opened {
            Ok(Run::Alone(trial)) => under_way.state = State::Active(trial),
            Ok(Run::Once(mut study)) => once(study.as_mut(), &mut under_way, lab),
            Err(stop) => under_way.state = State::Ended(stop, 0),
        }
        run.cases.push(under_way);
    }
    if run.cases.iter().any(CaseRun::is_active) {
        drive(&mut run, lab, limits, tell);
    }
    for case in &mut run.cases {
        case.close(lab);
    }
    if run.ended_by.is_none() && lab.pulse.stopped() {
        run.ended_by = Some(why_stopped(lab, limits));
    }
    tell(rows::rows(&run, lab, &limits.margins, true), true);
}

/// The parent ends a worker that overruns its time: that is no interruption.
fn why_stopped(lab: &Lab<'_>, limits: &Limits) -> &'static str {
    if lab.clock.now_ns() >= limits.hard_deadline_ns {
        "time"
    } else {
        "interrupted"
    }
}

fn stopped(lab: &Lab<'_>, limits: &Limits) -> Stop {
    match why_stopped(lab, limits) {
        "time" => Stop::Skip("time", "the time was spent before it".to_owned()),
        _ => Stop::Interrupted,
    }
}

/// Announces a case by the first row that will be told of it.
fn announce(group: &Group, case: usize, round: u64, lab: &mut Lab<'_>) {
    for comparison in &group.compare {
        if let Some((name, _)) = group
            .members(comparison)
            .into_iter()
            .find(|(_, at)| *at == case)
        {
            lab.hooks.doing(group.probe, &comparison.id, name, round);
            return;
        }
    }
    // A baseline whose row stands elsewhere.
    if let Some(first) = group.compare.first() {
        let name = &group.cases[case].name;
        lab.hooks.doing(group.probe, &first.id, name, round);
    }
}

/// A study is one block of its own making.
fn once(study: &mut dyn crate::contract::Study, case: &mut CaseRun, lab: &mut Lab<'_>) {
    let from = lab.clock.now_ns();
    let mut lap = Lap::new(lab.clock, lab.counters, lab.pulse, &mut case.tally);
    lap.begin_block();
    let outcome = study.run(lab, &mut lap, case.seen.entry("").or_default());
    lap.end_block();
    case.tally.end_block(0, 0, from, outcome.is_ok());
    case.wall_ns = lab.clock.now_ns() - from;
    let outcome = outcome.and(lab.hooks.settle().map(|told| case.settled(&told)));
    if let Err(stop) = outcome {
        let operation = case
            .tally
            .names()
            .filter_map(|s| case.tally.get(s))
            .map(|t| t.ops)
            .sum::<u64>();
        let stop = match stop {
            Stop::Fault(fault) => stop_of(fault),
            other => other,
        };
        case.state = State::Ended(stop, operation + 1);
    }
}

fn drive(
    run: &mut GroupRun<'_>,
    lab: &mut Lab<'_>,
    limits: &Limits,
    tell: &mut dyn FnMut(Vec<Row>, bool),
) {
    let spent_before = lab.counters.read().device_bytes_written;
    let fixed = run.group.fixed_rounds();
    let costs = if fixed.is_some() {
        run.cases.iter().map(known_cost).collect()
    } else if let Some(costs) = calibrate(run, lab, limits) {
        costs
    } else {
        return;
    };
    let spent = lab.counters.read().device_bytes_written - spent_before;
    let left_ns = limits.deadline_ns.saturating_sub(lab.clock.now_ns());
    let mut size = sizing::size(&costs, left_ns, limits.bytes.saturating_sub(spent));
    if fixed.is_some() {
        size.ops = 1;
    }
    run.round_ns = costs
        .iter()
        .map(|c| (c.block_ns + c.op_ns * size.ops as f64) as u64)
        .sum();
    let round_bytes: f64 = costs
        .iter()
        .map(|c| c.block_bytes + c.op_bytes * size.ops as f64)
        .sum();
    let mut told_ns = lab.clock.now_ns();
    let mut charged = 0;
    let judged = run.group.compare.iter().any(|c| c.judged);
    loop {
        if lab.pulse.stopped() {
            run.ended_by = Some(why_stopped(lab, limits));
            break;
        }
        if !run.cases.iter().any(CaseRun::is_active) {
            break;
        }
        let enough = match fixed {
            Some(rounds) => run.rounds >= rounds,
            None if judged => settled(run),
            None => run.rounds >= sizing::MIN_ROUNDS,
        };
        if enough {
            break;
        }
        // Rounds that were asked for by number are as dear as a first verdict.
        let must = fixed.is_some() || judged && run.rounds < sizing::MIN_ROUNDS;
        let (deadline_ns, bytes) = if must {
            (limits.hard_deadline_ns, limits.hard_bytes)
        } else {
            (limits.deadline_ns, limits.bytes)
        };
        let now = lab.clock.now_ns();
        if now + run.round_ns > deadline_ns {
            run.ended_by = Some("time");
            break;
        }
        // Where no device counts, what was charged is what was spent.
        let spent = (lab.counters.read().device_bytes_written - spent_before).max(charged);
        if spent as f64 + round_bytes > bytes as f64 {
            run.ended_by = Some("budget");
            break;
        }
        let charge = round_charge(run, &size);
        if let Err(Stop::Skip(code, _)) = lab.hooks.charge(charge) {
            run.ended_by = Some(code);
            break;
        }
        charged += charge;
        round(run, &size, lab);
        run.rounds += 1;
        if fixed.is_some() {
            run.round_ns = lab.clock.now_ns() - now;
        }
        pair(run, &limits.margins);
        if lab.clock.now_ns() - told_ns >= limits.tell_every_ns {
            tell(rows::rows(run, lab, &limits.margins, false), false);
            told_ns = lab.clock.now_ns();
        }
    }
}

/// One block of each case that nobody counts, then short blocks until an operation's cost is known.
/// None when there is no time for it.
fn calibrate(run: &mut GroupRun<'_>, lab: &mut Lab<'_>, limits: &Limits) -> Option<Vec<Cost>> {
    const ENOUGH_NS: u64 = 20_000_000;
    const ENOUGH_OPS: u64 = 256;
    let mut costs = Vec::new();
    for at in 0..run.cases.len() {
        announce(run.group, at, 0, lab);
        let case = &mut run.cases[at];
        if !case.is_active() {
            costs.push(Cost::default());
            continue;
        }
        if lab.pulse.stopped() {
            run.ended_by = Some(why_stopped(lab, limits));
            return None;
        }
        if lab.clock.now_ns() >= limits.hard_deadline_ns {
            run.ended_by = Some("time");
            return None;
        }
        let charge = case.case.op_bytes + case.case.prepare_bytes;
        if let Err(Stop::Skip(code, _)) = lab.hooks.charge(charge) {
            run.ended_by = Some(code);
            return None;
        }
        let plan = |ops, discard| BlockPlan {
            ops,
            discard,
            ..BlockPlan::default()
        };
        let cap = if case.case.max_ops == 0 {
            u64::MAX
        } else {
            case.case.max_ops
        };
        // The first block is the cold start: files are touched, caches filled, inspections made.
        let first = case.block(plan(1, 0), lab);
        let mut ops = 1;
        let mut seen = first;
        if first.ops_ns < ENOUGH_NS {
            ops = (ENOUGH_NS / first.ops_ns.max(1))
                .clamp(2, ENOUGH_OPS)
                .min(cap);
            if ops > 1 && lab.hooks.charge(ops * case.case.op_bytes).is_ok() {
                seen = case.block(plan(ops, case.case.discard_ops), lab);
            } else {
                ops = 1;
            }
        }
        costs.push(cost(case, &seen, ops));
        case.forget();
    }
    Some(costs)
}

/// What an operation costs that is not tried out first: what the plan says.
fn known_cost(case: &CaseRun) -> Cost {
    Cost {
        op_bytes: case.case.op_bytes as f64,
        block_bytes: case.case.prepare_bytes as f64,
        ..Cost::default()
    }
}

fn cost(case: &CaseRun, seen: &BlockCost, ops: u64) -> Cost {
    let op_ns = seen.ops_ns as f64 / ops as f64;
    let moved = seen.moved.device_bytes_written as f64 / ops as f64;
    Cost {
        op_ns,
        block_ns: seen.wall_ns.saturating_sub(seen.ops_ns) as f64,
        // Writeback may come later than the block: never below what is known to be written.
        op_bytes: moved.max(case.case.op_bytes as f64),
        block_bytes: case.case.prepare_bytes as f64,
        max_ops: case.case.max_ops,
    }
}

/// What a round is charged.
fn round_charge(run: &GroupRun<'_>, size: &Size) -> u64 {
    run.cases
        .iter()
        .filter(|c| c.is_active())
        .map(|c| c.case.prepare_bytes + c.case.op_bytes * (size.ops + c.case.discard_ops))
        .sum()
}

fn round(run: &mut GroupRun<'_>, size: &Size, lab: &mut Lab<'_>) {
    let mut order: Vec<usize> = (0..run.cases.len())
        .filter(|&i| run.cases[i].is_active())
        .collect();
    lab.rng.shuffle(&mut order);
    for (place, &at) in order.iter().enumerate() {
        if lab.pulse.stopped() {
            return;
        }
        announce(run.group, at, run.rounds, lab);
        let case = &mut run.cases[at];
        let plan = BlockPlan {
            ops: size.ops,
            discard: case.case.discard_ops,
            round: run.rounds,
            order: place as u64,
        };
        case.block(plan, lab);
    }
}

/// Adds this round's log ratios, then looks where a look is due.
fn pair(run: &mut GroupRun<'_>, margins: &Margins) {
    let round = run.rounds - 1;
    for (comparison, pairs) in run.group.compare.iter().zip(&mut run.pairs) {
        let Some(base) = run.group.baseline(comparison).map(|at| &run.cases[at]) else {
            continue;
        };
        for (_, at) in run.group.members(comparison) {
            let (case, pairing) = (&run.cases[at], &mut pairs[at]);
            let series = comparison.series;
            if let (Some(a), Some(b)) = (
                block_mean(case, series, round),
                block_mean(base, series, round),
            ) {
                pairing.ratio.push((a / b).ln());
                pairing.ratio.look(margins);
            }
            let Some(total) = comparison.total else {
                continue;
            };
            if let (Some(a), Some(b)) = (
                total_mean(case, total, round),
                total_mean(base, total, round),
            ) {
                pairing.total.push((a / b).ln());
                pairing.total.look(margins);
            }
        }
    }
}

fn block_mean(case: &CaseRun, series: &str, round: u64) -> Option<f64> {
    let block = case.tally.get(series)?.blocks.last()?;
    (block.round == round)
        .then(|| block.mean_ns())?
        .filter(|m| *m > 0.0)
}

/// Mean life of the round's block, its share of deferred cost in.
fn total_mean(case: &CaseRun, series: &str, round: u64) -> Option<f64> {
    let mean = block_mean(case, series, round)?;
    let deferred = case.deferred.last().filter(|d| d.round == round)?;
    Some(mean + deferred.ns as f64 / deferred.ops.max(1) as f64)
}

/// Some series of the case has operations enough for a 99th percentile.
fn has_tail(run: &GroupRun<'_>, case: usize) -> bool {
    let tally = &run.cases[case].tally;
    tally
        .names()
        .filter_map(|series| tally.get(series))
        .any(|series| series.ops >= rows::P99_OPS)
}

/// Every judged comparison of a case that is still going has a verdict.
fn settled(run: &GroupRun<'_>) -> bool {
    if run.rounds < sizing::MIN_ROUNDS {
        return false;
    }
    run.group
        .compare
        .iter()
        .zip(&run.pairs)
        .all(|(comparison, pairs)| {
            let base = run.group.baseline(comparison);
            !comparison.judged
                || run.group.members(comparison).into_iter().all(|(_, at)| {
                    !run.cases[at].is_active()
                        || base == Some(at)
                        || pairs[at].ratio.is_empty()
                        || match pairs[at].ratio.verdict() {
                            Verdict::Inconclusive => false,
                            Verdict::Faster if comparison.tail => {
                                [at].into_iter().chain(base).all(|of| has_tail(run, of))
                            }
                            _ => true,
                        }
                })
        })
}
