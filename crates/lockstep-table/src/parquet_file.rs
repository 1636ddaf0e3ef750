//! One file of columns, read batch by batch, and what is particular to Parquet's.
//!
//! Of Parquet, only its own types are looked at, not the schema that Arrow's writers store beside them: so
//! dictionaries are strings, and lists of whatever kind (`list`, `large_list`, `fixed_size_list`, the
//! tensors of Ray Data) are lists, however the file was made.

use crate::batches::{self, Batches, ColumnFormat};
use crate::budget::{Budget, NUMBER};
use crate::cells::{self, Wrong};
use crate::columns::shown;
use crate::files::TableFile;
use crate::footer;
use crate::input::Input;
use crate::kind::{CellReader, ColumnKind, Read};
use crate::pages::CheckedGroups;
use crate::reader::{MOST_ROWS, RowBatch};
use crate::{ColumnNames, Gaps, TableError};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use std::sync::Arc;

/// The column of the numbers unless others are named: what [`write_part`](crate::write_part) calls it.
pub(crate) const FEATURES: &str = "embedding";
/// Bytes that a string is taken to have before any was seen.
const USUAL_TEXT: u64 = 64;

/// An open file of columns.
pub(crate) struct ColumnFile {
    name: String,
    columns: ColumnNames,
    readers: Vec<CellReader>,
    partitions: Vec<(String, String)>,
    batches: Batches,
    /// Rows read so far.
    row: u64,
    /// How many numbers each feature column has in a row, once a row was seen.
    widths: Option<Vec<usize>>,
}

impl std::fmt::Debug for ColumnFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ColumnFile({} at row {})", self.name, self.row)
    }
}

