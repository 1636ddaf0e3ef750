//! What a column of a table holds, and how its cells become the numbers of a sample.
//!
//! A cell is one number or a few: a quantity is itself, a truth is 0 or 1, a category is its place among the values
//! that the training table has, a date is its parts. What is not there is NaN, and so is a category that the training
//! table does not have.

use crate::columns::shown;
use crate::time::{Moment, TimeForm};
use crate::{CellForm, ColumnNames, Gaps};
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
    /// How its cells are written where they are text.
    #[serde(default, skip_serializing_if = "CellForm::is_plain")]
    pub written: CellForm,
}

impl InputColumn {
    /// A column of quantities.
    pub fn number(name: &str) -> Self {
        Self::new(name, ColumnKind::Number)
    }

    /// A column that holds this, written as programs write it.
    pub fn new(name: &str, kind: ColumnKind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            written: CellForm::default(),
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
    form: CellForm,
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
    pub(crate) fn new(kind: &ColumnKind, form: &CellForm) -> Self {
        let values = match kind {
            ColumnKind::Category { values } => &values[..],
            _ => &[],
        };
        Self {
            kind: kind.clone(),
            places: values.iter().cloned().zip(0..).collect(),
            form: form.clone(),
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
            .map(|at| CellReader::new(kind(at), &columns.form))
            .collect()
    }

    /// Whether this is one of the categories.
    pub(crate) fn knows(&self, value: &str) -> bool {
        self.places.contains_key(value)
    }

    /// Writes the numbers of a cell of text to `out`, which has as many as the kind; or says what is wrong with it.
    pub(crate) fn read(&self, cell: &str, gaps: Gaps, out: &mut [f32]) -> Result<Read, String> {
        let cell = cell.trim();
        match gaps == Gaps::Refuse && self.form.is_gap(cell) {
            true => Err(no_gap(cell)),
            false => self.text(cell, out),
        }
    }

    /// The same where gaps may be.
    pub(crate) fn text(&self, cell: &str, out: &mut [f32]) -> Result<Read, String> {
        let cell = cell.trim();
        if self.form.is_gap(cell) {
            out.fill(f32::NAN);
            return Ok(Read::Written);
        }
        match &self.kind {
            ColumnKind::Number => out[0] = self.form.number(cell)?,
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
        let read = CellReader::new(&kind, &CellForm::default()).text(cell, &mut out)?;
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
            CellReader::new(&kind, &CellForm::default()).text(cell, &mut vec![0.0; kind.width()])
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
