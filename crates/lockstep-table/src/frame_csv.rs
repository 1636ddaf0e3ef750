//! The columns of files of text as they are: numbers where every cell is one, else text.
//!
//! What a column holds is only known when all of it was read, so the files are read twice. A cell that is empty or
//! says nothing but spaces is missing from a column of numbers, and an empty text in one of texts.

use crate::TableError;
use crate::files::TableFile;
use crate::frame::{FrameBlock, FrameCell, FrameCells, FrameColumn, FrameElement, FrameSchema};
use crate::lines::{LineFormat, Lines};
use crate::reader::MOST_ROWS;
use csv::StringRecord;

/// What the cells of a column have been so far.
#[derive(Debug, Clone, Copy, Default)]
struct CellKinds {
    any: bool,
    no_bool: bool,
    no_int: bool,
    no_float: bool,
}

impl CellKinds {
    fn cell(&mut self, cell: &str) {
        let cell = cell.trim();
        if cell.is_empty() {
            return;
        }
        self.any = true;
        self.no_bool = self.no_bool || truth(cell).is_none();
        self.no_int = self.no_int || cell.parse::<i64>().is_err();
        self.no_float = self.no_float || cell.parse::<f64>().is_err();
    }

    fn form(self) -> (FrameElement, FrameCell) {
        let element = match self {
            CellKinds { any: false, .. } => return (FrameElement::UInt8, FrameCell::Text),
            CellKinds { no_bool: false, .. } => FrameElement::Bool,
            CellKinds { no_int: false, .. } => FrameElement::Int64,
            CellKinds {
                no_float: false, ..
            } => FrameElement::Float64,
            _ => return (FrameElement::UInt8, FrameCell::Text),
        };
        (element, FrameCell::Single)
    }
}

