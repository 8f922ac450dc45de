//! A group of cases in interleaved rounds, judged by the functions that the program uses.

use fastrand::Rng;
use walprobe_probes::{
    report::{Margins, Verdict},
    stats::paired::{Judged, LOOKS, Sequential, judge},
};

use super::noise::Model;

/// Runs a simulation has.
pub(crate) const RUNS: u64 = 1_000;

/// The upper 99% bound of a count in [`RUNS`] whose rate is 1%.
pub(crate) const WRONG_AT_MOST: usize = 18;

/// When measuring ends unless all cases are settled before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At the last look.
    LastLook,
    /// When the time is spent: after any number of rounds from the first look to the last.
    Anywhere,
}

/// The order of a round's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Drawn anew for each round.
    Random,
    /// The baseline always first.
    Fixed,
}

/// What is simulated.
#[derive(Clone)]
pub(crate) struct Group {
    pub(crate) model: Model,
    /// True ratios of the judged cases to the baseline.
    pub(crate) ratios: Vec<f64>,
    pub(crate) end: End,
    pub(crate) order: Order,
    /// How much slower the block is that runs after one of the first judged case.
    pub(crate) carried_over: f64,
}

/// What one run yields.
pub(crate) struct Outcome {
    pub(crate) judged: Vec<Judged>,
    pub(crate) log_ratios: Vec<Vec<f64>>,
    pub(crate) rounds: usize,
}

impl Group {
    /// A baseline and one case whose time is `ratio` times as long.
    pub(crate) fn pair(model: Model, ratio: f64, end: End) -> Self {
        Self {
            model,
            ratios: vec![ratio],
            end,
            order: Order::Random,
            carried_over: 0.0,
        }
    }

    /// One run: rounds until every case is settled at a look, or the end.
    pub(crate) fn run(&self, seed: u64) -> Outcome {
        let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed);
        let last = LOOKS[LOOKS.len() - 1];
        let end = match self.end {
            End::LastLook => last,
            End::Anywhere => rng.usize(LOOKS[0]..=last),
        };
        let margins = Margins::default();
        let cases = self.ratios.len() + 1;
        let mut world = (self.model.make)(cases * last, &mut rng);
        let mut sequences = vec![Sequential::default(); self.ratios.len()];
        let mut log_ratios = vec![Vec::new(); self.ratios.len()];
        let mut order: Vec<usize> = (0..cases).collect();
        let (mut rounds, mut previous) = (0, 0);
        while rounds < end {
            if self.order == Order::Random {
                rng.shuffle(&mut order);
            }
            let mut means = vec![0.0; cases];
            for (place, &case) in order.iter().enumerate() {
                let ratio = if case == 0 {
                    1.0
                } else {
                    self.ratios[case - 1]
                };
                let carried_over = if previous == 1 {
                    self.carried_over
                } else {
                    0.0
                };
                means[case] = ratio * (1.0 + carried_over) * world.block(place == 0, &mut rng);
                previous = case;
            }
            rounds += 1;
            for (case, sequence) in sequences.iter_mut().enumerate() {
                let log_ratio = (means[case + 1] / means[0]).ln();
                log_ratios[case].push(log_ratio);
                sequence.push(log_ratio);
                sequence.look(&margins);
            }
            if sequences
                .iter()
                .all(|s| s.verdict() != Verdict::Inconclusive)
            {
                break;
            }
        }
        Outcome {
            judged: sequences.iter().map(|s| s.end(&margins)).collect(),
            log_ratios,
            rounds,
        }
    }

    /// All runs of the group, tallied for its first judged case.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for seed in 0..RUNS {
            let run = self.run(seed);
            tally.add(&run.judged[0], self.ratios[0], run.rounds);
        }
        tally
    }
}

/// Counts over runs.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) faster: usize,
    pub(crate) slower: usize,
    pub(crate) tie: usize,
    pub(crate) inconclusive: usize,
    /// The interval holds the true ratio.
    pub(crate) covered: usize,
    /// The interval's near end is beyond the action margin.
    pub(crate) actionable: usize,
    pub(crate) rounds: usize,
    pub(crate) runs: usize,
}

impl Tally {
    pub(crate) fn add(&mut self, judged: &Judged, truth: f64, rounds: usize) {
        match judged.verdict {
            Verdict::Faster => self.faster += 1,
            Verdict::Slower => self.slower += 1,
            Verdict::Tie => self.tie += 1,
            Verdict::Inconclusive | Verdict::Baseline => self.inconclusive += 1,
        }
        let interval = judged.ratio.expect("twelve rounds have an interval");
        self.covered += usize::from(interval.low <= truth && truth <= interval.high);
        let beyond = 1.0 + Margins::default().action;
        self.actionable += usize::from(interval.low > beyond || interval.high < 1.0 / beyond);
        self.rounds += rounds;
        self.runs += 1;
    }

    /// Verdicts other than tie and inconclusive.
    pub(crate) fn different(&self) -> usize {
        self.faster + self.slower
    }
}

/// Runs in which a tenth is found when the same operations are measured in blocks `longer` times
/// as long, and in as many fewer rounds.
pub(crate) fn found_in_blocks(model: Model, longer: usize) -> usize {
    let last = LOOKS[LOOKS.len() - 1];
    let found = |seed: &u64| {
        let mut rng = Rng::with_seed(*seed);
        let mut world = (model.make)(2 * last, &mut rng);
        let mut round = |_| {
            let mut means = [0.0; 2];
            let first = rng.usize(..2);
            for case in [first, 1 - first] {
                means[case] = (0..longer).map(|_| world.block(false, &mut rng)).sum();
            }
            f64::ln(1.1 * means[1] / means[0])
        };
        let log_ratios: Vec<f64> = (0..last / longer).map(&mut round).collect();
        judge(&log_ratios, &Margins::default()).verdict == Verdict::Slower
    };
    (0..RUNS).filter(found).count()
}
