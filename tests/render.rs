//! The renderers, on hand-made reports and on generated ones.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::Value;
use walprobe::render::{
    Options, RENDERERS, by_name, check_evidence, conf, csv, escape, vocabulary,
};
use walprobe_probes::report::{DurabilityVerdict, EndedBy, Report, Row, TargetStatus};

#[path = "fixtures/generated.rs"]
mod generated;
#[path = "fixtures/reports.rs"]
mod reports;
#[path = "fixtures/rows.rs"]
mod rows;

fn render(format: &str, report: &Report, width: Option<u16>) -> String {
    let options = Options {
        width,
        color: false,
    };
    by_name(format)
        .expect("a known format")
        .render(report, &options)
        .expect("a text")
}

fn example() -> Report {
    serde_json::from_str(reports::EXAMPLE).expect("the example is a report")
}

fn fixtures() -> Vec<(&'static str, Report)> {
    vec![
        ("ext4", reports::report(vec![reports::ext4()])),
        ("tmpfs", reports::report(vec![reports::tmpfs()])),
        ("faults", reports::faults()),
        ("changes", reports::changes()),
        ("hostile", reports::hostile()),
        ("two", reports::two_targets()),
        ("example", example()),
        ("nothing", reports::report(Vec::new())),
    ]
}

#[path = "render/csv.rs"]
mod csv_text;
#[path = "render/format_page.rs"]
mod format_page;
#[path = "render/conf.rs"]
mod fragment;
#[path = "render/json.rs"]
mod json;
#[path = "render/markdown.rs"]
mod markdown;
#[path = "render/table.rs"]
mod table;
