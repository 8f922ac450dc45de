//! One case under two names, on real filesystems: how often are the two called different?
//!
//! `cargo bench --bench twins -- --runs 50` (root: it makes ext4, XFS and btrfs on loop devices), or
//! with directories of yours after the options. A run is what `walprobe all --profile quick --only ...`
//! does in its worker: the directory is checked, the durability check comes first, the engine drives
//! both names of each case in one group, and they are judged as always. Nothing is asserted: the
//! counts are printed. docs/method.md has those that were found, and what they must be.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Mutex,
};

use anyhow::Context as _;
use clap::Parser;
use walprobe_probes::{
    contract::{Card, Case, Comparison, Group, Lab, Probe, Pulse, Run, Stop, Value},
    durability::Durability,
    event::Event,
    facts::Facts,
    prealloc::Prealloc,
    recycle::Recycle,
    report::{Margins, Row, RowStatus, Verdict},
    request::{Profile, Request},
    sync::Sync,
    worker,
};
use walprobe_test_support::{
    means::Problem,
    mounts::Mounted,
    recipe::{Kind, Recipe},
    work,
};

/// What the second name has more than the first.
const TWIN: &str = "-twin";
/// Where a line of the figures is taken apart.
const COMMA: char = ',';

/// What is measured under two names: a probe's comparisons that one group's cases feed, and the case.
const PAIRS: [(&str, &[&str], &str); 7] = [
    ("sync", &["commit"], "fdatasync"),
    ("sync", &["commit-64k"], "fdatasync"),
    ("prealloc", &["create", "first-pass"], "zero-fill"),
    ("prealloc", &["create", "first-pass"], "fallocate"),
    ("recycle", &["life"], "recycle+zero"),
    ("recycle", &["life-cold"], "recycle+zero"),
    ("recycle", &["life"], "new+sparse"),
];

/// Two names for one case: how often are they called different?
#[derive(Debug, Parser)]
struct Arguments {
    /// Directories to measure; none makes an ext4, an XFS and a btrfs on loop devices
    dirs: Vec<PathBuf>,
    /// Runs on each filesystem
    #[arg(long, default_value_t = 50)]
    runs: u64,
    /// Seconds for each run
    #[arg(long, default_value_t = 10.0)]
    time: f64,
    /// Seed of the first run; each further one has the next
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Of the filesystems made, those of this name only
    #[arg(long)]
    fs: Vec<String>,
    /// Add the figures of each run to this file, and count what it holds from earlier ones too
    #[arg(long)]
    save: Option<PathBuf>,
    /// Id patterns, as walprobe takes them
    #[arg(long)]
    only: Vec<String>,
    /// Cargo says so
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    if !arguments.bench {
        eprintln!("nothing is measured: run it as `cargo bench --bench twins`");
        return Ok(ExitCode::SUCCESS);
    }
    let mut figures = Vec::new();
    for dir in &arguments.dirs {
        let name = dir.display().to_string();
        measure(&name, dir, &arguments, &mut figures)?;
    }
    let kinds = [Kind::Ext4, Kind::Xfs, Kind::Btrfs].into_iter();
    let wanted = |k: &Kind| arguments.fs.is_empty() || arguments.fs.iter().any(|f| f == k.name());
    for kind in kinds.filter(wanted).filter(|_| arguments.dirs.is_empty()) {
        let base = work::base(env!("CARGO_TARGET_TMPDIR"));
        let mounted = match Mounted::new(&base, &Recipe::new(kind).sized(2 << 30)) {
            Ok(mounted) => mounted,
            Err(Problem::Missing { why, .. }) => {
                eprintln!("{}: skipped: {why}", kind.name());
                continue;
            }
            Err(Problem::Failed(why)) => anyhow::bail!("{}: {why}", kind.name()),
        };
        measure(kind.name(), mounted.point(), &arguments, &mut figures)?;
        mounted.undo().map_err(anyhow::Error::msg)?;
    }
    if let Some(path) = &arguments.save {
        let saved =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        figures = saved
            .lines()
            .map(Figure::parse)
            .collect::<Option<_>>()
            .with_context(|| format!("{} holds something else", path.display()))?;
    }
    summary(&figures);
    Ok(ExitCode::SUCCESS)
}

