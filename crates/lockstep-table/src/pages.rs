//! The pages of a file's columns, checked before they are decoded.
//!
//! A page of a column that may be null or is a list begins with its *levels*, which say where values are
//! missing and where lists begin. The decoder takes their lengths on trust, and that of values whose bytes
//! are split into streams, and would panic over a damaged page. So these are measured here, once a page;
//! all else is checked by the decoder itself.

use crate::input::Input;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use std::sync::Arc;

/// All row groups of a file.
pub(crate) struct CheckedGroups {
    pub(crate) input: Arc<Input>,
    pub(crate) footer: Arc<ParquetMetaData>,
}

impl RowGroups for CheckedGroups {
    fn num_rows(&self) -> usize {
        // The footer was checked to be sound.
        self.footer.file_metadata().num_rows() as usize
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        Ok(Box::new(Column {
            input: Arc::clone(&self.input),
            footer: Arc::clone(&self.footer),
            column,
            group: 0,
        }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.footer.row_groups().iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.footer
    }
}

/// A column, row group by row group.
struct Column {
    input: Arc<Input>,
    footer: Arc<ParquetMetaData>,
    column: usize,
    group: usize,
}

impl Iterator for Column {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let group = self.footer.row_groups().get(self.group)?;
        self.group += 1;
        let column = group.column(self.column);
        let (input, rows) = (Arc::clone(&self.input), group.num_rows() as usize);
        let pages = SerializedPageReader::new(input, column, rows, None);
        Some(pages.map(|pages| {
            let about = column.column_descr();
            let checked = CheckedPages {
                pages,
                repetition: about.max_rep_level(),
                definition: about.max_def_level(),
                value: match about.physical_type() {
                    Type::INT32 | Type::FLOAT => 4,
                    Type::INT64 | Type::DOUBLE => 8,
                    _ => u64::try_from(about.type_length()).unwrap_or(0),
                },
            };
            Box::new(checked) as Box<dyn PageReader>
        }))
    }
}

impl PageIterator for Column {}

/// The pages of a column in a row group.
struct CheckedPages {
    pages: SerializedPageReader<Input>,
    /// The largest levels that the column can have.
    repetition: i16,
    definition: i16,
    /// Bytes of a value, if all have the same.
    value: u64,
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if page.as_ref().is_some_and(|page| self.check(page).is_none()) {
            let reason = "a page is shorter than it says";
            return Err(ParquetError::General(reason.to_owned()));
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.pages.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        self.pages.take_deferred_dictionary()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

impl CheckedPages {
    /// Measures a page; `None` if it is damaged.
    fn check(&self, page: &Page) -> Option<()> {
        let (values, encoding) = match page {
            Page::DictionaryPage { .. } => return Some(()),
            Page::DataPage { encoding, .. } => (self.first_version(page)?, encoding),
            Page::DataPageV2 { encoding, .. } => (self.second_version(page)?, encoding),
        };
        let needed = match encoding {
            Encoding::BYTE_STREAM_SPLIT => values.count.checked_mul(self.value)?,
            _ => 0,
        };
        (needed <= values.bytes).then_some(())
    }

    fn first_version(&self, page: &Page) -> Option<Values> {
        let Page::DataPage {
            buf,
            num_values,
            rep_level_encoding,
            def_level_encoding,
            ..
        } = page
        else {
            return None;
        };
        let mut rest: &[u8] = buf;
        let levels = u64::from(*num_values);
        let mut count = levels;
        for (most, encoding) in [
            (self.repetition, rep_level_encoding),
            (self.definition, def_level_encoding),
        ] {
            if most == 0 {
                continue;
            }
            let length = match encoding {
                Encoding::RLE => {
                    let (length, after) = rest.split_first_chunk()?;
                    rest = after;
                    let length = u32::from_le_bytes(*length) as usize;
                    count = runs(rest.get(..length)?, most, levels)?;
                    length
                }
                #[expect(deprecated, reason = "old files have it")]
                Encoding::BIT_PACKED => {
                    usize::try_from((levels * u64::from(bits(most))).div_ceil(8)).ok()?
                }
                _ => return None,
            };
            rest = rest.get(length..)?;
        }
        let bytes = rest.len() as u64;
        Some(Values { count, bytes })
    }

    fn second_version(&self, page: &Page) -> Option<Values> {
        let Page::DataPageV2 {
            buf,
            num_values,
            rep_levels_byte_len,
            def_levels_byte_len,
            ..
        } = page
        else {
            return None;
        };
        let (repetitions, rest) = buf.split_at_checked(*rep_levels_byte_len as usize)?;
        let (definitions, rest) = rest.split_at_checked(*def_levels_byte_len as usize)?;
        let levels = u64::from(*num_values);
        let mut count = levels;
        for (most, data) in [
            (self.repetition, repetitions),
            (self.definition, definitions),
        ] {
            if most > 0 {
                count = runs(data, most, levels)?;
            }
        }
        let bytes = rest.len() as u64;
        Some(Values { count, bytes })
    }
}

/// The values of a page.
struct Values {
    /// How many there are, those that are null not counted.
    count: u64,
    bytes: u64,
}

/// Bits of a level.
fn bits(most: i16) -> u32 {
    i16::BITS - most.leading_zeros()
}

/// Checks that `data` holds `levels` levels of at most `most`, as runs of one level and runs of packed ones;
/// counts those that are `most`.
fn runs(mut data: &[u8], most: i16, levels: u64) -> Option<u64> {
    let bits = u64::from(bits(most));
    let mut left = levels;
    let mut full = 0;
    while left > 0 {
        let (header, used) = varint(data)?;
        data = &data[used..];
        let (packed, length) = (header & 1 == 1, header >> 1);
        let bytes = if packed {
            // Eight at a time; of the last eight, only those that are used must be there.
            let run = length.checked_mul(8)?.min(left);
            if run == 0 || (run * bits).div_ceil(8) > data.len() as u64 {
                return None;
            }
            let level = |i: u64| {
                let bit = |bit: u64| u64::from(data[(bit / 8) as usize] >> (bit % 8) & 1);
                (0..bits).fold(0, |level, b| level | bit(i * bits + b) << b)
            };
            full += (0..run).filter(|&i| level(i) == most as u64).count() as u64;
            left -= run;
            length.checked_mul(bits)?.min(data.len() as u64)
        } else {
            let run = length.min(left);
            let bytes = bits.div_ceil(8);
            let value = data.get(..bytes as usize)?;
            if run == 0 {
                return None;
            }
            let value = value
                .iter()
                .rev()
                .fold(0, |value, &byte| value << 8 | u64::from(byte));
            full += if value == most as u64 { run } else { 0 };
            left -= run;
            bytes
        };
        data = &data[bytes as usize..];
    }
    Some(full)
}

/// A number in groups of seven bits, the lowest first, and the bytes that it takes.
fn varint(data: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0u64;
    for (i, &byte) in data.iter().take(9).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((number, i + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_that_are_all_there_pass_and_shorter_ones_do_not() {
        // 20 times the level 2, then 16 packed levels of 2 bits, of which 10 are used: 1 1 1 2, again, 1 1.
        let data = [40, 2, 0b101, 0x95, 0x95, 0x55, 0x55];
        assert_eq!(runs(&data, 2, 30), Some(22));
        assert_eq!(runs(&data[..6], 2, 30), Some(22));
        assert_eq!(runs(&data[..5], 2, 30), None);
        assert_eq!(runs(&data[..1], 2, 30), None);
        assert_eq!(runs(&data, 2, 36), Some(22));
        assert_eq!(runs(&data, 2, 37), None);
        assert_eq!(runs(&data, 2, 7), Some(7));
        assert_eq!(runs(&[], 1, 0), Some(0));
        // A run of nothing would never end.
        assert_eq!(runs(&[0, 1, 0, 1], 1, 1), None);
        assert_eq!(runs(&[0xff; 20], 1, 1), None);
    }

    #[test]
    fn a_level_has_as_many_bits_as_its_largest_value() {
        assert_eq!([1, 2, 3, 4, 7].map(bits), [1, 2, 2, 3, 3]);
    }
}
