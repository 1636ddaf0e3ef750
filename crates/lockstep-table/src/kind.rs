//! What a column of a table holds, and how its cells become the numbers of a sample.
//!
//! A cell is one number or a few: a quantity is itself, a truth is 0 or 1, a category is its place among the values
//! that the training table has, a date is its parts. What is not there is NaN, and so is a category that the training
//! table does not have.

use crate::cells::{refused, used};
use crate::columns::shown;
use crate::time::{Moment, TimeForm};
use crate::{ColumnNames, Gaps};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// What a person may say that a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// Quantities.
    Number,
    /// True or false.
    Boolean,
    /// One of several values, which have no order.
    Category,
    /// Dates, times, or both.
    Date,
    /// Anything else: the column is left out.
    Text,
}

/// What a column of the input holds, as far as reading it must know.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ColumnKind {
    /// Quantities, each one number.
    #[default]
    Number,
    /// True or false: 1 or 0.
    Boolean,
    /// One of these values: its place among them.
    Category {
        /// The values in their order.
        values: Vec<String>,
    },
    /// Dates or times, as several numbers.
    Date {
        /// Which of both.
        form: TimeForm,
        /// Whether the day comes before the month where both are written between slashes.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        day_first: bool,
    },
}

impl ColumnKind {
    /// How many numbers a cell becomes.
    pub fn width(&self) -> usize {
        match self {
            Self::Date { form, .. } => form.parts().len(),
            _ => 1,
        }
    }

    /// Whether its numbers are in no order.
    pub fn is_category(&self) -> bool {
        matches!(self, Self::Category { .. })
    }

    /// The word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Category { .. } => "category",
            Self::Date { .. } => "date",
        }
    }
}

/// A column that the input of a model comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InputColumn {
    /// Its name.
    pub name: String,
    /// What it holds.
    #[serde(flatten)]
    pub kind: ColumnKind,
}

impl InputColumn {
    /// A column of quantities.
    pub fn number(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: ColumnKind::Number,
        }
    }

    /// What each of its numbers is called: as the column, or as a part of it such as `sold.month`.
    pub fn number_names(&self) -> Vec<String> {
        match &self.kind {
            ColumnKind::Date { form, .. } => {
                let part = |part: &&str| format!("{}.{part}", self.name);
                form.parts().iter().map(part).collect()
            }
            _ => vec![self.name.clone()],
        }
    }
}

/// A column that is not part of the input, though nobody said so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// Reads the cells of one column.
#[derive(Debug)]
pub(crate) struct CellReader {
    kind: ColumnKind,
    /// The places of the categories.
    places: HashMap<String, u32>,
    /// Whether numbers have a comma in place of a decimal point.
    comma: bool,
}

/// What a cell of text came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// Its numbers were written.
    Written,
    /// It is none of the categories; a gap was written.
    Unseen,
}

impl CellReader {
    pub(crate) fn new(kind: &ColumnKind, comma: bool) -> Self {
        let values = match kind {
            ColumnKind::Category { values } => &values[..],
            _ => &[],
        };
        Self {
            kind: kind.clone(),
            places: values.iter().cloned().zip(0..).collect(),
            comma,
        }
    }

    pub(crate) fn kind(&self) -> &ColumnKind {
        &self.kind
    }

    /// The readers of an input of these columns, of which it may not be said what they hold: then they are numbers.
    pub(crate) fn of(columns: &ColumnNames) -> Vec<CellReader> {
        let plain = ColumnKind::Number;
        let kind = |at| columns.kinds.get(at).unwrap_or(&plain);
        (0..columns.features.len())
            .map(|at| CellReader::new(kind(at), columns.decimal_comma))
            .collect()
    }

    /// Whether this is one of the categories.
    pub(crate) fn knows(&self, value: &str) -> bool {
        self.places.contains_key(value)
    }

    /// Writes the numbers of a cell of text to `out`, which has as many as the kind; or says what is wrong with it.
    pub(crate) fn read(&self, cell: &str, gaps: Gaps, out: &mut [f32]) -> Result<Read, String> {
        let cell = cell.trim();
        match gaps == Gaps::Refuse && is_gap(cell) {
            true => Err(no_gap(cell)),
            false => self.text(cell, out),
        }
    }

