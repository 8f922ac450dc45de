//! The command line: what was said, checked as far as words go. Nothing here has effects.
//!
//! The commands of single probes and the formats are those of the catalogues, so that a
//! probe or a renderer that is added needs no line here.

use std::ffi::OsString;

use clap::{ArgMatches, Args as _, Command, FromArgMatches as _, ValueHint};
use walprobe_probes::PROBES;

mod options;
mod texts;
mod values;

pub use options::{Facts, Measure, Show};
use texts::{MEASURING, after_help};

/// The first probe of every run.
pub const FIRST_PROBE: &str = "durability";

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
    /// Say what a name means; none lists the names.
    Explain(Option<String>),
    /// Remove what a killed run left.
    Clean(String),
    /// Hidden: the child that measures.
    Worker,
    /// The child that writes output files.
    WorkerWrite,
    /// Hidden: the child that cleans.
    WorkerClean {
        /// The directory that was measured.
        dir: String,
        /// The run whose folder it is; none for all that are dead.
        run_id: Option<String>,
    },
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
        "facts" => {
            let options = Facts::from_arg_matches(matches)?;
            // A CSV line is a row, and nothing is measured here.
            let csv = options.show.csv.is_some() || options.show.format == "csv";
            if csv && options.syncs.is_none() {
                return Err(command().error(
                    clap::error::ErrorKind::ValueValidation,
                    "CSV holds rows of measurements and no facts: take --format table or json, or \
                     --json FILE (with --syncs N there are rows)",
                ));
            }
            Ok(Job::Facts(Box::new(options)))
        }
        "list" => Ok(Job::List),
        "explain" => Ok(Job::Explain(matches.get_one::<String>("name").cloned())),
        "clean" => Ok(Job::Clean(dir(matches))),
        "worker" if matches.get_flag("write") => Ok(Job::WorkerWrite),
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
            Command::new("explain")
                .about("Say what a probe, case, setting, verdict or word of the report means")
                .arg(clap::Arg::new("name").value_name("NAME").help(
                    "As `recycle/life`, `wal_recycle`, `not-durable`; without it, all names",
                )),
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
                .arg(clap::Arg::new("run").long("run").value_name("ID"))
                .arg(clap::Arg::new("write").long("write").action(clap::ArgAction::SetTrue)),
        )
        .after_help(after_help())
}

fn ids() -> impl Iterator<Item = &'static str> {
    PROBES.iter().map(|probe| probe.card().id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use walprobe_probes::request::{Beside, DropCaches, Profile};

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
    fn the_load_is_what_was_asked_for() {
        let m = measure("walprobe all /a --segments 8 --cycles 3 --rewrites 0 --beside read");
        assert_eq!(
            (m.segments, m.cycles, m.rewrites),
            (Some(8), Some(3), Some(0))
        );
        assert_eq!(m.beside, Some(Beside::Read));
        let m = measure("walprobe commit /a --clients 16,1,4,4 --beside fsync");
        assert_eq!(m.clients.map(|c| c.0), Some(vec![1, 4, 16]));
        assert_eq!(m.beside, Some(Beside::Fsync));
        let m = measure("walprobe all /a --cycles 3");
        assert_eq!((m.segments, m.rewrites, m.beside), (None, None, None));
    }

    #[test]
    fn explain_takes_one_name_or_none() {
        assert!(matches!(
            job("walprobe explain").unwrap(),
            Job::Explain(None)
        ));
        match job("walprobe explain recycle/life").unwrap() {
            Job::Explain(Some(name)) => assert_eq!(name, "recycle/life"),
            other => panic!("{other:?}"),
        }
        assert!(job("walprobe explain a b").is_err());
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
    fn facts_are_not_told_as_csv() {
        for options in ["--format csv", "--csv x"] {
            let error = job(&format!("walprobe facts {options} /x")).unwrap_err();
            assert!(error.contains("--format table or json"), "{error}");
            assert!(job(&format!("walprobe facts --syncs 3 {options} /x")).is_ok());
        }
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
            ("--segments 1", "--segments <N>"),
            ("--cycles 0", "--cycles <N>"),
            ("--rewrites 3", "--cycles <N>"),
            ("--beside rename", "read, write, fsync"),
            ("--clients 4,0", "--clients <N,N...>"),
            ("--clients 4,x", "--clients <N,N...>"),
            ("--clients 257", "256"),
            ("--clients 1,2,3,4,5,6,7,8,9,10,11,12,13", "12"),
            ("--fail-on advice", "warning, critical"),
            ("--dry-run --fail-on warning", "--dry-run"),
        ] {
            let error = job(&format!("walprobe all {options} /x")).unwrap_err();
            assert!(error.contains(part), "{options}: {error}");
        }
        assert!(job("walprobe all").unwrap_err().contains("<DIR>"));
    }
}
