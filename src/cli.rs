//! The command line: what was said, checked as far as words go. Nothing here has effects.
//!
//! The commands of single probes and the formats are those of the catalogues, so that a
//! probe or a renderer that is added needs no line here.

use std::{ffi::OsString, fmt::Write as _};

use clap::{
    ArgMatches, Args, Command, FromArgMatches as _, ValueHint,
    builder::{PossibleValuesParser, TypedValueParser as _},
};
use walprobe_probes::{
    PROBES,
    request::{DropCaches, Profile, Selection},
};

use crate::{error::TABLE, render::RENDERERS, size};

/// The first probe of every run.
pub const FIRST_PROBE: &str = "durability";
/// Formats that make no sense as the only output.
const FILE_FORMATS: &[&str] = &["conf"];

/// What to do.
#[derive(Debug)]
pub enum Job {
    /// Measure directories with these probes.
    Measure {
        /// Probes by id, in catalogue order.
        probes: Vec<String>,
        /// The directories and how.
        options: Box<Measure>,
    },
    /// Say what can be known without measuring.
    Facts(Box<Facts>),
    /// Show the catalogue.
    List,
    /// Remove what a killed run left.
    Clean(String),
    /// Hidden: the child that measures.
    Worker,
    /// Hidden: the child that cleans.
    WorkerClean {
        /// The directory that was measured.
        dir: String,
        /// The run whose folder it is; none for all that are dead.
        run_id: Option<String>,
    },
}

/// Options of the measuring commands.
#[derive(Args, Clone, Debug)]
pub struct Measure {
    /// Directories to measure, one after another, each in its own scratch folder
    #[arg(value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
    pub dirs: Vec<String>,

    /// How much to measure
    #[arg(long, value_name = "NAME", default_value = "normal", help_heading = "Extent",
        value_parser = profiles())]
    pub profile: Profile,

    /// Seconds for each directory [default: the profile's: 20, 90, 600]
    #[arg(long, value_name = "SECS", help_heading = "Extent", value_parser = seconds)]
    pub time: Option<f64>,

    /// Bytes that may be written to each directory's devices [default: 1GiB, 2GiB, 16GiB]
    #[arg(long, value_name = "SIZE", help_heading = "Extent", value_parser = size::parse)]
    pub write_budget: Option<u64>,

    /// Measure only cases whose id matches; may be repeated
    #[arg(long, value_name = "GLOB", help_heading = "Extent", value_parser = glob)]
    pub only: Vec<String>,

    /// Leave these out; may be repeated, and wins over --only
    #[arg(long, value_name = "GLOB", help_heading = "Extent", value_parser = glob)]
    pub skip: Vec<String>,

    /// WAL segment size, a power of two from 1MiB to 1GiB
    #[arg(long, value_name = "SIZE", default_value = "16MiB", help_heading = "The load",
        value_parser = size::parse_segment)]
    pub segment_size: u64,

    /// Bytes of WAL a commit [default: 512, 8KiB or 64KiB, by the case]
    #[arg(long, value_name = "SIZE", help_heading = "The load", value_parser = size::parse)]
    pub commit_bytes: Option<u64>,

    /// How old segments are put out of the cache; auto takes what disturbs nobody else
    #[arg(long, value_name = "HOW", default_value = "auto", help_heading = "The load",
        value_parser = drops())]
    pub drop_caches: DropCaches,

    /// The same by a program of yours, which finds the file's path in WALPROBE_FILE; the words up
    /// to `--` or the end are its arguments
    #[arg(long, value_name = "CMD", num_args = 1.., value_terminator = "--",
        allow_hyphen_values = true, conflicts_with = "drop_caches", help_heading = "The load",
        value_hint = ValueHint::CommandName)]
    pub drop_caches_cmd: Option<Vec<String>>,

    /// Seed of every random choice [default: a new one, kept in the report]
    #[arg(long, value_name = "N", help_heading = "The load")]
    pub seed: Option<u64>,

    /// Go on where DIR looks like a live pg_wal or data directory; replace foreign output files
    #[arg(long, help_heading = "Safety")]
    pub force: bool,

    /// Seconds without an answer after which a call is given up
    #[arg(long, value_name = "SECS", default_value = "60", help_heading = "Safety",
        value_parser = timeout)]
    pub op_timeout: f64,

    /// Print what would be measured and written; create nothing
    #[arg(long, help_heading = "Safety", conflicts_with_all = ["csv", "json", "conf"])]
    pub dry_run: bool,

    /// Write postgresql.conf lines to FILE too
    #[arg(long, value_name = "FILE", help_heading = "Output",
        display_order = 998, value_hint = ValueHint::FilePath)]
    pub conf: Option<String>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment would become help text")]
    pub show: Show,
}

