//! Writing a decoded table and opening it.

use super::{Facts, Frame, StoredColumn};
use crate::DataError;
use crate::builder::{Aligned, BLOCK, Spill};
use crate::checksums::{self, checksum};
use crate::layout::ALIGN;
use crate::mapped::Mapped;
use crate::sweep::sweep;
use lockstep_base::fs::AtomicFile;
use lockstep_table::{FrameCell, FrameCells, FrameColumn, FrameReader};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;

/// "lockfram" as a number; read in another byte order it is another number.
const MAGIC: u64 = 0x6c6f_636b_6672_616d;
/// The last bytes of a file: how long the facts are, their checksum, the checksum of the checksums, and the magic.
const TRAILER: usize = 4 * 8;

/// A column that is being written. What comes is set aside on the disk, since columns lie one after the other.
struct Column {
    about: FrameColumn,
    values: Spill,
    ends: Spill,
    valid: Spill,
    missing: bool,
    /// Elements so far.
    elements: u64,
    width: Width,
}

/// How many elements the cells of a column have had so far.
#[derive(Clone, Copy)]
enum Width {
    Unknown,
    All(u32),
    Differs,
}

impl Column {
    fn push(&mut self, rows: usize, cells: &FrameCells) -> io::Result<()> {
        self.values.write(&cells.values)?;
        for &length in &cells.lengths {
            self.elements += u64::from(length);
            self.ends.write(&self.elements.to_ne_bytes())?;
            self.width = match self.width {
                Width::Unknown => Width::All(length),
                Width::All(width) if width == length => Width::All(width),
                _ => Width::Differs,
            };
        }
        match cells.valid.is_empty() {
            true => self.valid.write(&vec![1; rows]),
            false => {
                self.missing |= cells.valid.contains(&false);
                let valid: Vec<u8> = cells.valid.iter().map(|&is| u8::from(is)).collect();
                self.valid.write(&valid)
            }
        }
    }

    fn finish(mut self, out: &mut Aligned<'_>) -> io::Result<StoredColumn> {
        let width = match (self.about.cell, self.width) {
            (FrameCell::Single, _) => Some(1),
            // Lists of one length are rows of a matrix.
            (FrameCell::List, Width::All(width)) if width > 0 && !self.missing => {
                Some(width as usize)
            }
            _ => None,
        };
        let values = put(&mut self.values, out)?;
        let ends = match width {
            Some(_) => None,
            None => Some(put(&mut self.ends, out)?),
        };
        let valid = match self.missing {
            true => Some(put(&mut self.valid, out)?),
            false => None,
        };
        Ok(StoredColumn {
            name: self.about.name,
            element: self.about.element,
            cell: self.about.cell,
            width,
            values,
            ends,
            valid,
        })
    }
}

fn put(part: &mut Spill, out: &mut Aligned<'_>) -> io::Result<Range<usize>> {
    out.align()?;
    let begin = out.at;
    part.replay(|block| out.write(block))?;
    Ok(begin..out.at)
}

/// Decodes a table into the file `target`, whose folder exists.
pub(super) fn write(
    target: &Path,
    mut reader: FrameReader,
    identity: [u64; 4],
    name: &str,
) -> Result<(), DataError> {
    let folder = target.parent().unwrap_or(Path::new("."));
    sweep(folder);
    let mut columns = Vec::new();
    for about in reader.schema().columns.clone() {
        columns.push(Column {
            about,
            values: Spill::new(folder)?,
            ends: Spill::new(folder)?,
            valid: Spill::new(folder)?,
            missing: false,
            elements: 0,
            width: Width::Unknown,
        });
    }
    let left_out = reader.schema().left_out.clone();
    let failed = DataError::io("write", target);
    let mut rows = 0;
    while let Some(block) = reader.next_block()? {
        lockstep_base::progress::advance();
        rows += block.rows;
        for (column, cells) in columns.iter_mut().zip(&block.columns) {
            column.push(block.rows, cells).map_err(&failed)?;
        }
    }
    // Order is kept in numbers of 32 bits.
    let reason = match (rows, columns.is_empty()) {
        (0, _) => Some("the table has no rows"),
        (_, true) => Some("the table has no columns of numbers, texts or lists of numbers"),
        (rows, _) if rows > u32::MAX as usize => Some("the table has more than 4,294,967,295 rows"),
        _ => None,
    };
    if let Some(reason) = reason {
        return Err(DataError::NoSamples {
            place: name.to_owned(),
            reason,
        });
    }
    let mut file = AtomicFile::create(target)?;
    seal(&mut file, columns, (identity, rows, left_out)).map_err(failed)?;
    // Not synced: checksums tell if it is whole.
    Ok(file.commit_unsynced()?)
}

