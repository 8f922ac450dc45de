//! The longer texts of the help.

use std::fmt::Write as _;

use crate::error::TABLE;

/// Below the options of a measuring command.
pub(super) const MEASURING: &str = "\
Sizes: 512, 8KiB, 16MiB, 1GiB count in 1024, and so do K, M, G; kB, MB, GB count in 1000.
GLOB is compared with PROBE/COMPARISON/CASE and with PROBE/COMPARISON, and `*` does not cross
`/`; one without `/` with each of the three: 'sync/commit', 'recycle', '*fallocate', 'life-cold'.
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
  walprobe all --format markdown --anonymous DIR  for a mail or an issue
  walprobe explain wal_recycle                    what a word, a setting, a case means
  walprobe clean DIR                              after a kill -9

DIR is any directory on the filesystem in question that you may write to; not pg_wal itself.";

/// Below the commands.
pub(super) fn after_help() -> String {
    let mut text = format!("{EXAMPLES}\n\nExit codes:");
    for (code, meaning) in TABLE {
        let _ = write!(text, "\n  {code:<6} {meaning}");
    }
    text
}
