//! The columns a comparison's table may have.
//!
//! One list for every comparison: a column that is empty in a whole table is dropped, and
//! where the width does not suffice the columns with the least `rank` go first.

use serde_json::Value;
use walprobe_probes::report::Row;

use crate::render::units;

/// A column.
pub(in crate::render) struct Column {
    /// Its heading.
    pub(in crate::render) head: &'static str,
    /// Those with less go first; [`KEEP`] never goes.
    pub(in crate::render) rank: u8,
    /// Its text for a row; none where the row has no such figure.
    pub(in crate::render) cell: fn(&Row) -> Option<String>,
}

/// The rank of a column that stays at any width.
pub(in crate::render) const KEEP: u8 = u8::MAX;

/// Where no width is given, as in a pipe, columns below this rank are left out.
pub(in crate::render) const MAIN: u8 = 40;

/// The columns between the case and the notes, in order.
pub(in crate::render) const COLUMNS: &[Column] = &[
    column("syncs", 68, |r| check(r, r.syncs)),
    column("flushes", 69, |r| check(r, r.flushes)),
    column("ops/s", 60, |r| {
        if whole(r) {
            None
        } else {
            r.ops_per_sec.map(units::number)
        }
    }),
    column("create", KEEP, |r| {
        if series(r) == "create" {
            median(r)
        } else {
            None
        }
    }),
    column("life", KEEP, |r| {
        if series(r) == "life" { median(r) } else { None }
    }),
    column("cycle", KEEP, |r| {
        if series(r) == "cycle" { mean(r) } else { None }
    }),
    column("mean", 4, |r| if whole(r) { None } else { mean(r) }),
    column("p50", 90, |r| {
        if whole(r) {
            None
        } else {
            time(r.p50_us.map(us))
        }
    }),
    column("p95", 5, |r| {
        if whole(r) {
            None
        } else {
            time(r.p95_us.map(us))
        }
    }),
    column("p99", 85, |r| {
        if whole(r) {
            None
        } else {
            time(r.p99_us.map(us))
        }
    }),
    column("p99.9", 6, |r| {
        if whole(r) {
            None
        } else {
            time(r.p999_us.map(us))
        }
    }),
    // The longest of lives that were walked in part is no time that passed.
    column("max", 50, |r| {
        let walked = series(r) != "life" || seen(r, "walked_pct").is_none_or(|p| p >= 100.0);
        time(r.max_us.filter(|_| walked).map(us))
    }),
    column("commit p50", 40, |r| {
        // Where each sample is a commit, it stands under p50 and p99.
        time(seen(r, "commit_p50_us").filter(|_| whole(r)))
    }),
    column("commit p99", 55, |r| {
        time(seen(r, "commit_p99_us").filter(|_| whole(r)))
    }),
    column("reader p99", 93, |r| time(seen(r, "reader_p99_us"))),
    column("reader hits", 93, |r| {
        seen(r, "reader_hit_pct").map(units::percent)
    }),
    column("ratio", 100, |r| ratio(r.ratio, r.ratio_low, r.ratio_high)),
    column("p99 ratio", 30, |r| {
        ratio(r.p99_ratio, r.p99_ratio_low, r.p99_ratio_high)
    }),
    column("total ratio", 62, |r| {
        ratio(
            seen(r, "total_ratio"),
            seen(r, "total_ratio_low"),
            seen(r, "total_ratio_high"),
        )
    }),
    column("verdict", 110, |r| r.verdict.map(|v| v.as_str().to_owned())),
    column("flush/op", 70, |r| {
        let each = r.flushes_per_op.filter(|_| !whole(r));
        each.map(|f| format!("{f:.2}"))
    }),
    column("group", 88, |r| {
        seen(r, "group_size_mean").map(|n| format!("{n:.2}"))
    }),
    column("flush/seg", 16, |r| {
        let each = match series(r) {
            "life" => seen(r, "flushes_per_segment"),
            _ => r.flushes_per_op.filter(|_| whole(r)),
        };
        each.map(units::number)
    }),
    column("dev/op", 20, |r| {
        let each = per_op(r.device_bytes_written, r.ops).filter(|_| !whole(r));
        each.map(units::bytes)
    }),
    column("dev/seg", 16, |r| {
        let each = match series(r) {
            "life" => seen(r, "device_bytes_per_segment"),
            _ => per_op(r.device_bytes_written, r.ops).filter(|_| whole(r)),
        };
        each.map(units::bytes)
    }),
    column("unwritten", 72, unwritten),
    column("extents", 15, |r| r.extents.map(|n| n.to_string())),
    column("space", 12, |r| {
        r.allocated_bytes.map(|b| units::bytes(b as f64))
    }),
    column("cold", 95, |r| r.cold.map(|c| c.as_str().to_owned())),
    column("read/WAL", 92, |r| {
        seen(r, "read_per_wal_byte").map(units::number)
    }),
    column("read/write", 92, |r| {
        seen(r, "read_per_write_bytes").map(units::bytes)
    }),
    column(">10 ms", 25, |r| {
        seen(r, "stalls_over_10ms").map(units::number)
    }),
    column("walked", 14, |r| {
        seen(r, "walked_pct")
            .filter(|p| *p < 100.0)
            .map(units::percent)
    }),
    column("deferred", 10, |r| {
        time(seen(r, "deferred_ms").map(|ms| ms * 1_000.0))
    }),
    column("ops", 8, |r| {
        let counted = r.ops > 0 && r.probe != "durability";
        counted.then(|| r.ops.to_string())
    }),
    column("rounds", 7, |r| {
        (r.rounds > 0).then(|| r.rounds.to_string())
    }),
];

