//! A file to read pieces of: on this machine, or at a place that answers for ranges of bytes.
//!
//! A Parquet file is read from its end, then page by page in each of its columns, a page's header first.
//! Asked for one by one, the pages of a remote file would each cost a round trip: so a remote file is
//! fetched in larger windows, of which the last few are kept, one for each column and one for the footer.

use crate::TableError;
use crate::files::TableFile;
use bytes::Bytes;
use lockstep_place::Place;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

/// A window is never smaller than this, however many columns share the memory: a request costs as much
/// as some tens of kilobytes do.
const LEAST_WINDOW: u64 = 64 << 10;
/// Nor larger: from here on the round trips hardly matter.
const MOST_WINDOW: u64 = 4 << 20;

/// A file whose pieces can be read.
#[derive(Debug, Clone)]
pub(crate) struct Input(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    size: u64,
    bytes: InputBytes,
}

#[derive(Debug)]
enum InputBytes {
    Local(File),
    Remote {
        place: Place,
        windows: Mutex<Windows>,
    },
}

/// The latest windows of a remote file.
#[derive(Debug)]
struct Windows {
    /// Bytes of a window.
    size: u64,
    /// How many are kept.
    most: usize,
    /// Where each begins; the one that was used last is last.
    kept: Vec<(u64, Bytes)>,
}

impl Input {
    /// Opens `file`, of which so many columns will be read at the same time, in about `memory` bytes.
    pub(crate) fn open(file: &TableFile, columns: usize, memory: u64) -> Result<Input, TableError> {
        let bytes = match file.place.local() {
            Some(path) => {
                InputBytes::Local(File::open(path).map_err(|error| TableError::Unsupported {
                    file: file.place.to_string(),
                    reason: error.to_string(),
                })?)
            }
            None => {
                let most = columns + 1;
                let size = (memory / most as u64).clamp(LEAST_WINDOW, MOST_WINDOW);
                let kept = Vec::new();
                InputBytes::Remote {
                    place: file.place.clone(),
                    windows: Mutex::new(Windows { size, most, kept }),
                }
            }
        };
        let size = file.size;
        Ok(Input(Arc::new(Inner { size, bytes })))
    }

    /// The bytes from `start` on, at least one and at most `most` of them; none at the end of the file.
    fn some(&self, start: u64, most: usize) -> Result<Bytes> {
        let inner = &*self.0;
        let most = (inner.size.saturating_sub(start)).min(most as u64);
        if most == 0 {
            return Ok(Bytes::new());
        }
        match &inner.bytes {
            InputBytes::Local(file) => {
                let mut bytes = vec![0; most as usize];
                file.read_exact_at(&mut bytes, start)?;
                Ok(bytes.into())
            }
            InputBytes::Remote { place, windows } => {
                // A window that a panicking thread left is as good as any: it is only ever replaced.
                let mut windows = windows
                    .lock()
                    .unwrap_or_else(|poisoned| poisoned.into_inner());
                let holds = |&(begin, ref bytes): &(u64, Bytes)| {
                    (begin..begin + bytes.len() as u64).contains(&start)
                };
                let window = match windows.kept.iter().position(holds) {
                    Some(at) => windows.kept.remove(at),
                    None => {
                        // The footer is read first, from the end: its window lies before it.
                        let begin = start.min(inner.size.saturating_sub(LEAST_WINDOW));
                        let length = windows.size.max(start - begin + most);
                        let end = inner.size.min(begin.saturating_add(length));
                        let bytes = place.read_range(begin..end).map_err(external)?;
                        if windows.kept.len() == windows.most {
                            windows.kept.remove(0);
                        }
                        (begin, bytes.into())
                    }
                };
                let (begin, bytes) = &window;
                let skip = (start - begin) as usize;
                let end = bytes.len().min(skip.saturating_add(most as usize));
                let piece = bytes.slice(skip..end);
                windows.kept.push(window);
                Ok(piece)
            }
        }
    }

    /// All bytes of a piece, which must lie within the file.
    fn piece(&self, start: u64, length: usize) -> Result<Bytes> {
        let size = self.0.size;
        if start
            .checked_add(length as u64)
            .is_none_or(|end| end > size)
        {
            return Err(ParquetError::EOF(format!(
                "it has {size} bytes, and {length} are expected from byte {start} on"
            )));
        }
        let first = self.some(start, length)?;
        if first.len() == length {
            return Ok(first);
        }
        // It begins in a window and goes on after its end.
        match &self.0.bytes {
            InputBytes::Local(_) => Err(ParquetError::EOF("it became shorter".to_owned())),
            InputBytes::Remote { place, .. } => {
                let rest = start + first.len() as u64..start + length as u64;
                let rest = place.read_range(rest).map_err(external)?;
                Ok([&first[..], &rest].concat().into())
            }
        }
    }

    /// Reads from `start` to the end.
    pub(crate) fn reader(&self, start: u64) -> InputReader {
        InputReader {
            input: self.clone(),
            at: start,
            piece: Bytes::new(),
        }
    }
}

/// Carries the error of a place through the decoder, which knows nothing of places.
fn external(error: lockstep_place::PlaceError) -> ParquetError {
    ParquetError::External(Box::new(error))
}

impl Length for Input {
    fn len(&self) -> u64 {
        self.0.size
    }
}

impl ChunkReader for Input {
    type T = InputReader;

    fn get_read(&self, start: u64) -> Result<InputReader> {
        Ok(self.reader(start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.piece(start, length)
    }
}

/// Reads a file in its order.
#[derive(Debug)]
pub(crate) struct InputReader {
    input: Input,
    at: u64,
    piece: Bytes,
}

impl Read for InputReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        /// Enough for the header of a page, of which most reads are.
        const AT_ONCE: usize = 8 << 10;
        if self.piece.is_empty() {
            self.piece = match self.input.some(self.at, AT_ONCE) {
                Ok(piece) => piece,
                Err(ParquetError::External(source)) => return Err(io::Error::other(source)),
                Err(error) => return Err(io::Error::other(error)),
            };
            self.at += self.piece.len() as u64;
        }
        let length = out.len().min(self.piece.len());
        out[..length].copy_from_slice(&self.piece.split_to(length));
        Ok(length)
    }
}