    /// The same where gaps may be.
    pub(crate) fn text(&self, cell: &str, out: &mut [f32]) -> Result<Read, String> {
        let cell = cell.trim();
        if is_gap(cell) {
            out.fill(f32::NAN);
            return Ok(Read::Written);
        }
        match &self.kind {
            ColumnKind::Number => out[0] = number(cell, self.comma)?,
            ColumnKind::Boolean => {
                let wrong = || format!("holds `{}`, which is neither true nor false", shown(cell));
                let truth = truth(cell).or(match cell {
                    "0" => Some(false),
                    "1" => Some(true),
                    _ => None,
                });
                out[0] = f32::from(u8::from(truth.ok_or_else(wrong)?));
            }
            ColumnKind::Category { .. } => match self.places.get(cell) {
                Some(&place) => out[0] = place as f32,
                None => {
                    out[0] = f32::NAN;
                    return Ok(Read::Unseen);
                }
            },
            ColumnKind::Date { form, day_first } => {
                let wrong = || {
                    let order = match (cell.contains('/'), day_first) {
                        (false, _) => "",
                        (true, true) => "; the day comes before the month in this column",
                        (true, false) => "; the month comes before the day in this column",
                    };
                    format!(
                        "holds `{}`, which is not a date or time such as {}{order}; leave it empty if it is not known",
                        shown(cell),
                        form.example()
                    )
                };
                let moment = Moment::parse(cell, *day_first).filter(|moment| moment.fits(*form));
                let moment = moment.ok_or_else(wrong)?;
                form.write(moment, out);
            }
        }
        Ok(Read::Written)
    }
}

/// What is said of a gap where there may be none.
pub(crate) fn no_gap(cell: &str) -> String {
    match cell.is_empty() {
        true => "is empty; every sample needs its numbers".to_owned(),
        false => format!("holds `{}`; every sample needs its numbers", shown(cell)),
    }
}

/// Whether a cell says that its value is not there: it is empty, or one of the words that programs write for that.
pub(crate) fn is_gap(cell: &str) -> bool {
    let words = ["na", "n/a", "nan", "null", "none", "?"];
    cell.is_empty() || words.iter().any(|word| cell.eq_ignore_ascii_case(word))
}

/// A cell as a number, or what is wrong with it.
pub(crate) fn number(cell: &str, comma: bool) -> Result<f32, String> {
    let number = parse(cell, comma)
        .ok_or_else(|| format!("holds `{}`, which is not a number", shown(cell)))?;
    used(number).ok_or_else(|| refused(number))
}

/// A cell as a number, if it is one; with `comma`, `1.234,5` is 1234.5.
pub(crate) fn parse(cell: &str, comma: bool) -> Option<f64> {
    match comma {
        true => with_point(cell)?.parse().ok(),
        false => cell.parse().ok(),
    }
}

/// A number that has a comma in place of a decimal point, with a point. Points before the comma must be between groups of
/// three digits: what has others is something else, such as a date.
pub(crate) fn with_point(cell: &str) -> Option<String> {
    let (whole, fraction) = match cell.split_once(',') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (cell, None),
    };
    let mut groups = whole.split('.');
    let first = groups.next()?.trim_start_matches(['-', '+']);
    let mut is_grouped = false;
    for group in groups {
        is_grouped = true;
        if group.len() != 3 || !group.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
    }
    let fits = !is_grouped || (1..=3).contains(&first.len());
    let whole = whole.replace('.', "");
    fits.then(|| match fraction {
        Some(fraction) => format!("{whole}.{fraction}"),
        None => whole,
    })
}

/// The pairs of words that programs and people write for true and false.
const TRUTHS: [[&str; 2]; 5] = [
    ["false", "true"],
    ["no", "yes"],
    ["f", "t"],
    ["n", "y"],
    ["off", "on"],
];

