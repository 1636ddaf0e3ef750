//! A table as it is: named columns with the types that the file has, block after block.
//!
//! Where [`TableReader`](crate::TableReader) makes one row of `f32` of what a model learns from, this keeps whole
//! numbers whole, text as text and lists as lists. Parquet says the types of its columns; those of a CSV file are
//! found by reading it once before.

use crate::TableError;
use crate::files::{TableFile, TableFormat, TableLayout};
use crate::frame_csv::{self, CsvBlocks};
use crate::frame_parquet::{self, ColumnBlocks};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// One number of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FrameElement {
    /// True or false, a byte each.
    Bool,
    /// Whole numbers of so many bits, with a sign.
    Int8,
    /// 16 bits.
    Int16,
    /// 32 bits.
    Int32,
    /// 64 bits.
    Int64,
    /// Whole numbers of so many bits, without a sign. Text and bytes are made of these.
    UInt8,
    /// 16 bits.
    UInt16,
    /// 32 bits.
    UInt32,
    /// 64 bits.
    UInt64,
    /// Decimals of so many bits.
    Float16,
    /// 32 bits.
    Float32,
    /// 64 bits.
    Float64,
    /// A time as seconds since 1970, 64 bits.
    Seconds,
    /// As thousandths of a second.
    Milliseconds,
    /// As millionths.
    Microseconds,
    /// As billionths.
    Nanoseconds,
}

impl FrameElement {
    /// Bytes that it takes.
    pub fn size(self) -> usize {
        match self {
            Self::Bool | Self::Int8 | Self::UInt8 => 1,
            Self::Int16 | Self::UInt16 | Self::Float16 => 2,
            Self::Int32 | Self::UInt32 | Self::Float32 => 4,
            Self::Int64 | Self::UInt64 | Self::Float64 => 8,
            Self::Seconds | Self::Milliseconds | Self::Microseconds | Self::Nanoseconds => 8,
        }
    }

    /// What NumPy calls it.
    pub fn numpy(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::UInt8 => "uint8",
            Self::UInt16 => "uint16",
            Self::UInt32 => "uint32",
            Self::UInt64 => "uint64",
            Self::Float16 => "float16",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Seconds => "datetime64[s]",
            Self::Milliseconds => "datetime64[ms]",
            Self::Microseconds => "datetime64[us]",
            Self::Nanoseconds => "datetime64[ns]",
        }
    }
}

/// How many elements a cell of a column has, and what they are together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FrameCell {
    /// One.
    Single,
    /// A list of any length.
    List,
    /// Text: bytes that are UTF-8.
    Text,
    /// Bytes of any kind.
    Bytes,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameColumn {
    /// Its name.
    pub name: String,
    /// What its cells are made of.
    pub element: FrameElement,
    /// What a cell is.
    pub cell: FrameCell,
}

/// The columns of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FrameSchema {
    /// Those that are read.
    pub columns: Vec<FrameColumn>,
    /// Those that are not, since they are nested deeper than lists of numbers, and what they hold.
    pub left_out: Vec<(String, String)>,
}

/// The cells of a column in some rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FrameCells {
    /// The elements of all cells, one after the other, in the machine's own byte order.
    pub values: Vec<u8>,
    /// How many elements each cell has; empty if each has one.
    pub lengths: Vec<u32>,
    /// Whether each cell is there; empty if all are. The elements of one that is not are of no meaning.
    pub valid: Vec<bool>,
}

/// Some rows of a table: the cells of each column.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FrameBlock {
    /// How many rows, at least 1.
    pub rows: usize,
    /// As many as the schema has columns.
    pub columns: Vec<FrameCells>,
}

/// Streams the columns of a table, in the order of its files and of the rows in each.
#[derive(Debug)]
pub struct FrameReader {
    files: VecDeque<TableFile>,
    format: TableFormat,
    schema: FrameSchema,
    memory: u64,
    open: Option<(Blocks, TableFile)>,
}

#[derive(Debug)]
enum Blocks {
    Columns(ColumnBlocks),
    Csv(Box<CsvBlocks>),
}

impl FrameReader {
    /// Reads all columns of a table within about `memory` bytes.
    ///
    /// # Errors
    /// When a file cannot be read, or its columns are not those of the others.
    pub fn open(
        files: Vec<TableFile>,
        format: TableFormat,
        memory: u64,
    ) -> Result<Self, TableError> {
        let schema = match format.layout() {
            TableLayout::Lines(lines) => frame_csv::schema(&files, lines, memory)?,
            TableLayout::Columns(format) => frame_parquet::schema(&files, format, memory)?,
        };
        Ok(Self {
            files: files.into(),
            format,
            schema,
            memory,
            open: None,
        })
    }

    /// The columns.
    pub fn schema(&self) -> &FrameSchema {
        &self.schema
    }

    /// The next rows; `None` after the last.
    ///
    /// # Errors
    /// When a file cannot be read or holds what it should not; the error names it, the column and the row.
    pub fn next_block(&mut self) -> Result<Option<FrameBlock>, TableError> {
        loop {
            let Some((blocks, file)) = &mut self.open else {
                let Some(file) = self.files.pop_front() else {
                    return Ok(None);
                };
                let (schema, memory) = (&self.schema, self.memory);
                let blocks = match self.format.layout() {
                    TableLayout::Lines(lines) => {
                        Blocks::Csv(Box::new(CsvBlocks::open(&file, lines, schema, memory)?))
                    }
                    TableLayout::Columns(format) => {
                        Blocks::Columns(ColumnBlocks::open(&file, format, schema, memory)?)
                    }
                };
                self.open = Some((blocks, file));
                continue;
            };
            let block = match blocks {
                Blocks::Columns(blocks) => blocks.next_block(&self.schema)?,
                Blocks::Csv(blocks) => blocks.next_block(&self.schema)?,
            };
            if block.is_some() {
                return Ok(block);
            }
            file.check_unchanged()?;
            self.open = None;
        }
    }
}
