//! Writing: embeddings and predictions as Parquet.
//!
//! The bytes are a function of the rows, the metadata and this crate's version alone: nothing of the
//! time, the machine or the number of threads goes into them. So a part that is made again after a
//! crash is the part that would have been made without it.
//!
//! Embeddings hardly compress: their bits are noise but for the exponents. Of 1,024 normalised vectors of
//! 512 numbers, Snappy leaves 100 % and zstd 93 %. Stored as their bytes sorted by significance
//! (`BYTE_STREAM_SPLIT`, which pyarrow, Spark and DuckDB read), so that the exponents lie side by side, zstd
//! leaves 84 %.

use crate::TableError;
use arrow_array::{
    ArrayRef, FixedSizeListArray, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use std::sync::Arc;

/// Who wrote a file, as its footer says.
const CREATED_BY: &str = concat!("lockstep version ", env!("CARGO_PKG_VERSION"));
/// Bytes of embeddings in a row group: what a reader that takes whole groups has to hold.
const GROUP_BYTES: usize = 16 << 20;
/// Rows in a row group at most.
const GROUP_ROWS: usize = 1 << 17;

/// The rows of one file of embeddings.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddingPart<'a> {
    /// Where each sample lies, such as `husky/0001.jpg`.
    pub paths: &'a [String],
    /// The class of each sample, if it is known.
    pub labels: &'a [Option<String>],
    /// Numbers in an embedding.
    pub width: usize,
    /// The embeddings, one after the other.
    pub embeddings: &'a [f32],
}

/// The bytes of a Parquet file with the columns `path: string`, `label: string` (null where unknown,
/// and no such column where all are) and `embedding: fixed_size_list<float32>[width]`. `metadata` goes into the footer as it is, in its
/// order.
///
/// # Errors
/// When the numbers of paths, labels and embeddings differ, or the width is 0.
pub fn write_part(
    part: &EmbeddingPart<'_>,
    metadata: &[(&str, &str)],
) -> Result<Vec<u8>, TableError> {
    let (rows, numbers) = (part.paths.len(), part.embeddings.len());
    if part.width == 0 || part.labels.len() != rows || Some(numbers) != rows.checked_mul(part.width)
    {
        return Err(TableError::Uneven {
            reason: format!(
                "{rows} paths, {} labels and {numbers} numbers for embeddings of {}",
                part.labels.len(),
                part.width
            ),
        });
    }
    let width = i32::try_from(part.width).map_err(|_| TableError::Uneven {
        reason: format!("embeddings of {} numbers", part.width),
    })?;
    let element = Arc::new(Field::new("element", DataType::Float32, false));
    let list = DataType::FixedSizeList(Arc::clone(&element), width);
    let known = rows == 0 || part.labels.iter().any(Option::is_some);
    let mut fields = vec![
        Field::new("path", DataType::Utf8, false),
        Field::new("label", DataType::Utf8, true),
        Field::new("embedding", list, false),
    ];
    let numbers = ColumnPath::from(vec!["embedding".into(), "list".into(), "element".into()]);
    let properties = properties(metadata)
        .set_max_row_group_row_count(Some((GROUP_BYTES / (4 * part.width)).clamp(1, GROUP_ROWS)))
        .set_column_dictionary_enabled(numbers.clone(), false)
        .set_column_encoding(numbers.clone(), Encoding::BYTE_STREAM_SPLIT)
        .set_column_statistics_enabled(numbers, EnabledStatistics::None);
    let values: ArrayRef = Arc::new(Float32Array::from(part.embeddings.to_vec()));
    let embeddings = FixedSizeListArray::try_new(element, width, values, None)
        .map_err(|error| TableError::encode(error.into()))?;
    let labels: StringArray = part.labels.iter().map(Option::as_deref).collect();
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(part.paths)),
        Arc::new(labels),
        Arc::new(embeddings),
    ];
    if known {
        return write(Schema::new(fields), columns, properties);
    }
    fields.remove(1);
    columns.remove(1);
    write(Schema::new(fields), columns, properties)
}

