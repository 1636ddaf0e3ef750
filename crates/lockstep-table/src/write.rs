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
    ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch, StringArray,
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

/// What a model says of one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictionRow {
    /// Where the sample lies, or the row's number where it has no path.
    pub path: String,
    /// Its class, if that is known.
    pub label: Option<String>,
    /// The class that the model takes it for.
    pub predicted: String,
    /// How sure the model is of that, from 0 to 1.
    pub probability: f32,
    /// Its place in the set, counted from 0.
    pub row: i64,
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

/// How probable each class is, of every sample.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClassProbabilities<'a> {
    /// What the classes are called; none where only the predicted one's probability is known.
    pub classes: &'a [String],
    /// A number a class, sample by sample.
    pub numbers: &'a [f32],
}

/// The bytes of a Parquet file with the columns `path: string`, `label: string` (null where unknown),
/// `predicted: string`, `probability: float32`, `row: int64`, and for each class of `all`
/// `probability_CLASS: float32`.
///
/// # Errors
/// When there are not as many probabilities as rows and classes ask for, or the rows exceed what one file can hold.
pub fn write_predictions(
    rows: &[PredictionRow],
    all: ClassProbabilities<'_>,
    metadata: &[(&str, &str)],
) -> Result<Vec<u8>, TableError> {
    let classes = all.classes.len();
    if all.numbers.len() != rows.len() * classes {
        return Err(TableError::Uneven {
            reason: format!(
                "{} probabilities for {} rows of {classes} classes",
                all.numbers.len(),
                rows.len()
            ),
        });
    }
    let mut fields = vec![
        Field::new("path", DataType::Utf8, false),
        Field::new("label", DataType::Utf8, true),
        Field::new("predicted", DataType::Utf8, false),
        Field::new("probability", DataType::Float32, false),
        Field::new("row", DataType::Int64, false),
    ];
    let paths = rows.iter().map(|row| row.path.as_str());
    let labels: StringArray = rows.iter().map(|row| row.label.as_deref()).collect();
    let predicted = rows.iter().map(|row| row.predicted.as_str());
    let probabilities: Vec<f32> = rows.iter().map(|row| row.probability).collect();
    let numbers: Vec<i64> = rows.iter().map(|row| row.row).collect();
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(paths)),
        Arc::new(labels),
        Arc::new(StringArray::from_iter_values(predicted)),
        Arc::new(Float32Array::from(probabilities)),
        Arc::new(Int64Array::from(numbers)),
    ];
    for (at, class) in all.classes.iter().enumerate() {
        fields.push(Field::new(
            format!("probability_{class}"),
            DataType::Float32,
            false,
        ));
        let of_class = all.numbers.iter().skip(at).step_by(classes).copied();
        columns.push(Arc::new(Float32Array::from_iter_values(of_class)));
    }
    let properties = properties(metadata).set_max_row_group_row_count(Some(GROUP_ROWS));
    write(Schema::new(fields), columns, properties)
}

/// Numbers that a model says of samples.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PredictedColumn {
    /// What they are called.
    pub name: String,
    /// What is right, a number a sample, if it is known.
    pub actual: Vec<Option<f32>>,
    /// What the model says.
    pub predicted: Vec<f32>,
}

/// The bytes of a Parquet file with the columns `path: string`, for each column to predict `NAME: float32`, which
/// is right (null where unknown), and `predicted_NAME: float32`, which the model says, and `row: int64`.
///
/// # Errors
/// When the numbers of rows differ, or exceed what one file can hold.
pub fn write_predicted_numbers(
    paths: &[String],
    columns: &[PredictedColumn],
    metadata: &[(&str, &str)],
) -> Result<Vec<u8>, TableError> {
    let mut fields = vec![Field::new("path", DataType::Utf8, false)];
    let mut arrays: Vec<ArrayRef> = vec![Arc::new(StringArray::from_iter_values(paths))];
    for column in columns {
        let unknown = column.actual.iter().any(Option::is_none);
        fields.push(Field::new(column.name.clone(), DataType::Float32, unknown));
        arrays.push(Arc::new(Float32Array::from(column.actual.clone())));
        let predicted = format!("predicted_{}", column.name);
        fields.push(Field::new(predicted, DataType::Float32, false));
        arrays.push(Arc::new(Float32Array::from(column.predicted.clone())));
    }
    fields.push(Field::new("row", DataType::Int64, false));
    arrays.push(Arc::new(Int64Array::from_iter_values(
        0..paths.len() as i64,
    )));
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