fn truth(cell: &str) -> Option<bool> {
    match cell {
        _ if cell.eq_ignore_ascii_case("true") => Some(true),
        _ if cell.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// The columns of all files, which must have the same names in each.
pub(crate) fn schema(
    files: &[TableFile],
    format: LineFormat,
    memory: u64,
) -> Result<FrameSchema, TableError> {
    let mut names: Option<(Vec<String>, String)> = None;
    let mut seen = Vec::new();
    for file in files {
        let name = file.place.to_string();
        let mut lines = Lines::open(file, format, memory)?;
        let own = lines.names();
        if let Some(again) = (1..own.len()).find(|&at| own[..at].contains(&own[at])) {
            return Err(TableError::twice(&name, &own[again]));
        }
        match &names {
            None => {
                seen = vec![CellKinds::default(); own.len()];
                names = Some((own, name.clone()));
            }
            Some((names, of)) if *names != own => {
                let reason = format!("its columns are not those of {of}");
                return Err(TableError::columns(&name, reason));
            }
            Some(_) => {}
        }
        let mut record = StringRecord::new();
        while lines.next(&mut record)? {
            for (seen, cell) in seen.iter_mut().zip(&record) {
                seen.cell(cell);
            }
        }
    }
    let names = names.map(|(names, _)| names).unwrap_or_default();
    let columns = names.into_iter().zip(seen).map(|(name, seen)| {
        let (element, cell) = seen.form();
        FrameColumn {
            name,
            element,
            cell,
        }
    });
    Ok(FrameSchema {
        columns: columns.collect(),
        left_out: Vec::new(),
    })
}

/// An open file.
#[derive(Debug)]
pub(crate) struct CsvBlocks {
    name: String,
    lines: Lines,
    record: StringRecord,
    /// Bytes of a block.
    memory: u64,
}

impl CsvBlocks {
    pub(crate) fn open(
        file: &TableFile,
        format: LineFormat,
        schema: &FrameSchema,
        memory: u64,
    ) -> Result<Self, TableError> {
        let name = file.place.to_string();
        let lines = Lines::open(file, format, memory)?;
        if lines.header.len() != schema.columns.len() {
            return Err(TableError::changed(name));
        }
        Ok(Self {
            name,
            lines,
            record: StringRecord::new(),
            memory: memory / 4,
        })
    }

    pub(crate) fn next_block(
        &mut self,
        schema: &FrameSchema,
    ) -> Result<Option<FrameBlock>, TableError> {
        let mut block = FrameBlock {
            rows: 0,
            columns: vec![FrameCells::default(); schema.columns.len()],
        };
        let mut bytes = 0;
        while block.rows < MOST_ROWS && bytes < self.memory {
            if !self.lines.next(&mut self.record)? {
                break;
            }
            let cells = schema.columns.iter().zip(&mut block.columns);
            for ((column, cells), cell) in cells.zip(&self.record) {
                let pushed = push(cells, column, cell, block.rows);
                pushed.ok_or_else(|| TableError::changed(&self.name))?;
            }
            block.rows += 1;
            bytes += self.record.as_slice().len() as u64 + 16 * schema.columns.len() as u64;
        }
        Ok((block.rows > 0).then_some(block))
    }
}

/// Adds a cell after `row` others; `None` if it is not what it was when the file was read first.
fn push(cells: &mut FrameCells, column: &FrameColumn, cell: &str, row: usize) -> Option<()> {
    if column.cell == FrameCell::Text {
        cells.values.extend_from_slice(cell.as_bytes());
        cells.lengths.push(u32::try_from(cell.len()).ok()?);
        return Some(());
    }
    let cell = cell.trim();
    if cell.is_empty() && cells.valid.is_empty() {
        cells.valid.resize(row, true);
    }
    if cell.is_empty() || !cells.valid.is_empty() {
        cells.valid.push(!cell.is_empty());
    }
    let cell = if cell.is_empty() { "0" } else { cell };
    match column.element {
        FrameElement::Bool => cells.values.push(u8::from(truth(cell).unwrap_or(false))),
        FrameElement::Int64 => cells
            .values
            .extend_from_slice(&cell.parse::<i64>().ok()?.to_ne_bytes()),
        _ => cells
            .values
            .extend_from_slice(&cell.parse::<f64>().ok()?.to_ne_bytes()),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use crate::frame::{FrameCell, FrameElement, FrameReader};
    use crate::{CsvFormat, TableFormat, find_files};
    use lockstep_place::{Access, Place};

    #[test]
    fn columns_are_numbers_where_every_cell_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        let text = "whole,real,flag,word,gap,none\n1,1,true,a,5,\n-2,2.5,False,\"b,c\",,\n";
        std::fs::write(&path, text).unwrap();
        let place = Place::parse(path.to_str().unwrap(), &Access::default()).unwrap();
        let format = TableFormat::Csv(CsvFormat::default());
        let files = find_files(&place, format).unwrap();
        let mut reader = FrameReader::open(files, format, 1 << 20).unwrap();
        let forms: Vec<_> = reader
            .schema()
            .columns
            .iter()
            .map(|column| (column.element, column.cell))
            .collect();
        let text = (FrameElement::UInt8, FrameCell::Text);
        let single = |element| (element, FrameCell::Single);
        let expected = [
            single(FrameElement::Int64),
            single(FrameElement::Float64),
            single(FrameElement::Bool),
            text,
            single(FrameElement::Int64),
            text,
        ];
        assert_eq!(forms, expected);
        let block = reader.next_block().unwrap().unwrap();
        assert_eq!(block.rows, 2);
        assert_eq!(block.columns[2].values, [1, 0]);
        assert_eq!(block.columns[3].values, b"ab,c");
        assert_eq!(block.columns[3].lengths, [1, 3]);
        assert_eq!(block.columns[4].valid, [true, false]);
        assert_eq!(block.columns[5].lengths, [0, 0]);
        assert!(reader.next_block().unwrap().is_none());
    }
}
