//! Rows that are in memory, cell by cell, become the same numbers as those of a file.
//!
//! A request over HTTP brings cells of its own types: text, numbers, truths, or nothing. Text is read as the text of a CSV
//! file is; numbers and truths as those of a Parquet file are.

use crate::cells::{refused, used};
use crate::columns::{advice, shown};
use crate::kind::{CellReader, ColumnKind, InputColumn, Read};
use crate::{Gaps, TableError};

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// Nothing.
    Gap,
    /// True or false.
    Truth(bool),
    /// A number.
    Number(f64),
    /// Text, which may be that of any of these.
    Text(&'a str),
}

/// Reads the cells of rows with these columns.
#[derive(Debug)]
pub struct RowReader {
    names: Vec<String>,
    readers: Vec<CellReader>,
    gaps: Gaps,
    width: usize,
}

impl RowReader {
    /// For an input of these columns; with `gaps`, values may be missing from them.
    pub fn new(columns: &[InputColumn], gaps: bool) -> Self {
        let reader = |column: &InputColumn| CellReader::new(&column.kind, &column.written);
        Self {
            names: columns.iter().map(|column| column.name.clone()).collect(),
            readers: columns.iter().map(reader).collect(),
            gaps: if gaps { Gaps::Keep } else { Gaps::Refuse },
            width: columns.iter().map(|column| column.kind.width()).sum(),
        }
    }

    /// The names of the columns, in their order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// What a column holds.
    pub fn kind(&self, column: usize) -> &ColumnKind {
        self.readers[column].kind()
    }

    /// How many numbers a row becomes.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Where each column lies among `given`, of which others may be there too.
    ///
    /// # Errors
    /// When one is missing or there twice; `source` is what the error calls the table.
    pub fn find<'a>(
        &self,
        source: &str,
        given: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<Vec<usize>, TableError> {
        let place = |name: &String| {
            let mut found = given.clone().enumerate().filter(|(_, given)| given == name);
            match (found.next(), found.next()) {
                (Some((at, _)), None) => Ok(at),
                (Some(_), Some(_)) => Err(TableError::twice(source, name)),
                (None, _) => Err(TableError::no_column(source, name, given.clone())),
            }
        };
        self.names.iter().map(place).collect()
    }

    /// The name of a column of the input that is most likely meant by `given`, in words.
    pub fn advice(&self, given: &str) -> String {
        advice(given, self.names.iter().map(String::as_str))
    }

