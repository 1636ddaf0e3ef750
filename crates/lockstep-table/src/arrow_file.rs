//! Arrow's own files, which are also those of Feather, batch by batch.
//!
//! What the file says of itself is checked before anything is decoded: that its parts lie within it, and that what they
//! unpack to fits into the memory. Its many ways to store text and lists become those that Parquet's reader gives, so
//! that nothing else has to know them.

use crate::TableError;
use crate::arrow_buffers::{types, unpacked};
use crate::columns::shown;
use crate::files::TableFile;
use crate::input::Input;
use crate::reader::MOST_ROWS;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date64Type, TimestampMillisecondType};
use arrow_array::{
    Array, ArrayRef, BinaryArray, GenericListArray, ListArray, OffsetSizeTrait, RecordBatch,
    StringArray, make_array, new_null_array,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, root_as_footer, root_as_message};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, TimeUnit};
use parquet::file::reader::{ChunkReader, Length};
use std::collections::HashMap;
use std::sync::Arc;

/// What a file begins and ends with.
const MAGIC: &[u8] = b"ARROW1";
/// Bytes at the end: the length of the footer, and the magic.
const END: usize = 10;
/// What is before the length of a message, unless that is old.
const CONTINUES: [u8; 4] = [0xff; 4];

/// The rows of some columns of a file.
pub(crate) struct ArrowBatches {
    name: String,
    input: Input,
    decoder: FileDecoder,
    blocks: std::vec::IntoIter<Block>,
    /// What was decoded and is not handed on yet.
    rest: Option<RecordBatch>,
    memory: u64,
    /// All columns of the file, and what its dictionaries hold.
    fields: Fields,
    dictionaries: HashMap<i64, DataType>,
}

impl ArrowBatches {
    /// Opens `file`: `choose` gives the places of the columns in its schema.
    pub(crate) fn open(
        file: &TableFile,
        memory: u64,
        choose: impl FnOnce(Schema) -> Result<Vec<usize>, TableError>,
    ) -> Result<Self, TableError> {
        let name = file.place.to_string();
        let input = Input::open(file, 1, memory / 4)?;
        let bytes = footer(&name, &input)?;
        let failed = |error: ArrowError| TableError::damaged(&name, error.to_string());
        let footer = root_as_footer(&bytes).map_err(|error| no_footer(&name, &error))?;
        let schema = footer
            .schema()
            .ok_or_else(|| no_footer(&name, &"it has no schema"))?;
        if !schema.endianness().equals_to_target_endianness() {
            return Err(TableError::Unsupported {
                file: name,
                reason: "its numbers are stored in another byte order".to_owned(),
            });
        }
        let written = schema.fields();
        let schema = try_fb_to_schema(schema).map_err(failed)?;
        let mut dictionaries = HashMap::new();
        dictionary_types(
            written.into_iter().flatten(),
            schema.fields(),
            &mut dictionaries,
        );
        let fields = schema.fields().clone();
        let mut roots = choose(plain_schema(&schema))?;
        roots.sort_unstable();
        roots.dedup();
        let decoder = FileDecoder::new(Arc::new(schema), footer.version());
        let mut batches = Self {
            name: name.clone(),
            input,
            decoder: decoder.with_projection(roots),
            blocks: Vec::new().into_iter(),
            rest: None,
            memory: memory / 2,
            fields,
            dictionaries,
        };
        for block in footer.dictionaries().iter().flatten() {
            let bytes = batches.block(block)?;
            let read = batches.decoder.read_dictionary(block, &bytes);
            read.map_err(failed)?;
        }
        let blocks = footer.recordBatches();
        let blocks: Vec<Block> = blocks.iter().flatten().copied().collect();
        batches.blocks = blocks.into_iter();
        Ok(batches)
    }

