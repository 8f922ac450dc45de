//! `walprobe explain`: what a name means, from the pages that define it.
//!
//! A probe and a rule have their page ([`walprobe_probes::PROBES`], [`RULES`]); a comparison
//! or case is told with its probe's page, a setting with its rule's. The words of the report
//! are told from the closed lists of its format page ([`glossary`]), which a test holds to the
//! program. Pages are Markdown, shown as plain text ([`plain`]).

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};

use walprobe_probes::PROBES;

use crate::{
    advise::RULES,
    error::{Exit, Failure},
    list,
    render::{self, Options, fill::fill},
    stdout,
};

pub mod glossary;
mod near;
pub mod plain;

/// The command: the page of a name, or all names.
///
/// # Errors
/// Nothing has that name.
pub fn command(name: Option<&str>) -> Result<Exit, Failure> {
    let out = io::stdout();
    let own = out
        .is_terminal()
        .then(|| rustix::termios::tcgetwinsize(&out).ok().map(|w| w.ws_col))
        .flatten();
    let columns = std::env::var("COLUMNS").ok();
    let options = Options {
        width: render::choose_width(None, columns.as_deref(), own),
        color: false,
    };
    let text = match name {
        None => names(options.prose()),
        Some(name) => explain(name, options.prose()).ok_or_else(|| unknown(name))?,
    };
    Ok(stdout(&text))
}

/// What `name` means, filled to `width`; none where nothing has that name.
#[must_use]
pub fn explain(name: &str, width: usize) -> Option<String> {
    let name = name.trim_end_matches('/');
    if let Some(probe) = PROBES.iter().find(|p| p.card().id == name) {
        return Some(plain::plain(probe.card().page, width));
    }
    if let Some(text) = of_catalogue(name, width) {
        return Some(text);
    }
    let setting = name.split('@').next().unwrap_or(name);
    let of_rule = |id: &str, settings: &[&str]| id == name || settings.contains(&setting);
    if let Some(rule) = RULES.iter().find(|r| of_rule(r.id(), r.settings())) {
        return Some(plain::plain(rule.page(), width));
    }
    let mut text = String::new();
    for entry in glossary::entries() {
        if entry.words.contains(&name) {
            let told = plain::inline(entry.text);
            fill(
                &mut text,
                width,
                &format!("{name} ({}): ", entry.list),
                "  ",
                &told,
            );
        }
    }
    if text.contains("durability verdict): ") {
        text.push_str("  walprobe explain durability tells more\n");
    }
    let places = places(name);
    if !places.is_empty() {
        let places = places.join(", ");
        fill(
            &mut text,
            width,
            &format!("{name} (case or comparison): "),
            "  ",
            &places,
        );
        text.push_str("  walprobe explain PROBE/COMPARISON/CASE tells more\n");
    }
    (!text.is_empty()).then_some(text)
}

/// `PROBE/COMPARISON` or `PROBE/COMPARISON/CASE`: what it is, and the probe's page.
fn of_catalogue(name: &str, width: usize) -> Option<String> {
    let cases = list::cases();
    let mut head = String::new();
    let of_comparison: Vec<_> = cases
        .iter()
        .filter(|(probe, comparison, ..)| name == format!("{probe}/{comparison}"))
        .collect();
    let probe = if let Some((probe, ..)) = of_comparison.first() {
        let names = of_comparison.iter().map(|(_, _, case, baseline)| {
            let mark = if baseline.as_ref() == Some(case) {
                "*"
            } else {
                ""
            };
            format!("{case}{mark}")
        });
        let names: Vec<String> = names.collect();
        let mark = if names.iter().any(|n| n.ends_with('*')) {
            "; * is what the others are compared with"
        } else {
            ""
        };
        let told = format!("a comparison of {}{mark}", names.join(", "));
        fill(&mut head, width, &format!("{name}: "), "  ", &told);
        probe
    } else {
        let id = |(probe, comparison, case, _): &&(String, String, String, Option<String>)| {
            name == format!("{probe}/{comparison}/{case}")
        };
        let (probe, comparison, case, baseline) = cases.iter().find(id)?;
        let told = match baseline {
            Some(baseline) if baseline == case => {
                format!("what the other cases of {probe}/{comparison} are compared with")
            }
            Some(baseline) => format!("a case, compared with {baseline}"),
            None => "a case, compared with nothing".to_owned(),
        };
        fill(&mut head, width, &format!("{name}: "), "  ", &told);
        probe
    };
    let page = PROBES.iter().find(|p| p.card().id == probe)?.card().page;
    let _ = write!(head, "\n{}", plain::plain(page, width));
    Some(head)
}

