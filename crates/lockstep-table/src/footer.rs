//! What a Parquet file says of itself at its end, read without the rest of it.

use crate::TableError;
use crate::files::TableFile;
use crate::input::Input;
use lockstep_place::Place;
use parquet::arrow::ARROW_SCHEMA_META_KEY;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::ChunkReader;
use std::collections::BTreeMap;

/// The bytes that a Parquet file begins and ends with.
const MAGIC: [u8; 4] = *b"PAR1";
/// Those of one whose footer is encrypted.
const ENCRYPTED: [u8; 4] = *b"PARE";
/// The magic bytes twice and the footer's length: no file is shorter.
const LEAST: u64 = 12;

/// The footer of a Parquet file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    /// The number of rows.
    pub rows: u64,
    /// The writer's own words, by their keys; Arrow's schema is not among them.
    pub metadata: BTreeMap<String, String>,
}

/// Reads the footer of the Parquet file at `place`: a few ranges of bytes, however large the file.
///
/// # Errors
/// When there is no file, it cannot be reached, or it is not a whole Parquet file.
pub fn footer(place: &Place) -> Result<Footer, TableError> {
    let missing = || TableError::Missing {
        place: place.to_string(),
    };
    let file = TableFile::at(place)?.ok_or_else(missing)?;
    let parsed = parse(&file, &Input::open(&file, 0, 0)?)?;
    let details = parsed.file_metadata();
    let pairs = details.key_value_metadata().into_iter().flatten();
    Ok(Footer {
        rows: u64::try_from(details.num_rows()).unwrap_or(0),
        metadata: pairs
            .filter(|pair| pair.key != ARROW_SCHEMA_META_KEY)
            .map(|pair| (pair.key.clone(), pair.value.clone().unwrap_or_default()))
            .collect(),
    })
}

/// The key-value metadata of the Parquet file at `place`, from its footer alone.
///
/// # Errors
/// As [`footer`].
pub fn metadata(place: &Place) -> Result<BTreeMap<String, String>, TableError> {
    Ok(footer(place)?.metadata)
}

/// The parsed footer of `file`, once it is clear that it is a Parquet file.
pub(crate) fn parse(file: &TableFile, input: &Input) -> Result<ParquetMetaData, TableError> {
    let name = file.place.to_string();
    let not_parquet = |reason| TableError::NotParquet {
        file: name.clone(),
        reason,
    };
    if file.size < LEAST {
        return Err(not_parquet(format!("it has {} bytes", file.size)));
    }
    let four = |start| {
        let bytes = input.get_bytes(start, 4);
        let bytes = bytes.map_err(|error| TableError::decode(&name, error))?;
        Ok::<_, TableError>([bytes[0], bytes[1], bytes[2], bytes[3]])
    };
    let last = four(file.size - 4)?;
    if last == ENCRYPTED {
        return Err(TableError::Unsupported {
            file: name,
            reason: "it is encrypted".to_owned(),
        });
    }
    if last != MAGIC {
        // Only now the beginning: of a remote file it is a request of its own.
        return Err(match four(0)? {
            MAGIC => TableError::damaged(
                &name,
                "it begins as a Parquet file does, but its end is missing",
            ),
            first => not_parquet(format!(
                "it begins with {first:02x?} and ends with {last:02x?} instead of `PAR1`"
            )),
        });
    }
    let parsed = ParquetMetaDataReader::new().parse_and_finish(input);
    let parsed = parsed.map_err(|error| TableError::decode(&name, error))?;
    match sound(&parsed, file.size) {
        true => Ok(parsed),
        false => Err(TableError::damaged(
            &name,
            "its footer places columns where the file has no bytes for them",
        )),
    }
}

/// Whether all numbers of a footer can be true of a file of `size` bytes: the decoder takes them as given.
fn sound(footer: &ParquetMetaData, size: u64) -> bool {
    let within = |offset: i64, length: i64| match (u64::try_from(offset), u64::try_from(length)) {
        (Ok(offset), Ok(length)) => offset.checked_add(length).is_some_and(|end| end <= size),
        _ => false,
    };
    let rows = footer.row_groups().iter().try_fold(0i64, |rows, group| {
        let fits = group.columns().iter().all(|column| {
            let dictionary = column.dictionary_page_offset();
            let start = dictionary.unwrap_or(column.data_page_offset());
            within(start, column.compressed_size())
                && within(column.data_page_offset(), 0)
                && column.uncompressed_size() >= 0
                && column.num_values() >= 0
        });
        let more = Some(group.num_rows()).filter(|rows| fits && *rows >= 0)?;
        rows.checked_add(more)
    });
    rows.is_some_and(|rows| rows == footer.file_metadata().num_rows())
}