/// Observations that a column shows, so that no other place repeats them.
pub(in crate::render) const SHOWN: &[&str] = &[
    "commit_p50_us",
    "commit_p99_us",
    "reader_p99_us",
    "reader_hit_pct",
    "total_ratio",
    "total_ratio_low",
    "total_ratio_high",
    "group_size_mean",
    "read_per_wal_byte",
    "read_per_write_bytes",
    "stalls_over_10ms",
    "walked_pct",
    "deferred_ms",
    "create_unwritten_pct",
    "same_operations_as",
    "flushes_per_segment",
    "device_bytes_per_segment",
    "line",
];

const fn column(head: &'static str, rank: u8, cell: fn(&Row) -> Option<String>) -> Column {
    Column { head, rank, cell }
}

fn series(row: &Row) -> &str {
    row.series.as_deref().unwrap_or("")
}

/// One operation is a whole segment, so there are too few for percentiles of their own.
fn whole(row: &Row) -> bool {
    matches!(series(row), "life" | "create" | "cycle")
}

fn us(time: walprobe_probes::report::Us) -> f64 {
    time.as_us()
}

fn time(us: Option<f64>) -> Option<String> {
    us.map(units::time)
}

fn mean(row: &Row) -> Option<String> {
    time(row.mean_us.map(us))
}

/// Of few samples; a stall moves it less than the mean, as it does the ratio beside it.
fn median(row: &Row) -> Option<String> {
    time(row.p50_us.map(us))
}

fn ratio(estimate: Option<f64>, low: Option<f64>, high: Option<f64>) -> Option<String> {
    // A baseline is 1 to itself: an interval would say nothing.
    let exact = low == estimate && high == estimate;
    estimate.map(|r| {
        if exact {
            units::ratio(r)
        } else {
            units::interval(r, low, high)
        }
    })
}

/// An observation that is a number.
pub(in crate::render) fn seen(row: &Row, name: &str) -> Option<f64> {
    row.observations.get(name).and_then(Value::as_f64)
}

fn check(row: &Row, count: Option<u64>) -> Option<String> {
    count
        .filter(|_| row.probe == "durability")
        .map(|n| n.to_string())
}

fn per_op(bytes: Option<u64>, ops: u64) -> Option<f64> {
    bytes.filter(|_| ops > 0).map(|b| b as f64 / ops as f64)
}

/// The share in unwritten extents, before and after where they differ; elsewhere it is always 0.
fn unwritten(row: &Row) -> Option<String> {
    if row.probe != "prealloc" {
        return None;
    }
    let after = row.unwritten_pct.map(units::percent);
    let before = seen(row, "create_unwritten_pct").map(units::percent);
    match (before, after) {
        (Some(before), Some(after)) if before != after => Some(format!("{before} > {after}")),
        (before, after) => after.or(before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_page_explains_each_column_once() {
        let page = include_str!("../../../docs/format.md");
        let section = page.split("\n## Terminal report\n").nth(1).unwrap();
        let table = section.split("\n## ").next().unwrap();
        for (i, column) in COLUMNS.iter().enumerate() {
            let head = format!("`{}`", column.head);
            assert!(table.contains(&head), "docs/format.md lacks {head}");
            let first = COLUMNS.iter().position(|c| c.head == column.head);
            assert_eq!(first, Some(i), "{head} stands twice");
        }
    }
}
