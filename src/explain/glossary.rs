//! The words of the report with their meanings: the tables of `docs/format.md`.

/// The page.
const PAGE: &str = include_str!("../../docs/format.md");

/// One line of a table.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What kind of word it is.
    pub list: &'static str,
    /// The words of the line, which share its meaning.
    pub words: Vec<&'static str>,
    /// The meaning, Markdown.
    pub text: &'static str,
    /// The words stand in a closed list; else they are keys or columns.
    pub closed: bool,
}

/// Kinds of words by the heading above their table. Tables below others hold keys.
const LISTS: &[(&str, &str)] = &[
    ("ended_by", "how a run ended"),
    ("Row status", "row status"),
    ("Verdicts", "verdict"),
    ("Cold", "cold"),
    ("Durability verdicts", "durability verdict"),
    ("Grounds", "ground of a durability verdict"),
    ("Doubts", "doubt"),
    ("Reason codes", "reason code"),
    ("Findings' words", "word of a finding"),
    ("Facts", "fact"),
];

/// Every line of every table, in the page's order.
pub fn entries() -> impl Iterator<Item = Entry> {
    let mut heading = "";
    PAGE.lines().filter_map(move |line| {
        if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim();
            return None;
        }
        entry(heading, line)
    })
}

fn entry(heading: &'static str, line: &'static str) -> Option<Entry> {
    let cells = line.strip_prefix("| `")?.strip_suffix(" |")?;
    let mut cells = cells.split(" | ");
    let words = cells.next()?.split('`').step_by(2);
    let words: Vec<&str> = words.filter(|w| !w.is_empty()).collect();
    let text = cells.last()?;
    // The first line of a list names its key, and says nothing of it.
    if text.trim().is_empty() || text == "|" || text == "the row's key" {
        return None;
    }
    let known = LISTS.iter().find(|(known, _)| *known == heading);
    let list = match (known, heading) {
        (Some((_, list)), _) => list,
        (_, "CSV") => "column of the CSV",
        (_, "Terminal report") => "column of the terminal report",
        _ => "key of the report",
    };
    Some(Entry {
        list,
        words,
        text,
        closed: known.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_read_as_it_is_written() {
        let find = |list: &str, word: &str| {
            let mut found = entries().filter(|e| e.list == list && e.words.contains(&word));
            found.next().map(|e| e.text)
        };
        assert!(find("doubt", "steal").unwrap().contains("CPU"));
        assert!(find("verdict", "slower").unwrap().contains("interval"));
        assert!(find("fact", "fs.fragment_bytes").is_some());
        assert!(find("key of the report", "p99_us").is_some());
        for (_, list) in LISTS {
            assert!(entries().any(|e| e.list == *list), "{list}");
        }
        assert!(entries().all(|e| !e.text.starts_with('|')));
    }
}