/// The runs on one filesystem.
fn measure(
    fs: &str,
    dir: &Path,
    arguments: &Arguments,
    figures: &mut Vec<Figure>,
) -> anyhow::Result<()> {
    for seed in arguments.seed..arguments.seed + arguments.runs {
        let rows = run(dir, seed, arguments)?;
        let twins = rows.iter().filter(|r| r.case.ends_with(TWIN));
        let found: Vec<Figure> = twins.map(|row| Figure::of(fs, seed, row)).collect();
        let text: String = found.iter().map(|f| f.line() + "\n").collect();
        eprint!("{text}");
        if let Some(path) = &arguments.save {
            fs::File::options()
                .append(true)
                .create(true)
                .open(path)
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        figures.extend(found);
    }
    Ok(())
}

/// One run: the final rows.
fn run(dir: &Path, seed: u64, arguments: &Arguments) -> anyhow::Result<Vec<Row>> {
    let catalogue: [&'static dyn Probe; 4] = [
        &Durability,
        &Twins(&Sync),
        &Twins(&Prealloc),
        &Twins(&Recycle),
    ];
    let profile = Profile::Quick;
    let request = Request {
        dir: dir.display().to_string(),
        run_id: format!("TW{seed:010}"),
        probes: catalogue.iter().map(|p| p.card().id.to_owned()).collect(),
        only: arguments.only.clone(),
        profile,
        time_s: arguments.time,
        budget_bytes: profile.budget_bytes(),
        seed,
        segment_bytes: 16 << 20,
        op_timeout_s: 60.0,
        ..Request::default()
    };
    let told = Mutex::new((Vec::new(), None));
    worker::run(&catalogue, &request, &Pulse::default(), &|event| {
        let mut told = told
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match event {
            Event::Rows { rows, done: true } => told.0.extend(rows.iter().cloned()),
            Event::Refused { message, .. } => told.1 = Some(message.clone()),
            Event::Done { left_behind, .. } if !left_behind.is_empty() => {
                told.1 = Some(format!("left behind: {}", left_behind.join(", ")));
            }
            _ => {}
        }
    });
    let (rows, trouble) = told
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    match trouble {
        Some(why) => anyhow::bail!("{why}"),
        None => Ok(rows),
    }
}

/// A probe whose groups hold one case each, twice.
struct Twins(&'static dyn Probe);

impl Probe for Twins {
    fn card(&self) -> &'static Card {
        self.0.card()
    }

    fn plan(&self, request: &Request, facts: &Facts) -> Vec<Group> {
        let groups = self.0.plan(request, facts);
        let of_probe = PAIRS.iter().filter(|(probe, ..)| *probe == self.card().id);
        of_probe
            .filter_map(|(_, ids, case)| groups.iter().find_map(|g| twice(g, ids, case)))
            .collect()
    }

    fn open(&self, case: &Case, lab: &mut Lab<'_>) -> Result<Run, Stop> {
        self.0.open(case, lab)
    }
}

/// The group's case that stands as `case` in the comparisons `ids`, twice; none where it has none.
fn twice(group: &Group, ids: &[&str], case: &str) -> Option<Group> {
    let compare: Vec<&Comparison> = group
        .compare
        .iter()
        .filter(|c| ids.contains(&c.id.as_str()))
        .collect();
    let members = group.members(compare.first()?);
    let (_, at) = members.into_iter().find(|(name, _)| *name == case)?;
    let first = group.cases[at].clone();
    let mut second = first.clone();
    second.name.push_str(TWIN);
    second.params.insert("method", Value::from(first.method()));
    let names = [
        (case.to_owned(), first.name.clone()),
        (format!("{case}{TWIN}"), second.name.clone()),
    ];
    Some(Group {
        cases: vec![first, second],
        compare: compare
            .into_iter()
            .map(|comparison| Comparison {
                baseline: Some(case.to_owned()),
                names: names.to_vec(),
                ..comparison.clone()
            })
            .collect(),
        ..group.clone()
    })
}

/// What one run said of one pair.
struct Figure {
    fs: String,
    seed: u64,
    id: String,
    /// A verdict; or the row's status, where nothing was judged.
    said: String,
    rounds: u64,
    /// Estimate, low and high end; none before 10 rounds.
    ratio: Option<[f64; 3]>,
}

impl Figure {
    fn of(fs: &str, seed: u64, row: &Row) -> Self {
        let said = match (row.status, row.verdict) {
            (RowStatus::Ok, Some(verdict)) => verdict.as_str(),
            (RowStatus::Ok, None) => "not-judged",
            (status, _) => status.as_str(),
        };
        let case = row.case.trim_end_matches(TWIN);
        Self {
            fs: fs.to_owned(),
            seed,
            id: format!("{}/{}/{case}", row.probe, row.comparison),
            said: said.to_owned(),
            rounds: row.rounds,
            ratio: row
                .ratio
                .zip(row.ratio_low)
                .zip(row.ratio_high)
                .map(|((r, l), h)| [r, l, h]),
        }
    }

    fn line(&self) -> String {
        let Self {
            fs,
            seed,
            id,
            said,
            rounds,
            ratio,
        } = self;
        let [r, l, h] = ratio.map_or([const { String::new() }; 3], |r| r.map(|x| x.to_string()));
        format!("{fs},{seed},{id},{said},{rounds},{r},{l},{h}")
    }

    fn parse(line: &str) -> Option<Self> {
        let mut cells = line.split(COMMA);
        let mut next = || cells.next().map(str::to_owned);
        let (fs, seed, id, said, rounds) = (next()?, next()?, next()?, next()?, next()?);
        let mut number = || next()?.parse::<f64>().ok();
        let ratio = number()
            .zip(number())
            .zip(number())
            .map(|((r, l), h)| [r, l, h]);
        let (seed, rounds) = (seed.parse().ok()?, rounds.parse().ok()?);
        Some(Self {
            fs,
            seed,
            id,
            said,
            rounds,
            ratio,
        })
    }

    /// Called different.
    fn judged(&self) -> bool {
        [Verdict::Faster, Verdict::Slower]
            .iter()
            .any(|v| v.as_str() == self.said)
    }

    /// The interval's near end is so far from 1 that a setting might be recommended.
    fn acted(&self) -> bool {
        let beyond = 1.0 + Margins::default().action;
        self.ratio
            .is_some_and(|[_, low, high]| low > beyond || high < 1.0 / beyond)
    }

    /// Upper end over lower end.
    fn width(&self) -> Option<f64> {
        self.ratio.map(|[_, low, high]| high / low)
    }
}

/// A line for each filesystem and pair.
fn summary(figures: &[Figure]) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for f in figures {
        if !seen.contains(&(&f.fs, &f.id)) {
            seen.push((&f.fs, &f.id));
        }
    }
    let mut out = String::from(
        "| filesystem | case | runs | tie | inconclusive | different | beyond the action margin | other | rounds | interval |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (fs, id) in seen {
        let of: Vec<&Figure> = figures
            .iter()
            .filter(|f| f.fs == fs && f.id == id)
            .collect();
        let said = |what: &str| of.iter().filter(|f| f.said == what).count();
        let (tie, open) = (
            said(Verdict::Tie.as_str()),
            said(Verdict::Inconclusive.as_str()),
        );
        let judged = of.iter().filter(|f| f.judged()).count();
        let acted = of.iter().filter(|f| f.acted()).count();
        let other = of.len() - tie - open - judged;
        let rounds = median(of.iter().map(|f| f.rounds as f64).collect());
        let width = median(of.iter().filter_map(|f| f.width()).collect());
        let _ = writeln!(
            out,
            "| {fs} | `{id}` | {} | {tie} | {open} | {judged} | {acted} | {other} | {rounds:.0} | {width:.3} |",
            of.len()
        );
    }
    let _ = std::io::stdout().write_all(out.as_bytes());
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
