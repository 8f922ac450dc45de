//! Markdown: what it looks like, and that names in it are no markup.

use super::*;
use walprobe::render::markdown::text;

#[test]
fn looks() {
    for name in ["ext4", "faults", "two"] {
        let (_, report) = fixtures().into_iter().find(|(n, _)| *n == name).unwrap();
        insta::assert_snapshot!(
            format!("{name}-markdown"),
            render("markdown", &report, None)
        );
    }
}

#[test]
fn does_not_depend_on_the_terminal() {
    for (name, report) in fixtures() {
        let text = render("markdown", &report, None);
        assert_eq!(text, render("markdown", &report, Some(60)), "{name}");
        let options = Options {
            width: None,
            color: true,
        };
        let coloured = by_name("markdown").unwrap().render(&report, &options);
        assert_eq!(text, coloured.unwrap(), "{name}");
    }
}

/// The tables of a text outside its code blocks, each a list of lines.
fn tables(text: &str) -> Vec<Vec<String>> {
    let mut tables: Vec<Vec<String>> = vec![Vec::new()];
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let ticks = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            Some(open) if line == open => fence = None,
            None if ticks.len() >= 3 && ticks == line => fence = Some(ticks),
            _ => {}
        }
        if fence.is_none() && line.starts_with('|') {
            tables.last_mut().unwrap().push(line.to_owned());
        } else if !tables.last().unwrap().is_empty() {
            tables.push(Vec::new());
        }
    }
    tables.retain(|t| !t.is_empty());
    tables
}

/// Cells of a line: pipes that are not escaped part them.
fn cells(line: &str) -> usize {
    let mut escaped = false;
    let mut pipes = 0;
    for c in line.chars() {
        if c == '|' && !escaped {
            pipes += 1;
        }
        escaped = c == '\\' && !escaped;
    }
    pipes - 1
}

fn sound(text: &str) -> Result<(), String> {
    for table in tables(text) {
        let columns = cells(&table[0]);
        for line in &table {
            if cells(line) != columns || !line.ends_with('|') {
                return Err(format!("{columns} columns: {line}"));
            }
        }
        if !table
            .get(1)
            .is_some_and(|l| l.chars().all(|c| "|-: ".contains(c)))
        {
            return Err(format!("no delimiter: {table:?}"));
        }
    }
    Ok(())
}

#[test]
fn every_table_of_the_fixtures_is_one() {
    let mut seen = 0;
    for (name, report) in fixtures() {
        let text = render("markdown", &report, None);
        sound(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        seen += tables(&text).len();
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn says_what_the_terminal_says() {
    for (name, report) in fixtures().into_iter().filter(|(n, _)| *n != "hostile") {
        let words = |format: &str| -> BTreeSet<String> {
            let text = render(format, &report, None).replace(['`', '\\'], "");
            let split = |c: char| !(c.is_alphanumeric() || "_.-/%+".contains(c));
            let words = text
                .split(split)
                .filter(|w| w.contains(char::is_alphanumeric));
            words
                .map(|w| w.trim_end_matches(['.', '-']).to_owned())
                .collect()
        };
        // What only one of them says of itself.
        let own = "Further columns fit into --width 200 have all JSON CSV row marked figures and";
        let own: Vec<&str> = own.split(' ').collect();
        let markdown = words("markdown");
        let missing: Vec<_> = words("table")
            .into_iter()
            .filter(|w| !markdown.contains(w) && !own.contains(&w.as_str()))
            .collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
    }
}

#[test]
fn names_are_no_markup() {
    let mut report = reports::report(vec![reports::ext4()]);
    let target = &mut report.targets[0];
    target.dir = "/mnt/`x` |a|<b>".to_owned();
    target.reason = Some("<script> | *b* [l](u)".to_owned());
    let model = "SSD|`rm`\u{202e}".to_owned();
    target.devices[0].model = Some(model);
    for row in &mut target.rows {
        row.case = row.case.replace('-', "|");
    }
    let out = render("markdown", &report, None);
    sound(&out).unwrap();
    assert!(out.contains("## ``/mnt/`x` |a|<b>``\n"), "{out}");
    assert!(out.contains(r"\<script> \| \*b\* \[l\](u)"), "{out}");
    assert!(out.contains(r"SSD\|\`rm\`\\u{202e}"), "{out}");
    assert!(out.contains(r"`zero\|fill`"), "{out}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tables_hold_whatever_is_in_them(report in generated::report()) {
        let text = render("markdown", &report, None);
        let bad: Vec<char> =
            text.chars().filter(|c| *c != '\n' && escape::is_unsafe(*c)).collect();
        prop_assert!(bad.is_empty(), "{:?}", bad);
        if let Err(e) = sound(&text) {
            prop_assert!(false, "{}", e);
        }
    }

    #[test]
    fn prose_loses_nothing(text in "[ -~]{0,40}") {
        // Backslashes before punctuation are what a reader of Markdown takes away.
        let mut read = String::new();
        let escaped = text::prose(&text);
        let mut rest = escaped.chars().peekable();
        while let Some(c) = rest.next() {
            match rest.peek() {
                Some(next) if c == '\\' && next.is_ascii_punctuation() => {
                    read.extend(rest.next());
                }
                _ => read.push(c),
            }
        }
        prop_assert_eq!(read, text);
    }
}
