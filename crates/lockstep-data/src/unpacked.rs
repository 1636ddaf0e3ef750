//! A file's content, whether it is gzipped or not.
//!
//! Which it is shows in the first two bytes, never in the name. Content is streamed through the
//! reader's own buffers, so a small file that would unpack into a huge one costs no memory.

use crate::DataError;
use crate::file::regular;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Deflate cannot shrink data further than this: a match of 258 bytes takes two bits at best.
const MOST_SHRINKAGE: u64 = 1032;

/// How much of the stored file is read at once.
const READ_AHEAD: usize = 128 << 10;

/// The content of a file as it is read, from its beginning to its end.
pub(crate) struct Unpacked<R> {
    path: PathBuf,
    stored: u64,
    input: Input<R>,
    /// Bytes of content read so far.
    read: u64,
    /// Whether the compressed data ended in the middle.
    cut_off: bool,
}

enum Input<R> {
    Plain(BufReader<R>),
    Gzip(Box<MultiGzDecoder<BufReader<R>>>),
}

impl Unpacked<File> {
    /// Opens the file `path`.
    pub(crate) fn open(path: &Path) -> Result<Self, DataError> {
        regular(path)?;
        let file = File::open(path).map_err(DataError::io("open", path))?;
        let stored = file.metadata().map_err(DataError::io("open", path))?.len();
        Unpacked::new(path, file, stored)
    }
}

impl<R: Read> Unpacked<R> {
    /// Reads `reader`, which gives the `stored` bytes of the file `path`.
    pub(crate) fn new(path: &Path, reader: R, stored: u64) -> Result<Self, DataError> {
        let mut reader = BufReader::with_capacity(READ_AHEAD, reader);
        let beginning = reader.fill_buf().map_err(DataError::io("read", path))?;
        let input = if beginning.starts_with(&GZIP_MAGIC) {
            Input::Gzip(Box::new(MultiGzDecoder::new(reader)))
        } else {
            Input::Plain(reader)
        };
        Ok(Unpacked {
            path: path.to_owned(),
            stored,
            input,
            read: 0,
            cut_off: false,
        })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the file as it is stored.
    pub(crate) fn stored(&self) -> u64 {
        self.stored
    }

    /// Size of the content if that is known before it is read.
    pub(crate) fn known_length(&self) -> Option<u64> {
        match self.input {
            Input::Plain(_) => Some(self.stored),
            Input::Gzip(_) => None,
        }
    }

    /// The most bytes of content that a file of this size can have.
    pub(crate) fn most(&self) -> u64 {
        self.known_length()
            .unwrap_or(self.stored.saturating_mul(MOST_SHRINKAGE))
    }

    /// Reads until `buffer` is full or the content ends; returns how many bytes were read.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, DataError> {
        let mut filled = 0;
        while filled < buffer.len() && !self.cut_off {
            let result = match &mut self.input {
                Input::Plain(reader) => reader.read(&mut buffer[filled..]),
                Input::Gzip(decoder) => decoder.read(&mut buffer[filled..]),
            };
            match result {
                Ok(0) => break,
                Ok(count) => {
                    filled += count;
                    self.read += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.cut_off = self.ends_early(error)?,
            }
        }
        Ok(filled)
    }

    /// Tells compressed data that merely end too early from those that are wrong.
    fn ends_early(&self, error: io::Error) -> Result<bool, DataError> {
        use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        match (&self.input, error.kind()) {
            (Input::Gzip(_), UnexpectedEof) => Ok(true),
            (Input::Gzip(_), InvalidData | InvalidInput) => Err(self.corrupt(error.to_string())),
            _ => Err(DataError::io("read", &self.path)(error)),
        }
    }

    fn corrupt(&self, reason: String) -> DataError {
        DataError::Gzip {
            path: self.path.clone(),
            decoded: self.read,
            reason,
        }
    }

    /// Fills `buffer`, up to the content's end at `expected` bytes, which must not come earlier.
    pub(crate) fn fill_whole(&mut self, buffer: &mut [u8], expected: u64) -> Result<(), DataError> {
        if self.fill(buffer)? < buffer.len() {
            return Err(DataError::Truncated {
                path: self.path.clone(),
                expected,
                found: self.read,
            });
        }
        Ok(())
    }

    /// Checks that the content ends here, and that its checksum is right.
    pub(crate) fn finish(mut self) -> Result<(), DataError> {
        let expected = self.read;
        if self.fill(&mut [0])? > 0 {
            return Err(DataError::Trailing {
                path: self.path,
                expected,
            });
        }
        if self.cut_off {
            return Err(self.corrupt("the file ends before the checksum".to_owned()));
        }
        Ok(())
    }
}
