//! The cells of some columns of a table as text, one after the other, for whoever keeps or counts them.

use crate::batches::{self, Batches};
use crate::files::{TableFile, TableFormat, TableLayout};
use crate::lines::Lines;
use crate::{Gaps, TableError, cells, csv_file, parquet_file};
use csv::StringRecord;

/// Hands each cell of the columns `names` to `visit`, with the column's place among the names. The cells of a column come
/// in the order of its rows. Takes about `memory` bytes.
///
/// # Errors
/// When a file cannot be read, changes meanwhile, lacks a column, or a column holds lists or times.
pub(crate) fn each_cell(
    files: &[TableFile],
    format: TableFormat,
    names: &[String],
    memory: u64,
    mut visit: impl FnMut(usize, &str),
) -> Result<(), TableError> {
    for file in files {
        let name = file.place.to_string();
        match format.layout() {
            TableLayout::Lines(format) => {
                let mut lines = Lines::open(file, format, memory)?;
                let place = |column: &String| csv_file::find(&name, &lines.header, column);
                let places: Vec<usize> = names.iter().map(place).collect::<Result<_, _>>()?;
                let mut record = StringRecord::new();
                while lines.next(&mut record)? {
                    for (at, &place) in places.iter().enumerate() {
                        visit(at, record[place].trim());
                    }
                }
            }
            TableLayout::Columns(format) => {
                let right = "it must hold text, numbers or booleans";
                let fits = |data_type: &_| (cells::labels(data_type), right);
                let choose = |schema: &_| {
                    let place = |column: &String| parquet_file::find(&name, schema, column, fits);
                    names.iter().map(place).collect()
                };
                let mut rows = 0;
                let mut batches = Batches::open(file, format, names.len(), memory, choose)?;
                while let Some(batch) = batches.next()? {
                    for (at, column) in names.iter().enumerate() {
                        let array = batches::column(&batch, &file.partitions, column);
                        let array = array.ok_or_else(|| TableError::undecoded(&name, column))?;
                        let texts = cells::texts(&array, Gaps::Keep).map_err(|wrong| {
                            TableError::in_row(&name, rows + wrong.row as u64, column, wrong.found)
                        })?;
                        texts.iter().for_each(|text| visit(at, text));
                    }
                    rows += batch.num_rows() as u64;
                }
            }
        }
        file.check_unchanged()?;
    }
    Ok(())
}
