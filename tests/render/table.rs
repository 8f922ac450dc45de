//! The terminal report: what it looks like, and that it breaks and leaks nothing.

use super::*;

#[test]
fn looks() {
    for (name, report) in fixtures() {
        let widths = match name {
            "ext4" | "faults" | "two" => vec![Some(80), Some(200), None],
            _ => vec![Some(80)],
        };
        for width in widths {
            let label = width.map_or_else(|| "pipe".to_owned(), |w| w.to_string());
            insta::assert_snapshot!(format!("{name}-{label}"), render("table", &report, width));
        }
    }
}

#[test]
fn fits_into_eighty_columns() {
    for (name, report) in fixtures() {
        if name == "hostile" {
            continue;
        }
        for line in render("table", &report, Some(80)).lines() {
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
    }
}

#[test]
fn at_sixty_columns_only_what_cannot_be_broken_is_longer() {
    for (name, report) in fixtures() {
        if name == "hostile" {
            continue;
        }
        let text = render("table", &report, Some(60));
        // The fragment's lines are a file's.
        let text = text.split("\npostgresql.conf\n").next().unwrap();
        for line in text.lines() {
            let one_word = line.split_whitespace().filter(|w| *w != "#").count() == 1;
            assert!(line.chars().count() <= 60 || one_word, "{name}: {line}");
        }
    }
}

#[test]
fn what_the_baseline_would_have_said_is_missed_aloud() {
    let mut report = reports::two_targets();
    let rows = &mut report.targets[0].rows;
    rows.retain(|r| r.comparison == "commit" && r.case != "fdatasync");
    for row in rows {
        (row.ratio, row.ratio_low, row.ratio_high, row.verdict) = (None, None, None, None);
    }
    for format in ["table", "markdown"] {
        let text = render(format, &report, Some(80));
        let said = "the baseline fdatasync was not measured: no ratio";
        assert_eq!(text.matches(said).count(), 1, "{format}: {text}");
    }
    let whole = render("table", &reports::two_targets(), Some(80));
    assert!(!whole.contains("no ratio"));
}

#[test]
fn rows_that_are_the_same_say_so_once() {
    let mut report = reports::two_targets();
    let rows = &mut report.targets[0].rows;
    let of = |comparison: &str, case: &str, rows: &[walprobe_probes::report::Row]| {
        let found = rows
            .iter()
            .position(|r| r.comparison == comparison && r.case == case);
        found.unwrap()
    };
    let cold = of("life-cold", "new+zero", rows);
    let id = serde_json::json!("recycle/life/new+zero");
    rows[cold]
        .observations
        .insert("same_operations_as".to_owned(), id);
    let mut same = rows[of("life-cold", "recycle+zero", rows)].clone();
    same.case = "recycle+sparse".to_owned();
    same = walprobe_probes::report::Row {
        probe: same.probe,
        comparison: same.comparison,
        case: same.case,
        baseline: same.baseline,
        series: same.series,
        status: walprobe_probes::report::RowStatus::Skipped,
        reason_code: Some("same-as".to_owned()),
        reason: Some("the same as recycle+zero: so it is".to_owned()),
        ..walprobe_probes::report::Row::default()
    };
    rows.push(same);
    for format in ["table", "markdown"] {
        let text = render(format, &report, Some(80));
        let of = |said: &str| text.matches(said).count();
        assert_eq!(of("the same measurement as in recycle/life"), 1, "{text}");
        // In its table; neither among what was left out nor side by side.
        assert_eq!(of("the same as recycle+zero: so it is"), 1, "{text}");
        assert_eq!(of("recycle+sparse"), 1, "{text}");
    }
}

#[test]
fn many_directories_stand_side_by_side_in_eighty_columns() {
    for count in [3, 12] {
        let mut report = reports::two_targets();
        while report.targets.len() < count {
            let mut next = report.targets[0].clone();
            next.dir = format!("/mnt/t{}", report.targets.len());
            report.targets.push(next);
        }
        let text = render("table", &report, Some(80));
        let part = text.split("\nSide by side\n").nth(1).unwrap();
        let part = part.split("\npostgresql.conf\n").next().unwrap();
        for line in part.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let heads = |letter: char| {
            let letter = letter.to_string();
            let heads = part.lines().filter(|l| l.starts_with(" case"));
            heads.filter(|l| l.split(' ').any(|w| w == letter)).count()
        };
        assert!(heads('A') > 5);
        for letter in ('A'..='Z').take(count) {
            assert_eq!(heads(letter), heads('A'), "{letter}");
        }
        if count == 3 {
            insta::assert_snapshot!("three-side-by-side", part);
        }
    }
}

#[test]
fn no_width_breaks_a_number() {
    let report = reports::report(vec![reports::ext4()]);
    let widest = render("table", &report, Some(250));
    let row = |text: &str| -> Vec<String> {
        let at = text
            .find("sync/commit  ")
            .or_else(|| text.find("sync/commit\n"));
        let line = text[at.unwrap()..]
            .lines()
            .find(|l| l.starts_with(" open_sync "))
            .unwrap();
        line.split("  ")
            .map(|cell| cell.trim().to_owned())
            .filter(|cell| !cell.is_empty())
            .collect()
    };
    let all = row(&widest);
    assert!(all.contains(&"254 us".to_owned()), "{all:?}");
    let mut before = 0;
    for width in 1..=250 {
        let text = render("table", &report, Some(width));
        let cells = row(&text);
        assert!(cells.iter().all(|c| all.contains(c)), "{width}: {cells:?}");
        assert!(cells.len() >= before, "{width}: wider shows less");
        before = cells.len();
        assert!(text.lines().all(|l| l.trim_end() == l), "{width}");
    }
    assert_eq!(before, all.len());
}

#[test]
fn colour_adds_nothing_to_the_words() {
    for (name, report) in fixtures() {
        let plain = render("table", &report, Some(80));
        let options = Options {
            width: Some(80),
            color: true,
        };
        let coloured = by_name("table").unwrap().render(&report, &options).unwrap();
        assert_ne!(plain, coloured, "{name}");
        let mut bare = String::new();
        for (i, part) in coloured.split("\x1b[").enumerate() {
            bare.push_str(if i == 0 {
                part
            } else {
                part.split_once('m').unwrap().1
            });
        }
        assert_eq!(bare, plain, "{name}");
    }
}

#[test]
fn our_own_words_are_ascii() {
    for (name, report) in fixtures() {
        if name != "hostile" {
            assert!(render("table", &report, None).is_ascii(), "{name}");
        }
    }
}

#[test]
fn what_test_fallocate_would_have_said_stands_under_the_table() {
    let mut report = reports::report(vec![reports::ext4()]);
    let rows = &mut report.targets[0].rows;
    let mut row = rows
        .iter()
        .find(|r| r.comparison == "create")
        .unwrap()
        .clone();
    row.comparison = "cycles".to_owned();
    row.series = Some("cycle".to_owned());
    let line = "method: classic. 10 open/close iterations, 1 rewrite in 0.5000 s";
    row.observations.insert("line".to_owned(), line.into());
    rows.push(row);
    let text = render("table", &report, Some(80));
    let table = text.split("prealloc/cycles  ").nth(1).unwrap();
    assert!(table.contains(&format!("\n {line}\n")), "{table}");
    assert!(table.lines().nth(2).unwrap().contains(" cycle "), "{table}");
}

#[test]
fn a_target_that_is_not_durable_says_so_first() {
    let mut target = reports::tmpfs();
    let loud = |target: &walprobe_probes::report::Target| {
        let text = render("table", &reports::report(vec![target.clone()]), Some(80));
        let alarm = text.lines().position(|l| l.starts_with("NO"));
        alarm.map(|at| (at, text.lines().position(|l| l == target.dir).unwrap()))
    };
    let (alarm, name) = loud(&target).unwrap();
    assert!(alarm < name);
    target.durability.verdict = DurabilityVerdict::NoFlushSeen;
    assert!(loud(&target).is_some());
    target.durability.verdict = DurabilityVerdict::NotProvable;
    assert!(loud(&target).is_none());
}

#[test]
fn what_failed_shows_its_reason_in_place_of_figures() {
    let text = render("table", &reports::faults(), Some(200));
    for words in [
        " fsync          fault (errno): pwrite of seg-2: Input/output error (os error 5)",
        " open_sync      skipped (interrupted): the run was interrupted\n",
        "NOT COMPLETE: interrupted by SIGINT",
        "LEFT BEHIND: /mnt/t/.walprobe-01JDW3K9ZQ4T",
        "prealloc/create (all 3 cases)",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}

#[test]
fn a_skipped_target_says_why() {
    let mut target = walprobe_probes::report::Target {
        dir: "/mnt/ro".to_owned(),
        status: TargetStatus::Skipped,
        reason: Some("Read-only file system (os error 30)".to_owned()),
        ..Default::default()
    };
    target.durability.text = "not asked".to_owned();
    let text = render("table", &reports::report(vec![target]), Some(80));
    assert!(text.contains("Read-only file system"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_reaches_the_terminal_but_text(
        report in generated::report(),
        width in proptest::option::of(0..300_u16),
    ) {
        for format in ["table", "conf"] {
            let text = render(format, &report, width);
            let bad: Vec<char> =
                text.chars().filter(|c| *c != '\n' && escape::is_unsafe(*c)).collect();
            prop_assert!(bad.is_empty(), "{}: {:?}", format, bad);
        }
    }
}