fn seal(
    file: &mut AtomicFile,
    columns: Vec<Column>,
    (identity, rows, left_out): ([u64; 4], usize, Vec<(String, String)>),
) -> io::Result<()> {
    let mut out = Aligned {
        file: BufWriter::with_capacity(BLOCK, &mut *file),
        at: 0,
    };
    let columns = columns.into_iter();
    let columns: Vec<StoredColumn> = columns
        .map(|column| column.finish(&mut out))
        .collect::<io::Result<_>>()?;
    out.align()?;
    out.file.flush()?;
    let bytes = out.at;
    drop(out);
    let sums = checksums::of_file(&File::open(file.temporary())?, bytes)?;
    let sums: Vec<u8> = sums.into_iter().flat_map(u64::to_ne_bytes).collect();
    let facts = Facts {
        identity,
        rows,
        columns,
        left_out,
        bytes,
        sums: bytes..bytes + sums.len(),
    };
    let text = serde_json::to_vec(&facts)?;
    let trailer = [text.len() as u64, checksum(&text), checksum(&sums), MAGIC];
    let mut out = Aligned {
        file: BufWriter::with_capacity(BLOCK, file),
        at: bytes,
    };
    out.write(&sums)?;
    out.write(&text)?;
    out.write(trailer.map(u64::to_ne_bytes).as_flattened())?;
    out.file.flush()
}

/// Opens a decoded file, if it is whole; with `check`, every byte of it is read.
pub(super) fn open(name: &str, path: &Path, check: bool) -> Option<Frame> {
    let file = File::open(path).ok()?;
    let map = Mapped::of(&file).ok()?;
    let bytes = map.bytes();
    let at = bytes.len().checked_sub(TRAILER)?;
    let trailer = bytes[at..].as_chunks().0;
    let [length, sum, sums_sum, magic] = [0, 1, 2, 3].map(|at| u64::from_ne_bytes(trailer[at]));
    let begin = at.checked_sub(usize::try_from(length).ok()?)?;
    let text = &bytes[begin..at];
    if magic != MAGIC || checksum(text) != sum {
        return None;
    }
    let facts: Facts = serde_json::from_slice(text).ok()?;
    let sums = bytes.get(facts.sums.clone())?;
    if checksum(sums) != sums_sum || facts.rows == 0 || !sound(bytes, &facts) {
        return None;
    }
    let sums: Vec<u64> = sums
        .as_chunks()
        .0
        .iter()
        .map(|sum| u64::from_ne_bytes(*sum))
        .collect();
    if check && !checksums::agree(&file, facts.bytes, &sums) {
        return None;
    }
    Some(Frame {
        name: name.to_owned(),
        path: path.to_owned(),
        version: sum ^ sums_sum.rotate_left(1),
        map,
        facts,
    })
}

/// Whether every cell lies within the file: rows are gathered without looking again.
fn sound(bytes: &[u8], facts: &Facts) -> bool {
    let rows = facts.rows;
    facts.columns.iter().all(|column| {
        let size = column.element.size();
        let within = |range: &Range<usize>| {
            range.start <= range.end
                && range.end <= facts.bytes.min(bytes.len())
                && range.start.is_multiple_of(ALIGN)
        };
        let valid = column.valid.as_ref();
        if !within(&column.values)
            || !valid.is_none_or(|valid| within(valid) && valid.len() == rows)
        {
            return false;
        }
        match (&column.ends, column.width) {
            (None, Some(width)) => width
                .checked_mul(rows * size)
                .is_some_and(|length| length == column.values.len()),
            (Some(ends), None) if within(ends) && ends.len() == rows * 8 => {
                let ends = bytes[ends.clone()].as_chunks().0.iter();
                let mut last = 0;
                let grows = ends.map(|end| u64::from_ne_bytes(*end)).all(|end| {
                    let grows = end >= last;
                    last = end;
                    grows
                });
                grows && last.checked_mul(size as u64) == Some(column.values.len() as u64)
            }
            _ => false,
        }
    })
}
