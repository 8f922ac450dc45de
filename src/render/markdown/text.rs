//! Text that is not ours, made safe for Markdown.
//!
//! Only what would have an effect is escaped, so that the source reads well too:
//! `wal_recycle` and `ratio 1.02 (1.00-1.04)` stay as they are.

/// `text` as prose: nothing in it is markup. Good in a table's cell too.
#[must_use]
pub fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut before: Option<char> = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let next = rest.peek().copied();
        let within = |test: fn(char) -> bool| before.is_some_and(test) && next.is_some_and(test);
        let escaped = match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '|' | '~' | '$' => true,
            '_' => !within(char::is_alphanumeric),
            '&' => next.is_some_and(|n| n.is_ascii_alphanumeric() || n == '#'),
            '#' => before.is_none() || next.is_some_and(char::is_alphanumeric),
            '>' | '-' | '+' | '=' => before.is_none(),
            // `1.` opens a list where nothing stands before it.
            '.' | ')' => {
                !out.is_empty()
                    && out.chars().all(|c| c.is_ascii_digit())
                    && next.is_none_or(|n| n == ' ')
            }
            _ => false,
        };
        if escaped {
            out.push('\\');
        }
        out.push(c);
        before = Some(c);
    }
    out
}

/// `text` as a code span.
#[must_use]
pub fn code(text: &str) -> String {
    let fence = "`".repeat(longest_run(text) + 1);
    let pad = if text.is_empty() || text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// `text` as a code span in a table, where a pipe ends a cell even within code.
#[must_use]
pub fn code_in_table(text: &str) -> String {
    code(&text.replace('|', "\\|"))
}

/// Lines as a block of code.
#[must_use]
pub fn block(text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`');
    runs.map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_and_plain_words_are_not() {
        for (text, markdown) in [
            (
                "wal_recycle = off, 100% > 0%",
                "wal_recycle = off, 100% > 0%",
            ),
            ("read/WAL 1.02 (1.00-1.04)", "read/WAL 1.02 (1.00-1.04)"),
            ("a|b", "a\\|b"),
            ("*bold* _it_ `x`", "\\*bold\\* \\_it\\_ \\`x\\`"),
            ("<img src=x>", "\\<img src=x>"),
            ("[a](http://x)", "\\[a\\](http://x)"),
            ("# title", "\\# title"),
            ("see #12", "see \\#12"),
            ("- item", "\\- item"),
            ("1. item", "1\\. item"),
            ("1.5 ms", "1.5 ms"),
            ("&lt; & b", "\\&lt; & b"),
            ("c:\\x", "c:\\\\x"),
        ] {
            assert_eq!(prose(text), markdown);
        }
    }

    #[test]
    fn code_holds_anything() {
        assert_eq!(code("/mnt/t"), "`/mnt/t`");
        assert_eq!(code("a`b``c"), "```a`b``c```");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code(""), "`  `");
        assert_eq!(code_in_table("a|b"), "`a\\|b`");
        assert_eq!(block("a\n```\nb\n"), "````\na\n```\nb\n````");
    }
}
