//! Texts that a job is read from, and spots in them.
//!
//! A job is put together from its file and from what the command line says. Every value and every key
//! keeps the spot where it was written, so that whatever turns out to be wrong with it later can be
//! shown where the user wrote it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A text that parts of a job were written in.
#[derive(Debug)]
pub(crate) enum JobText {
    /// The job file.
    File {
        /// As the user named it.
        path: PathBuf,
        /// Its content.
        text: String,
    },
    /// One argument of the command line with its value, such as `--set train.epochs=3`.
    Argument {
        /// As it was given.
        text: String,
        /// The folder that relative paths in it are of; the job file's unless there is one.
        folder: Option<PathBuf>,
    },
}

impl JobText {
    fn text(&self) -> &str {
        match self {
            JobText::File { text, .. } | JobText::Argument { text, .. } => text,
        }
    }
}

/// A range of bytes in a source.
#[derive(Debug, Clone)]
pub(crate) struct Spot {
    source: Arc<JobText>,
    span: Range<usize>,
}

impl Spot {
    pub(crate) fn new(source: &Arc<JobText>, span: Range<usize>) -> Spot {
        Spot {
            source: Arc::clone(source),
            span,
        }
    }

    /// Whether it is on the command line.
    pub(crate) fn is_argument(&self) -> bool {
        matches!(*self.source, JobText::Argument { .. })
    }

    /// The folder that a relative path here is of, if that is not the job file's.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self.source.as_ref() {
            JobText::File { .. } => None,
            JobText::Argument { folder, .. } => folder.as_deref(),
        }
    }

    /// Where the spot is, in words and columns.
    pub(crate) fn place(&self) -> TextPosition {
        let text = self.source.text();
        // Spans come from parsers; one that does not fit the text shows its beginning.
        let start = if text.is_char_boundary(self.span.start) {
            self.span.start
        } else {
            0
        };
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_text = text[line_start..].lines().next().unwrap_or("");
        let line_end = line_start + line_text.len();
        let end = self.span.end.clamp(start, line_end.max(start));
        let width = text.get(start..end).map_or(0, |t| t.chars().count());
        TextPosition {
            name: match self.source.as_ref() {
                JobText::File { path, .. } => path.display().to_string(),
                JobText::Argument { .. } => "command line".to_owned(),
            },
            line: match self.source.as_ref() {
                JobText::File { .. } => Some(1 + text[..line_start].matches('\n').count()),
                JobText::Argument { .. } => None,
            },
            column: 1 + text[line_start..start].chars().count(),
            width: width.max(1),
            text: line_text.to_owned(),
        }
    }
}

/// A spot as a person finds it: all numbers count characters, lines and columns from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextPosition {
    /// The file's path, or `command line`.
    pub(crate) name: String,
    /// The line, in a file.
    pub(crate) line: Option<usize>,
    pub(crate) column: usize,
    pub(crate) width: usize,
    /// The whole line without its end.
    pub(crate) text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str, span: Range<usize>) -> TextPosition {
        let source = Arc::new(JobText::File {
            path: "job.toml".into(),
            text: text.into(),
        });
        Spot::new(&source, span).place()
    }

    #[test]
    fn a_spot_is_found_by_line_and_column_of_characters() {
        let found = place("a = 1\r\nñ = \"é\" x\r\n", 13..16);
        assert_eq!((found.line, found.column, found.width), (Some(2), 6, 2));
        assert_eq!(found.text, "ñ = \"é\" x");
    }

    #[test]
    fn a_spot_over_many_lines_ends_with_its_first() {
        let found = place("a = [\n1,\n]", 4..10);
        assert_eq!((found.line, found.column, found.width), (Some(1), 5, 1));
    }

    #[test]
    fn a_spot_at_the_end_of_the_text_or_past_it_is_shown() {
        assert_eq!(place("a =", 3..3).column, 4);
        assert_eq!(place("a =\n", 4..4).line, Some(2));
        assert_eq!(place("a =", 90..91).column, 1);
    }
}
