//! What is wrong with a filter, shown where the user wrote it.

use std::fmt;
use std::ops::Range;

/// What is wrong with a filter. Displays as a message, the filter, and a mark under what is meant:
///
/// ```text
/// there is no value after `>`
///   |
///   | accuracy > and lr < 1
///   |            ^^^ a number, a word, or a text in quotation marks
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    message: String,
    label: String,
    text: String,
    span: Range<usize>,
}

impl FilterError {
    pub(crate) fn new(
        text: &str,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> FilterError {
        FilterError {
            message: message.into(),
            label: label.into(),
            text: text.to_owned(),
            span,
        }
    }

    /// What is wrong, in one sentence.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One plain character for each that would move the cursor or command the terminal.
        let plain = |text: &str| -> String {
            let plain = |c: char| match c {
                '\t' | '\n' => ' ',
                c if c.is_control() => '\u{fffd}',
                c => c,
            };
            text.chars().map(plain).collect()
        };
        let start = self.text.get(..self.span.start).unwrap_or_default();
        let marked = self.text.get(self.span.clone()).unwrap_or_default();
        let before = " ".repeat(start.chars().count());
        let mark = "^".repeat(marked.chars().count().max(1));
        writeln!(f, "{}\n  |", plain(&self.message))?;
        writeln!(f, "  | {}", plain(&self.text).trim_end())?;
        let last = format!("  | {before}{mark} {}", plain(&self.label));
        f.write_str(last.trim_end())
    }
}

impl std::error::Error for FilterError {}