/// A column to write, by what its cells are. A cell that is not there is null.
#[derive(Debug, Clone, PartialEq)]
pub enum WrittenColumn {
    /// Text.
    Text(Vec<Option<String>>),
    /// Whole numbers.
    Whole(Vec<Option<i64>>),
    /// Numbers in single precision.
    Single(Vec<Option<f32>>),
    /// Numbers in double precision.
    Double(Vec<Option<f64>>),
}

/// A cell to write.
#[derive(Debug, Clone, PartialEq)]
pub enum WrittenCell {
    /// Text.
    Text(Option<String>),
    /// A whole number.
    Whole(Option<i64>),
    /// A number in single precision.
    Single(Option<f32>),
    /// A number in double precision.
    Double(Option<f64>),
}

impl WrittenColumn {
    /// Adds a cell.
    ///
    /// # Errors
    /// When it is of another type.
    pub fn push(&mut self, cell: WrittenCell) -> Result<(), TableError> {
        match (self, cell) {
            (Self::Text(cells), WrittenCell::Text(cell)) => cells.push(cell),
            (Self::Whole(cells), WrittenCell::Whole(cell)) => cells.push(cell),
            (Self::Single(cells), WrittenCell::Single(cell)) => cells.push(cell),
            (Self::Double(cells), WrittenCell::Double(cell)) => cells.push(cell),
            (_, cell) => {
                return Err(TableError::Uneven {
                    reason: format!("{cell:?} is of another type than its column"),
                });
            }
        }
        Ok(())
    }

    /// Its type, whether cells are missing, and its cells as Arrow has them.
    fn array(self) -> (DataType, bool, ArrayRef) {
        match self {
            Self::Text(cells) => {
                let missing = cells.iter().any(Option::is_none);
                let array: StringArray = cells.into_iter().collect();
                (DataType::Utf8, missing, Arc::new(array))
            }
            Self::Whole(cells) => {
                let missing = cells.iter().any(Option::is_none);
                (DataType::Int64, missing, Arc::new(Int64Array::from(cells)))
            }
            Self::Single(cells) => {
                let missing = cells.iter().any(Option::is_none);
                let array = Float32Array::from(cells);
                (DataType::Float32, missing, Arc::new(array))
            }
            Self::Double(cells) => {
                let missing = cells.iter().any(Option::is_none);
                let array = Float64Array::from(cells);
                (DataType::Float64, missing, Arc::new(array))
            }
        }
    }
}

/// The bytes of a Parquet file with these columns, in their order. `metadata` goes into the footer as it is.
///
/// # Errors
/// When the columns have different numbers of rows, or there are more than one file can hold.
pub fn write_table(
    columns: Vec<(String, WrittenColumn)>,
    metadata: &[(&str, &str)],
) -> Result<Vec<u8>, TableError> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (name, column) in columns {
        let (data_type, missing, array) = column.array();
        fields.push(Field::new(name, data_type, missing));
        arrays.push(array);
    }
    let properties = properties(metadata).set_max_row_group_row_count(Some(GROUP_ROWS));
    write(Schema::new(fields), arrays, properties)
}

/// What all files have in common.
fn properties(metadata: &[(&str, &str)]) -> WriterPropertiesBuilder {
    let pair = |&(key, value): &(&str, &str)| KeyValue::new(key.to_owned(), value.to_owned());
    let metadata = (!metadata.is_empty()).then(|| metadata.iter().map(pair).collect());
    WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_key_value_metadata(metadata)
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_column_dictionary_enabled(ColumnPath::from("path"), false)
}

fn write(
    schema: Schema,
    columns: Vec<ArrayRef>,
    properties: WriterPropertiesBuilder,
) -> Result<Vec<u8>, TableError> {
    let schema = Arc::new(schema);
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
        .map_err(|error| TableError::encode(error.into()))?;
    let encode = || {
        let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties.build()))?;
        writer.write(&batch)?;
        writer.into_inner()
    };
    encode().map_err(TableError::encode)
}