    /// The next rows; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>, TableError> {
        let batch = match self.rest.take() {
            Some(batch) => batch,
            None => {
                let Some(block) = self.blocks.next() else {
                    return Ok(None);
                };
                let bytes = self.block(&block)?;
                let read = self.decoder.read_record_batch(&block, &bytes);
                let failed = |error: ArrowError| TableError::damaged(&self.name, error.to_string());
                let Some(batch) = read.map_err(failed)? else {
                    return Err(TableError::damaged(&self.name, "a part of it is empty"));
                };
                batch
            }
        };
        let rows = batch.num_rows();
        if rows > MOST_ROWS {
            self.rest = Some(batch.slice(MOST_ROWS, rows - MOST_ROWS));
        }
        let batch = plain_batch(&batch.slice(0, rows.min(MOST_ROWS)));
        batch
            .map(Some)
            .map_err(|error| TableError::damaged(&self.name, error.to_string()))
    }

    /// The bytes of a part of the file, of which it was checked that they lie within it and what they unpack to.
    fn block(&self, block: &Block) -> Result<Buffer, TableError> {
        let wrong =
            || TableError::damaged(&self.name, "its footer names parts that it does not have");
        let number = |number: i64| u64::try_from(number).ok();
        let offset = number(block.offset()).ok_or_else(wrong)?;
        let before = number(i64::from(block.metaDataLength())).ok_or_else(wrong)?;
        let body = number(block.bodyLength()).ok_or_else(wrong)?;
        let length = before.checked_add(body).ok_or_else(wrong)?;
        if offset
            .checked_add(length)
            .is_none_or(|end| end > self.input.len())
        {
            return Err(wrong());
        }
        self.fits(length)?;
        let bytes = self.input.get_bytes(offset, length as usize);
        let bytes = bytes.map_err(|error| TableError::decode(&self.name, error))?;
        let (message, body) = bytes.split_at(before as usize);
        let unpacked = self.unpacked(message, body);
        let unpacked =
            unpacked.ok_or_else(|| TableError::damaged(&self.name, "a part of it is not whole"))?;
        self.fits(length.saturating_add(unpacked))?;
        Ok(Buffer::from_vec(bytes.to_vec()))
    }

    /// How many bytes the buffers of a message unpack to; `None` if they are not all there.
    fn unpacked(&self, message: &[u8], body: &[u8]) -> Option<u64> {
        let message = match message.get(..4)? == CONTINUES {
            true => message.get(8..)?,
            false => message.get(4..)?,
        };
        let message = root_as_message(message).ok()?;
        if let Some(dictionary) = message.header_as_dictionary_batch() {
            let values = self.dictionaries.get(&dictionary.id())?;
            return unpacked([values], &dictionary.data()?, body);
        }
        let batch = message.header_as_record_batch()?;
        unpacked(types(&self.fields), &batch, body)
    }

    fn fits(&self, bytes: u64) -> Result<(), TableError> {
        match bytes > self.memory {
            false => Ok(()),
            true => Err(TableError::Unsupported {
                file: self.name.clone(),
                reason: format!(
                    "one of its batches takes {bytes} bytes of memory, and {} are allowed; write it with fewer rows in a \
                     batch, or allow more with data.memory",
                    self.memory
                ),
            }),
        }
    }
}

/// The bytes of the footer.
fn footer(name: &str, input: &Input) -> Result<Vec<u8>, TableError> {
    let size = input.len();
    let read = |start: u64, length: usize| {
        let bytes = input.get_bytes(start, length);
        bytes.map_err(|error| TableError::decode(name, error))
    };
    let no = |reason: &str| TableError::Unsupported {
        file: name.to_owned(),
        reason: format!("it is not an Arrow or Feather file: {reason}"),
    };
    let least = (MAGIC.len() + END) as u64;
    let begin = read(0, size.min(MAGIC.len() as u64) as usize)?;
    match &begin[..] {
        b"FEA1\0\0" | [b'F', b'E', b'A', b'1', ..] => {
            return Err(no(
                "it is of Feather's first version; write it again with a newer library",
            ));
        }
        [0xff, 0xff, 0xff, 0xff, ..] => {
            return Err(no("it is a stream of Arrow's; write it as a file"));
        }
        begin if begin != MAGIC || size < least => {
            return Err(no("it does not begin with `ARROW1`"));
        }
        _ => {}
    }
    let end = read(size - END as u64, END)?;
    let end = end[..].try_into().expect("it has as many bytes");
    let length = read_footer_length(end)
        .ok()
        .filter(|&length| length as u64 <= size - least);
    let length = length.ok_or_else(|| TableError::damaged(name, "its end is missing"))?;
    Ok(read(size - (END + length) as u64, length)?.to_vec())
}

fn no_footer(name: &str, error: &dyn std::fmt::Display) -> TableError {
    TableError::damaged(name, shown(&format!("its footer cannot be read: {error}")))
}

/// The schema of `file`, by the types that its batches are read as.
pub(crate) fn schema(file: &TableFile, memory: u64) -> Result<Schema, TableError> {
    let mut found = Schema::empty();
    // Nothing is read but what comes before the batches.
    ArrowBatches::open(file, memory, |schema| {
        found = schema;
        Ok(Vec::new())
    })?;
    Ok(found)
}

