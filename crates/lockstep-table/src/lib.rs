//! Tables of samples: Parquet in and out, Arrow, CSV and JSON lines in.
//!
//! What Lockstep writes, it writes as Parquet that any reader of the format opens with sensible types:
//! embeddings ([`write_part`]) and predictions ([`write_table`]), the same bytes for the same rows
//! on every machine. What others wrote, [`TableReader`] streams as rows of `f32` with a label and a
//! path each, from one file or a folder of them, here or in an object store, in memory that the caller
//! bounds; [`FrameReader`] streams all its columns as they are. A
//! [`RowReader`] makes the same numbers of rows that are in memory. Every value is checked on the way, and what is wrong is named with its file, column and row.

mod arrow_buffers;
mod arrow_file;
mod batches;
mod budget;
mod cell_form;
mod cells;
mod columns;
mod csv_file;
mod csv_format;
mod each_cell;
mod error;
mod files;
mod footer;
mod frame;
mod frame_csv;
mod frame_parquet;
mod input;
mod json_lines;
mod kept;
mod kind;
mod lines;
mod look;
mod page_input;
mod pages;
mod parquet_file;
mod reader;
mod row_reader;
mod runs;
mod seen;
mod text_input;
mod time;
mod whole_numbers;
mod write;

pub use cell_form::CellForm;
pub use columns::{ColumnNames, Gaps};
pub use csv_format::{CsvFormat, TextEncoding};
pub use error::TableError;
pub use files::{TableFile, TableFormat, find_files};
pub use footer::{Footer, footer, metadata};
pub use frame::{
    FrameBlock, FrameCell, FrameCells, FrameColumn, FrameElement, FrameReader, FrameSchema,
};
pub use kept::{KeptColumn, KeptKind, keep_columns};
pub use kind::{ColumnKind, ColumnType, InputColumn, LeftOut, sort_values};
pub use look::{Looked, look};
pub use reader::{RowBatch, TableReader, column_names};
pub use row_reader::{Cell, RowReader};
pub use time::TimeForm;
pub use whole_numbers::{WholeNumbers, whole_numbers};
pub use write::{EmbeddingPart, WrittenCell, WrittenColumn, write_part, write_table};
