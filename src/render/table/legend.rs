//! What the columns mean that do not explain themselves, as far as a report shows them.

/// What is said of columns, in the order in which it is said.
const LEGEND: &[(&[&str], &str)] = &[
    (
        &["create"],
        "median time to make a segment, until durable under its name",
    ),
    (
        &["life"],
        "median time of a segment, from getting it to its last commit",
    ),
    (
        &["cycle"],
        "mean time to make a file, rewrite it and remove it",
    ),
    (
        &["commit p50", "commit p99"],
        "of the commits within a segment's life",
    ),
    (
        &["reader p99", "reader hits"],
        "of the random reads beside; a hit came from the page cache",
    ),
    (
        &["ratio"],
        "the case's time over that of the baseline, with its interval; below 1 is faster",
    ),
    (&["p99 ratio"], "the same of the 99th percentiles"),
    (
        &["total ratio"],
        "the ratio with removal and deferred writing counted in",
    ),
    (
        &["flush/op"],
        "flushes that the device counted for each operation",
    ),
    (
        &["flush/seg"],
        "flushes that the device counted for each whole segment",
    ),
    (&["group"], "commits that one flush served, on average"),
    (
        &["dev/op"],
        "bytes that the device wrote for each operation",
    ),
    (
        &["dev/seg"],
        "bytes that the device wrote for each whole segment",
    ),
    (
        &["unwritten"],
        "share of the file in unwritten extents, made > after commits",
    ),
    (
        &["extents"],
        "pieces in which the filesystem keeps the file",
    ),
    (&["space"], "what the file takes of the filesystem"),
    (
        &["cold"],
        "whether the old file was shown to be out of every cache",
    ),
    (&["read/WAL"], "bytes read for each byte of WAL written"),
    (&["read/write"], "bytes read for each write"),
    (&[">10 ms"], "commits that took longer than that"),
    (
        &["walked"],
        "share of the segment that was written; times are scaled up to all of it",
    ),
    (
        &["deferred"],
        "time that the device went on writing after a block",
    ),
];

/// The entries for columns with these heads: a label, and what it means. `baseline` says which row
/// the baseline is.
pub(in crate::render) fn entries(heads: &[&str], baseline: &str) -> Vec<(String, String)> {
    let shown = |columns: &[&str]| -> Vec<String> {
        let columns = columns.iter().filter(|c| heads.contains(c));
        columns.map(|c| (*c).to_owned()).collect()
    };
    let entries = LEGEND
        .iter()
        .map(|(columns, text)| (shown(columns), text.replace("the baseline", baseline)));
    entries
        .filter(|(columns, _)| !columns.is_empty())
        .map(|(columns, text)| (label(&columns), text))
        .collect()
}

/// `commit p50, p99`.
fn label(columns: &[String]) -> String {
    let first = columns[0].split(' ').next().unwrap_or_default();
    let rest = columns.iter().skip(1);
    let shorter = |c: &String| match c.split_once(' ') {
        Some((word, rest)) if word == first => rest.to_owned(),
        _ => c.clone(),
    };
    let words: Vec<String> = std::iter::once(columns[0].clone())
        .chain(rest.map(shorter))
        .collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::table::columns::COLUMNS;

    /// Words of everybody who measures, and counts.
    const PLAIN: &[&str] = &[
        "syncs", "flushes", "ops/s", "mean", "p50", "p95", "p99", "p99.9", "max", "verdict", "ops",
        "rounds",
    ];

    #[test]
    fn each_column_explains_itself_or_is_explained_once() {
        for column in COLUMNS {
            let told = LEGEND
                .iter()
                .filter(|(heads, _)| heads.contains(&column.head));
            let plain = PLAIN.contains(&column.head);
            assert_eq!(told.count(), usize::from(!plain), "{}", column.head);
        }
        for head in LEGEND.iter().flat_map(|(heads, _)| *heads) {
            assert!(COLUMNS.iter().any(|c| c.head == *head), "{head}");
        }
    }

    #[test]
    fn only_what_is_shown_is_explained() {
        let told = entries(&["p50", "commit p99", "commit p50", "flush/op"], "x");
        let labels: Vec<&str> = told.iter().map(|(label, _)| label.as_str()).collect();
        assert_eq!(labels, ["commit p50, p99", "flush/op"]);
    }
}
