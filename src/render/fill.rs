//! Fills prose to a width.
//!
//! Greedy, by spaces only: a word that is longer than a line (a path, a command) keeps
//! its own line whole, so that it can be copied.

/// Appends `text` to `out`, filled to `width`; `first` opens the first line, `rest` the others.
///
/// Ends with a newline. An empty text gives the bare opening.
pub fn fill(out: &mut String, width: usize, first: &str, rest: &str, text: &str) {
    out.push_str(first);
    let mut column = first.chars().count();
    let mut begun = false;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if begun && column + 1 + length > width {
            out.push('\n');
            out.push_str(rest);
            column = rest.chars().count();
        } else if begun {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        begun = true;
    }
    let kept = out.trim_end_matches(' ').len();
    out.truncate(kept);
    out.push('\n');
}

/// [`fill`] with a label in a column of its own.
pub fn labelled(out: &mut String, width: usize, indent: usize, label: &str, text: &str) {
    const LABEL_COLUMNS: usize = 12;
    let first = format!("{:indent$}{label:<LABEL_COLUMNS$} ", "");
    let rest = " ".repeat(indent + LABEL_COLUMNS + 1);
    fill(out, width, &first, &rest, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_and_keeps_long_words_whole() {
        let mut out = String::new();
        fill(
            &mut out,
            12,
            "- ",
            "  ",
            "one two three a-very-long-word-indeed x",
        );
        assert_eq!(out, "- one two\n  three\n  a-very-long-word-indeed\n  x\n");
        let mut out = String::new();
        fill(&mut out, 12, "label  ", "", "");
        assert_eq!(out, "label\n");
    }
}