    /// Adds the numbers of a cell of a column to `out`; whether the cell is one of the values that the column may have.
    ///
    /// # Errors
    /// In words that follow the name of the column, when the cell is none of what the column holds.
    pub fn read(&self, column: usize, cell: Cell<'_>, out: &mut Vec<f32>) -> Result<bool, String> {
        let reader = &self.readers[column];
        let from = out.len();
        out.resize(from + reader.kind().width(), f32::NAN);
        let out = &mut out[from..];
        let text = |text: &str, out: &mut [f32]| {
            let read = reader.read(text, self.gaps, out)?;
            Ok(read == Read::Written)
        };
        match (cell, reader.kind()) {
            (Cell::Text(cell), _) => text(cell, out),
            (Cell::Gap, _) if self.gaps == Gaps::Refuse => {
                Err("is null; every sample needs its numbers".to_owned())
            }
            (Cell::Number(number), _) if number.is_nan() && self.gaps == Gaps::Refuse => {
                Err(refused(number))
            }
            (Cell::Gap, _) => Ok(true),
            (Cell::Number(number), _) if number.is_nan() => Ok(true),
            (Cell::Number(number), ColumnKind::Number) => {
                out[0] = used(number).ok_or_else(|| refused(number))?;
                Ok(true)
            }
            (Cell::Truth(truth), ColumnKind::Number | ColumnKind::Boolean) => {
                out[0] = f32::from(u8::from(truth));
                Ok(true)
            }
            (Cell::Number(number), ColumnKind::Boolean) => match number {
                0.0 | 1.0 => {
                    out[0] = number as f32;
                    Ok(true)
                }
                _ => Err(format!("holds {number}, which is neither true nor false")),
            },
            (Cell::Number(number), ColumnKind::Category { .. }) => {
                // Whoever wrote the training table may have written a whole number with a decimal point.
                let [whole, pointed] = [format!("{number}"), format!("{number:?}")];
                let known = reader.knows(&pointed) && !reader.knows(&whole);
                text(if known { &pointed } else { &whole }, out)
            }
            (Cell::Truth(truth), ColumnKind::Category { .. }) => {
                let words = match truth {
                    true => ["true", "True"],
                    false => ["false", "False"],
                };
                let known = words.into_iter().find(|word| reader.knows(word));
                text(known.unwrap_or(words[0]), out)
            }
            (Cell::Number(_) | Cell::Truth(_), ColumnKind::Date { form, .. }) => {
                let found = match cell {
                    Cell::Number(number) => number.to_string(),
                    Cell::Truth(truth) => truth.to_string(),
                    Cell::Gap | Cell::Text(_) => String::new(),
                };
                Err(format!(
                    "holds {}, which is not a date or time such as {}, as text",
                    shown(&found),
                    form.example()
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CellForm, TimeForm};

    fn category(values: &[&str]) -> ColumnKind {
        let values = values.iter().map(|&value| value.to_owned()).collect();
        ColumnKind::Category { values }
    }

    fn read(kind: ColumnKind, cell: Cell<'_>) -> Result<(Vec<f32>, bool), String> {
        let reader = RowReader::new(&[InputColumn::new("c", kind)], true);
        let mut out = Vec::new();
        let known = reader.read(0, cell, &mut out)?;
        assert_eq!(out.len(), reader.width());
        Ok((out, known))
    }

    #[test]
    fn cells_of_any_type_become_what_their_text_would() {
        let day = || ColumnKind::Date {
            form: TimeForm::Day,
            day_first: false,
        };
        for (kind, cell, text) in [
            (ColumnKind::Number, Cell::Number(-2.5), "-2.5"),
            (ColumnKind::Number, Cell::Number(0.1), "0.1"),
            (ColumnKind::Boolean, Cell::Truth(true), "yes"),
            (ColumnKind::Boolean, Cell::Number(0.0), "no"),
            (category(&["1", "2.0", "x"]), Cell::Number(1.0), "1"),
            (category(&["1", "2.0", "x"]), Cell::Number(2.0), "2.0"),
            (category(&["False", "True"]), Cell::Truth(true), "True"),
            (day(), Cell::Text("05/31/2024"), "2024-05-31"),
        ] {
            let of_text = read(kind.clone(), Cell::Text(text)).unwrap();
            assert_eq!(read(kind, cell).unwrap(), of_text, "{cell:?}");
        }
        for gap in [Cell::Gap, Cell::Number(f64::NAN), Cell::Text(" NA ")] {
            let (numbers, known) = read(day(), gap).unwrap();
            assert!(
                known && numbers.iter().all(|number| number.is_nan()),
                "{gap:?}"
            );
        }
        let (numbers, known) = read(category(&["a"]), Cell::Text("b")).unwrap();
        assert!(!known && numbers[0].is_nan());
    }

    #[test]
    fn text_is_read_as_that_of_the_training_table() {
        let column = InputColumn {
            written: CellForm {
                na: vec!["-999".into()],
                decimal_comma: true,
                ..CellForm::default()
            },
            ..InputColumn::number("price")
        };
        let json = serde_json::to_string(&column).unwrap();
        let column: InputColumn = serde_json::from_str(&json).unwrap();
        let reader = RowReader::new(&[column], true);
        let mut out = Vec::new();
        for cell in ["1.234,5", "-999"] {
            reader.read(0, Cell::Text(cell), &mut out).unwrap();
        }
        assert!(out[0] == 1234.5 && out[1].is_nan());
        let plain = serde_json::to_string(&InputColumn::number("n")).unwrap();
        assert_eq!(plain, "{\"name\":\"n\",\"type\":\"number\"}");
    }

    #[test]
    fn cells_that_the_column_cannot_hold_are_refused_with_what_is_right() {
        let day = ColumnKind::Date {
            form: TimeForm::Day,
            day_first: false,
        };
        for (kind, cell, expected) in [
            (
                ColumnKind::Number,
                Cell::Text("two"),
                "holds `two`, which is not a number",
            ),
            (
                ColumnKind::Number,
                Cell::Number(1e39),
                "too large for single precision",
            ),
            (
                ColumnKind::Boolean,
                Cell::Number(2.0),
                "neither true nor false",
            ),
            (
                day,
                Cell::Number(1.7e12),
                "not a date or time such as 2024-05-31, as text",
            ),
        ] {
            let said = read(kind, cell).unwrap_err();
            assert!(said.contains(expected), "{said}");
        }
        let strict = RowReader::new(&[InputColumn::number("n")], false);
        for gap in [Cell::Gap, Cell::Number(f64::NAN), Cell::Text("")] {
            assert!(strict.read(0, gap, &mut Vec::new()).is_err(), "{gap:?}");
        }
    }

    #[test]
    fn columns_are_found_by_name_and_missing_ones_are_named() {
        let reader = RowReader::new(&[InputColumn::number("a"), InputColumn::number("b")], true);
        let find = |given: &[&'static str]| {
            let found = reader.find("the request", given.iter().copied());
            found.map_err(|error| error.to_string())
        };
        assert_eq!(find(&["b", "x", "a"]).unwrap(), [2, 0]);
        let said = find(&["a"]).unwrap_err();
        assert_eq!(said, "the request has no column `b`; it has `a`");
        assert!(find(&["a", "b", "a"]).unwrap_err().contains("called `a`"));
    }
}
