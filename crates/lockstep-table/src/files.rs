//! The files of a table: one, or all of a kind below a folder.

use crate::batches::ColumnFormat;
use crate::lines::LineFormat;
use crate::{CsvFormat, TableError};
use lockstep_place::Place;
use serde::{Deserialize, Serialize};

/// How a table is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TableFormat {
    /// Parquet, whoever wrote it; compressed with Snappy, zstd, gzip or LZ4, or not at all.
    Parquet,
    /// Arrow's own files, which are Feather's too; compressed with LZ4 or zstd, or not at all.
    Arrow,
    /// Lines of values, the first of which names the columns.
    Csv(CsvFormat),
    /// An object a line, whose keys are the columns.
    JsonLines,
}

impl TableFormat {
    /// How the names of its files end, in lower case.
    fn endings(self) -> &'static [&'static str] {
        match self {
            TableFormat::Parquet => &[".parquet", ".pq"],
            TableFormat::Arrow => &[".arrow", ".feather", ".ipc"],
            TableFormat::Csv(_) => &[".csv", ".tsv", ".csv.gz", ".tsv.gz"],
            TableFormat::JsonLines => &[".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"],
        }
    }

    fn kind(self) -> &'static str {
        match self {
            TableFormat::Parquet => ".parquet",
            TableFormat::Arrow => ".arrow",
            TableFormat::Csv(_) => ".csv",
            TableFormat::JsonLines => ".jsonl",
        }
    }

    /// Whether its rows are text, or its columns are stored.
    pub(crate) fn layout(self) -> TableLayout {
        match self {
            TableFormat::Parquet => TableLayout::Columns(ColumnFormat::Parquet),
            TableFormat::Arrow => TableLayout::Columns(ColumnFormat::Arrow),
            TableFormat::Csv(format) => TableLayout::Lines(LineFormat::Csv(format)),
            TableFormat::JsonLines => TableLayout::Lines(LineFormat::Json),
        }
    }
}

/// How the files of a table are read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TableLayout {
    Lines(LineFormat),
    Columns(ColumnFormat),
}

/// One file of a table.
#[derive(Debug, Clone)]
pub struct TableFile {
    /// Where it lies.
    pub place: Place,
    /// Its size in bytes.
    pub size: u64,
    /// Another one when its content is.
    pub version: String,
    /// What its folders say of all its rows: the folder `year=2024` is a column `year`.
    pub partitions: Vec<(String, String)>,
}

impl TableFile {
    /// The file at `place`, if there is one.
    pub(crate) fn at(place: &Place) -> Result<Option<TableFile>, TableError> {
        Ok(place.entry()?.map(|entry| TableFile {
            place: place.clone(),
            size: entry.size,
            version: entry.version,
            partitions: Vec::new(),
        }))
    }

    /// Checks that the file, which was read piece by piece, is still the one that it was: all pieces must have been
    /// of one version.
    pub(crate) fn check_unchanged(&self) -> Result<(), TableError> {
        match self.place.entry()? {
            Some(now) if now.version == self.version => Ok(()),
            _ => Err(TableError::changed(self.place.to_string())),
        }
    }
}

/// The files of the table at `place`: that file whatever its name, or the files of the format's kind
/// below that folder, sorted by their paths. Hidden files and those that Spark and others keep beside
/// the data, whose names or folders begin with `.` or `_`, are left out.
///
/// # Errors
/// When there is nothing at `place`, nothing of the kind below it, or it cannot be reached.
pub fn find_files(place: &Place, format: TableFormat) -> Result<Vec<TableFile>, TableError> {
    if let Some(file) = TableFile::at(place)? {
        return Ok(vec![file]);
    }
    if place.local().is_some_and(|path| !path.exists()) {
        return Err(TableError::Missing {
            place: place.to_string(),
        });
    }
    let mut files = Vec::new();
    for entry in place.list()? {
        let name = entry.path.to_lowercase();
        let ends = format.endings().iter().any(|ending| name.ends_with(ending));
        if ends
            && !entry
                .path
                .split('/')
                .any(|part| part.starts_with(['.', '_']))
        {
            files.push(TableFile {
                place: place.join(&entry.path)?,
                size: entry.size,
                version: entry.version,
                partitions: partitions(&entry.path),
            });
        }
    }
    if files.is_empty() {
        return Err(TableError::NoFiles {
            place: place.to_string(),
            kind: format.kind(),
        });
    }
    Ok(files)
}

/// The columns that the folders of a path within a table stand for, as Hive and Spark write them.
fn partitions(path: &str) -> Vec<(String, String)> {
    /// What stands for a gap.
    const NOTHING: &str = "__HIVE_DEFAULT_PARTITION__";
    let folders = path.split('/').rev().skip(1);
    let pairs = folders.filter_map(|folder| {
        let (name, value) = folder
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())?;
        let value = if value == NOTHING { "" } else { value };
        Some((unescaped(name), unescaped(value)))
    });
    let mut pairs: Vec<_> = pairs.collect();
    pairs.reverse();
    pairs
}

/// The text in which `%20` is a space.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_place::Access;
    use std::fs;

    #[test]
    fn folders_that_say_a_value_are_columns() {
        let pairs = |path: &str| {
            let pairs = partitions(path).into_iter();
            pairs
                .map(|(name, value)| format!("{name}:{value}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            pairs("year=2024/town=New%20York/a.csv"),
            ["year:2024", "town:New York"]
        );
        assert_eq!(pairs("x/k=__HIVE_DEFAULT_PARTITION__/a=b.csv"), ["k:"]);
        assert_eq!(pairs("=1/100%/a.csv"), [""; 0]);
    }

    #[test]
    fn the_files_of_a_folder_come_sorted_and_without_what_lies_beside_them() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap();
        let error = find_files(&place, TableFormat::Parquet)
            .unwrap_err()
            .to_string();
        assert!(error.contains("holds no .parquet file"), "{error}");
        for name in [
            "b.parquet",
            "_SUCCESS",
            "_metadata.parquet",
            ".b.parquet.crc",
            ".hidden.parquet",
            "a/part-1.PARQUET",
            "_temporary/0.parquet",
            "notes.csv",
        ] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let names = |format| -> Vec<String> {
            let files = find_files(&place, format).unwrap();
            let name = |file: &TableFile| {
                let path = file
                    .place
                    .local()
                    .unwrap()
                    .strip_prefix(folder.path())
                    .unwrap();
                path.to_str().unwrap().to_owned()
            };
            files.iter().map(name).collect()
        };
        assert_eq!(
            names(TableFormat::Parquet),
            ["a/part-1.PARQUET", "b.parquet"]
        );
        assert_eq!(names(TableFormat::Csv(CsvFormat::default())), ["notes.csv"]);
        // A file that is named is read whatever its name.
        let file = find_files(&place.join("notes.csv").unwrap(), TableFormat::Parquet).unwrap();
        assert_eq!(file[0].size, 1);
        let error = find_files(&place.join("nope").unwrap(), TableFormat::Parquet).unwrap_err();
        assert!(
            error.to_string().ends_with("nope does not exist"),
            "{error}"
        );
    }
}
