//! The options, each with its help text.

use clap::{Args, ValueHint, builder::PossibleValuesParser};
use walprobe_probes::request::{Beside, DropCaches, Profile};

use super::values::{
    Clients, besides, clients, drops, formats, glob, levels, profiles, seconds, timeout,
};
use crate::{fail_on::FailOn, size};

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

    /// Bytes of WAL a commit, where a case does not name a size of its own [default: 512, 8KiB or
    /// 64KiB, by the case]
    #[arg(long, value_name = "SIZE", help_heading = "The load", value_parser = size::parse)]
    pub commit_bytes: Option<u64>,

    /// Old segments that recycling takes turns with [default: by the probe]; more of them stay
    /// out of the cache more surely and need more space
    #[arg(long, value_name = "N", help_heading = "The load",
        value_parser = clap::value_parser!(u64).range(2..=1024))]
    pub segments: Option<u64>,

    /// Compare ways of preallocating as test_fallocate does: N new files a method
    /// (prealloc/cycles)
    #[arg(long, value_name = "N", help_heading = "The load",
        value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub cycles: Option<u64>,

    /// Overwrite each file of --cycles M times in 8 KiB writes and one fdatasync, as test_fallocate
    /// does
    #[arg(long, value_name = "M", help_heading = "The load", requires = "cycles",
        value_parser = clap::value_parser!(u64).range(0..=100_000))]
    pub rewrites: Option<u64>,

    /// How many clients commit at the same time, smallest to largest [default: 1,2,4,8,16]
    #[arg(long, value_name = "N,N...", help_heading = "The load", value_parser = clients)]
    pub clients: Option<Clients>,

    /// Measure commits while something else uses the filesystem too: another file is read at random
    /// (commit/beside, recycle/beside), written in bulk, or fsynced again and again (commit/beside)
    #[arg(long, value_name = "WHAT", help_heading = "The load", value_parser = besides())]
    pub beside: Option<Beside>,

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

    /// Fill the filesystem of DIR for the cases on a full disk, where walprobe would make a small one
    /// of its own: a ballast leaves 32 MiB, and for moments nothing (enospc)
    #[arg(long, help_heading = "The load")]
    pub fill: bool,

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
    #[arg(long, help_heading = "Safety", conflicts_with_all = ["csv", "json", "conf", "fail_on"])]
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

    /// Exit with 1 if a recommendation is of this level or above, or a directory is not durable
    /// (which counts as critical)
    #[arg(long, value_name = "LEVEL", help_heading = "Output", display_order = 996,
        value_parser = levels())]
    pub fail_on: Option<FailOn>,

    /// Leave out of the report who and where this is: host name, paths, sources, names of volumes
    #[arg(long, help_heading = "Output", display_order = 997)]
    pub anonymous: bool,

    /// Columns of the table [default: the terminal's]
    #[arg(long, value_name = "N", help_heading = "Output", display_order = 999,
        value_parser = clap::value_parser!(u16).range(20..))]
    pub width: Option<u16>,
}
