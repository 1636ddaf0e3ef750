//! The IDX format, in which MNIST and its successors come: a header with an element type and
//! dimensions, then the elements, big-endian.
//!
//! The reader trusts nothing. A header is held against the size of the file before anything is read
//! on its word, and elements are streamed in blocks, so no file can make it use much memory.

use crate::DataError;
use crate::unpacked::Unpacked;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Size of the blocks that elements are handed over in: a multiple of every element's size, small
/// enough to stay in a core's cache.
const BLOCK: usize = 256 << 10;

/// The type of a file's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdxType {
    /// Unsigned bytes.
    U8,
    /// Signed bytes.
    I8,
    /// 16-bit integers.
    I16,
    /// 32-bit integers.
    I32,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl IdxType {
    fn from_code(code: u8) -> Option<IdxType> {
        match code {
            0x08 => Some(IdxType::U8),
            0x09 => Some(IdxType::I8),
            0x0b => Some(IdxType::I16),
            0x0c => Some(IdxType::I32),
            0x0d => Some(IdxType::F32),
            0x0e => Some(IdxType::F64),
            _ => None,
        }
    }

    /// Bytes of an element.
    pub fn size(self) -> usize {
        match self {
            IdxType::U8 | IdxType::I8 => 1,
            IdxType::I16 => 2,
            IdxType::I32 | IdxType::F32 => 4,
            IdxType::F64 => 8,
        }
    }
}

/// What a file declares that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdxHeader {
    /// The type of the elements.
    pub element: IdxType,
    /// The dimensions, the number of samples first. Never empty.
    pub dims: Vec<usize>,
}

impl IdxHeader {
    /// The number of samples.
    pub fn count(&self) -> usize {
        self.dims[0]
    }

    /// Bytes of the header itself.
    fn size(&self) -> u64 {
        4 + 4 * self.dims.len() as u64
    }

    /// Bytes of the whole content; `None` if no number can hold it.
    fn content(&self) -> Option<u64> {
        let elements = self
            .dims
            .iter()
            .try_fold(1u64, |all, &dim| all.checked_mul(dim as u64))?;
        elements
            .checked_mul(self.element.size() as u64)?
            .checked_add(self.size())
    }
}

/// An IDX file whose header has been read and found possible.
pub struct IdxReader<R = File> {
    header: IdxHeader,
    content: u64,
    input: Unpacked<R>,
}

impl IdxReader<File> {
    /// Opens the file `path`, plain or gzipped, and reads its header.
    ///
    /// # Errors
    /// When the file is missing, is no IDX file, or cannot hold what its header declares.
    pub fn open(path: &Path) -> Result<IdxReader, DataError> {
        IdxReader::over(Unpacked::open(path)?)
    }
}

impl<R: Read> IdxReader<R> {
    /// Reads `reader`, which gives the `stored` bytes of a file; errors call it `path`.
    ///
    /// # Errors
    /// As for [`IdxReader::open`].
    pub fn new(path: &Path, reader: R, stored: u64) -> Result<IdxReader<R>, DataError> {
        IdxReader::over(Unpacked::new(path, reader, stored)?)
    }

    fn over(mut input: Unpacked<R>) -> Result<IdxReader<R>, DataError> {
        let mut magic = [0; 4];
        input.fill_whole(&mut magic, 4)?;
        let not_idx = || DataError::NotIdx {
            path: input.path().to_owned(),
            found: magic,
        };
        let [0, 0, code, ranks @ (1..=u8::MAX)] = magic else {
            return Err(not_idx());
        };
        let element = IdxType::from_code(code).ok_or_else(not_idx)?;
        let mut dims = vec![0; 4 * usize::from(ranks)];
        input.fill_whole(&mut dims, 4 + 4 * u64::from(ranks))?;
        let dims = dims
            .as_chunks()
            .0
            .iter()
            .map(|dim| u32::from_be_bytes(*dim) as usize)
            .collect();
        let header = IdxHeader { element, dims };

        let path = || input.path().to_owned();
        let stored = input.stored();
        let Some(content) = header.content() else {
            return Err(DataError::TooLarge {
                path: path(),
                dims: header.dims,
                stored,
            });
        };
        match input.known_length() {
            Some(found) if found < content => Err(DataError::Truncated {
                path: path(),
                expected: content,
                found,
            }),
            Some(found) if found > content => Err(DataError::Trailing {
                path: path(),
                expected: content,
            }),
            _ if input.most() < content => Err(DataError::TooLarge {
                path: path(),
                dims: header.dims,
                stored,
            }),
            _ => Ok(IdxReader {
                header,
                content,
                input,
            }),
        }
    }

    /// What the file declares that it holds.
    pub fn header(&self) -> &IdxHeader {
        &self.header
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.input.path()
    }

    /// Size of the file as it is stored.
    pub(crate) fn stored(&self) -> u64 {
        self.input.stored()
    }

    /// Hands all elements to `sink`, as they are stored, in blocks of whole elements; then checks
    /// that the file ends where it should.
    ///
    /// # Errors
    /// When the file is truncated, corrupt or too long, or when `sink` refuses a block.
    pub fn for_each_block(
        mut self,
        mut sink: impl FnMut(&[u8]) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let mut left = self.content - self.header.size();
        let mut block = vec![0; left.min(BLOCK as u64) as usize];
        while left > 0 {
            let part = &mut block[..left.min(BLOCK as u64) as usize];
            self.input.fill_whole(part, self.content)?;
            sink(part)?;
            left -= part.len() as u64;
        }
        self.input.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Folder, gzipped, idx_bytes};
    use std::fs;