/// The types of the values of all dictionaries, by their numbers.
fn dictionary_types<'a>(
    written: impl Iterator<Item = arrow_ipc::Field<'a>>,
    fields: &Fields,
    found: &mut HashMap<i64, DataType>,
) {
    for (written, field) in written.zip(fields) {
        let children = match field.data_type() {
            DataType::Dictionary(_, values) => {
                let number = written.dictionary().map_or(0, |dictionary| dictionary.id());
                found.insert(number, (**values).clone());
                continue;
            }
            DataType::Struct(fields) => fields.clone(),
            DataType::List(of)
            | DataType::LargeList(of)
            | DataType::FixedSizeList(of, _)
            | DataType::Map(of, _) => Fields::from(vec![of.clone()]),
            _ => continue,
        };
        dictionary_types(written.children().into_iter().flatten(), &children, found);
    }
}

fn plain_schema(schema: &Schema) -> Schema {
    let field = |field: &Arc<Field>| Field::new(field.name(), plain_type(field.data_type()), true);
    Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>())
}

/// The type that a column is read as.
fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::Date64 => DataType::Timestamp(TimeUnit::Millisecond, None),
        DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _) => {
            DataType::List(element(plain_type(of.data_type())))
        }
        other => other.clone(),
    }
}

fn element(data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new("element", data_type, true))
}

fn plain_batch(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(plain);
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let schema = plain_schema(&batch.schema());
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)
}

/// A column as one of the types that others know.
fn plain(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    Ok(match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            plain(&arrow_select::take::take(
                dictionary.values(),
                dictionary.keys(),
                None,
            )?)?
        }
        DataType::LargeUtf8 => {
            let texts: StringArray = array.as_string::<i64>().iter().collect();
            Arc::new(texts)
        }
        DataType::Utf8View => {
            let texts: StringArray = array.as_string_view().iter().collect();
            Arc::new(texts)
        }
        DataType::LargeBinary => {
            let bytes: BinaryArray = array.as_binary::<i64>().iter().collect();
            Arc::new(bytes)
        }
        DataType::BinaryView => {
            let bytes: BinaryArray = array.as_binary_view().iter().collect();
            Arc::new(bytes)
        }
        DataType::Null => new_null_array(&DataType::Utf8, array.len()),
        DataType::Date64 => {
            let days = array.as_primitive::<Date64Type>();
            Arc::new(days.reinterpret_cast::<TimestampMillisecondType>())
        }
        DataType::List(_) => list(array.as_list::<i32>())?,
        DataType::LargeList(_) => list(array.as_list::<i64>())?,
        DataType::FixedSizeList(_, width) => {
            let lists = array.as_fixed_size_list();
            let values = plain(lists.values())?;
            let ends = (0..=lists.len()).map(|row| row as i32 * width);
            lists_of(ends.collect(), values, lists.nulls().cloned())?
        }
        _ => make_array(array.to_data()),
    })
}

/// Lists, of which only the elements that they use are kept.
fn list<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> Result<ArrayRef, ArrowError> {
    let ends = lists.value_offsets();
    let first = ends[0].as_usize();
    let used = lists
        .values()
        .slice(first, ends[lists.len()].as_usize() - first);
    let end = |end: &O| {
        i32::try_from(end.as_usize() - first)
            .map_err(|_| ArrowError::ComputeError("its lists are too long".to_owned()))
    };
    let ends = ends.iter().map(end).collect::<Result<Vec<_>, _>>()?;
    lists_of(ends, plain(&used)?, lists.nulls().cloned())
}