/// Options of `facts`.
#[derive(Args, Clone, Debug)]
pub struct Facts {
    /// Directories to look at
    #[arg(value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
    pub dirs: Vec<String>,

    /// Ask for the durability check too, with N syncs; this writes a little
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub syncs: Option<u64>,

    /// Go on where DIR looks like a live pg_wal or data directory; replace foreign output files
    #[arg(long, help_heading = "Safety")]
    pub force: bool,

    /// Seconds without an answer after which a call is given up
    #[arg(long, value_name = "SECS", default_value = "60", help_heading = "Safety",
        value_parser = timeout)]
    pub op_timeout: f64,

    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment would become help text")]
    pub show: Show,
}

/// Options of everything that prints a report.
#[derive(Args, Clone, Debug)]
pub struct Show {
    /// What to print
    #[arg(long, value_name = "NAME", default_value = "table", help_heading = "Output",
        value_parser = PossibleValuesParser::new(formats()))]
    pub format: String,

    /// Write the report as CSV to FILE too
    #[arg(long, value_name = "FILE", help_heading = "Output", value_hint = ValueHint::FilePath)]
    pub csv: Option<String>,

    /// Write the report as JSON to FILE too; it is saved again after each comparison
    #[arg(long, value_name = "FILE", help_heading = "Output", value_hint = ValueHint::FilePath)]
    pub json: Option<String>,

    /// Columns of the table [default: the terminal's]
    #[arg(long, value_name = "N", help_heading = "Output", display_order = 999,
        value_parser = clap::value_parser!(u16).range(20..))]
    pub width: Option<u16>,
}

/// Parses the command line.
///
/// # Errors
/// Wrong usage, and the texts of `--help` and `--version`.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Job, clap::Error> {
    let matches = command().try_get_matches_from(arguments)?;
    let Some((name, matches)) = matches.subcommand() else {
        unreachable!("clap asks for a command");
    };
    let measure = |probes: Vec<String>| -> Result<Job, clap::Error> {
        let options = Measure::from_arg_matches(matches)?;
        if options
            .commit_bytes
            .is_some_and(|c| c > options.segment_size)
        {
            return Err(command().error(
                clap::error::ErrorKind::ValueValidation,
                "--commit-bytes is more than a segment holds",
            ));
        }
        Ok(Job::Measure {
            probes,
            options: Box::new(options),
        })
    };
    let dir = |matches: &ArgMatches| {
        matches
            .get_one::<String>("dir")
            .cloned()
            .unwrap_or_default()
    };
    match name {
        "all" => measure(ids().map(str::to_owned).collect()),
        "facts" => Ok(Job::Facts(Box::new(Facts::from_arg_matches(matches)?))),
        "list" => Ok(Job::List),
        "clean" => Ok(Job::Clean(dir(matches))),
        "worker" => Ok(match matches.get_one::<String>("clean") {
            Some(dir) => Job::WorkerClean {
                dir: dir.clone(),
                run_id: matches.get_one::<String>("run").cloned(),
            },
            None => Job::Worker,
        }),
        probe => measure(
            ids()
                .filter(|id| *id == FIRST_PROBE || *id == probe)
                .map(str::to_owned)
                .collect(),
        ),
    }
}