    fn read(path: &Path) -> Result<(IdxHeader, Vec<u8>), DataError> {
        let reader = IdxReader::open(path)?;
        let header = reader.header().clone();
        let mut bytes = Vec::new();
        reader.for_each_block(|block| {
            bytes.extend_from_slice(block);
            Ok(())
        })?;
        Ok((header, bytes))
    }

    #[test]
    fn plain_and_gzipped_files_are_told_apart_by_content_not_by_name() {
        let folder = Folder::new();
        let payload: Vec<u8> = (0..BLOCK * 2 + 100).map(|i| ((i * i) >> 3) as u8).collect();
        let content = idx_bytes(8, &[payload.len() as u32], &payload);
        let (plain, packed) = (folder.path().join("a.gz"), folder.path().join("b"));
        fs::write(&plain, &content).unwrap();
        // Several members in a row are one file, as `cat a.gz b.gz` makes them.
        let (first, second) = content.split_at(1000);
        fs::write(&packed, [gzipped(first), gzipped(second)].concat()).unwrap();
        for path in [plain, packed] {
            let (header, bytes) = read(&path).unwrap();
            assert_eq!(
                header,
                IdxHeader {
                    element: IdxType::U8,
                    dims: vec![payload.len()]
                }
            );
            assert!(bytes == payload, "{}", path.display());
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read(Path::new("/no/such/file")).unwrap_err().to_string();
        assert_eq!(error, "/no/such/file does not exist");
    }

    #[test]
    fn a_file_of_another_kind_is_refused_with_its_first_bytes() {
        let folder = Folder::new();
        let other_types = [0, 0, 7, 1, 0, 0, 0, 0];
        let no_dimensions = [0, 0, 8, 0];
        for bytes in [
            b"\x89PNG\r\n\x1a\n".as_slice(),
            &other_types,
            &no_dimensions,
        ] {
            for bytes in [bytes.to_vec(), gzipped(bytes)] {
                assert!(matches!(
                    read(&folder.file(&bytes)),
                    Err(DataError::NotIdx { .. })
                ));
            }
        }
        let error = read(&folder.file(b"\x89PNG")).unwrap_err().to_string();
        assert!(error.contains("[89, 50, 4e, 47]"), "{error}");
    }

    #[test]
    fn a_truncated_file_is_refused_with_its_path_and_both_lengths() {
        let folder = Folder::new();
        let content = idx_bytes(0x0c, &[10, 2], &[1; 80]);
        for keep in [0, 3, 4, 11, 12, 50, 91] {
            let path = folder.file(&content[..keep]);
            let plain = read(&path).unwrap_err();
            assert!(
                matches!(plain, DataError::Truncated { expected, found, .. }
                    if found == keep as u64 && expected == if keep < 4 { 4 } else if keep < 12 { 12 } else { 92 }),
                "{plain}"
            );
            assert!(
                plain.to_string().contains(path.to_str().unwrap()),
                "{plain}"
            );
            let packed = read(&folder.file(&gzipped(&content[..keep]))).unwrap_err();
            assert!(
                matches!(packed, DataError::Truncated { found, .. } if found == keep as u64),
                "{packed}"
            );
        }
    }

    #[test]
    fn every_cut_through_a_gzipped_file_is_refused() {
        let folder = Folder::new();
        let packed = gzipped(&idx_bytes(8, &[100], &[7; 100]));
        for keep in 2..packed.len() {
            let error = read(&folder.file(&packed[..keep])).unwrap_err();
            assert!(
                matches!(
                    error,
                    DataError::Truncated { .. }
                        | DataError::Gzip { .. }
                        | DataError::TooLarge { .. }
                ),
                "{keep}: {error}"
            );
        }
    }

    #[test]
    fn a_flipped_bit_in_a_gzipped_file_is_refused() {
        let folder = Folder::new();
        let payload: Vec<u8> = (0..2000u32).map(|i| ((i * 7919) >> 4) as u8).collect();
        let mut packed = gzipped(&idx_bytes(8, &[2000], &payload));
        let middle = packed.len() / 2;
        packed[middle] ^= 4;
        assert!(read(&folder.file(&packed)).is_err());
        packed[middle] ^= 4;
        let checksum = packed.len() - 8;
        packed[checksum] ^= 1;
        assert!(matches!(
            read(&folder.file(&packed)),
            Err(DataError::Gzip { decoded: 2008, .. })
        ));
    }

    #[test]
    fn bytes_after_the_end_are_refused() {
        let folder = Folder::new();
        let content = idx_bytes(8, &[3], &[1, 2, 3, 4]);
        for bytes in [gzipped(&content), content] {
            assert!(matches!(
                read(&folder.file(&bytes)),
                Err(DataError::Trailing { expected: 11, .. })
            ));
        }
    }

    #[test]
    fn a_header_that_promises_the_impossible_is_refused_at_once() {
        let folder = Folder::new();
        let overflow = idx_bytes(0x0e, &[u32::MAX; 3], &[0; 100]);
        assert!(matches!(
            IdxReader::open(&folder.file(&overflow)),
            Err(DataError::TooLarge { .. })
        ));
        let huge = gzipped(&idx_bytes(8, &[u32::MAX, 1000], &[0; 100]));
        let Err(error) = IdxReader::open(&folder.file(&huge)) else {
            panic!("accepted")
        };
        assert!(error.to_string().contains("4294967295x1000"), "{error}");
    }
}
