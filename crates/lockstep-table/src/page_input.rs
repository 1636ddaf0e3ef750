//! The bytes of a column's pages, with a look at how large each page says it will be.
//!
//! The decoder unpacks a page as soon as it is asked for it, into as much memory as the page's header says, and
//! gzip and LZ4 frames into as much as they want. So the header is looked at before that, and what does not
//! keep to it is unpacked for its length alone.

use crate::budget::Excess;
use crate::input::{Input, InputReader};
use crate::runs::varint;
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use parquet::basic::Compression;
use parquet::column::page::PageMetadata;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use std::io::{self, Read};
use std::sync::Mutex;

/// The header of a page begins with three numbers; each is a byte that says so and at most five more.
const BEGINNING: usize = 18;

/// What the beginning of an LZ4 frame is.
const LZ4_FRAME: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// The most that LZ4 and gzip can shrink anything.
const LZ4_SHRINKAGE: u64 = 255;
const GZIP_SHRINKAGE: u64 = 1032;

/// The type of a page in its header, as far as it matters: one whose first value begins a row, and a dictionary.
const SECOND_VERSION: u64 = 3;
const DICTIONARY: u64 = 2;

/// The bytes of a column's pages in a row group.
pub(crate) struct PageInput {
    input: Input,
    compression: Compression,
    /// The most bytes of a page.
    most: u64,
    progress: Mutex<PageProgress>,
}

/// How far the pages of a column have been read.
#[derive(Debug)]
struct PageProgress {
    /// Where the header of the next page begins, and where the last page ends.
    next: u64,
    end: u64,
    /// What was too large.
    excess: Option<Excess>,
}

/// What a page's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PageHeader {
    kind: u64,
    packed: u64,
    unpacked: u64,
}

impl PageInput {
    /// The pages of `column`, each of which may have `most` bytes.
    pub(crate) fn new(input: Input, column: &ColumnChunkMetaData, most: u64) -> PageInput {
        // The footer was checked to be sound.
        let (next, length) = column.byte_range();
        PageInput {
            input,
            compression: column.compression(),
            most,
            progress: Mutex::new(PageProgress {
                next,
                end: next.saturating_add(length),
                excess: None,
            }),
        }
    }

    /// What was too large, if a page was.
    pub(crate) fn excess(&self) -> Option<Excess> {
        self.progress().excess
    }

    /// What the next page is; `None` after the last.
    pub(crate) fn next_page(&self) -> Result<Option<PageMetadata>> {
        let (next, end) = {
            let progress = self.progress();
            (progress.next, progress.end)
        };
        if next >= end {
            return Ok(None);
        }
        let kind = self.header(next)?.kind;
        Ok(Some(PageMetadata {
            // Only whether it is known matters: pages are not skipped here.
            num_rows: (kind == SECOND_VERSION).then_some(0),
            num_levels: None,
            is_dict: kind == DICTIONARY,
        }))
    }

    fn header(&self, start: u64) -> Result<PageHeader> {
        let length = BEGINNING.min(self.input.len().saturating_sub(start) as usize);
        let header = header(&self.input.get_bytes(start, length)?);
        header.ok_or_else(|| ParquetError::General("a page has no header".to_owned()))
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, PageProgress> {
        // Every field is right by itself.
        self.progress
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whether a page may unpack to more than its header says, and does.
    fn overflows(&self, page: &[u8]) -> bool {
        let packed = page.len() as u64;
        match self.compression {
            Compression::GZIP(_) if packed.saturating_mul(GZIP_SHRINKAGE) > self.most => {
                let mut unpacked = MultiGzDecoder::new(page).take(self.most + 1);
                // Wrong data are the decoder's to name.
                let length = io::copy(&mut unpacked, &mut io::sink());
                length.is_ok_and(|length| length > self.most)
            }
            Compression::LZ4 => {
                page.starts_with(&LZ4_FRAME) && packed.saturating_mul(LZ4_SHRINKAGE) > self.most
            }
            _ => false,
        }
    }
}

impl Length for PageInput {
    fn len(&self) -> u64 {
        self.input.len()
    }
}

impl ChunkReader for PageInput {
    type T = InputReader;

    /// Only headers are read from a place on without saying how far.
    fn get_read(&self, start: u64) -> Result<InputReader> {
        let PageHeader {
            packed, unpacked, ..
        } = self.header(start)?;
        let (bytes, most) = (packed.saturating_add(unpacked), self.most);
        if bytes > most {
            self.progress().excess = Some(Excess { bytes, most });
            return Err(ParquetError::General("a page is too large".to_owned()));
        }
        Ok(self.input.reader(start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let page = self.input.get_bytes(start, length)?;
        self.progress().next = start + length as u64;
        if self.overflows(&page) {
            let reason = "a page unpacks to more bytes than it says";
            return Err(ParquetError::General(reason.to_owned()));
        }
        Ok(page)
    }
}

/// The beginning of a page's header: its type, its bytes unpacked, and its bytes packed.
fn header(mut header: &[u8]) -> Option<PageHeader> {
    /// The next field, a number of 32 bits.
    const NEXT_NUMBER: u8 = 0x15;
    let mut number = || {
        let (&field, rest) = header.split_first()?;
        let (number, used) = varint(rest)?;
        header = &rest[used..];
        // The lowest bit is the sign, and no size has one.
        (field == NEXT_NUMBER && number & 1 == 0).then_some(number >> 1)
    };
    let (kind, unpacked, packed) = (number()?, number()?, number()?);
    Some(PageHeader {
        kind,
        packed,
        unpacked,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_header_is_read_and_anything_else_is_not() {
        // A data page of 300 bytes, 150 packed.
        let bytes = [0x15, 6, 0x15, 0xd8, 0x04, 0x15, 0xac, 0x02, 0x2c];
        let (kind, packed, unpacked) = (SECOND_VERSION, 150, 300);
        let expected = PageHeader {
            kind,
            packed,
            unpacked,
        };
        assert_eq!(header(&bytes), Some(expected));
        assert_eq!(header(&bytes[..6]), None);
        assert_eq!(header(&[0x15, 0, 0x16, 2, 0x15, 2]), None);
        assert_eq!(header(&[0x15, 0, 0x15, 1, 0x15, 2]), None);
    }
}