/// The whole command, for help.
#[must_use]
pub fn command() -> Command {
    let dir = clap::Arg::new("dir")
        .value_name("DIR")
        .required(true)
        .value_hint(ValueHint::DirPath);
    let measuring = |name: &'static str, about: String| {
        let command = Measure::augment_args(Command::new(name));
        command.about(about).after_help(MEASURING)
    };
    let probes = PROBES.iter().map(|probe| {
        let card = probe.card();
        measuring(card.id, format!("Measure one thing: {}", card.question))
    });
    Command::new("walprobe")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Shows what a filesystem does under a database's write-ahead log, and which WAL settings follow")
        .max_term_width(100)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(measuring(
            "all",
            "Measure everything in each DIR, then recommend settings".to_owned(),
        ))
        .subcommands(probes)
        .subcommand(
            Facts::augment_args(Command::new("facts"))
                .about("Show what can be known of each DIR without writing"),
        )
        .subcommand(
            Command::new("list").about("List the probes, their cases, what each needs and writes"),
        )
        .subcommand(
            Command::new("clean")
                .about("Remove what a killed run left in DIR")
                .arg(dir.help("The directory that was measured")),
        )
        .subcommand(
            Command::new("worker")
                .about("A child process of walprobe")
                .hide(true)
                .arg(clap::Arg::new("clean").long("clean").value_name("DIR"))
                .arg(clap::Arg::new("run").long("run").value_name("ID")),
        )
        .after_help(after_help())
}

const MEASURING: &str = "\
Sizes: 512, 8KiB, 16MiB, 1GiB count in 1024, and so do K, M, G; kB, MB, GB count in 1000.
GLOB is compared with PROBE/COMPARISON/CASE, and `*` does not cross `/`; one without `/` is
compared with the probe and with the case: 'sync/commit/*', 'recycle', '*fallocate'.
A run writes in DIR to its own scratch folder only, and removes it.

Examples:
  walprobe all --profile quick --json r.json /mnt/t
  walprobe all --only sync --only 'recycle/life/*' --time 60 /mnt/t
  walprobe all --dry-run --segment-size 64MiB /mnt/t";

const EXAMPLES: &str = "\
Examples:
  walprobe all /var/lib/postgresql/wal-test       every probe, about 90 seconds
  walprobe all --profile quick --json r.json DIR  a first look, kept for later
  walprobe all --dry-run DIR                      what it would do and write
  walprobe sync --format csv DIR > sync.csv       one probe, as CSV
  walprobe all /mnt/xfs /mnt/zfs                  side by side
  walprobe clean DIR                              after a kill -9

DIR is any directory on the filesystem in question that you may write to; not pg_wal itself.";

fn after_help() -> String {
    let mut text = format!("{EXAMPLES}\n\nExit codes:");
    for (code, meaning) in TABLE {
        let _ = write!(text, "\n  {code:<6} {meaning}");
    }
    text
}

fn ids() -> impl Iterator<Item = &'static str> {
    PROBES.iter().map(|probe| probe.card().id)
}

fn formats() -> Vec<&'static str> {
    let names = RENDERERS.iter().map(|r| r.name());
    names.filter(|n| !FILE_FORMATS.contains(n)).collect()
}

fn profiles() -> impl clap::builder::TypedValueParser<Value = Profile> {
    named([Profile::Quick, Profile::Normal, Profile::Thorough], |p| {
        p.as_str()
    })
}

fn drops() -> impl clap::builder::TypedValueParser<Value = DropCaches> {
    named(DropCaches::ALL, |d| d.as_str())
}

