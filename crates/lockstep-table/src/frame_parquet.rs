//! The columns of files that store columns, as they are.

use crate::TableError;
use crate::batches::{self, Batches, ColumnFormat};
use crate::columns::shown;
use crate::files::TableFile;
use crate::frame::{FrameBlock, FrameCell, FrameCells, FrameColumn, FrameElement, FrameSchema};
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type};
use arrow_array::{Array, GenericByteArray, types::ByteArrayType};
use arrow_schema::{DataType, Schema, TimeUnit};
use lockstep_base::calendar::DAY;

/// The columns of all files, which must be the same in each.
pub(crate) fn schema(
    files: &[TableFile],
    format: ColumnFormat,
    memory: u64,
) -> Result<FrameSchema, TableError> {
    let mut first: Option<(FrameSchema, String)> = None;
    for file in files {
        let name = file.place.to_string();
        let found = of_schema(&name, &batches::schema(file, format, memory)?)?;
        match &first {
            None => first = Some((found, name)),
            Some((schema, of)) if *schema != found => {
                let reason = format!("its columns or their types are not those of {of}");
                return Err(TableError::columns(&name, reason));
            }
            Some(_) => {}
        }
    }
    Ok(first.map(|(schema, _)| schema).unwrap_or_default())
}

fn of_schema(file: &str, schema: &Schema) -> Result<FrameSchema, TableError> {
    let mut found = FrameSchema::default();
    for (at, field) in schema.fields().iter().enumerate() {
        let name = field.name();
        if schema.fields()[..at]
            .iter()
            .any(|other| other.name() == name)
        {
            return Err(TableError::twice(file, name));
        }
        match form(field.data_type()) {
            Some((element, cell)) => found.columns.push(FrameColumn {
                name: name.clone(),
                element,
                cell,
            }),
            None => {
                let held = shown(&field.data_type().to_string());
                found.left_out.push((name.clone(), held));
            }
        }
    }
    Ok(found)
}

/// What a column of this type is made of; `None` if it is nested deeper than lists of numbers.
fn form(data_type: &DataType) -> Option<(FrameElement, FrameCell)> {
    Some(match data_type {
        DataType::Utf8 => (FrameElement::UInt8, FrameCell::Text),
        DataType::Binary => (FrameElement::UInt8, FrameCell::Bytes),
        DataType::List(inner) => (element(inner.data_type())?, FrameCell::List),
        single => (element(single)?, FrameCell::Single),
    })
}

fn element(data_type: &DataType) -> Option<FrameElement> {
    Some(match data_type {
        DataType::Boolean => FrameElement::Bool,
        DataType::Int8 => FrameElement::Int8,
        DataType::Int16 => FrameElement::Int16,
        DataType::Int32 => FrameElement::Int32,
        DataType::Int64 => FrameElement::Int64,
        DataType::UInt8 => FrameElement::UInt8,
        DataType::UInt16 => FrameElement::UInt16,
        DataType::UInt32 => FrameElement::UInt32,
        DataType::UInt64 => FrameElement::UInt64,
        DataType::Float16 => FrameElement::Float16,
        DataType::Float32 => FrameElement::Float32,
        // NumPy has no exact decimals.
        DataType::Float64 | DataType::Decimal128(..) => FrameElement::Float64,
        DataType::Date32 => FrameElement::Seconds,
        DataType::Timestamp(TimeUnit::Second, _) => FrameElement::Seconds,
        DataType::Timestamp(TimeUnit::Millisecond, _) => FrameElement::Milliseconds,
        DataType::Timestamp(TimeUnit::Microsecond, _) => FrameElement::Microseconds,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => FrameElement::Nanoseconds,
        _ => return None,
    })
}

/// An open file.
pub(crate) struct ColumnBlocks {
    name: String,
    partitions: Vec<(String, String)>,
    batches: Batches,
    /// Rows read so far.
    row: u64,
}

impl std::fmt::Debug for ColumnBlocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ColumnBlocks({} at row {})", self.name, self.row)
    }
}

