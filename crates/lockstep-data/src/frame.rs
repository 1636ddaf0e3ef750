//! A table as it is, decoded once: its columns, each mapped, of which any rows are gathered into a batch.
//!
//! The decoded file is one of the cache, as those of samples are: written aside and renamed, named after what it was
//! made from, with checksums that whoever opens the table by its source compares. Column after column lie the
//! values of all rows; of texts and lists also where each ends, and of columns with missing cells which are there.
//! What lies where is said in JSON at the end.

mod gather;
mod store;

pub use gather::{FrameBatch, FramePart};

use crate::DataError;
use crate::mapped::Mapped;
use crate::stamp::{Stamp, whole_place};
use lockstep_base::fs::CacheDir;
use lockstep_base::fs::hex;
use lockstep_place::Place;
use lockstep_table::{FrameCell, FrameElement, FrameReader, TableFormat, find_files};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Changes whenever the meaning of a decoded file does.
const VERSION: &str = "frame 1";

/// Where a table comes from. It can be told to another process, which is told the secrets of its place too.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FrameSource {
    /// The file, or a folder of them.
    #[serde(with = "lockstep_place::portable")]
    pub place: Place,
    /// How it is stored.
    pub format: TableFormat,
    /// Bytes that reading may take.
    pub memory: u64,
}

/// A table that was decoded and checked: where it lies and what tells it from others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecodedFrame {
    name: String,
    path: PathBuf,
    version: u64,
}

impl DecodedFrame {
    /// What a person calls the table.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A column of a decoded table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredColumn {
    /// Its name.
    pub name: String,
    /// What its cells are made of.
    pub element: FrameElement,
    /// What a cell is.
    pub cell: FrameCell,
    /// How many elements each cell has, if all have as many.
    pub width: Option<usize>,
    values: Range<usize>,
    /// Where the elements of each cell end, unless all have as many.
    ends: Option<Range<usize>>,
    /// Which cells are there, a byte each, unless all are.
    valid: Option<Range<usize>>,
}

/// What a decoded file says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Facts {
    identity: [u64; 4],
    rows: usize,
    columns: Vec<StoredColumn>,
    left_out: Vec<(String, String)>,
    /// Bytes of all columns, and where their checksums lie.
    bytes: usize,
    sums: Range<usize>,
}

/// An open table: mapped, shared with every process that opens the same one.
#[derive(Debug)]
pub struct Frame {
    name: String,
    path: PathBuf,
    map: Mapped,
    facts: Facts,
    version: u64,
}

impl Frame {
    /// Opens a table: from the decoded cache if it is there, else from its files. `progress` hears what may take a
    /// while, and which columns are left out.
    ///
    /// # Errors
    /// When the files are missing, damaged, or do not fit each other.
    pub fn open(
        source: &FrameSource,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, DataError> {
        let files = find_files(&source.place, source.format)?;
        let (mut at, mut identity) = (Stamp::default(), Stamp::default());
        let variant = format!("{VERSION} {:?}", source.format);
        at.piece(&whole_place(&source.place)?);
        at.piece(variant.as_bytes());
        identity.piece(variant.as_bytes());
        for file in &files {
            identity.entry(&file.place.to_string(), file.size, &file.version);
            let local = file.place.local();
            local.map_or(Ok(()), |path| identity.file(path))?;
        }
        let identity = identity.identity();
        let file = hex::encode(&at.bytes()[..16]);
        let path = cache.folder("decoded")?.join(file);
        let name = source.place.to_string();
        let fresh = |frame: &Frame| frame.facts.identity == identity;
        let found = store::open(&name, &path, true).filter(fresh);
        let frame = match found {
            Some(frame) => frame,
            None => {
                progress(&format!("decoding {name}"));
                let reader = FrameReader::open(files, source.format, source.memory)?;
                store::write(&path, reader, identity, &name)?;
                let made = store::open(&name, &path, false).filter(fresh);
                made.ok_or_else(|| gone(&name, &path))?
            }
        };
        for (column, held) in &frame.facts.left_out {
            progress(&format!(
                "{name}: the column `{column}` is left out, since it holds {held}"
            ));
        }
        Ok(frame)
    }

    /// Opens a table that was opened and checked before.
    ///
    /// # Errors
    /// When it is no longer there.
    pub fn reopen(told: &DecodedFrame) -> Result<Self, DataError> {
        let frame = store::open(&told.name, &told.path, false);
        let frame = frame.filter(|frame| frame.version == told.version);
        frame.ok_or_else(|| gone(&told.name, &told.path))
    }

    /// What another process opens it by.
    pub fn decoded(&self) -> DecodedFrame {
        DecodedFrame {
            name: self.name.clone(),
            path: self.path.clone(),
            version: self.version,
        }
    }

    /// How many rows it has, at least 1.
    #[allow(
        clippy::len_without_is_empty,
        reason = "a table without rows is refused"
    )]
    pub fn len(&self) -> usize {
        self.facts.rows
    }

    /// Its columns.
    pub fn columns(&self) -> &[StoredColumn] {
        &self.facts.columns
    }
}

