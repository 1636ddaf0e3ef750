//! A set as a table, one sample a row.
//!
//! A sample is a vector: one pixel of as many channels as it has numbers, which is what layers that take
//! vectors expect. The table is streamed, so it may be larger than memory; only its decoded form, which
//! is mapped, is as large as the set.

use crate::DataError;
use crate::builder::Builder;
use crate::columns::{TableColumn, TableSchema};
use crate::dataset::StoredElement;
use crate::decoded::Recipe;
use crate::source::TableSource;
use crate::stamp::{Stamp, whole_place};
use crate::target::TargetKind;
use lockstep_table::{
    ColumnNames, ColumnType, Gaps, InputColumn, TableFile, TableFormat, TableReader, column_names,
    find_files, look,
};
use std::path::Path;

/// The column of the labels unless another is named.
const LABEL: &str = "label";
/// The column of the vectors in a Parquet file.
const VECTORS: &str = "embedding";

/// The files of a table and what is read from them.
#[derive(Debug)]
pub(crate) struct TableSet {
    source: TableSource,
    files: Vec<TableFile>,
    /// Whether the label columns are there.
    labelled: bool,
}

impl TableSet {
    /// Finds the files at `place`.
    pub(crate) fn find(source: &TableSource) -> Result<TableSet, DataError> {
        let mut source = source.clone();
        let columns = &mut source.columns;
        if columns.numbers.is_empty() {
            columns.label.get_or_insert_with(|| LABEL.to_owned());
        }
        if matches!(
            source.target,
            Some(TargetKind::Numbers | TargetKind::Labels)
        ) {
            columns.numbers.extend(columns.label.take());
        } else if let (Some(_), [_, second, ..]) = (source.target, &columns.numbers[..]) {
            return Err(DataError::SeveralClasses {
                place: source.place.to_string(),
                column: second.clone(),
            });
        }
        Ok(TableSet {
            files: find_files(&source.place, source.format)?,
            source,
            labelled: true,
        })
    }

    /// The same, for prediction alone: columns of labels and paths that are missing from a file are not read from
    /// any. All other columns are what they would be with them.
    pub(crate) fn of_samples(mut self) -> Result<TableSet, DataError> {
        // Where a model says what is predicted, a row need not.
        self.source.columns.label_gaps = self.source.target.is_some();
        let mut all = Vec::with_capacity(self.files.len());
        for file in &self.files {
            all.push(column_names(file, self.source.format, self.source.memory)?);
        }
        let columns = &mut self.source.columns;
        let missing = |name: &String| all.iter().any(|names| !names.contains(name));
        columns.path.take_if(|path| missing(path));
        // What counts how much, and what belongs together, is of no matter here, but it is no input.
        let more = columns
            .weight
            .take()
            .into_iter()
            .chain(columns.group.take());
        columns.drop.extend(more.filter(|name| !missing(name)));
        if columns.label.iter().chain(&columns.numbers).any(missing) {
            let labels = columns
                .label
                .take()
                .into_iter()
                .chain(columns.numbers.drain(..));
            // Those that are there are no input either.
            columns.drop.extend(labels.filter(|label| !missing(label)));
            self.labelled = false;
        }
        Ok(self)
    }

    /// What a person calls the set.
    pub(crate) fn name(&self) -> String {
        self.source.place.to_string()
    }

    /// The columns that are read, with what they hold, and what is known of them before a row is. Where nobody said what
    /// columns hold, the table is looked at first.
    fn columns(&self) -> Result<(ColumnNames, TableSchema), DataError> {
        let mut columns = self.source.columns.clone();
        let mut schema = TableSchema::default();
        if columns.of_training && self.holds_vectors(&columns.features)? {
            columns.features.clear();
            columns.kinds.clear();
        }
        if columns.kinds.is_empty() {
            let looked = look(
                &self.files,
                self.source.format,
                &columns,
                self.source.memory,
            )?;
            columns.features = looked.features;
            columns.kinds = looked.kinds;
            schema.left_out = looked.left_out;
            if !columns.kinds.is_empty() {
                columns.gaps = Gaps::Keep;
            }
        }
        let each = columns.features.iter().zip(&columns.kinds);
        let column = |(name, kind): (&String, _)| {
            TableColumn::new(InputColumn {
                written: columns.form.clone(),
                ..InputColumn::new(name, Clone::clone(kind))
            })
        };
        schema.columns = each.map(column).collect();
        Ok((columns, schema))
    }

    /// Whether this is a table of vectors, where one of these columns is expected.
    fn holds_vectors(&self, expected: &[String]) -> Result<bool, DataError> {
        let (TableFormat::Parquet | TableFormat::Arrow, Some(first)) =
            (self.source.format, self.files.first())
        else {
            return Ok(false);
        };
        let names = column_names(first, self.source.format, self.source.memory)?;
        let has_none = !expected.iter().any(|name| names.contains(name));
        Ok(has_none && names.iter().any(|name| name == VECTORS))
    }