fn lists_of(
    ends: Vec<i32>,
    values: ArrayRef,
    nulls: Option<arrow_buffer::NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
    let field = element(values.data_type().clone());
    Ok(Arc::new(ListArray::try_new(field, ends, values, nulls)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnNames, Gaps, TableFormat, TableReader, find_files, look};
    use arrow_array::types::Int8Type;
    use arrow_array::{
        DictionaryArray, FixedSizeListArray, Float32Array, Int64Array, LargeStringArray,
        StringViewArray,
    };
    use arrow_ipc::CompressionType;
    use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
    use lockstep_place::{Access, Place};

    fn write(batches: &[RecordBatch], packed: Option<CompressionType>) -> Vec<u8> {
        let options = IpcWriteOptions::default();
        let options = options.try_with_compression(packed).unwrap();
        let schema = batches[0].schema();
        let writer = FileWriter::try_new_with_options(Vec::new(), &schema, options);
        let mut writer = writer.unwrap();
        for batch in batches {
            writer.write(batch).unwrap();
        }
        writer.into_inner().unwrap()
    }

    /// A table as data frames write it.
    fn table(rows: usize) -> RecordBatch {
        let numbers = Int64Array::from_iter((0..rows).map(|i| (i % 7 != 3).then_some(i as i64)));
        let words = ["red", "blue", "green"];
        let words = (0..rows).map(|i| words[i % 3]);
        let category: DictionaryArray<Int8Type> = words.clone().collect();
        let large = LargeStringArray::from_iter_values(words.clone());
        let labels = StringViewArray::from_iter_values(words);
        let columns: [(&str, ArrayRef); 4] = [
            ("number", Arc::new(numbers)),
            ("category", Arc::new(category)),
            ("large", Arc::new(large)),
            ("label", Arc::new(labels)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn read(bytes: &[u8], memory: u64) -> Result<(Vec<f32>, Vec<String>), String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.feather"), bytes).unwrap();
        let place = Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap();
        let format = TableFormat::Arrow;
        let files = find_files(&place, format).unwrap();
        let mut columns = ColumnNames {
            label: Some("label".into()),
            gaps: Gaps::Keep,
            ..ColumnNames::default()
        };
        let looked = look(&files, format, &columns, memory).map_err(|error| error.to_string())?;
        (columns.features, columns.kinds) = (looked.features, looked.kinds);
        let mut reader = TableReader::of_files(files, format, &columns, memory);
        let (mut numbers, mut labels) = (Vec::new(), Vec::new());
        while let Some(batch) = reader.next_batch().map_err(|error| error.to_string())? {
            assert!(batch.rows <= MOST_ROWS);
            numbers.extend(batch.features);
            labels.extend(batch.labels.unwrap());
        }
        Ok((numbers, labels))
    }

    #[test]
    fn files_of_arrow_and_feather_are_tables_however_they_are_packed() {
        let batches = [table(20_000), table(5)];
        for packed in [
            None,
            Some(CompressionType::LZ4_FRAME),
            Some(CompressionType::ZSTD),
        ] {
            let (numbers, labels) = read(&write(&batches, packed), 1 << 24).unwrap();
            assert_eq!(labels.len(), 20_005);
            assert_eq!((&labels[1][..], &labels[20_002][..]), ("blue", "green"));
            // Categories are in the order of their words: blue, green, red.
            assert_eq!(numbers[..6], [0.0, 2.0, 2.0, 1.0, 0.0, 0.0]);
            assert!(numbers[9].is_nan());
            assert_eq!(numbers[3 * 20_004..], [4.0, 0.0, 0.0]);
        }
    }

    #[test]
    fn vectors_of_a_fixed_length_are_an_input() {
        let element = Arc::new(Field::new("item", DataType::Float32, true));
        let values: ArrayRef = Arc::new(Float32Array::from_iter_values((0..6).map(|x| x as f32)));
        let lists = FixedSizeListArray::try_new(element, 2, values, None).unwrap();
        let labels = LargeStringArray::from_iter_values(["a", "b", "c"]);
        let columns: [(&str, ArrayRef); 2] =
            [("embedding", Arc::new(lists)), ("label", Arc::new(labels))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let (numbers, _) = read(&write(&[batch], None), 1 << 20).unwrap();
        assert_eq!(numbers, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn what_is_no_arrow_file_or_takes_too_much_is_refused_with_what_to_do() {
        let whole = write(&[table(100)], None);
        for (bytes, expected) in [
            (&b"FEA1rest of it"[..], "Feather's first version"),
            (b"a,b\n1,2\n", "does not begin with `ARROW1`"),
            (&[0xff; 20], "write it as a file"),
            (&whole[..whole.len() - 1], "its end is missing"),
            (b"", "not an Arrow or Feather file"),
        ] {
            let said = read(bytes, 1 << 20).unwrap_err();
            assert!(said.contains(expected), "{said}");
        }
        let large = write(&[table(100_000)], Some(CompressionType::ZSTD));
        let said = read(&large, 1 << 20).unwrap_err();
        assert!(said.contains("allow more with data.memory"), "{said}");
    }

    #[test]
    fn changed_bytes_end_in_rows_or_an_error() {
        for packed in [None, Some(CompressionType::LZ4_FRAME)] {
            let whole = write(&[table(30)], packed);
            for at in 0..whole.len() {
                let mut bytes = whole.clone();
                bytes[at] ^= [1, 0x80, 0xff][at % 3];
                let _ = read(&bytes, 1 << 20);
            }
        }
    }
}