fn gone(set: &str, path: &Path) -> DataError {
    DataError::DecodedGone {
        set: set.to_owned(),
        path: path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CsvFormat;
    use crate::testing::{Folder, place};

    fn csv(folder: &Folder, text: &str) -> FrameSource {
        FrameSource {
            place: place(&folder.file(text.as_bytes())),
            format: TableFormat::Csv(CsvFormat::default()),
            memory: 1 << 20,
        }
    }

    fn open(source: &FrameSource, folder: &Folder) -> Frame {
        Frame::open(source, &folder.cache(), &mut |_| {}).unwrap()
    }

    #[test]
    fn rows_are_gathered_in_any_order_with_their_texts_and_gaps() {
        let folder = Folder::new();
        let source = csv(&folder, "n,word,gap\n10,a,1\n20,bcd,\n30,,3\n");
        let frame = open(&source, &folder);
        assert_eq!(frame.len(), 3);
        let batch = FrameBatch::new(&frame, [&[1, 0][..], &[2]].into_iter()).unwrap();
        let mut memory = vec![0xff; batch.bytes()];
        batch.fill(&frame, &[1, 0], &mut memory);
        let [n, word, gap] = batch.parts() else {
            panic!("three columns");
        };
        let numbers = |at: usize| -> Vec<i64> {
            let chunks = memory[at..at + 16].as_chunks().0;
            chunks
                .iter()
                .map(|chunk| i64::from_ne_bytes(*chunk))
                .collect()
        };
        assert_eq!(numbers(n.values), [20, 10]);
        let ends: Vec<i32> = memory[word.ends.unwrap()..][..12]
            .as_chunks()
            .0
            .iter()
            .map(|chunk| i32::from_ne_bytes(*chunk))
            .collect();
        assert_eq!(ends, [0, 3, 4]);
        assert_eq!(&memory[word.values..][..4], b"bcda");
        assert_eq!(memory[gap.valid.unwrap()], 0b10);
        assert_eq!(n.values % 64, 0);
    }

    #[test]
    fn a_decoded_table_is_used_again_until_its_file_changes_or_it_is_damaged() {
        let folder = Folder::new();
        let source = csv(&folder, "n\n1\n2\n");
        let first = open(&source, &folder);
        let told = first.decoded();
        assert_eq!(open(&source, &folder).decoded(), told);
        assert_eq!(Frame::reopen(&told).unwrap().len(), 2);
        let whole = std::fs::read(&first.path).unwrap();
        for at in [0, 70, whole.len() / 2, whole.len() - 9] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&first.path, &damaged).unwrap();
            open(&source, &folder);
            assert!(std::fs::read(&first.path).unwrap() == whole, "byte {at}");
        }
        std::fs::write(source.place.local().unwrap(), "n\n1\n2\n3\n").unwrap();
        assert_eq!(open(&source, &folder).len(), 3);
        assert!(Frame::reopen(&told).is_err());
    }

    #[test]
    fn a_table_without_rows_is_refused() {
        let folder = Folder::new();
        let opened = Frame::open(&csv(&folder, "n\n"), &folder.cache(), &mut |_| {});
        let said = opened.unwrap_err().to_string();
        assert!(said.contains("the table has no rows"), "{said}");
    }
}
