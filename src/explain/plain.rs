//! A page of ours as plain text for a terminal.
//!
//! Only the Markdown that the pages use: headings, paragraphs, lists, tables, code. Tables
//! become columns, their longest cells filled.

use comfy_table::{ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width};

use crate::render::fill::fill;

/// The page, filled to `width`.
#[must_use]
pub fn plain(page: &str, width: usize) -> String {
    let mut out = String::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        let text = line.trim_start();
        if text.is_empty() {
            gap(&mut out);
        } else if text.starts_with("```") {
            for code in lines.by_ref().take_while(|l| !l.starts_with("```")) {
                let line = format!("    {code}");
                out.push_str(line.trim_end());
                out.push('\n');
            }
        } else if text.starts_with('#') {
            heading(&mut out, text, width);
        } else if text.starts_with('|') {
            let mut rows = vec![cells(text)];
            while let Some(next) = lines.next_if(|l| l.starts_with('|')) {
                rows.push(cells(next));
            }
            table(&mut out, rows, width);
        } else {
            let indent = line.len() - text.len();
            let mut whole = text.to_owned();
            while let Some(next) = lines.next_if(|l| continues(l)) {
                whole.push(' ');
                whole.push_str(next.trim());
            }
            let (first, rest) = match whole.strip_prefix("- ") {
                Some(_) => (format!("{:indent$}- ", ""), " ".repeat(indent + 2)),
                None => (" ".repeat(indent), " ".repeat(indent)),
            };
            let whole = whole.strip_prefix("- ").unwrap_or(&whole);
            fill(&mut out, width, &first, &rest, &inline(whole));
        }
    }
    let kept = out.trim_end().len();
    out.truncate(kept);
    out.push('\n');
    out
}

/// A line that goes on with the paragraph above it.
fn continues(line: &str) -> bool {
    let text = line.trim_start();
    let begins = ["#", "|", "- ", "```"];
    !text.is_empty() && !begins.iter().any(|b| text.starts_with(b)) && !numbered(text)
}

fn numbered(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < text.len() && rest.starts_with(". ")
}

/// One empty line, and none at the start.
fn gap(out: &mut String) {
    if !out.is_empty() && !out.ends_with("\n\n") {
        out.push('\n');
    }
}

fn heading(out: &mut String, text: &str, width: usize) {
    let level = text.chars().take_while(|c| *c == '#').count();
    let title = inline(text.trim_start_matches('#').trim());
    gap(out);
    if level > 2 {
        fill(out, width, "", "", &title);
        return;
    }
    let begin = out.len();
    fill(out, width, "", "", &title);
    let longest = out[begin..].lines().map(|l| l.chars().count()).max();
    let mark = if level == 1 { "=" } else { "-" };
    out.push_str(&mark.repeat(longest.unwrap_or(0)));
    out.push('\n');
}

fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let line = line.strip_suffix('|').unwrap_or(line);
    // A pipe within a cell is written `\|`.
    let hidden = line.replace("\\|", "\u{0}");
    let cells = hidden.split('|');
    cells
        .map(|c| inline(c.trim()).replace('\u{0}', "|"))
        .collect()
}

fn table(out: &mut String, mut rows: Vec<Vec<String>>, width: usize) {
    let ruler = |row: &Vec<String>| {
        row.iter()
            .all(|c| !c.is_empty() && c.chars().all(|c| "-:".contains(c)))
    };
    rows.retain(|row| !ruler(row));
    let rule = LineStyle::none().fill('-').junction('-');
    let mut grid = Table::new();
    grid.load_style(TableStyle::new().header_separator(rule));
    grid.set_content_arrangement(ContentArrangement::Dynamic);
    grid.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    let words: Vec<u16> = longest_words(&rows);
    let mut rows = rows.into_iter();
    grid.set_header(rows.next().unwrap_or_default());
    for row in rows {
        grid.add_row(row);
    }
    let fits = words.iter().map(|w| usize::from(*w) + 2).sum::<usize>() <= width;
    for (column, word) in grid.column_iter_mut().zip(words) {
        column.set_padding((0, 2));
        if fits {
            // No word is cut while another column can give way.
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(word + 2)));
        }
    }
    for line in grid.lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// The longest word of each column.
fn longest_words(rows: &[Vec<String>]) -> Vec<u16> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let longest = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let words = cells.flat_map(|c| c.split_whitespace());
        words.map(|w| w.chars().count()).max().unwrap_or(0)
    };
    (0..columns)
        .map(|at| u16::try_from(longest(at)).unwrap_or(u16::MAX))
        .collect()
}

/// Text without its marks: emphasis, code, links.
#[must_use]
pub fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let tail = &rest[c.len_utf8()..];
        if let Some((code, after)) = tail.split_once('`').filter(|_| c == '`') {
            out.push_str(code);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("**") {
            rest = after;
        } else if let Some((label, after)) = link(rest) {
            out.push_str(&inline(label));
            rest = after;
        } else if let Some(after) = emphasis(&out, rest) {
            rest = after;
        } else {
            out.push(c);
            rest = tail;
        }
    }
    out
}

/// `[label](place)`: the label and what follows.
fn link(text: &str) -> Option<(&str, &str)> {
    let (label, after) = text.strip_prefix('[')?.split_once("](")?;
    let (_, after) = after.split_once(')')?;
    (!label.contains(['[', ']'])).then_some((label, after))
}

/// A `*` that opens or closes emphasis, unlike one between blanks.
fn emphasis<'a>(before: &str, text: &'a str) -> Option<&'a str> {
    let after = text.strip_prefix('*')?;
    let opens = after.starts_with(|c: char| c.is_alphanumeric())
        && (before.is_empty() || before.ends_with([' ', '(']));
    let closes = before.ends_with(|c: char| c.is_alphanumeric())
        && !after.starts_with(char::is_alphanumeric);
    (opens || closes).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_pages_use_is_shown() {
        let page = "# The title\n\nA **bold** and *soft* word, `a*b_c` and\n[a link](x.md#y).\n\n\
                    ## Part\n- one that is rather long for the width\n- two\n  more\n\n\
                    | word | meaning |\n|---|---|\n| `a` | b \\| c that has to be filled to the width |\n\n\
                    ```\n| verbatim | `x`\n```\n";
        insta::assert_snapshot!(plain(page, 40), @r"
        The title
        =========

        A bold and soft word, a*b_c and a link.

        Part
        ----
        - one that is rather long for the width
        - two more

        word   meaning
        ----------------------------------------
        a      b | c that has to be filled to
               the width

            | verbatim | `x`
        ");
    }

    #[test]
    fn every_page_fits_into_eighty_columns() {
        let probes = walprobe_probes::PROBES.iter().map(|p| p.card().page);
        let rules = crate::advise::RULES.iter().map(|r| r.page());
        for page in probes.chain(rules) {
            let text = plain(page, 80);
            let title = text.lines().next().unwrap();
            for line in text.lines() {
                let wide = line.chars().count() > 80 && !line.starts_with("    ");
                assert!(!wide, "{title}: {line}");
                assert!(
                    !line.starts_with('|') && !line.contains("**"),
                    "{title}: {line}"
                );
            }
        }
    }
}
