//! The pages of a file's columns, checked before they are decoded.
//!
//! A page of a column that may be null or is a list begins with its *levels*, which say where values are
//! missing and where lists begin. The decoder takes their lengths on trust, that of values whose bytes are
//! split into streams, and references to half-precision numbers of a dictionary, and would panic over a
//! damaged page. So these are measured here, once a page; all else is checked by the decoder itself.

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
                fixed: about.physical_type() == Type::FIXED_LEN_BYTE_ARRAY,
                dictionary: None,
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
    /// Whether values are strings of that many bytes.
    fixed: bool,
    /// Bytes of the page that others refer to, once it was seen.
    dictionary: Option<u64>,
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
            let reason =
                "a page is shorter than it says, or refers to what is not in its dictionary";
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
    fn check(&mut self, page: &Page) -> Option<()> {
        let (values, encoding) = match page {
            Page::DictionaryPage { buf, .. } => {
                self.dictionary = Some(buf.len() as u64);
                return Some(());
            }
            Page::DataPage { encoding, .. } => (self.first_version(page)?, encoding),
            Page::DataPageV2 { encoding, .. } => (self.second_version(page)?, encoding),
        };
        match encoding {
            Encoding::BYTE_STREAM_SPLIT => {
                let needed = values.count.checked_mul(self.value)?;
                (needed <= values.bytes.len() as u64).then_some(())
            }
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                let dictionary = self.dictionary?;
                if !self.fixed {
                    return Some(());
                }
                let (&bits, places) = values.bytes.split_first()?;
                let mut known = true;
                walk(places, u64::from(bits), values.count, |place, _| {
                    known &= place < dictionary / self.value.max(1);
                })?;
                known.then_some(())
            }
            _ => Some(()),
        }
    }

    fn first_version<'a>(&self, page: &'a Page) -> Option<Values<'a>> {
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
        Some(Values { count, bytes: rest })
    }

    fn second_version<'a>(&self, page: &'a Page) -> Option<Values<'a>> {
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
        Some(Values { count, bytes: rest })
    }
}

/// The values of a page.
struct Values<'a> {
    /// How many there are, those that are null not counted.
    count: u64,
    bytes: &'a [u8],
}

/// Bits of a level.
fn bits(most: i16) -> u32 {
    i16::BITS - most.leading_zeros()
}

/// Checks that `data` holds so many levels; counts those that are `most`.
fn runs(data: &[u8], most: i16, levels: u64) -> Option<u64> {
    let mut full = 0;
    walk(data, u64::from(bits(most)), levels, |level, run| {
        full += if level == most as u64 { run } else { 0 };
    })?;
    Some(full)
}

/// Goes through `count` numbers of `bits` bits, which are stored as runs of one number and runs of packed
/// ones: each with how often it comes. `None` if they are not all there.
fn walk(mut data: &[u8], bits: u64, count: u64, mut visit: impl FnMut(u64, u64)) -> Option<()> {
    let mut left = count;
    while left > 0 {
        let (header, used) = varint(data)?;
        data = &data[used..];
        let (packed, length) = (header & 1 == 1, header >> 1);
        let bytes = if packed {
            // Eight at a time; of the last eight, only those that are used must be there.
            let run = length.checked_mul(8)?.min(left);
            if run == 0 || run.checked_mul(bits)?.div_ceil(8) > data.len() as u64 {
                return None;
            }
            let bit = |at: u64| u64::from(data[(at / 8) as usize] >> (at % 8) & 1);
            for i in 0..run {
                let number = (0..bits.min(64)).fold(0, |all, b| all | bit(i * bits + b) << b);
                visit(number, 1);
            }
            left -= run;
            length.checked_mul(bits)?.min(data.len() as u64)
        } else {
            let run = length.min(left);
            let bytes = bits.div_ceil(8);
            let number = data.get(..bytes as usize)?.iter().rev();
            if run == 0 {
                return None;
            }
            visit(number.fold(0, |all, &byte| all << 8 | u64::from(byte)), run);
            left -= run;
            bytes
        };
        data = &data[bytes as usize..];
    }
    Some(())
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
