//! The exact range of columns of whole numbers, for people: what a model learns from has seven digits.

use crate::each_cell::each_cell;
use crate::files::{TableFile, TableFormat};
use crate::{CellForm, TableError};
use std::collections::HashSet;

/// So many numbers are remembered to see whether they come again.
const REMEMBERED: usize = 1 << 20;

/// The whole numbers of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WholeNumbers {
    /// The smallest and the largest, once there was one.
    pub range: Option<[i128; 2]>,
    /// Whether one came twice, as far as numbers are remembered.
    pub repeats: bool,
    seen: HashSet<i128>,
}

impl WholeNumbers {
    fn see(&mut self, number: i128) {
        let [least, most] = self.range.unwrap_or([number; 2]);
        self.range = Some([least.min(number), most.max(number)]);
        if self.seen.len() < REMEMBERED && !self.repeats {
            self.repeats = !self.seen.insert(number);
        }
    }
}

/// The numbers of some columns of a table, each if all of them are whole. Takes about `memory` bytes.
///
/// # Errors
/// When a file cannot be read, or lacks a column.
pub fn whole_numbers(
    files: &[TableFile],
    format: TableFormat,
    columns: &[String],
    form: &CellForm,
    memory: u64,
) -> Result<Vec<Option<WholeNumbers>>, TableError> {
    let mut found = vec![Some(WholeNumbers::default()); columns.len()];
    each_cell(files, format, columns, memory, |at, cell| {
        let Some(numbers) = found[at].as_mut().filter(|_| !form.is_gap(cell)) else {
            return;
        };
        match whole(cell, form) {
            Some(number) => numbers.see(number),
            None => found[at] = None,
        }
    })?;
    Ok(found)
}

/// A cell as a whole number, with all its digits.
fn whole(cell: &str, form: &CellForm) -> Option<i128> {
    let plain = form.plain(cell);
    let text = plain.as_deref().unwrap_or(cell);
    let pointed = text.strip_suffix(".0").unwrap_or(text);
    pointed.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        (number.fract() == 0.0).then_some(number as i128)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CsvFormat, find_files};
    use lockstep_place::{Access, Place};

    #[test]
    fn all_digits_of_whole_numbers_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let text =
            "id,again,real,gap\n1700000000001,5.0,1.5,NA\n1700000000003,5,2,9007199254740993\n";
        std::fs::write(folder.path().join("a.csv"), text).unwrap();
        let place = Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap();
        let format = TableFormat::Csv(CsvFormat::default());
        let files = find_files(&place, format).unwrap();
        let names = ["id", "again", "real", "gap"].map(String::from);
        let found = whole_numbers(&files, format, &names, &CellForm::default(), 1 << 20).unwrap();
        let ranges: Vec<_> = found
            .iter()
            .map(|found| Some((found.as_ref()?.range?, found.as_ref()?.repeats)))
            .collect();
        let same = [9_007_199_254_740_993; 2];
        let expected = [
            Some(([1_700_000_000_001, 1_700_000_000_003], false)),
            Some(([5, 5], true)),
            None,
            Some((same, false)),
        ];
        assert_eq!(ranges, expected);
    }
}
