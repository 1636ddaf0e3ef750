//! One thing that is wrong with a job, shown where the user wrote it.

use crate::secrets::masked;
use crate::source::{Spot, TextPosition};
use std::fmt;
use std::path::Path;

/// The longest part of a line that is shown.
const SHOWN: usize = 120;

/// One thing that is wrong with a job, and where.
///
/// Displays as a message, the place, the line, and a mark under the offending text that says what
/// would be right:
///
/// ```text
/// unknown key `epoch` in [train]
///   --> job.toml:14:1
///    |
/// 14 | epoch = 10
///    | ^^^^^ did you mean `epochs`?
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    message: String,
    label: String,
    found: Origin,
}

/// Where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    At(Box<TextPosition>),
    /// Nowhere in this file: it lacks something.
    In(String),
}

impl Diagnostic {
    pub(crate) fn at(spot: &Spot, message: impl AsRef<str>, label: impl AsRef<str>) -> Diagnostic {
        Diagnostic {
            message: printable(message.as_ref()),
            label: printable(label.as_ref()),
            found: Origin::At(Box::new(spot.place())),
        }
    }

    /// About a file as a whole.
    pub(crate) fn of_file(
        path: &Path,
        message: impl AsRef<str>,
        label: impl AsRef<str>,
    ) -> Diagnostic {
        Diagnostic {
            message: printable(message.as_ref()),
            label: printable(label.as_ref()),
            found: Origin::In(printable(&path.display().to_string())),
        }
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What would be right.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The job file's line and column, both from 1; none for the command line or the whole file.
    pub fn position(&self) -> Option<(usize, usize)> {
        match &self.found {
            Origin::At(place) => Some((place.line?, place.column)),
            Origin::In(_) => None,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.message)?;
        let place = match &self.found {
            Origin::At(place) => place,
            Origin::In(file) => return write!(f, " --> {file}\n  = {}", self.label),
        };
        let number = place.line.map_or(String::new(), |line| line.to_string());
        let pad = number.len().max(1);
        write!(f, "{:pad$}--> {}", "", printable(&place.name))?;
        if let Some(line) = place.line {
            write!(f, ":{line}:{}", place.column)?;
        }
        let (text, before, width) = window(place);
        writeln!(f, "\n{:pad$} |", "")?;
        writeln!(f, "{number:>pad$} | {}", text.trim_end())?;
        let mark = format!(
            "{:pad$} | {:before$}{} {}",
            "",
            "",
            "^".repeat(width),
            self.label
        );
        f.write_str(mark.trim_end())
    }
}

/// The part of the line that is shown, the characters before the mark, and the mark's width.
fn window(place: &TextPosition) -> (String, usize, usize) {
    let before = place.column - 1;
    let skipped = if before + place.width.min(SHOWN / 2) <= SHOWN {
        0
    } else {
        before.saturating_sub(SHOWN / 2)
    };
    let text = masked(&place.text);
    let text: String = text.chars().skip(skipped).take(SHOWN).collect();
    let before = before - skipped;
    (printable(&text), before, place.width.min(SHOWN - before))
}

/// The text with one plain character for each that would move the cursor or command the terminal.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::JobText;
    use std::ops::Range;
    use std::sync::Arc;

    fn shown(text: &str, span: Range<usize>) -> String {
        let source = Arc::new(JobText::File {
            path: "a/job.toml".into(),
            text: text.into(),
        });
        Diagnostic::at(&Spot::new(&source, span), "bad", "better").to_string()
    }

    #[test]
    fn a_diagnostic_reads_like_rustc() {
        let text = format!("{}\tepoch = 10\n", "\n".repeat(13));
        assert_eq!(
            shown(&text, 14..19),
            "bad\n  --> a/job.toml:14:2\n   |\n14 |  epoch = 10\n   |  ^^^^^ better"
        );
    }

    #[test]
    fn a_diagnostic_about_an_argument_shows_the_argument() {
        let source = Arc::new(JobText::Argument {
            text: "--epochs 0".into(),
            folder: None,
        });
        let shown = Diagnostic::at(&Spot::new(&source, 9..10), "bad", "better").to_string();
        assert_eq!(
            shown,
            "bad\n --> command line\n  |\n  | --epochs 0\n  |          ^ better"
        );
    }

    #[test]
    fn a_diagnostic_never_commands_the_terminal() {
        assert!(!shown("a = \u{1b}[2J", 4..5).contains('\u{1b}'));
        let path = Path::new("a\u{1b}[2J/job.toml");
        let of_file = Diagnostic::of_file(path, "bad", "better").to_string();
        assert!(!of_file.contains('\u{1b}'), "{of_file:?}");
    }

    #[test]
    fn a_very_long_line_is_cut_around_the_mark() {
        let text = format!("{}bad = 1{}", "x".repeat(100_000), "y".repeat(100_000));
        let shown = shown(&text, 100_000..100_003);
        assert!(shown.contains("bad = 1"), "{shown}");
        assert!(shown.len() < 600, "{shown}");
    }
}
