//! The samples: reports of real runs, in every format.
//!
//! Each `report.json` is rendered again and must give the files beside it byte by byte; it
//! must hold to its own evidence, to the closed lists, and to what the rules say of it now.
//! `sample-output/make` measures anew. After an intended change of a renderer or a rule,
//! `WALPROBE_SAMPLES=write cargo test --test samples every_file` writes what follows from the
//! stored measurements.

use std::fs;
use std::path::{Path, PathBuf};

use walprobe::advise::advise;
use walprobe::render::{Options, by_name, check_evidence, document, vocabulary};
use walprobe_probes::report::{DurabilityVerdict, Report, RowStatus, SCHEMA};

/// The filesystems, and what must be known of each.
const SAMPLES: &[(&str, DurabilityVerdict)] = &[
    ("btrfs", DurabilityVerdict::FlushesSeen),
    ("ext4", DurabilityVerdict::FlushesSeen),
    ("tmpfs", DurabilityVerdict::NotDurable),
    ("xfs", DurabilityVerdict::FlushesSeen),
];

/// Files that follow from a report, with their format and its width.
const DERIVED: &[(&str, &str, Option<u16>)] = &[
    ("report.json", "json", None),
    ("report.csv", "csv", None),
    ("report.md", "markdown", None),
    ("terminal.txt", "table", Some(80)),
    ("wal.conf", "conf", None),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-output")
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn report(name: &str) -> Report {
    let text = fs::read_to_string(root().join(name).join("report.json")).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn each(check: impl Fn(&str, &Report)) {
    for (name, _) in SAMPLES {
        check(name, &report(name));
    }
}

#[test]
fn every_file_is_what_its_report_renders_to() {
    let write = std::env::var_os("WALPROBE_SAMPLES").is_some_and(|v| v == "write");
    each(|name, stored| {
        let mut report = stored.clone();
        advise(&mut report);
        if !write {
            assert_eq!(report, *stored, "{name}: the rules say something else now");
        }
        for &(file, format, width) in DERIVED {
            let options = Options {
                width,
                color: false,
            };
            let text = by_name(format).unwrap().render(&report, &options).unwrap();
            let path = root().join(name).join(file);
            if write {
                fs::write(&path, &text).unwrap();
            }
            let stored = fs::read_to_string(&path).unwrap();
            let differ = stored.lines().zip(text.lines()).find(|(a, b)| a != b);
            assert!(stored == text, "{name}/{file} differs: {differ:?}");
        }
    });
}

#[test]
fn the_samples_are_all_there_and_nothing_else() {
    let mut expected: Vec<&str> = SAMPLES.iter().map(|(name, _)| *name).collect();
    expected.push("make");
    expected.sort_unstable();
    assert_eq!(names(&root()), expected);
    let mut files: Vec<&str> = DERIVED.iter().map(|(file, ..)| *file).collect();
    files.sort_unstable();
    each(|name, _| assert_eq!(names(&root().join(name)), files, "{name}"));
}

#[test]
fn reports_hold_to_their_evidence_and_to_the_closed_lists() {
    each(|name, report| {
        let document = document(report).unwrap();
        assert_eq!(check_evidence(&document), [""; 0], "{name}");
        assert_eq!(vocabulary::check_vocabulary(&document), [""; 0], "{name}");
    });
}

#[test]
fn runs_are_whole_and_of_the_filesystem_they_claim() {
    for (name, verdict) in SAMPLES {
        let report = report(name);
        assert_eq!((report.schema, report.targets.len()), (SCHEMA, 1), "{name}");
        let target = &report.targets[0];
        let kind = name.split('-').next().unwrap_or_default();
        assert_eq!(target.facts["fs.type"].value, kind);
        assert_eq!(target.durability.verdict, *verdict, "{name}");
        let measured = target.rows.iter().filter(|r| r.status == RowStatus::Ok);
        assert!(measured.count() >= 15, "{name}");
        let faults = target.rows.iter().filter(|r| r.status == RowStatus::Fault);
        assert_eq!(faults.count(), 0, "{name}");
        let settings = target.findings.len() + target.not_tested.len();
        assert!(settings >= 3, "{name}: {settings} settings");
        assert_eq!(target.left_behind, [""; 0], "{name}");
    }
}

#[test]
fn nobody_is_named() {
    for (name, _) in SAMPLES {
        assert_eq!(report(name).host.name, None, "{name}");
        assert_eq!(report(name).targets[0].dir, "DIR-1");
        for (file, ..) in DERIVED {
            let text = fs::read_to_string(root().join(name).join(file)).unwrap();
            for place in [
                "/tmp",
                "/root",
                "/home",
                "/mnt",
                "/lab",
                "/share",
                "walprobe-samples",
            ] {
                assert!(!text.contains(place), "{name}/{file} has {place}");
            }
        }
    }
}
