//! Colour: bold, red and green only, which are legible on dark and on light.

/// Whether escape sequences may be used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint(pub(super) bool);

impl Paint {
    /// A heading.
    pub(super) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// What must not be missed.
    pub(super) fn alarm(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    /// A table's line with its verdict coloured.
    pub(super) fn verdict(self, line: &str, verdict: &str) -> String {
        let code = match verdict {
            "faster" => "32",
            "slower" => "31",
            _ => return line.to_owned(),
        };
        match line.rfind(verdict) {
            Some(at) if self.0 => {
                let end = at + verdict.len();
                format!(
                    "{}{}{}",
                    &line[..at],
                    self.wrap(code, verdict),
                    &line[end..]
                )
            }
            _ => line.to_owned(),
        }
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
