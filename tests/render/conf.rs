//! The postgresql.conf fragment: sets what it should and nothing else.

use super::*;

/// The active lines, read as the server reads them: name and value.
fn settings(text: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, rest) = line.split_once('=').expect("name = value");
        let name = name.trim();
        assert!(
            name.chars().all(|c| c.is_ascii_lowercase() || c == '_'),
            "{line}"
        );
        let rest = rest.trim();
        let (value, rest) = if let Some(quoted) = rest.strip_prefix('\'') {
            unquoted(quoted).expect(line)
        } else {
            let end = rest.find(' ').unwrap_or(rest.len());
            let (word, rest) = rest.split_at(end);
            assert!(
                word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
                "{line}"
            );
            (word.to_owned(), rest)
        };
        let rest = rest.trim();
        assert!(rest.is_empty() || rest.starts_with('#'), "{line}");
        out.push((name.to_owned(), value));
    }
    out
}

/// A quoted value after its first quote, and what follows it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.push(chars.next()?.1),
            '\'' if chars.peek().is_some_and(|(_, c)| *c == '\'') => {
                chars.next();
                value.push('\'');
            }
            '\'' => return Some((value, &text[at + 1..])),
            c => value.push(c),
        }
    }
    None
}

fn active(report: &Report) -> Vec<(String, String)> {
    settings(&render("conf", report, None))
}

#[test]
fn looks() {
    for (name, report) in fixtures() {
        insta::assert_snapshot!(format!("conf-{name}"), render("conf", &report, None));
    }
}

#[test]
fn only_a_change_for_every_server_is_active() {
    assert_eq!(
        active(&reports::changes()),
        [("wal_recycle".to_owned(), "off".to_owned())]
    );
    assert_eq!(active(&reports::report(vec![reports::ext4()])), []);
    let text = render("conf", &reports::changes(), None);
    assert!(
        text.contains("\n# wal_sync_method = fdatasync  # keep"),
        "{text}"
    );
    assert!(
        text.contains("uncomment on a standby only\n# wal_recycle = off"),
        "{text}"
    );
    assert!(
        text.contains("PostgreSQL 16 or later\n# file_extend_method"),
        "{text}"
    );
    assert!(!text.contains("recordsize ="), "{text}");
}

#[test]
fn nothing_is_active_where_nothing_may_be_recommended() {
    for verdict in [
        DurabilityVerdict::NotDurable,
        DurabilityVerdict::NoFlushSeen,
        DurabilityVerdict::NotProvable,
        DurabilityVerdict::NotTested,
    ] {
        let mut report = reports::changes();
        report.targets[0].durability.verdict = verdict;
        assert_eq!(active(&report), [], "{verdict:?}");
        let text = render("conf", &report, None);
        assert!(text.contains(verdict.as_str()), "{text}");
    }
    let mut report = reports::changes();
    report.targets[0].durability.may_recommend = false;
    assert_eq!(active(&report), []);
}

#[test]
fn several_directories_set_nothing() {
    let mut report = reports::changes();
    report.targets.push(reports::tmpfs());
    assert_eq!(active(&report), []);
    assert!(render("conf", &report, None).contains("# wal_recycle = off"));
}

#[test]
fn a_name_sets_nothing() {
    assert_eq!(
        active(&reports::hostile()),
        [(
            "wal_recycle".to_owned(),
            "off'\\nfsync = off # \\".to_owned()
        )]
    );
}

/// All of it but what was not tested, which the report has said before.
#[test]
fn the_report_ends_with_its_values() {
    for (name, report) in fixtures() {
        if report.targets.iter().any(|t| !t.rows.is_empty()) {
            let table = render("table", &report, Some(80));
            let (_, end) = table.split_once("\npostgresql.conf\n").expect(name);
            assert_eq!(
                active_lines(end),
                active_lines(&render("conf", &report, None)),
                "{name}"
            );
            assert!(!end.contains("hint:"), "{name}");
            for setting in report.targets.iter().flat_map(|t| &t.not_tested) {
                assert!(
                    end.contains(&setting.setting),
                    "{name}: {}",
                    setting.setting
                );
            }
        }
    }
}

fn active_lines(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_report_can_set_what_is_not_written_here(report in generated::report()) {
        for (name, _) in active(&report) {
            prop_assert!(conf::SETTINGS.contains(&name.as_str()), "{}", name);
        }
    }
}