/// The ids in which a bare comparison or case occurs.
fn places(name: &str) -> Vec<String> {
    let mut places: Vec<String> = Vec::new();
    for (probe, comparison, case, _) in list::cases() {
        let id = if comparison == name {
            format!("{probe}/{comparison}")
        } else if case == name {
            format!("{probe}/{comparison}/{case}")
        } else {
            continue;
        };
        if !places.contains(&id) {
            places.push(id);
        }
    }
    places
}

/// All names by kind.
#[must_use]
pub fn names(width: usize) -> String {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    let probes = PROBES.iter().map(|p| p.card().id.to_owned());
    groups.push(("Probes".to_owned(), probes.collect()));
    groups.push((
        "Comparisons; a case is one of these, `/` and its name".to_owned(),
        comparisons(),
    ));
    let settings = RULES.iter().flat_map(|r| r.settings());
    groups.push((
        "Settings".to_owned(),
        settings.map(|s| (*s).to_owned()).collect(),
    ));
    let rules = RULES.iter().map(|r| r.id().to_owned());
    groups.push(("Rules".to_owned(), rules.collect()));
    for entry in glossary::entries().filter(|e| e.closed) {
        let list = entry.list.to_owned();
        let words = entry.words.iter().map(|w| (*w).to_owned());
        match groups.iter_mut().find(|(known, _)| *known == list) {
            Some((_, all)) => all.extend(words),
            None => groups.push((list, words.collect())),
        }
    }
    let mut text = "walprobe explain NAME tells what it means.\n".to_owned();
    for (kind, names) in groups {
        let _ = write!(text, "\n{}\n", capital(&plain::inline(&kind)));
        fill(&mut text, width, "  ", "  ", &names.join("  "));
    }
    text.push_str("\nKeys and columns of the report are explained too, as p99_us or ratio.\n");
    text
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

fn comparisons() -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for (probe, comparison, ..) in list::cases() {
        let id = format!("{probe}/{comparison}");
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// Everything that can be asked for.
fn all() -> Vec<String> {
    let mut all: Vec<String> = PROBES.iter().map(|p| p.card().id.to_owned()).collect();
    all.extend(comparisons());
    for (probe, comparison, case, _) in list::cases() {
        all.extend([format!("{probe}/{comparison}/{case}"), comparison, case]);
    }
    for rule in RULES {
        all.push(rule.id().to_owned());
        all.extend(rule.settings().iter().map(|s| (*s).to_owned()));
    }
    let words = glossary::entries().flat_map(|e| e.words);
    all.extend(words.map(str::to_owned));
    all
}

fn unknown(name: &str) -> Failure {
    let failure = Failure::refused(format!("nothing here is called {name}"));
    let all = all();
    let near = near::nearest(name, &all);
    let failure = if near.is_empty() {
        failure
    } else {
        failure.hint(format!("near it are {}", near.join(", ")))
    };
    failure.hint("walprobe explain lists all names")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_named_is_explained() {
        for name in all() {
            let text = explain(&name, 80).unwrap_or_default();
            assert!(text.trim().len() > 10, "{name}: {text}");
            let mut lines = text.lines();
            assert!(!lines.any(|l| l.starts_with('|')), "{name}:\n{text}");
        }
    }

    #[test]
    fn every_word_of_the_vocabulary_is_explained() {
        use crate::render::vocabulary::{DOUBTS, GROUNDS, REASON_CODES, facts};
        let words = [GROUNDS, DOUBTS, REASON_CODES].concat();
        for name in words.iter().map(|(id, _)| *id).chain(facts()) {
            assert!(explain(name, 80).is_some(), "{name}");
        }
    }

    #[test]
    fn a_setting_shows_its_rule_and_a_case_its_probe() {
        let setting = explain("wal_recycle@standby", 80).unwrap();
        assert_eq!(Some(&setting), explain("wal-segments", 80).as_ref());
        let case = explain("sync/commit/fsync", 80).unwrap();
        assert!(case.starts_with("sync/commit/fsync: a case, compared with fdatasync\n"));
        assert!(case.ends_with(&explain("sync", 80).unwrap()));
        assert!(explain("sync/commit", 80).unwrap().contains("fdatasync*"));
        assert!(explain("sync/commit/nonsense", 80).is_none());
    }

    #[test]
    fn a_word_of_several_lists_is_told_of_each() {
        let text = explain("not-durable", 80).unwrap();
        assert!(text.contains("(durability verdict)"), "{text}");
        assert!(text.contains("(reason code)"), "{text}");
    }

    #[test]
    fn an_unknown_name_has_its_neighbours() {
        let failure = unknown("wal_recicle");
        assert!(failure.hints[0].contains("wal_recycle"), "{failure:?}");
        assert_eq!(failure.exit, Exit::Refused);
    }
}
