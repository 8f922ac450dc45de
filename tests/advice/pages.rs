//! Each rule has its file, its line in the list and its page.

use std::{collections::BTreeSet, fs, path::Path};

use walprobe::advise::RULES;

const HEADINGS: &[&str] = &[
    "What it looks at",
    "What it may say",
    "When it says nothing",
    "What it never says",
    "Sources",
];

fn stems(folder: &str, suffix: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    fs::read_dir(&folder)
        .expect("the folder")
        .filter_map(|entry| {
            let name = entry.expect("an entry").file_name();
            Some(name.to_str()?.strip_suffix(suffix)?.to_owned())
        })
        .collect()
}

#[test]
fn each_rule_has_a_page_and_each_page_a_rule() {
    let rules: BTreeSet<String> = RULES.iter().map(|rule| rule.id().to_owned()).collect();
    assert_eq!(rules.len(), RULES.len(), "an id is there twice");
    assert_eq!(rules, stems("docs/rules", ".md"));
    let files = stems("src/advise", ".rs");
    for id in &rules {
        assert!(files.contains(&id.replace('-', "_")), "no file for {id}");
    }
}

#[test]
fn each_page_has_the_fixed_headings() {
    for rule in RULES {
        let page = rule.page();
        assert!(
            page.starts_with(&format!("# {}\n", rule.id())),
            "{}",
            rule.id()
        );
        let headings: Vec<&str> = page.lines().filter_map(|l| l.strip_prefix("## ")).collect();
        assert_eq!(headings, HEADINGS, "{}", rule.id());
        for setting in rule.settings() {
            assert!(page.contains(&format!("`{setting}`")), "{setting}");
        }
        assert!(page.is_ascii());
    }
}

#[test]
fn no_setting_belongs_to_two_rules() {
    let settings: Vec<&str> = RULES.iter().flat_map(|r| r.settings()).copied().collect();
    let once: BTreeSet<&str> = settings.iter().copied().collect();
    assert_eq!(once.len(), settings.len());
}
