//! Columns of a table that are handed on beside predictions, as they are: ids, names, anything that tells rows apart.
//!
//! Cells are kept as text, with all digits of whole numbers and the zeros before them. What a column holds is only known
//! when all of it was read.

use crate::TableError;
use crate::each_cell::each_cell;
use crate::files::{TableFile, TableFormat};

/// What the cells of a column are, apart from those that are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptKind {
    /// Whole numbers of 64 bits, written as programs write them.
    Whole,
    /// Numbers.
    Number,
    /// Anything else.
    Text,
}

/// A column as it is.
#[derive(Debug, Clone)]
pub struct KeptColumn {
    /// Its name.
    pub name: String,
    /// What its cells are.
    pub kind: KeptKind,
    text: String,
    /// Where each cell ends.
    ends: Vec<usize>,
}

impl KeptColumn {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: KeptKind::Whole,
            text: String::new(),
            ends: Vec::new(),
        }
    }

    /// The same column of some rows, in this order.
    ///
    /// # Panics
    /// When a row is beyond the last.
    #[must_use]
    pub fn of_rows(&self, rows: &[u32]) -> Self {
        let mut kept = Self {
            kind: self.kind,
            ..Self::new(&self.name)
        };
        for &row in rows {
            kept.text += self.cell(row as usize);
            kept.ends.push(kept.text.len());
        }
        kept
    }

    fn push(&mut self, cell: &str) {
        if !cell.is_empty() && self.kind == KeptKind::Whole && !is_whole(cell) {
            self.kind = KeptKind::Number;
        }
        if !cell.is_empty() && self.kind == KeptKind::Number && !is_number(cell) {
            self.kind = KeptKind::Text;
        }
        self.text += cell;
        self.ends.push(self.text.len());
    }

    /// The cell of a row; empty where there is none.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn cell(&self, row: usize) -> &str {
        let from = match row {
            0 => 0,
            row => self.ends[row - 1],
        };
        &self.text[from..self.ends[row]]
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.ends.len()
    }
}

/// Whether a whole number is written so that it comes back as it was.
fn is_whole(cell: &str) -> bool {
    cell.parse::<i64>()
        .is_ok_and(|number| number.to_string() == cell)
}

/// Whether a cell is a finite number, and no code such as `007`.
fn is_number(cell: &str) -> bool {
    let digits = cell.trim_start_matches('-').as_bytes();
    let is_code = matches!(digits, [b'0', b'0'..=b'9', ..]);
    !is_code && cell.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Reads some columns of a table, row by row in the order of its files. Takes about `memory` bytes beside what they hold.
///
/// # Errors
/// When a file cannot be read, lacks a column, or a column holds lists or times.
pub fn keep_columns(
    files: &[TableFile],
    format: TableFormat,
    names: &[String],
    memory: u64,
) -> Result<Vec<KeptColumn>, TableError> {
    let mut kept: Vec<KeptColumn> = names.iter().map(|name| KeptColumn::new(name)).collect();
    each_cell(files, format, names, memory, |at, cell| kept[at].push(cell))?;
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CsvFormat, find_files};
    use lockstep_place::{Access, Place};

    #[test]
    fn cells_are_kept_as_they_are_and_columns_know_what_they_hold() {
        let folder = tempfile::tempdir().unwrap();
        let text = "id,code,price,name,x\n9007199254740993,007,1.5, Ann ,1\n-5,100,,,2\n";
        std::fs::write(folder.path().join("a.csv"), text).unwrap();
        let place = Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap();
        let format = TableFormat::Csv(CsvFormat::default());
        let files = find_files(&place, format).unwrap();
        let names = ["name", "id", "code", "price"].map(String::from);
        let kept = keep_columns(&files, format, &names, 1 << 20).unwrap();
        let cells = |kept: &KeptColumn| [kept.cell(0), kept.cell(1)].map(str::to_owned);
        let expected = [
            (KeptKind::Text, ["Ann", ""]),
            (KeptKind::Whole, ["9007199254740993", "-5"]),
            (KeptKind::Text, ["007", "100"]),
            (KeptKind::Number, ["1.5", ""]),
        ];
        for (kept, (kind, expected)) in kept.iter().zip(expected) {
            assert_eq!((kept.kind, kept.rows()), (kind, 2), "{}", kept.name);
            assert_eq!(cells(kept), expected);
        }
        let missing = keep_columns(&files, format, &["nam".to_owned()], 1 << 20);
        let said = missing.unwrap_err().to_string();
        assert!(said.contains("did you mean `name`?"), "{said}");
    }
}
