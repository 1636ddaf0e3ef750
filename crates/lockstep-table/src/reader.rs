//! Reading: rows of numbers with a label and a path, file after file, in bounded memory.

use crate::batches;
use crate::csv_file::{self, CsvFile};
use crate::files::{TableFile, TableFormat, TableLayout, find_files};
use crate::parquet_file::ColumnFile;
use crate::{ColumnNames, TableError};
use lockstep_place::Place;
use std::collections::VecDeque;

/// Rows of a batch at most: more would not be read any faster.
pub(crate) const MOST_ROWS: usize = 8192;

/// Some rows of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RowBatch {
    /// The number of rows, at least 1.
    pub rows: usize,
    /// Numbers in a row, the same for all rows of all files.
    pub width: usize,
    /// The numbers, row after row. All are finite, but for gaps where they are kept: those are NaN.
    pub features: Vec<f32>,
    /// Cells that hold none of the categories of their column, and are gaps therefore: which of the feature columns,
    /// and what they hold.
    pub unseen: Vec<(usize, String)>,
    /// The label of each row, if there is a column for it.
    pub labels: Option<Vec<String>>,
    /// What is to be predicted of each row, row after row, as many numbers as there are columns for it. All are
    /// finite.
    pub numbers: Vec<f32>,
    /// How much each row counts, if there is a column for it; else empty. None is below 0.
    pub weights: Vec<f32>,
    /// The group of each row, if there is a column for it.
    pub groups: Option<Vec<String>>,
    /// The path of each row, if there is a column for it.
    pub paths: Option<Vec<String>>,
}

/// The names of all columns of `file`, in their order, read within about `memory` bytes.
///
/// # Errors
/// When the file cannot be read, or is not of this format.
pub fn column_names(
    file: &TableFile,
    format: TableFormat,
    memory: u64,
) -> Result<Vec<String>, TableError> {
    match format.layout() {
        TableLayout::Lines(lines) => csv_file::column_names(file, lines, memory),
        TableLayout::Columns(format) => batches::column_names(file, format, memory),
    }
}

/// Streams the rows of a table, in the order of its files and of the rows in each.
#[derive(Debug)]
pub struct TableReader {
    files: VecDeque<TableFile>,
    format: TableFormat,
    columns: ColumnNames,
    memory: u64,
    open: Option<(OpenedTable, TableFile)>,
    /// The columns of a sample's numbers as the first file has them, and its name, once it was opened.
    first: Option<(Vec<String>, String)>,
    /// The width of the rows, once one was seen, and the file that it was seen in.
    width: Option<(usize, String)>,
}

/// The file that is being read.
#[derive(Debug)]
enum OpenedTable {
    Columns(Box<ColumnFile>),
    Csv(Box<CsvFile>),
}

impl OpenedTable {
    fn name(&self) -> &str {
        match self {
            OpenedTable::Columns(file) => file.name(),
            OpenedTable::Csv(file) => file.name(),
        }
    }

    fn features(&self) -> &[String] {
        match self {
            OpenedTable::Columns(file) => file.features(),
            OpenedTable::Csv(file) => file.features(),
        }
    }
}

impl TableReader {
    /// Reads `columns` of the table at `place`: a file, or a folder of them as [`find_files`] finds them.
    /// Batches and what is needed to decode them take about `memory` bytes, unless a single row or a page
    /// of a Parquet file is larger than that.
    ///
    /// # Errors
    /// When there is no such table.
    pub fn open(
        place: &Place,
        format: TableFormat,
        columns: &ColumnNames,
        memory: u64,
    ) -> Result<TableReader, TableError> {
        Ok(TableReader::of_files(
            find_files(place, format)?,
            format,
            columns,
            memory,
        ))
    }

    /// Like [`open`](TableReader::open), for files that are already found.
    pub fn of_files(
        files: Vec<TableFile>,
        format: TableFormat,
        columns: &ColumnNames,
        memory: u64,
    ) -> TableReader {
        TableReader {
            files: files.into(),
            format,
            columns: columns.clone(),
            memory,
            open: None,
            first: None,
            width: None,
        }
    }

    /// The next rows; `None` after the last.
    ///
    /// # Errors
    /// When a file cannot be read, lacks a column, or holds what cannot be used; the error names the
    /// file, the column and the row. After an error the reader is of no use.
    pub fn next_batch(&mut self) -> Result<Option<RowBatch>, TableError> {
        loop {
            let Some((opened, file)) = &mut self.open else {
                let Some(file) = self.files.pop_front() else {
                    return Ok(None);
                };
                self.open = Some((self.open_next(&file)?, file));
                continue;
            };
            let batch = match opened {
                OpenedTable::Columns(file) => file.next_batch()?,
                OpenedTable::Csv(file) => file.next_batch()?,
            };
            let name = opened.name();
            let Some(batch) = batch else {
                file.check_unchanged()?;
                self.open = None;
                continue;
            };
            let (width, first) = self
                .width
                .get_or_insert_with(|| (batch.width, name.to_owned()));
            if batch.width != *width {
                let own = batch.width;
                let reason =
                    format!("its rows have {own} numbers, where those of {first} have {width}");
                return Err(TableError::columns(name, reason));
            }
            return Ok(Some(batch));
        }
    }

    /// The columns that a sample's numbers come from, in their order; none before the first batch.
    pub fn features(&self) -> &[String] {
        self.first.as_ref().map_or(&[], |(features, _)| features)
    }

    /// Opens a file, whose columns are those of the first in the order of the first, however they lie.
    fn open_next(&mut self, file: &TableFile) -> Result<OpenedTable, TableError> {
        let opened = self.open_file(file, &self.columns)?;
        let Some((first, first_file)) = &self.first else {
            self.first = Some((opened.features().to_vec(), opened.name().to_owned()));
            return Ok(opened);
        };
        if opened.features() == first {
            return Ok(opened);
        }
        let more = opened.features().iter().find(|name| !first.contains(name));
        if let Some(more) = more {
            return Err(TableError::one_more(opened.name(), more, first_file));
        }
        let named = ColumnNames {
            features: first.clone(),
            ..self.columns.clone()
        };
        self.open_file(file, &named)
    }

    fn open_file(
        &self,
        file: &TableFile,
        columns: &ColumnNames,
    ) -> Result<OpenedTable, TableError> {
        Ok(match self.format.layout() {
            TableLayout::Lines(lines) => {
                OpenedTable::Csv(Box::new(CsvFile::open(file, lines, columns, self.memory)?))
            }
            TableLayout::Columns(format) => OpenedTable::Columns(Box::new(ColumnFile::open(
                file,
                format,
                columns,
                self.memory,
            )?)),
        })
    }
}

impl Iterator for TableReader {
    type Item = Result<RowBatch, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}
