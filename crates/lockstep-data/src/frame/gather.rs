//! Rows of a table as a batch, laid out as Arrow lays out its arrays.
//!
//! So a reader that knows Arrow takes the columns as they lie, and NumPy those of numbers. True and false are a byte
//! each, which NumPy wants and Arrow does not.

use super::{Frame, StoredColumn};
use crate::DataError;
use crate::layout::ALIGN;

/// Where a column lies in the memory of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FramePart {
    /// Its values.
    pub values: usize,
    /// Of cells with several elements: where each ends, as `i32`, after a first one that is 0.
    pub ends: Option<usize>,
    /// Of columns with missing cells: which are there, a bit each, the lowest first.
    pub valid: Option<usize>,
}

/// How the batches of a table lie in memory, all of them alike.
#[derive(Debug, Clone)]
pub struct FrameBatch {
    parts: Vec<FramePart>,
    bytes: usize,
}

impl FrameBatch {
    /// A layout in which each of these batches has room.
    ///
    /// # Errors
    /// When the texts or lists of a column take more than 2 GiB in one batch.
    pub fn new<'a>(
        frame: &Frame,
        batches: impl Iterator<Item = &'a [u32]>,
    ) -> Result<Self, DataError> {
        let mut most = vec![0; frame.columns().len()];
        let mut rows = 0;
        for batch in batches {
            rows = rows.max(batch.len());
            for (most, column) in most.iter_mut().zip(frame.columns()) {
                let elements = match column.width {
                    Some(width) => width * batch.len(),
                    None => batch.iter().map(|&row| frame.cell(column, row).len()).sum(),
                };
                *most = elements.max(*most);
            }
        }
        let mut bytes = 0;
        let mut room = |wanted: usize| {
            let at = bytes;
            bytes += wanted.next_multiple_of(ALIGN);
            at
        };
        let mut parts = Vec::new();
        for (&elements, column) in most.iter().zip(frame.columns()) {
            if column.ends.is_some() && elements > i32::MAX as usize {
                return Err(DataError::LargeCells {
                    column: column.name.clone(),
                    rows,
                });
            }
            parts.push(FramePart {
                values: room(elements * column.element.size()),
                ends: column.ends.as_ref().map(|_| room((rows + 1) * 4)),
                valid: column.valid.as_ref().map(|_| room(rows.div_ceil(8))),
            });
        }
        Ok(Self { parts, bytes })
    }

    /// Where the columns lie.
    pub fn parts(&self) -> &[FramePart] {
        &self.parts
    }

    /// Bytes of a batch.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes these rows into `memory`.
    ///
    /// # Panics
    /// When they have no room: they must be one of the batches that the layout was made for.
    pub fn fill(&self, frame: &Frame, rows: &[u32], memory: &mut [u8]) {
        for (part, column) in self.parts.iter().zip(frame.columns()) {
            let size = column.element.size();
            let values = &frame.map.bytes()[column.values.clone()];
            let mut at = part.values;
            for (number, &row) in rows.iter().enumerate() {
                let cell = frame.cell(column, row);
                let cell = &values[cell.start * size..cell.end * size];
                memory[at..at + cell.len()].copy_from_slice(cell);
                at += cell.len();
                if let Some(ends) = part.ends {
                    let end = ((at - part.values) / size) as i32;
                    let to = ends + 4 * (number + 1);
                    memory[to..to + 4].copy_from_slice(&end.to_ne_bytes());
                }
            }
            if let Some(ends) = part.ends {
                memory[ends..ends + 4].fill(0);
            }
            if let (Some(to), Some(valid)) = (part.valid, &column.valid) {
                let valid = &frame.map.bytes()[valid.clone()];
                let bits = &mut memory[to..to + rows.len().div_ceil(8)];
                bits.fill(0);
                for (number, &row) in rows.iter().enumerate() {
                    bits[number / 8] |= (valid[row as usize] & 1) << (number % 8);
                }
            }
        }
    }
}

impl Frame {
    /// Which elements of a column belong to a row.
    fn cell(&self, column: &StoredColumn, row: u32) -> std::ops::Range<usize> {
        let row = row as usize;
        let Some(ends) = &column.ends else {
            let width = column.width.unwrap_or(0);
            return row * width..(row + 1) * width;
        };
        let ends = self.map.bytes()[ends.clone()].as_chunks::<8>().0;
        let end = |row: usize| u64::from_ne_bytes(ends[row]) as usize;
        let begin = if row == 0 { 0 } else { end(row - 1) };
        begin..end(row)
    }
}