/// Which pair a word is of, and which of both it is.
pub(crate) fn truth_of(cell: &str) -> Option<(usize, bool)> {
    let is = |word: &str| cell.eq_ignore_ascii_case(word);
    TRUTHS
        .iter()
        .enumerate()
        .find_map(|(pair, [no, yes])| (is(no) || is(yes)).then(|| (pair, is(yes))))
}

fn truth(cell: &str) -> Option<bool> {
    truth_of(cell).map(|(_, truth)| truth)
}

/// Values in their order: by value if all are whole numbers, else as text.
pub fn sort_values(values: &mut [String]) {
    let whole = |value: &String| value.parse::<i128>().ok();
    match values.iter().all(|value| whole(value).is_some()) {
        true => values.sort_by(|a, b| (whole(a), a).cmp(&(whole(b), b))),
        false => values.sort(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: ColumnKind, cell: &str) -> Result<(f32, Read), String> {
        let mut out = [9.0];
        let read = CellReader::new(&kind, false).text(cell, &mut out)?;
        Ok((out[0], read))
    }

    #[test]
    fn cells_become_numbers_by_what_their_column_holds() {
        let category = || ColumnKind::Category {
            values: ["blue", "red"].map(String::from).into(),
        };
        assert_eq!(read(ColumnKind::Number, " 2.5 "), Ok((2.5, Read::Written)));
        assert_eq!(read(ColumnKind::Boolean, "Yes"), Ok((1.0, Read::Written)));
        assert_eq!(read(ColumnKind::Boolean, "0"), Ok((0.0, Read::Written)));
        assert_eq!(read(category(), "red"), Ok((1.0, Read::Written)));
        let (unseen, said) = read(category(), "green").unwrap();
        assert!(unseen.is_nan() && said == Read::Unseen);
        for gap in ["", " NA ", "?", "null"] {
            let (number, said) = read(category(), gap).unwrap();
            assert!(number.is_nan() && said == Read::Written, "{gap:?}");
        }
        let wrong = read(ColumnKind::Number, "two").unwrap_err();
        assert_eq!(wrong, "holds `two`, which is not a number");
        let wrong = read(ColumnKind::Number, "1e39").unwrap_err();
        assert!(wrong.contains("too large for single precision"), "{wrong}");
        assert!(read(ColumnKind::Boolean, "maybe").is_err());
    }

    #[test]
    fn a_cell_that_says_no_day_is_refused_among_days_and_one_without_a_time_among_times() {
        let read = |form, cell: &str| {
            let kind = ColumnKind::Date {
                form,
                day_first: false,
            };
            CellReader::new(&kind, false).text(cell, &mut vec![0.0; kind.width()])
        };
        for (form, right, wrong) in [
            (TimeForm::Day, "2024-05-31", "13:45"),
            (TimeForm::Both, "2024-05-31 13:45", "13:45"),
            (TimeForm::Clock, "13:45", "2024-05-31"),
        ] {
            assert_eq!(read(form, right), Ok(Read::Written));
            let said = read(form, wrong).unwrap_err();
            assert!(
                said.contains(wrong) && said.contains(form.example()),
                "{said}"
            );
        }
    }

    #[test]
    fn a_comma_is_a_decimal_point_where_that_is_said() {
        assert_eq!(parse("1.234,5", true), Some(1234.5));
        assert_eq!(parse("-0,25", true), Some(-0.25));
        assert_eq!(parse("0,25", false), None);
        assert_eq!(parse("1.234.567", true), Some(1_234_567.0));
        assert_eq!(parse("-1.234e2", true), None);
        assert_eq!(parse("1,5e2", true), Some(150.0));
        for other in ["31.12.2024", "1.5", "1234.567", "1.2.3.4", ".123", "1,2,3"] {
            assert_eq!(parse(other, true), None, "{other}");
        }
    }

    #[test]
    fn values_are_sorted_by_value_where_all_are_whole_numbers() {
        let sorted = |values: &[&str]| {
            let mut values: Vec<String> = values.iter().map(|&value| value.into()).collect();
            sort_values(&mut values);
            values
        };
        assert_eq!(sorted(&["10", "9", "-1"]), ["-1", "9", "10"]);
        assert_eq!(sorted(&["10", "9", "x"]), ["10", "9", "x"]);
    }
}
