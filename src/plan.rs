//! `--dry-run`: the plan of each directory, and its totals against the limits.
//!
//! Bytes and seconds are the probes' estimates. A case that several comparisons read off
//! runs once, so it counts once.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::Serialize;
use walprobe_probes::event::PlannedCase;

use crate::{error::escape, size::show};

/// The plan of one directory.
#[derive(Clone, Debug, Serialize)]
pub struct Plan<'a> {
    /// The directory as resolved.
    pub dir: &'a str,
    /// Its cases.
    pub cases: &'a [PlannedCase],
    /// Seconds allowed.
    pub time_limit_s: f64,
    /// Bytes allowed.
    pub write_budget_bytes: u64,
    /// `--fill`: cases of enospc fill the filesystem itself.
    pub fill: bool,
}

/// What a plan sums up to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Totals {
    bytes: u64,
    seconds: f64,
    space_bytes: u64,
}

/// Writes the plans in a format of `--format`.
///
/// # Errors
/// A number is not finite where the format needs one.
pub fn print(plans: &[Plan<'_>], format: &str) -> anyhow::Result<String> {
    match format {
        "json" => {
            let document = serde_json::json!({ "schema": 1, "plan": plans });
            Ok(serde_json::to_string_pretty(&document)? + "\n")
        }
        "csv" => csv(plans),
        _ => Ok(plans.iter().map(table).collect::<Vec<_>>().join("\n")),
    }
}

fn csv(plans: &[Plan<'_>]) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "target",
        "probe",
        "comparison",
        "case",
        "baseline",
        "group",
        "bytes",
        "seconds",
        "file_bytes",
    ])?;
    for plan in plans {
        for c in plan.cases {
            writer.write_record([
                plan.dir,
                &c.probe,
                &c.comparison,
                &c.case,
                c.baseline.as_deref().unwrap_or_default(),
                &c.group.to_string(),
                &c.bytes.to_string(),
                &c.seconds.to_string(),
                &c.file_bytes.to_string(),
            ])?;
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn table(plan: &Plan<'_>) -> String {
    let mut text = format!("{}\n", escape(plan.dir));
    let id = |c: &PlannedCase| {
        let mark = if c.baseline.as_ref() == Some(&c.case) {
            "*"
        } else {
            ""
        };
        format!("{}/{}/{}{mark}", c.probe, c.comparison, c.case)
    };
    let width = plan.cases.iter().map(|c| id(c).len()).max().unwrap_or(0);
    let width = width.max("case".len());
    let _ = writeln!(
        text,
        "  {:<width$}  {:>10}  {:>8}  {:>9}",
        "case", "writes", "seconds", "space"
    );
    for c in plan.cases {
        let _ = writeln!(
            text,
            "  {:<width$}  {:>10}  {:>8.1}  {:>9}",
            id(c),
            show(c.bytes),
            c.seconds,
            show(c.file_bytes)
        );
    }
    let totals = totals(plan.cases);
    let _ = writeln!(
        text,
        "  in all: at least {} written (limit {}), {:.0} s (limit {:.0} s),\n  at most {} of space at a time",
        show(totals.bytes),
        show(plan.write_budget_bytes),
        totals.seconds,
        plan.time_limit_s,
        show(totals.space_bytes)
    );
    if totals.bytes > plan.write_budget_bytes || totals.seconds > plan.time_limit_s {
        text.push_str("  more than the limits: rounds are cut, what is not reached is skipped\n");
    }
    let fillers = plan
        .cases
        .iter()
        .filter(|c| plan.fill && c.probe == "enospc");
    let fillers = fillers.count();
    if fillers > 0 {
        let _ = writeln!(
            text,
            "  --fill: {fillers} cases of enospc fill this filesystem besides, for moments to its end, with\n  \
             files that are given back after each; where it has no fallocate they are written"
        );
    }
    text
}

fn totals(cases: &[PlannedCase]) -> Totals {
    let mut once: BTreeMap<(usize, usize), &PlannedCase> = BTreeMap::new();
    for case in cases {
        once.entry((case.group, case.index)).or_insert(case);
    }
    let mut groups: BTreeMap<usize, u64> = BTreeMap::new();
    for case in once.values() {
        let space = groups.entry(case.group).or_default();
        *space = space.saturating_add(case.file_bytes);
    }
    Totals {
        bytes: once
            .values()
            .fold(0, |sum: u64, c| sum.saturating_add(c.bytes)),
        seconds: once.values().map(|c| c.seconds).sum(),
        // The files of a group's cases exist at the same time.
        space_bytes: groups.into_values().max().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(comparison: &str, case: &str, group: usize) -> PlannedCase {
        PlannedCase {
            probe: "sync".to_owned(),
            comparison: comparison.to_owned(),
            case: case.to_owned(),
            baseline: Some("a".to_owned()),
            group,
            bytes: 1 << 20,
            seconds: 1.5,
            file_bytes: 16 << 20,
            index: usize::from(case.as_bytes()[0]),
            ..PlannedCase::default()
        }
    }

    #[test]
    fn a_case_of_two_comparisons_counts_once() {
        let cases = [
            case("x", "a", 0),
            case("x", "b", 0),
            case("y", "a", 0),
            case("z", "a", 1),
        ];
        let totals = totals(&cases);
        assert_eq!(totals.bytes, 3 << 20);
        assert_eq!(totals.space_bytes, 32 << 20);
        assert!((totals.seconds - 4.5).abs() < 1e-9);
    }

    #[test]
    fn what_fills_the_filesystem_is_told() {
        let mut filling = case("full", "a", 0);
        filling.probe = "enospc".to_owned();
        let cases = [filling, case("x", "a", 1)];
        let told = |fill| {
            let plan = Plan {
                dir: "/mnt/t",
                cases: &cases,
                time_limit_s: 90.0,
                write_budget_bytes: 1 << 30,
                fill,
            };
            table(&plan)
        };
        assert!(told(true).contains("--fill: 1 cases of enospc fill this filesystem"));
        assert!(!told(false).contains("fill"));
    }

    #[test]
    fn every_format_tells_the_plan() {
        let cases = [case("x", "a", 0), case("x", "b", 0)];
        let plans = [Plan {
            dir: "/mnt/t",
            cases: &cases,
            time_limit_s: 90.0,
            write_budget_bytes: 1 << 20,
            fill: false,
        }];
        insta::assert_snapshot!(print(&plans, "table").unwrap(), @r"
        /mnt/t
          case           writes   seconds      space
          sync/x/a*       1 MiB       1.5     16 MiB
          sync/x/b        1 MiB       1.5     16 MiB
          in all: at least 2 MiB written (limit 1 MiB), 3 s (limit 90 s),
          at most 32 MiB of space at a time
          more than the limits: rounds are cut, what is not reached is skipped
        ");
        insta::assert_snapshot!(print(&plans, "csv").unwrap(), @r"
        target,probe,comparison,case,baseline,group,bytes,seconds,file_bytes
        /mnt/t,sync,x,a,a,0,1048576,1.5,16777216
        /mnt/t,sync,x,b,a,0,1048576,1.5,16777216
        ");
        let json: serde_json::Value =
            serde_json::from_str(&print(&plans, "json").unwrap()).unwrap();
        assert_eq!(json["plan"][0]["cases"][1]["case"], "b");
    }
}