    /// What the labels are, if that is said: by the loss, or by the type of their column.
    fn target(&self) -> Option<TargetKind> {
        let columns = &self.source.columns;
        let of_label = columns
            .label
            .as_ref()
            .and_then(|label| columns.types.get(label));
        let classes = (of_label == Some(&ColumnType::Category)).then_some(TargetKind::Classes);
        self.source.target.or(classes)
    }

    /// Checks that labels are some, where the first of these is of the row `first`.
    fn check(&self, first: usize, numbers: &[f32]) -> Result<(), DataError> {
        if self.source.target != Some(TargetKind::Labels) {
            return Ok(());
        }
        let columns = &self.source.columns.numbers;
        match numbers
            .iter()
            .position(|&x| x != 0.0 && x != 1.0 && !x.is_nan())
        {
            None => Ok(()),
            Some(at) => Err(DataError::NoLabel {
                place: self.source.place.to_string(),
                row: first + at / columns.len(),
                column: columns[at % columns.len()].clone(),
                found: numbers[at],
            }),
        }
    }
}

impl Recipe for TableSet {
    fn reader(&self) -> &'static str {
        match self.source.format {
            TableFormat::Parquet => "parquet",
            TableFormat::Arrow => "arrow",
            TableFormat::Csv(_) => "csv",
            TableFormat::JsonLines => "jsonl",
        }
    }

    fn variant(&self) -> String {
        // Without labels the columns say so.
        format!(
            "{:?} {:?} {:?}",
            self.source.format, self.source.columns, self.source.target
        )
    }

    fn roots(&self) -> Result<Vec<Vec<u8>>, DataError> {
        Ok(vec![whole_place(&self.source.place)?])
    }

    fn stamp(&self, stamp: &mut Stamp) -> Result<(), DataError> {
        for file in &self.files {
            stamp.entry(&file.place.to_string(), file.size, &file.version);
            file.place.local().map_or(Ok(()), |path| stamp.file(path))?;
        }
        Ok(())
    }

    fn labels_file(&self) -> &Path {
        self.source.place.local().unwrap_or(Path::new(""))
    }

    fn decode(&self, out: &mut Builder) -> Result<(), DataError> {
        let files = self.files.clone();
        let (columns, mut schema) = self.columns()?;
        let mut reader =
            TableReader::of_files(files, self.source.format, &columns, self.source.memory);
        let labels = match &self.source.columns.label {
            Some(label) => vec![label.clone()],
            None => self.source.columns.numbers.clone(),
        };
        match self.labelled {
            true => out.expect(self.target(), labels),
            false => out.expect_nothing(self.source.target.unwrap_or(TargetKind::Classes)),
        }
        let mut bytes = Vec::new();
        let mut rows = 0;
        while let Some(batch) = reader.next_batch()? {
            if rows == 0 {
                out.begin(StoredElement::F32, [batch.width, 1, 1]);
            }
            schema.see(&batch);
            self.check(rows, &batch.numbers)?;
            rows += batch.rows;
            for numbers in batch.features.chunks(batch.width) {
                bytes.clear();
                bytes.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
                out.samples(&bytes)?;
            }
            for class in batch.labels.iter().flatten() {
                out.class(class, &|| self.source.place.to_string())?;
            }
            out.numbers(&batch.numbers)?;
            out.weights(&batch.weights)?;
            for group in batch.groups.iter().flatten() {
                out.group(group)?;
            }
            for path in batch.paths.iter().flatten() {
                out.name(path)?;
            }
        }
        if rows == 0 {
            return Err(DataError::NoSamples {
                place: self.source.place.to_string(),
                reason: "the table has no rows",
            });
        }
        if !schema.columns.is_empty() {
            out.table(&schema);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Folder, place};
    use crate::{CsvFormat, Dataset, Normaliser, Source};
    use lockstep_table::{EmbeddingPart, write_part};
    use std::fs;
    use std::path::PathBuf;

    fn parquet(path: &Path) -> Source {
        Source::Table(TableSource {
            format: TableFormat::Parquet,
            place: place(path),
            columns: ColumnNames {
                path: Some("path".into()),
                ..ColumnNames::default()
            },
            target: None,
            memory: 1 << 20,
        })
    }

    fn csv(path: &Path) -> Source {
        Source::Table(TableSource {
            place: place(path),
            format: TableFormat::Csv(CsvFormat::default()),
            columns: ColumnNames::default(),
            target: None,
            memory: 1 << 20,
        })
    }

    /// A part with these labels, whose vectors are the number of the row three times.
    fn part(folder: &Folder, name: &str, labels: &[&str]) -> PathBuf {
        let paths: Vec<_> = (0..labels.len())
            .map(|row| format!("{name}/{row}"))
            .collect();
        let labels: Vec<_> = labels.iter().map(|&label| Some(label.to_owned())).collect();
        let embeddings: Vec<_> = (0..labels.len()).flat_map(|row| [row as f32; 3]).collect();
        let part = EmbeddingPart {
            paths: &paths,
            labels: &labels,
            width: 3,
            embeddings: &embeddings,
        };
        let path = folder.path().join("parts").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, write_part(&part, &[]).unwrap()).unwrap();
        path
    }

    #[test]
    fn a_folder_of_parts_is_one_set_of_vectors() {
        let folder = Folder::new();
        part(&folder, "part-1.parquet", &["pug", "mops"]);
        part(&folder, "part-0.parquet", &["pug", "husky", "pug"]);
        for _ in 0..2 {
            let set =
                Dataset::open(&parquet(&folder.path().join("parts")), &folder.cache()).unwrap();
            assert_eq!((set.len(), set.shape()), (5, [3, 1, 1]));
            assert_eq!(set.class_names(), ["husky", "mops", "pug"]);
            assert_eq!(set.labels(), [2, 0, 2, 2, 1]);
            assert_eq!(set.sample_name(3), Some("part-1.parquet/0"));
            let mut out = [9.0; 6];
            set.gather(&[4, 2], &Normaliser::identity(3), &mut out);
            assert_eq!(out, [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
        }
    }

    #[test]
    fn a_part_that_is_added_or_replaced_is_seen() {
        let folder = Folder::new();
        let open =
            || Dataset::open(&parquet(&folder.path().join("parts")), &folder.cache()).unwrap();
        part(&folder, "0.parquet", &["a"]);
        assert_eq!(open().len(), 1);
        part(&folder, "1.parquet", &["b"]);
        assert_eq!(open().class_names(), ["a", "b"]);
        part(&folder, "0.parquet", &["c", "c"]);
        assert_eq!(open().class_names(), ["b", "c"]);
    }

    #[test]
    fn numbers_as_labels_are_classes_by_their_value() {
        let folder = Folder::new();
        let labels = |text: &str| {
            let set = Dataset::open(&csv(&folder.file(text.as_bytes())), &folder.cache()).unwrap();
            (set.labels().to_vec(), set.class_names().to_vec())
        };
        let rows = |labels: &[i32]| {
            labels.iter().fold("x,label\n".to_owned(), |text, label| {
                text + &format!("1,{label}\n")
            })
        };
        let (numbers, names) = labels(&rows(&[10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
        assert_eq!(numbers, [10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(names[10], "10");
        let (numbers, names) = labels(&rows(&[30, -1, 4]));
        assert_eq!(
            (numbers, names),
            (vec![2, 0, 1], ["-1", "4", "30"].map(String::from).into())
        );
    }

    #[test]
    fn different_columns_of_a_table_are_different_sets() {
        let folder = Folder::new();
        let place = place(&folder.file(b"a,b,label\n1,2,x\n3,4,y\n"));
        let open = |features: &[&str]| {
            let columns = ColumnNames {
                features: features.iter().map(|&name| name.into()).collect(),
                ..ColumnNames::default()
            };
            let source = Source::Table(TableSource {
                place: place.clone(),
                format: TableFormat::Csv(CsvFormat::default()),
                columns,
                target: None,
                memory: 1 << 20,
            });
            Dataset::open(&source, &folder.cache()).unwrap()
        };
        let (a, both) = (open(&["a"]), open(&["b", "a"]));
        assert_eq!(
            (a.floats(), both.floats()),
            (&[1.0, 3.0][..], &[2.0, 1.0, 4.0, 3.0][..])
        );
        assert_eq!(open(&["a"]).shape(), [1, 1, 1]);
        assert_eq!(open(&["b", "a"]).columns(), ["b", "a"]);
        assert_eq!(
            fs::read_dir(folder.path().join("cache/decoded"))
                .unwrap()
                .count(),
            2
        );
    }

    #[test]
    fn a_table_that_is_refused_is_named_and_leaves_nothing_in_the_cache() {
        let folder = Folder::new();
        for (text, expected) in [
            ("a,label\n", "holds no samples: the table has no rows"),
            (
                "a,label\n1e39,x\n2,x\n",
                "line 2: the column `a` holds 1e39, which is too large",
            ),
            ("a,b\n1,2\n", "has no column `label`"),
        ] {
            let file = folder.file(text.as_bytes());
            let error = Dataset::open(&csv(&file), &folder.cache())
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(file.to_str().unwrap()), "{error}");
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(
            fs::read_dir(folder.path().join("cache/decoded"))
                .unwrap()
                .count(),
            0
        );
        let missing = Dataset::open(&parquet(&folder.path().join("nope")), &folder.cache());
        assert!(
            missing
                .unwrap_err()
                .to_string()
                .ends_with("nope does not exist")
        );
    }
}