fn named<T: Copy + Send + Sync + 'static, const N: usize>(
    values: [T; N],
    name: fn(T) -> &'static str,
) -> impl clap::builder::TypedValueParser<Value = T> {
    PossibleValuesParser::new(values.map(name)).try_map(move |text| {
        let found = values.into_iter().find(|v| name(*v) == text);
        found.ok_or_else(|| format!("'{text}' is not known"))
    })
}

fn seconds(text: &str) -> Result<f64, String> {
    within(text, 1.0, 604_800.0)
}

/// A living worker says something every second.
fn timeout(text: &str) -> Result<f64, String> {
    within(text, 2.0, 86_400.0)
}

fn within(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is not a number".to_owned())?;
    if !(least..=most).contains(&seconds) {
        return Err(format!("it must be from {least} to {most} seconds"));
    }
    Ok(seconds)
}

fn glob(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("it is empty and matches nothing".to_owned());
    }
    let pattern = text.to_owned();
    Selection::new(std::slice::from_ref(&pattern), &[])?;
    Ok(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(line: &str) -> Result<Job, String> {
        parse(line.split_whitespace().map(OsString::from)).map_err(|e| e.to_string())
    }

    fn measure(line: &str) -> Measure {
        match job(line).unwrap() {
            Job::Measure { options, .. } => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn every_probe_has_its_command_with_durability_first() {
        for id in ids() {
            match job(&format!("walprobe {id} /x")).unwrap() {
                Job::Measure { probes, .. } => {
                    assert_eq!(probes[0], FIRST_PROBE);
                    assert!(probes.iter().any(|p| p == id) && probes.len() <= 2);
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(job("walprobe nonsense /x").is_err());
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        let m = measure("walprobe all /a /b");
        assert_eq!(m.dirs, ["/a", "/b"]);
        assert_eq!((m.profile, m.segment_size), (Profile::Normal, 16 << 20));
        assert_eq!((m.op_timeout, m.time, m.commit_bytes), (60.0, None, None));
        assert_eq!(
            (m.drop_caches, m.show.format.as_str()),
            (DropCaches::Auto, "table")
        );
    }

    #[test]
    fn options_may_be_repeated_and_follow_the_directory() {
        let m = measure("walprobe all /a --only sync --only */life/* --skip x --seed 7");
        assert_eq!((m.only.len(), m.skip.len(), m.seed), (2, 1, Some(7)));
    }

    #[test]
    fn a_program_takes_its_words_up_to_two_dashes() {
        let m = measure("walprobe recycle --drop-caches-cmd ./drop -e --all -- /a");
        assert_eq!(m.drop_caches_cmd.unwrap(), ["./drop", "-e", "--all"]);
        assert_eq!(m.dirs, ["/a"]);
        let m = measure("walprobe recycle /a --seed 7 --drop-caches-cmd drop x");
        assert_eq!((m.drop_caches_cmd.unwrap().len(), m.dirs.len()), (2, 1));
        assert!(job("walprobe recycle /a --drop-caches none --drop-caches-cmd x").is_err());
    }

    #[test]
    fn wrong_values_name_their_option() {
        for (options, part) in [
            ("--only a[", "--only <GLOB>"),
            ("--skip {a", "--skip <GLOB>"),
            ("--time 0", "--time <SECS>"),
            ("--time nan", "--time <SECS>"),
            ("--op-timeout 1", "--op-timeout <SECS>"),
            ("--write-budget 5x", "--write-budget <SIZE>"),
            ("--segment-size 16MB", "16MiB"),
            ("--commit-bytes 17MiB", "--commit-bytes"),
            ("--profile fast", "quick, normal, thorough"),
            ("--format conf", "--format <NAME>"),
            ("--dry-run --json x", "--dry-run"),
            ("--width 3", "--width <N>"),
        ] {
            let error = job(&format!("walprobe all {options} /x")).unwrap_err();
            assert!(error.contains(part), "{options}: {error}");
        }
        assert!(job("walprobe all").unwrap_err().contains("<DIR>"));
    }
}
