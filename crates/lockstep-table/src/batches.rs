//! The rows of a file of columns, Parquet's or Arrow's, in batches that keep to a memory.

use crate::TableError;
use crate::arrow_file::{self, ArrowBatches};
use crate::budget::Budget;
use crate::files::TableFile;
use crate::parquet_file;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use std::sync::Arc;

/// How columns are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnFormat {
    Parquet,
    Arrow,
}

/// The rows of some columns of a file.
pub(crate) struct Batches {
    name: String,
    rows: Rows,
}

enum Rows {
    Parquet(ParquetRecordBatchReader, Arc<Budget>),
    Arrow(Box<ArrowBatches>),
}

impl Batches {
    /// Opens `file`: `choose` gives the places of the columns in the schema, of which there are about `wanted`.
    pub(crate) fn open(
        file: &TableFile,
        format: ColumnFormat,
        wanted: usize,
        memory: u64,
        choose: impl FnOnce(&Schema) -> Result<Vec<usize>, TableError>,
    ) -> Result<Self, TableError> {
        let choose = |schema: Schema| {
            let own = schema.fields().len();
            let mut roots = choose(&with_partitions(schema, &file.partitions))?;
            roots.retain(|&root| root < own);
            Ok(roots)
        };
        let rows = match format {
            ColumnFormat::Parquet => {
                let (rows, budget) = parquet_file::batches(file, wanted, memory, choose)?;
                Rows::Parquet(rows, budget)
            }
            ColumnFormat::Arrow => Rows::Arrow(Box::new(ArrowBatches::open(file, memory, choose)?)),
        };
        Ok(Self {
            name: file.place.to_string(),
            rows,
        })
    }

    /// The next rows, at least one; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>, TableError> {
        loop {
            let batch = match &mut self.rows {
                Rows::Parquet(rows, budget) => {
                    let failed = |error| parquet_file::failed(&self.name, budget, error);
                    rows.next().transpose().map_err(failed)?
                }
                Rows::Arrow(rows) => rows.next()?,
            };
            match batch {
                Some(batch) if batch.num_rows() == 0 => {}
                batch => return Ok(batch),
            }
        }
    }
}

/// The schema of `file`, with the columns that its folders stand for.
pub(crate) fn schema(
    file: &TableFile,
    format: ColumnFormat,
    memory: u64,
) -> Result<Schema, TableError> {
    let schema = match format {
        ColumnFormat::Parquet => parquet_file::schema(file, memory)?,
        ColumnFormat::Arrow => arrow_file::schema(file, memory)?,
    };
    Ok(with_partitions(schema, &file.partitions))
}

/// The names of all columns of `file`, in their order.
pub(crate) fn column_names(
    file: &TableFile,
    format: ColumnFormat,
    memory: u64,
) -> Result<Vec<String>, TableError> {
    let schema = schema(file, format, memory)?;
    let names = schema.fields().iter().map(|field| field.name().clone());
    Ok(names.collect())
}

/// The schema with the columns that the file's folders stand for, after its own; those that it has itself are not among
/// them.
fn with_partitions(schema: Schema, partitions: &[(String, String)]) -> Schema {
    let own = schema.fields().iter().map(|field| Field::clone(field));
    let more = partitions
        .iter()
        .filter(|(name, _)| schema.field_with_name(name).is_err());
    let more = more.map(|(name, _)| Field::new(name, DataType::Utf8, true));
    Schema::new(own.chain(more).collect::<Vec<_>>())
}

/// A column of a batch, or of the file's folders.
pub(crate) fn column(
    batch: &RecordBatch,
    partitions: &[(String, String)],
    name: &str,
) -> Option<ArrayRef> {
    if let Some(column) = batch.column_by_name(name) {
        return Some(Arc::clone(column));
    }
    let (_, value) = partitions.iter().find(|(known, _)| known == name)?;
    let values = std::iter::repeat_n(value, batch.num_rows());
    Some(Arc::new(StringArray::from_iter_values(values)))
}
