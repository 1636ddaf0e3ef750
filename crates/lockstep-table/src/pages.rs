//! The pages of a file's columns, measured and checked before they are decoded.
//!
//! A page of a column that may be null or is a list begins with its *levels*, which say where values are
//! missing and where lists begin. The decoder takes their lengths on trust, that of values whose bytes are
//! split into streams, and references to half-precision numbers of a dictionary, and would panic over a
//! damaged page. So these are checked here, once a page; all else is checked by the decoder itself. What
//! the rows of a page will take once they are decoded is counted on the way ([`Budget`]).

use crate::budget::{Budget, Excess, NUMBER, PageTally, TEXT, TooLarge};
use crate::columns::shown;
use crate::input::Input;
use crate::page_input::PageInput;
use crate::runs::{Differences, walk, walk_from_the_top};
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// All row groups of a file.
pub(crate) struct CheckedGroups {
    pub(crate) input: Input,
    pub(crate) footer: Arc<ParquetMetaData>,
    pub(crate) budget: Arc<Budget>,
}

impl RowGroups for CheckedGroups {
    fn num_rows(&self) -> usize {
        // The footer was checked to be sound.
        self.footer.file_metadata().num_rows() as usize
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        Ok(Box::new(ColumnPages {
            input: self.input.clone(),
            footer: Arc::clone(&self.footer),
            budget: Arc::clone(&self.budget),
            column,
            group: 0,
            row: Arc::default(),
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
struct ColumnPages {
    input: Input,
    footer: Arc<ParquetMetaData>,
    budget: Arc<Budget>,
    column: usize,
    group: usize,
    /// Rows of the column that were seen.
    row: Arc<AtomicU64>,
}

impl Iterator for ColumnPages {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let group = self.footer.row_groups().get(self.group)?;
        let number = self.group;
        self.group += 1;
        let column = group.column(self.column);
        let rows = group.num_rows() as usize;
        let most = self.budget.page();
        let input = PageInput::new(self.input.clone(), column, most);
        let input = Arc::new(input);
        let pages = SerializedPageReader::new(Arc::clone(&input), column, rows, None);
        Some(pages.map(|pages| {
            let about = column.column_descr();
            let checked = CheckedPages {
                pages,
                input,
                budget: Arc::clone(&self.budget),
                group: number,
                column: shown(&about.path().string()),
                row: Arc::clone(&self.row),
                repetition: about.max_rep_level(),
                definition: about.max_def_level(),
                value: match about.physical_type() {
                    Type::INT32 | Type::FLOAT => 4,
                    Type::INT64 | Type::DOUBLE => 8,
                    _ => u64::try_from(about.type_length()).unwrap_or(0),
                },
                physical: about.physical_type(),
                dictionary: None,
                lengths: Vec::new(),
            };
            Box::new(checked) as Box<dyn PageReader>
        }))
    }
}

impl PageIterator for ColumnPages {}

/// The pages of a column in a row group.
struct CheckedPages {
    pages: SerializedPageReader<PageInput>,
    input: Arc<PageInput>,
    budget: Arc<Budget>,
    group: usize,
    column: String,
    /// Rows of the column that were seen, in this row group and those before it.
    row: Arc<AtomicU64>,
    /// The largest levels that the column can have.
    repetition: i16,
    definition: i16,
    /// Bytes of a value, if all have the same.
    value: u64,
    physical: Type,
    /// Bytes of the page that others refer to, once it was seen.
    dictionary: Option<u64>,
    /// The lengths of the texts in it.
    lengths: Vec<u32>,
}

/// Why a page is not decoded.
enum PageFault {
    Damaged,
    TooLarge(Excess),
}

impl From<Excess> for PageFault {
    fn from(excess: Excess) -> PageFault {
        PageFault::TooLarge(excess)
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = match (self.pages.get_next_page(), self.input.excess()) {
            (_, Some(excess)) => return Err(self.refusal(excess.into())),
            (page, None) => page?,
        };
        if let Some(page) = &page {
            let checked = self.check(page);
            checked.map_err(|fault| self.refusal(fault))?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        // The reader below panics over a header that lacks a part, and reads it only once.
        self.input.next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        let reason = "pages are measured one after the other";
        Err(ParquetError::NYI(reason.to_owned()))
    }
}

impl CheckedPages {
    fn refusal(&self, fault: PageFault) -> ParquetError {
        match fault {
            PageFault::Damaged => ParquetError::General(
                "a page is shorter than it says, or refers to what is not in its dictionary"
                    .to_owned(),
            ),
            PageFault::TooLarge(excess) => {
                self.budget.refuse(TooLarge {
                    group: self.group,
                    column: self.column.clone(),
                    excess,
                });
                ParquetError::General("a page is too large".to_owned())
            }
        }
    }

    /// Measures a page.
    fn check(&mut self, page: &Page) -> std::result::Result<(), PageFault> {
        if let Page::DictionaryPage { buf, .. } = page {
            self.dictionary = Some(buf.len() as u64);
            if self.physical == Type::BYTE_ARRAY {
                self.lengths = plain_lengths(buf).ok_or(PageFault::Damaged)?;
            }
            return Ok(());
        }
        let mut tally = self.budget.tally(self.row.load(Ordering::Relaxed));
        let values = match page {
            Page::DataPage { .. } => self.first_version(page, &mut tally),
            _ => self.second_version(page, &mut tally),
        };
        let values = values.ok_or(PageFault::Damaged)?;
        // Of a list of a billion numbers, not even where they are is known without walking it: the page is
        // refused before its values are looked at.
        let first = self.row.swap(tally.finish()?, Ordering::Relaxed);
        self.check_values(&values, page.encoding())
            .ok_or(PageFault::Damaged)?;
        if self.physical == Type::BYTE_ARRAY {
            let mut tally = self.budget.tally(first);
            let visit = |length: u64, count| tally.rows(count, TEXT.saturating_add(2 * length));
            self.texts(&values, page.encoding(), visit)
                .ok_or(PageFault::Damaged)?;
            tally.finish()?;
        }
        Ok(())
    }

    /// Checks what the decoder does not; `None` if a page is damaged.
    fn check_values(&self, values: &Values<'_>, encoding: Encoding) -> Option<()> {
        match encoding {
            Encoding::BYTE_STREAM_SPLIT => {
                let needed = values.count.checked_mul(self.value)?;
                (needed <= values.bytes.len() as u64).then_some(())
            }
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                let dictionary = self.dictionary?;
                if self.physical != Type::FIXED_LEN_BYTE_ARRAY {
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

    /// Goes through the lengths of a page's texts, each with how often it comes; `None` if it is damaged.
    fn texts(
        &self,
        values: &Values<'_>,
        encoding: Encoding,
        mut visit: impl FnMut(u64, u64),
    ) -> Option<()> {
        let (data, count) = (values.bytes, values.count);
        match encoding {
            Encoding::PLAIN => {
                let mut lengths = PlainLengths(data);
                for _ in 0..count {
                    visit(lengths.next()?.into(), 1);
                }
                Some(())
            }
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                let Some((&bits, places)) = data.split_first() else {
                    return (count == 0).then_some(());
                };
                let mut known = true;
                walk(places, u64::from(bits), count, |place, run| {
                    let length = usize::try_from(place).ok();
                    match length.and_then(|place| self.lengths.get(place)) {
                        Some(&length) => visit(length.into(), run),
                        None => known = false,
                    }
                })?;
                known.then_some(())
            }
            Encoding::DELTA_LENGTH_BYTE_ARRAY => {
                let mut lengths = Differences::new(data, count)?;
                for _ in 0..count {
                    visit(lengths.next()?, 1);
                }
                Some(())
            }
            Encoding::DELTA_BYTE_ARRAY => {
                // What a text begins with is that of the one before it, so many bytes of it.
                let mut shared = Differences::new(data, count)?;
                let mut all = shared.clone();
                (0..count).try_for_each(|_| all.next().map(drop))?;
                let mut own = Differences::new(all.rest()?, count)?;
                for _ in 0..count {
                    let (shared, own) = (shared.next()?, own.next()?);
                    visit(shared.saturating_add(own), 1);
                }
                Some(())
            }
            _ => None,
        }
    }

    fn first_version<'a>(&self, page: &'a Page, tally: &mut PageTally<'_>) -> Option<Values<'a>> {
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
        let mut part = |most: i16, encoding: Encoding| {
            let length = match encoding {
                _ if most == 0 => 0,
                Encoding::RLE => {
                    let (length, after) = rest.split_first_chunk()?;
                    rest = after;
                    u32::from_le_bytes(*length) as usize
                }
                #[expect(deprecated, reason = "old files have it")]
                Encoding::BIT_PACKED => {
                    usize::try_from((levels * u64::from(bits(most))).div_ceil(8)).ok()?
                }
                _ => return None,
            };
            let (part, after) = rest.split_at_checked(length)?;
            rest = after;
            Some((part, encoding))
        };
        let repetitions = part(self.repetition, *rep_level_encoding)?;
        let definitions = part(self.definition, *def_level_encoding)?;
        let count = self.measure(levels, repetitions, definitions, tally)?;
        Some(Values { count, bytes: rest })
    }

    fn second_version<'a>(&self, page: &'a Page, tally: &mut PageTally<'_>) -> Option<Values<'a>> {
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
        let (levels, encoding) = (u64::from(*num_values), Encoding::RLE);
        let (repetitions, definitions) = ((repetitions, encoding), (definitions, encoding));
        let count = self.measure(levels, repetitions, definitions, tally)?;
        Some(Values { count, bytes: rest })
    }

    /// Goes through the levels of a page, and counts what its rows take; the number of its values that are
    /// not null. Nothing if the page is damaged.
    fn measure(
        &self,
        levels: u64,
        repetitions: (&[u8], Encoding),
        definitions: (&[u8], Encoding),
        tally: &mut PageTally<'_>,
    ) -> Option<u64> {
        match self.repetition {
            0 => tally.rows_of_file(levels, NUMBER)?,
            most => {
                let mut counted = Some(());
                each_level(repetitions, most, levels, |level, run| match level {
                    0 => counted = counted.and_then(|()| tally.rows_of_file(run, NUMBER)),
                    _ => tally.more(run.saturating_mul(NUMBER)),
                })?;
                counted?;
            }
        }
        let mut full = 0;
        match self.definition {
            0 => full = levels,
            most => each_level(definitions, most, levels, |level, run| {
                full += if level == most as u64 { run } else { 0 };
            })?,
        }
        Some(full)
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

/// Goes through so many levels; `None` if they are not all there.
fn each_level(
    (data, encoding): (&[u8], Encoding),
    most: i16,
    levels: u64,
    visit: impl FnMut(u64, u64),
) -> Option<()> {
    let bits = u64::from(bits(most));
    match encoding {
        Encoding::RLE => walk(data, bits, levels, visit),
        _ => walk_from_the_top(data, bits, levels, visit),
    }
}

/// Texts one after the other, each after its length.
struct PlainLengths<'a>(&'a [u8]);

impl PlainLengths<'_> {
    /// The next length; `None` at the end, or when the text is not there.
    fn next(&mut self) -> Option<u32> {
        let (length, rest) = self.0.split_first_chunk()?;
        let length = u32::from_le_bytes(*length);
        self.0 = rest.get(length as usize..)?;
        Some(length)
    }
}

/// The lengths of all texts of a dictionary.
fn plain_lengths(data: &[u8]) -> Option<Vec<u32>> {
    let mut lengths = PlainLengths(data);
    let all = std::iter::from_fn(|| lengths.next()).collect();
    lengths.0.is_empty().then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many levels are `most`.
    fn full(data: &[u8], most: i16, levels: u64) -> Option<u64> {
        let mut full = 0;
        each_level((data, Encoding::RLE), most, levels, |level, run| {
            full += if level == most as u64 { run } else { 0 };
        })?;
        Some(full)
    }

    #[test]
    fn levels_that_are_all_there_pass_and_shorter_ones_do_not() {
        // 20 times the level 2, then 16 packed levels of 2 bits, of which 10 are used: 1 1 1 2, again, 1 1.
        let data = [40, 2, 0b101, 0x95, 0x95, 0x55, 0x55];
        assert_eq!(full(&data, 2, 30), Some(22));
        assert_eq!(full(&data[..6], 2, 30), Some(22));
        assert_eq!(full(&data[..5], 2, 30), None);
        assert_eq!(full(&data[..1], 2, 30), None);
        assert_eq!(full(&data, 2, 36), Some(22));
        assert_eq!(full(&data, 2, 37), None);
        assert_eq!(full(&data, 2, 7), Some(7));
        assert_eq!(full(&[], 1, 0), Some(0));
        // A run of nothing would never end.
        assert_eq!(full(&[0, 1, 0, 1], 1, 1), None);
        assert_eq!(full(&[0xff; 20], 1, 1), None);
    }

    #[test]
    fn a_level_has_as_many_bits_as_its_largest_value() {
        assert_eq!([1, 2, 3, 4, 7].map(bits), [1, 2, 2, 3, 3]);
    }
}
