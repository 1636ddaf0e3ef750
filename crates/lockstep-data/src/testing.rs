//! Files for tests.

use crate::{ColumnNames, CsvFormat, DataError, Dataset, Source, TableFormat, TableSource};
use flate2::{Compression, write::GzEncoder};
use lockstep_base::fs::CacheDir;
use lockstep_place::{Access, Place};
use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The bytes of an IDX file.
pub(crate) fn idx_bytes(code: u8, dims: &[u32], payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, code, dims.len() as u8];
    bytes.extend(dims.iter().flat_map(|dim| dim.to_be_bytes()));
    bytes.extend_from_slice(payload);
    bytes
}

pub(crate) fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A folder with files and a cache, which goes away with it.
pub(crate) struct Folder {
    folder: TempDir,
    files: Cell<usize>,
}

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder {
            folder: tempfile::tempdir().unwrap(),
            files: Cell::new(0),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn cache(&self) -> CacheDir {
        CacheDir::at(&self.path().join("cache")).unwrap()
    }

    /// A file with a new name.
    pub(crate) fn file(&self, bytes: &[u8]) -> PathBuf {
        self.files.set(self.files.get() + 1);
        let path = self.path().join(format!("file-{}", self.files.get()));
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn idx(&self, code: u8, dims: &[u32], payload: &[u8]) -> PathBuf {
        self.file(&idx_bytes(code, dims, payload))
    }

    pub(crate) fn labels(&self, labels: &[u8]) -> PathBuf {
        self.idx(8, &[labels.len() as u32], labels)
    }

    pub(crate) fn open(&self, images: &Path, labels: &Path) -> Result<Dataset, DataError> {
        let (images, labels) = (images.to_owned(), Some(labels.to_owned()));
        Dataset::open(
            &Source::Idx {
                images,
                labels,
                class_names: None,
            },
            &self.cache(),
        )
    }

    /// The set of a table that is written as CSV, with the column `label` last.
    pub(crate) fn table(&self, text: &str) -> Dataset {
        let source = Source::Table(TableSource {
            place: place(&self.file(text.as_bytes())),
            format: TableFormat::Csv(CsvFormat::default()),
            columns: ColumnNames::default(),
            target: None,
            memory: 1 << 20,
        });
        Dataset::open(&source, &self.cache()).unwrap()
    }

    pub(crate) fn dataset(&self, images: &Path, labels: &Path) -> Dataset {
        self.open(images, labels).unwrap()
    }
}

/// A set of vectors of `width` numbers, by way of a CSV file.
pub(crate) fn vectors(numbers: &[f32], width: usize) -> (Folder, Dataset) {
    let folder = Folder::new();
    let names: Vec<_> = (0..width).map(|i| format!("x{i}")).collect();
    let mut text = format!("{},label\n", names.join(","));
    for row in numbers.chunks(width) {
        let cells: Vec<_> = row.iter().map(f32::to_string).collect();
        text += &format!("{},a\n", cells.join(","));
    }
    let set = folder.table(&text);
    (folder, set)
}

/// A local path as a place.
pub(crate) fn place(path: &Path) -> Place {
    Place::parse(path.to_str().unwrap(), &Access::default()).unwrap()
}

/// A BMP of one colour.
pub(crate) fn bmp(width: u32, height: u32, [red, green, blue]: [u8; 3]) -> Vec<u8> {
    let row = (3 * width).next_multiple_of(4) as usize;
    let pixels = row * height as usize;
    let mut bytes = b"BM".to_vec();
    for number in [54 + pixels as u32, 0, 54, 40, width, height] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend([1, 0, 24, 0]);
    bytes.extend([0; 24]);
    for _ in 0..height {
        let begin = bytes.len();
        for _ in 0..width {
            bytes.extend([blue, green, red]);
        }
        bytes.resize(begin + row, 0);
    }
    bytes
}
