//! The rows of a file of text, whichever way they are written in it: cells by the names of their columns.

use crate::TableError;
use crate::csv_format::CsvFormat;
use crate::files::TableFile;
use crate::json_lines::JsonLines;
use crate::text_input::TextInput;
use csv::{ErrorKind, StringRecord};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// No line may be longer than this, whatever the memory: it would be a quote that is never closed.
const LONGEST_LINE: u64 = 64 << 20;
/// Bytes that a cell takes, even an empty one: its end, its column's name, and its number.
const CELL: u64 = 64;
/// Bytes that are read at once.
pub(crate) const BUFFER: usize = 64 << 10;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineFormat {
    Csv(CsvFormat),
    Json,
}

/// A file of which the names of the columns are known.
#[derive(Debug)]
pub(crate) struct Lines {
    name: String,
    rows: Rows,
    pub(crate) header: StringRecord,
    /// What the file's folders say of every line, for columns that the file does not have itself.
    partitions: Vec<String>,
}

#[derive(Debug)]
enum Rows {
    Csv(CsvLines),
    Json(JsonLines),
}

impl Lines {
    pub(crate) fn open(
        file: &TableFile,
        format: LineFormat,
        memory: u64,
    ) -> Result<Self, TableError> {
        let longest = (memory / CELL).clamp(BUFFER as u64, LONGEST_LINE);
        let (rows, mut header) = match format {
            LineFormat::Csv(format) => {
                let (lines, header) = CsvLines::open(file, format, memory, longest)?;
                (Rows::Csv(lines), header)
            }
            LineFormat::Json => {
                let (lines, header) = JsonLines::open(file, memory, longest)?;
                (Rows::Json(lines), header)
            }
        };
        let mut partitions = Vec::new();
        for (column, value) in &file.partitions {
            if header.iter().all(|name| name.trim() != column) {
                header.push_field(column);
                partitions.push(value.clone());
            }
        }
        Ok(Self {
            name: file.place.to_string(),
            rows,
            header,
            partitions,
        })
    }

    /// The names of the columns, in their order.
    pub(crate) fn names(&self) -> Vec<String> {
        self.header.iter().map(|name| name.trim().into()).collect()
    }

    /// Reads the next row into `record`; whether there was one.
    pub(crate) fn next(&mut self, record: &mut StringRecord) -> Result<bool, TableError> {
        let more = match &mut self.rows {
            Rows::Csv(lines) => lines.next(&self.name, record)?,
            Rows::Json(lines) => lines.next(&self.name, record)?,
        };
        if more {
            self.partitions
                .iter()
                .for_each(|value| record.push_field(value));
        }
        Ok(more)
    }
}

/// The lines of a CSV file, of which the first was read. `left` are bytes that may still be read for the current line.
#[derive(Debug)]
struct CsvLines {
    reader: csv::Reader<Metered>,
    left: Arc<AtomicU64>,
    longest: u64,
}

impl CsvLines {
    fn open(
        file: &TableFile,
        format: CsvFormat,
        memory: u64,
        longest: u64,
    ) -> Result<(Self, StringRecord), TableError> {
        let name = file.place.to_string();
        let input = TextInput::open(file, format.encoding, memory)?;
        let delimiter = format.delimiter(&input.head());
        let left = Arc::new(AtomicU64::new(longest + BUFFER as u64));
        let metered = Metered {
            input,
            left: Arc::clone(&left),
        };
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .comment(format.comment)
            .buffer_capacity(BUFFER)
            .from_reader(metered);
        let header = reader.headers();
        let header = header
            .map_err(|error| failed(&name, longest, error))?
            .clone();
        if header.is_empty() {
            return Err(TableError::Line {
                file: name,
                line: 1,
                reason: "the file is empty; its first line must name the columns".to_owned(),
            });
        }
        let lines = Self {
            reader,
            left,
            longest,
        };
        Ok((lines, header))
    }

    fn next(&mut self, name: &str, record: &mut StringRecord) -> Result<bool, TableError> {
        self.left
            .store(self.longest + BUFFER as u64, Ordering::Relaxed);
        let more = self.reader.read_record(record);
        more.map_err(|error| failed(name, self.longest, error))
    }
}

/// What is said of a line without end.
pub(crate) fn too_long(file: &str, longest: u64) -> TableError {
    TableError::damaged(
        file,
        format!(
            "a line goes on for more than {longest} bytes; is a quote left open? If not, allow more with data.memory"
        ),
    )
}

/// What the failure of a line says.
fn failed(file: &str, longest: u64, error: csv::Error) -> TableError {
    let line = error.position().map_or(1, csv::Position::line);
    let reason = match error.into_kind() {
        ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            return too_long(file, longest);
        }
        ErrorKind::Io(error) => return TableError::unreadable(file, error),
        ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => {
            let values = if len == 1 { "value" } else { "values" };
            match expected_len {
                1 => format!(
                    "it has {len} {values}, where the first line names 1 column; if that line is a comment, say by what such \
                     a line is known, as `comment = \"#\"`"
                ),
                _ => format!(
                    "it has {len} {values}, where the first line names {expected_len} columns"
                ),
            }
        }
        ErrorKind::Utf8 { err, .. } => format!(
            "value {} is not UTF-8 text; if the file was written in Western Europe or by Excel, say `encoding = \"latin-1\"`",
            err.field() + 1
        ),
        kind => format!("{kind:?}"),
    };
    TableError::Line {
        file: file.to_owned(),
        line,
        reason,
    }
}

/// Reads a file, but not without end for one line.
#[derive(Debug)]
struct Metered {
    input: TextInput,
    left: Arc<AtomicU64>,
}

impl Read for Metered {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let most = out.len().min(usize::try_from(left).unwrap_or(out.len()));
        let read = self.input.read(&mut out[..most])?;
        self.left.fetch_sub(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
