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
use parquet::errors::{ParquetError, Result};
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

/// The bytes of a column's pages in a row group.
pub(crate) struct PageInput {
    input: Input,
    compression: Compression,
    /// The most bytes of a page.
    most: u64,
    /// The header that was read last, if one was, and what it says, if it is one: only headers are read from
    /// a place on without saying how far.
    header: Mutex<Option<Option<Sizes>>>,
}

/// What a page's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    packed: u64,
    unpacked: u64,
}

impl PageInput {
    pub(crate) fn new(input: Input, compression: Compression, most: u64) -> PageInput {
        PageInput {
            input,
            compression,
            most,
            header: Mutex::default(),
        }
    }

    /// Forgets the header that was read last.
    pub(crate) fn forget(&self) {
        *self.last() = None;
    }

    /// Checks the page whose header was read since [`forget`](PageInput::forget), if one was; `None` if it is
    /// no header.
    pub(crate) fn check(&self) -> Option<Result<(), Excess>> {
        let Some(header) = *self.last() else {
            return Some(Ok(()));
        };
        let Sizes { packed, unpacked } = header?;
        let (bytes, most) = (packed.saturating_add(unpacked), self.most);
        Some(match bytes > most {
            true => Err(Excess { bytes, most }),
            false => Ok(()),
        })
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<Option<Sizes>>> {
        // A header is set as a whole.
        self.header
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

    fn get_read(&self, start: u64) -> Result<InputReader> {
        let length = BEGINNING.min(self.input.len().saturating_sub(start) as usize);
        *self.last() = Some(sizes(&self.input.get_bytes(start, length)?));
        Ok(self.input.reader(start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let page = self.input.get_bytes(start, length)?;
        if self.overflows(&page) {
            let reason = "a page unpacks to more bytes than it says";
            return Err(ParquetError::General(reason.to_owned()));
        }
        Ok(page)
    }
}

/// The sizes at the beginning of a page's header: its type, its bytes unpacked, and its bytes packed.
fn sizes(mut header: &[u8]) -> Option<Sizes> {
    /// The next field, a number of 32 bits.
    const NEXT_NUMBER: u8 = 0x15;
    let mut number = || {
        let (&field, rest) = header.split_first()?;
        let (number, used) = varint(rest)?;
        header = &rest[used..];
        // The lowest bit is the sign, and no size has one.
        (field == NEXT_NUMBER && number & 1 == 0).then_some(number >> 1)
    };
    let (_type, unpacked, packed) = (number()?, number()?, number()?);
    Some(Sizes { packed, unpacked })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_of_a_header_are_read_and_anything_else_is_not() {
        // A data page of 300 bytes, 150 packed.
        let header = [0x15, 0, 0x15, 0xd8, 0x04, 0x15, 0xac, 0x02, 0x2c];
        let (packed, unpacked) = (150, 300);
        assert_eq!(sizes(&header), Some(Sizes { packed, unpacked }));
        assert_eq!(sizes(&header[..6]), None);
        assert_eq!(sizes(&[0x15, 0, 0x16, 2, 0x15, 2]), None);
        assert_eq!(sizes(&[0x15, 0, 0x15, 1, 0x15, 2]), None);
    }
}
