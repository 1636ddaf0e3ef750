//! CSV files: how they are written, as far as looking at them does not tell.

use super::Location;
use super::table::{JobColumns, point, words_for_gaps};
use crate::field::Field;
use crate::keys::{FromField, words};
use crate::section::Section;

/// What may stand between groups of three digits.
const GROUPING: [&str; 5] = [",", ".", " ", "'", "_"];

/// How a CSV file is written. What is not said is found by looking at its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobCsv {
    /// What stands between two values.
    pub delimiter: Option<char>,
    /// How its text is stored.
    pub encoding: Option<JobEncoding>,
    /// What lines begin with that are none of the table.
    pub comment: Option<char>,
}

words! {
    /// How the text of a file is stored.
    pub enum JobEncoding {
        /// As UTF-8.
        "utf-8" Utf8
        /// A byte a letter, as Windows has them for Western Europe.
        "latin-1" Latin1
        /// Two bytes a letter.
        "utf-16" Utf16
    }
}

impl JobCsv {
    /// What this says, or where it says nothing, what `other` says.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            delimiter: self.delimiter.or(other.delimiter),
            encoding: self.encoding.or(other.encoding),
            comment: self.comment.or(other.comment),
        }
    }
}

/// Reads `{ csv = "..." }`; the key is there.
pub(super) fn read(mut section: Section<'_>) -> Option<(Location, JobColumns, JobCsv)> {
    let file = section
        .get("csv")
        .and_then(|field| Location::from_field(&field));
    let columns = JobColumns::read(&mut section);
    let delimiter = section.maybe("delimiter", |field| sign(&field, "\";\" or \"\\t\""));
    let encoding = section.maybe("encoding", |field| JobEncoding::from_field(&field));
    let comment = section.maybe("comment", |field| sign(&field, "\"#\""));
    let decimal = section.or("decimal", point(), |field| {
        field.one_of(&[".", ","]).map(|word| match word {
            "," => ',',
            _ => '.',
        })
    });
    let thousands = section.maybe("thousands", |field| {
        let sign = field.one_of(&GROUPING)?.chars().next();
        match sign == decimal {
            true => field.reject(
                "cannot be the decimal point too",
                "say what that is with `decimal`, or leave this out",
            ),
            false => sign,
        }
    });
    let na = section.or("na", Vec::new(), |field| words_for_gaps(&field));
    let delimiter = match (delimiter, decimal) {
        (Some(Some(',')), Some(',')) => section.get("decimal").and_then(|field| {
            field.reject(
                "cannot be the delimiter too",
                "say what stands between two fields, for example `delimiter = \";\"`",
            )
        }),
        (delimiter, _) => delimiter,
    };
    section.finish();
    let columns = JobColumns {
        decimal: decimal?,
        thousands: thousands?,
        na: na?,
        ..columns?
    };
    let written = JobCsv {
        delimiter: delimiter?,
        encoding: encoding?,
        comment: comment?,
    };
    Some((file?, columns, written))
}

/// One character that can stand between values or before a comment.
fn sign(field: &Field<'_>, example: &str) -> Option<char> {
    let text = field.text()?;
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(one), None) if one.is_ascii() && !"\"\r\n".contains(one) => Some(one),
        _ => field.reject(
            format!("must be one ASCII character, found {text:?}"),
            format!("for example {example}"),
        ),
    }
}