impl ColumnBlocks {
    pub(crate) fn open(
        file: &TableFile,
        format: ColumnFormat,
        schema: &FrameSchema,
        memory: u64,
    ) -> Result<Self, TableError> {
        let name = file.place.to_string();
        let columns = &schema.columns;
        let batches = Batches::open(file, format, columns.len(), memory, |fields| {
            let place = |column: &FrameColumn| {
                let found = fields.index_of(&column.name);
                found.map_err(|_| TableError::changed(&name))
            };
            columns.iter().map(place).collect()
        })?;
        Ok(Self {
            name,
            partitions: file.partitions.clone(),
            batches,
            row: 0,
        })
    }

    pub(crate) fn next_block(
        &mut self,
        schema: &FrameSchema,
    ) -> Result<Option<FrameBlock>, TableError> {
        let Some(batch) = self.batches.next()? else {
            return Ok(None);
        };
        let mut columns = Vec::with_capacity(schema.columns.len());
        for column in &schema.columns {
            let array = batches::column(&batch, &self.partitions, &column.name);
            let array = array
                .filter(|array| form(array.data_type()) == Some((column.element, column.cell)));
            let undecoded = || TableError::undecoded(&self.name, &column.name);
            columns.push(
                cells(&array.ok_or_else(undecoded)?).map_err(|(row, found)| {
                    let row = self.row + row as u64;
                    TableError::in_row(&self.name, row, &column.name, found.to_owned())
                })?,
            );
        }
        let rows = batch.num_rows();
        self.row += rows as u64;
        Ok(Some(FrameBlock { rows, columns }))
    }
}

/// The cells of a column; or the row that cannot be used, and why.
fn cells(array: &dyn Array) -> Result<FrameCells, (usize, &'static str)> {
    let valid = match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        Some(nulls) => nulls.iter().collect(),
        None => Vec::new(),
    };
    let (values, lengths) = match array.data_type() {
        DataType::Utf8 => bytes(array.as_string::<i32>()),
        DataType::Binary => bytes(array.as_binary::<i32>()),
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let ends = lists.value_offsets();
            let (first, last) = (ends[0] as usize, ends[lists.len()] as usize);
            let inner = lists.values().slice(first, last - first);
            if inner.null_count() > 0 {
                let at = (0..inner.len()).find(|&at| inner.is_null(at)).unwrap_or(0) + first;
                let row = ends.partition_point(|&end| end as usize <= at);
                let found = "holds a list with a null in it; lists need all their numbers";
                return Err((row.saturating_sub(1), found));
            }
            (elements(&inner), lengths(ends))
        }
        _ => (elements(array), Vec::new()),
    };
    Ok(FrameCells {
        values,
        lengths,
        valid,
    })
}

fn bytes<T: ByteArrayType<Offset = i32>>(array: &GenericByteArray<T>) -> (Vec<u8>, Vec<u32>) {
    let ends = array.value_offsets();
    let (first, last) = (ends[0] as usize, ends[array.len()] as usize);
    (array.value_data()[first..last].to_vec(), lengths(ends))
}

fn lengths(ends: &[i32]) -> Vec<u32> {
    let pairs = ends.windows(2);
    pairs.map(|pair| (pair[1] - pair[0]) as u32).collect()
}

/// Numbers as bytes.
fn elements(array: &dyn Array) -> Vec<u8> {
    match array.data_type() {
        DataType::Boolean => {
            let bits = array.as_boolean().values().iter();
            bits.map(u8::from).collect()
        }
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().values().iter();
            let seconds = days.map(|&day| i64::from(day) * DAY);
            seconds.flat_map(i64::to_ne_bytes).collect()
        }
        DataType::Decimal128(_, scale) => {
            let unit = 10f64.powi(i32::from(*scale));
            let numbers = array.as_primitive::<Decimal128Type>().values().iter();
            let numbers = numbers.map(|&number| number as f64 / unit);
            numbers.flat_map(f64::to_ne_bytes).collect()
        }
        data_type => {
            let size = element(data_type).map_or(1, FrameElement::size);
            let data = array.to_data();
            let first = data.offset() * size;
            data.buffers()[0].as_slice()[first..first + array.len() * size].to_vec()
        }
    }
}