impl ColumnFile {
    /// Opens `file` and checks that the columns are there and of a fitting type.
    pub(crate) fn open(
        file: &TableFile,
        format: ColumnFormat,
        columns: &ColumnNames,
        memory: u64,
    ) -> Result<Self, TableError> {
        let mut columns = columns.clone();
        if columns.features.is_empty() {
            columns.features.push(FEATURES.to_owned());
        }
        let wanted = columns.features.len() + columns.numbers.len() + 2;
        let name = file.place.to_string();
        let batches = Batches::open(file, format, wanted, memory, |schema| {
            check(&name, schema, &columns)
        })?;
        Ok(Self {
            batches,
            name,
            readers: CellReader::of(&columns),
            partitions: file.partitions.clone(),
            columns,
            row: 0,
            widths: None,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The columns that a sample's numbers come from, in their order.
    pub(crate) fn features(&self) -> &[String] {
        &self.columns.features
    }

    /// The next rows; `None` after the last.
    pub(crate) fn next_batch(&mut self) -> Result<Option<RowBatch>, TableError> {
        let Some(batch) = self.batches.next()? else {
            return Ok(None);
        };
        let converted = self.convert(&batch)?;
        self.row += batch.num_rows() as u64;
        Ok(Some(converted))
    }

    fn convert(&mut self, batch: &RecordBatch) -> Result<RowBatch, TableError> {
        let rows = batch.num_rows();
        let columns: Vec<ArrayRef> = self
            .columns
            .features
            .iter()
            .map(|name| self.column(batch, name))
            .collect::<Result<_, _>>()?;
        let widths = self.widths.take().unwrap_or_else(|| {
            let each = columns.iter().zip(&self.readers);
            each.map(|(column, reader)| match reader.kind() {
                ColumnKind::Number => cells::width(column),
                kind => kind.width(),
            })
            .collect()
        });
        let stride: usize = widths.iter().sum();
        let mut features = vec![0.0; rows * stride];
        let (mut at, mut unseen) = (0, Vec::new());
        for (feature, (column, &width)) in columns.iter().zip(&widths).enumerate() {
            self.feature(
                feature,
                column,
                (at, width, stride),
                &mut features,
                &mut unseen,
            )
            .map_err(|wrong| self.wrong(&self.columns.features[feature], wrong))?;
            at += width;
        }
        if stride == 0 {
            let found = "has an empty list; a sample needs at least one number".to_owned();
            return Err(self.wrong(&self.columns.features[0], Wrong { row: 0, found }));
        }
        let of_labels = match self.columns.label_gaps {
            true => Gaps::Keep,
            false => Gaps::Refuse,
        };
        let texts = |name: &Option<String>, gaps| -> Result<Option<Vec<String>>, TableError> {
            let Some(name) = name else { return Ok(None) };
            let texts = cells::texts(&self.column(batch, name)?, gaps);
            texts.map(Some).map_err(|wrong| self.wrong(name, wrong))
        };
        let labels = texts(&self.columns.label, of_labels)?;
        let paths = texts(&self.columns.path, Gaps::Refuse)?;
        let groups = texts(&self.columns.group, Gaps::Refuse)?;
        let targets = self.columns.numbers.len();
        let mut numbers = vec![0.0; rows * targets];
        for (at, name) in self.columns.numbers.iter().enumerate() {
            let column = self.column(batch, name)?;
            cells::numbers(&column, (at, 1, targets), of_labels, &mut numbers)
                .map_err(|wrong| self.wrong(name, wrong))?;
        }
        let mut weights = Vec::new();
        if let Some(name) = &self.columns.weight {
            weights.resize(rows, 0.0);
            let column = self.column(batch, name)?;
            cells::numbers(&column, (0, 1, 1), Gaps::Refuse, &mut weights)
                .map_err(|wrong| self.wrong(name, wrong))?;
            let mut wrong = weights
                .iter()
                .map(|&weight| cells::no_weight(weight))
                .enumerate();
            if let Some((row, found)) = wrong.find_map(|(row, found)| Some((row, found?))) {
                return Err(self.wrong(name, Wrong { row, found }));
            }
        }
        self.widths = Some(widths);
        Ok(RowBatch {
            rows,
            width: stride,
            features,
            unseen,
            labels,
            numbers,
            weights,
            groups,
            paths,
        })
    }

    /// Writes the numbers of a feature column.
    fn feature(
        &self,
        feature: usize,
        column: &ArrayRef,
        (at, width, stride): (usize, usize, usize),
        out: &mut [f32],
        unseen: &mut Vec<(usize, String)>,
    ) -> Result<(), Wrong> {
        let reader = &self.readers[feature];
        let gaps = self.columns.gaps;
        let is_text = cells::textual(column.data_type());
        match reader.kind() {
            ColumnKind::Number if !is_text => {
                return cells::numbers(column, (at, width, stride), gaps, out);
            }
            ColumnKind::Boolean if *column.data_type() == DataType::Boolean => {
                return cells::numbers(column, (at, width, stride), gaps, out);
            }
            ColumnKind::Date { form, .. } if !is_text => {
                cells::dates(column, (at, *form, stride), out);
                return Ok(());
            }
            _ => {}
        }
        let texts = cells::texts(column, gaps)?;
        for (row, (text, out)) in texts
            .into_iter()
            .zip(out.chunks_exact_mut(stride))
            .enumerate()
        {
            let read = reader.text(&text, &mut out[at..at + width]);
            if read.map_err(|found| Wrong { row, found })? == Read::Unseen {
                unseen.push((feature, text.trim().to_owned()));
            }
        }
        Ok(())
    }

    fn column(&self, batch: &RecordBatch, name: &str) -> Result<ArrayRef, TableError> {
        batches::column(batch, &self.partitions, name)
            .ok_or_else(|| TableError::undecoded(&self.name, name))
    }

    fn wrong(&self, column: &str, Wrong { row, found }: Wrong) -> TableError {
        TableError::in_row(&self.name, self.row + row as u64, column, found)
    }
}

/// The rows of some columns of `file`, in batches that keep to `memory`: `choose` gives the places of the columns in
/// the schema, of which there are about `wanted`.
pub(crate) fn batches(
    file: &TableFile,
    wanted: usize,
    memory: u64,
    choose: impl FnOnce(Schema) -> Result<Vec<usize>, TableError>,
) -> Result<(ParquetRecordBatchReader, Arc<Budget>), TableError> {
    let name = file.place.to_string();
    let failed = |error| TableError::decode(&name, error);
    let input = Input::open(file, wanted, memory / 4)?;
    let footer = Arc::new(footer::parse(file, &input)?);
    let schema = footer.file_metadata().schema_descr();
    let fields = parquet_to_arrow_schema(schema, None).map_err(failed)?;
    let roots = choose(fields)?;
    let rows = rows_of(&footer, &roots, memory / 4);
    let mask = ProjectionMask::roots(schema, roots);
    let levels = parquet_to_arrow_field_levels(schema, mask, None).map_err(failed)?;
    let of_file = footer.row_groups().iter().map(|group| group.num_rows());
    let of_file = of_file.map(|rows| u64::try_from(rows).unwrap_or(0)).sum();
    let budget = Arc::new(Budget::new(memory, rows, of_file));
    let groups = CheckedGroups {
        input,
        footer: Arc::clone(&footer),
        budget: Arc::clone(&budget),
    };
    let batches = ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, rows, None);
    Ok((batches.map_err(failed)?, budget))
}

/// Why a batch could not be read: it would have taken too much, or it is damaged.
pub(crate) fn failed(file: &str, budget: &Budget, error: ArrowError) -> TableError {
    match budget.refused() {
        Some(refused) => TableError::TooLarge {
            file: file.to_owned(),
            row_group: refused.group,
            column: refused.column.clone(),
            bytes: refused.excess.bytes,
            most: refused.excess.most,
        },
        None => TableError::decode(file, ParquetError::from(error)),
    }
}

/// The schema of `file`, by Parquet's own types.
pub(crate) fn schema(file: &TableFile, memory: u64) -> Result<Schema, TableError> {
    let footer = footer::parse(file, &Input::open(file, 0, memory / 4)?)?;
    parquet_to_arrow_schema(footer.file_metadata().schema_descr(), None)
        .map_err(|error| TableError::decode(&file.place.to_string(), error))
}

/// Checks that each column is there once and of a fitting type; gives their places in the schema.
fn check(file: &str, schema: &Schema, columns: &ColumnNames) -> Result<Vec<usize>, TableError> {
    let mut roots = Vec::new();
    for (at, name) in columns.features.iter().enumerate() {
        roots.push(find(file, schema, name, |data_type| {
            let right =
                "numbers of a sample must be integers, floats or booleans, or lists of them";
            match columns.kinds.get(at) {
                None => (cells::numeric(data_type), right),
                Some(kind) => cells::readable(data_type, kind),
            }
        })?);
    }
    for name in columns.label.iter().chain(&columns.group) {
        let right = "labels and groups must be text, numbers or booleans";
        let fits = |data_type: &DataType| (cells::labels(data_type), right);
        roots.push(find(file, schema, name, fits)?);
    }
    for name in columns.numbers.iter().chain(&columns.weight) {
        let right = "what is to be predicted, and weights, must be integers, floats or booleans";
        let fits = |data_type: &DataType| (cells::single(data_type), right);
        roots.push(find(file, schema, name, fits)?);
    }
    if let Some(name) = &columns.path {
        let right = "paths must be text, numbers or booleans";
        let fits = |data_type: &DataType| (cells::labels(data_type), right);
        roots.push(find(file, schema, name, fits)?);
    }
    Ok(roots)
}

/// The place of a column in the schema; `fits` says whether its type can be used, and what would be right.
pub(crate) fn find(
    file: &str,
    schema: &Schema,
    name: &str,
    fits: impl Fn(&DataType) -> (bool, &'static str),
) -> Result<usize, TableError> {
    let named = schema.fields().iter().enumerate();
    let mut named = named.filter(|(_, field)| *field.name() == name);
    let Some((root, field)) = named.next() else {
        let names = schema.fields().iter().map(|field| field.name().as_str());
        return Err(TableError::no_column(file, name, names));
    };
    if named.next().is_some() {
        return Err(TableError::twice(file, name));
    }
    let (fits, right) = fits(field.data_type());
    if !fits {
        return Err(TableError::Type {
            file: file.to_owned(),
            column: shown(name),
            found: shown(&field.data_type().to_string()),
            right,
        });
    }
    Ok(root)
}

/// How many rows of the columns `roots` fit into `memory`, by what the footer says of them.
fn rows_of(metadata: &ParquetMetaData, roots: &[usize], memory: u64) -> usize {
    let schema = metadata.file_metadata().schema_descr();
    let mut row = 1;
    for group in metadata.row_groups() {
        let rows = u64::try_from(group.num_rows()).unwrap_or(0).max(1);
        let bytes = group.columns().iter().enumerate().map(|(leaf, column)| {
            if !roots.contains(&schema.get_column_root_idx(leaf)) {
                return 0;
            }
            // A dictionary stores less than it stands for, so numbers are counted. The same is only known of
            // texts if the writer says so.
            let values = u64::try_from(column.num_values()).unwrap_or(0);
            let stored = u64::try_from(column.uncompressed_size()).unwrap_or(0);
            let decoded = values.saturating_mul(NUMBER);
            let letters = column.unencoded_byte_array_data_bytes();
            let texts = match column.column_type() == parquet::basic::Type::BYTE_ARRAY {
                true => u64::try_from(letters.unwrap_or(0))
                    .unwrap_or(0)
                    .max(values.saturating_mul(USUAL_TEXT)),
                false => 0,
            };
            decoded.max(stored).max(texts) / rows
        });
        row = row.max(bytes.fold(0, u64::saturating_add));
    }
    usize::try_from(memory / row)
        .unwrap_or(MOST_ROWS)
        .clamp(1, MOST_ROWS)
}
