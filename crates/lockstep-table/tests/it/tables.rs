//! Tables for tests.

use lockstep_place::{Access, Place};
use lockstep_table::{ColumnNames, RowBatch, TableError, TableReader};
use std::fs;
use tempfile::TempDir;

/// A folder with these files.
pub(crate) fn folder(files: &[(&str, Vec<u8>)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

/// The folder as a place.
pub(crate) fn place(folder: &TempDir) -> Place {
    Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap()
}

/// Columns by their names.
pub(crate) fn columns(features: &[&str], label: Option<&str>, path: Option<&str>) -> ColumnNames {
    ColumnNames {
        features: features.iter().map(|&name| name.to_owned()).collect(),
        label: label.map(str::to_owned),
        path: path.map(str::to_owned),
        ..ColumnNames::default()
    }
}

/// All rows as one batch.
pub(crate) fn all(reader: TableReader) -> Result<RowBatch, TableError> {
    let mut all = RowBatch::default();
    for batch in reader {
        let batch = batch?;
        all.rows += batch.rows;
        all.width = batch.width;
        all.features.extend(batch.features);
        all.numbers.extend(batch.numbers);
        if let Some(labels) = batch.labels {
            all.labels.get_or_insert_default().extend(labels);
        }
        if let Some(paths) = batch.paths {
            all.paths.get_or_insert_default().extend(paths);
        }
    }
    Ok(all)
}

/// Rows in all batches.
pub(crate) fn rows(batches: &[RowBatch]) -> usize {
    batches.iter().map(|batch| batch.rows).sum()
}
