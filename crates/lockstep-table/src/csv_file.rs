//! One file of text, CSV or JSON lines, read batch by batch.
//!
//! The first line of a CSV file names the columns. A line has as many values as that one; what stands between quotes
//! may hold delimiters and line breaks. Numbers are written as people and programs write them
//! ([`CellForm`](crate::CellForm)), with spaces around them or without.

use crate::cells::no_weight;
use crate::columns::shown;
use crate::files::TableFile;
use crate::kind::{CellReader, ColumnType, Read as ReadCell, no_gap};
use crate::lines::{LineFormat, Lines};
use crate::reader::{MOST_ROWS, RowBatch};
use crate::{CellForm, ColumnNames, TableError};
use csv::StringRecord;

/// An open file of text.
#[derive(Debug)]
pub(crate) struct CsvFile {
    name: String,
    columns: ColumnNames,
    lines: Lines,
    features: Vec<usize>,
    readers: Vec<CellReader>,
    label: Option<usize>,
    numbers: Vec<usize>,
    path: Option<usize>,
    weight: Option<usize>,
    group: Option<usize>,
    /// Bytes of a batch.
    memory: u64,
    record: StringRecord,
}

impl CsvFile {
    /// Opens `file` and finds the columns in its first line.
    pub(crate) fn open(
        file: &TableFile,
        format: LineFormat,
        columns: &ColumnNames,
        memory: u64,
    ) -> Result<CsvFile, TableError> {
        let name = file.place.to_string();
        let lines = Lines::open(file, format, memory)?;
        let header = &lines.header;
        let mut columns = columns.clone();
        columns.features = columns.choose(&lines.names()).0;
        if columns.features.is_empty() {
            let reason = "no column is left for the numbers of a sample";
            return Err(TableError::columns(&name, reason));
        }
        let find = |column: &String| find(&name, header, column);
        Ok(CsvFile {
            features: columns
                .features
                .iter()
                .map(find)
                .collect::<Result<_, _>>()?,
            label: columns.label.as_ref().map(find).transpose()?,
            numbers: columns.numbers.iter().map(find).collect::<Result<_, _>>()?,
            path: columns.path.as_ref().map(find).transpose()?,
            weight: columns.weight.as_ref().map(find).transpose()?,
            group: columns.group.as_ref().map(find).transpose()?,
            readers: CellReader::of(&columns),
            columns,
            record: StringRecord::new(),
            memory: memory / 4,
            lines,
            name,
        })
    }

    /// The columns that a sample's numbers come from, in their order.
    pub(crate) fn features(&self) -> &[String] {
        &self.columns.features
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The next rows; `None` after the last.
    pub(crate) fn next_batch(&mut self) -> Result<Option<RowBatch>, TableError> {
        let width = self
            .readers
            .iter()
            .map(|reader| reader.kind().width())
            .sum();
        let mut batch = RowBatch {
            width,
            labels: self.label.map(|_| Vec::new()),
            paths: self.path.map(|_| Vec::new()),
            groups: self.group.map(|_| Vec::new()),
            ..RowBatch::default()
        };
        let mut bytes = 0;
        while batch.rows < MOST_ROWS && bytes < self.memory {
            if !self.lines.next(&mut self.record)? {
                break;
            }
            let columns = self.columns.features.iter().zip(&self.readers);
            for (feature, (&at, (column, reader))) in self.features.iter().zip(columns).enumerate()
            {
                let cell = self.record[at].trim();
                let from = batch.features.len();
                batch.features.resize(from + reader.kind().width(), 0.0);
                let read = reader.read(cell, self.columns.gaps, &mut batch.features[from..]);
                if read.map_err(|found| self.wrong(column, found))? == ReadCell::Unseen {
                    batch.unseen.push((feature, cell.to_owned()));
                }
            }
            for (&at, column) in self.numbers.iter().zip(&self.columns.numbers) {
                let cell = self.record[at].trim();
                let is_gap = self.columns.label_gaps && self.columns.form.is_gap(cell);
                let number = match is_gap {
                    true => Ok(f32::NAN),
                    false => target(cell, &self.columns.form),
                };
                let number = number.map_err(|found| self.wrong(column, found))?;
                batch.numbers.push(number);
            }
            if let (Some(at), Some(column)) = (self.weight, &self.columns.weight) {
                let number = target(self.record[at].trim(), &self.columns.form);
                let number = number.and_then(|number| match no_weight(number) {
                    Some(found) => Err(found),
                    None => Ok(number),
                });
                let number = number.map_err(|found| self.wrong(column, found))?;
                batch.weights.push(number);
            }
            for (texts, at) in [
                (&mut batch.paths, self.path),
                (&mut batch.groups, self.group),
            ] {
                if let (Some(texts), Some(at)) = (texts, at) {
                    texts.push(self.record[at].to_owned());
                }
            }
            if let (Some(at), Some(column)) = (self.label, &self.columns.label) {
                let label = label_text(self.record[at].trim(), column, &self.columns);
                let label = label.map_err(|found| self.wrong(column, found))?;
                batch.labels.get_or_insert_default().push(label);
            }
            if let (Some(at), Some(column)) = (self.group, &self.columns.group)
                && self.record[at].is_empty()
            {
                let found = "is empty; every sample needs one".to_owned();
                return Err(self.wrong(column, found));
            }
            batch.rows += 1;
            bytes += self.record.as_slice().len() as u64 + 4 * (width + self.numbers.len()) as u64;
        }
        Ok((batch.rows > 0).then_some(batch))
    }

    fn wrong(&self, column: &str, found: String) -> TableError {
        let line = self.record.position().map_or(0, csv::Position::line);
        TableError::Value {
            file: self.name.clone(),
            at: format!("line {line}"),
            column: shown(column),
            found,
        }
    }
}

/// The names of all columns of `file`, in their order.
pub(crate) fn column_names(
    file: &TableFile,
    format: LineFormat,
    memory: u64,
) -> Result<Vec<String>, TableError> {
    Ok(Lines::open(file, format, memory)?.names())
}

/// A cell of the column of labels as the name of a class, which may be a number to predict; or what is wrong with it.
fn label_text(cell: &str, column: &str, columns: &ColumnNames) -> Result<String, String> {
    let is_value = columns.types.get(column) == Some(&ColumnType::Category);
    match cell {
        _ if columns.label_gaps && columns.form.is_gap(cell) && !is_value => Ok(String::new()),
        "" if columns.label_gaps => Ok(String::new()),
        "" => Err("is empty; every sample needs one".to_owned()),
        _ if columns.form.is_gap(cell) && !is_value => Err(format!(
            "holds `{}`, which stands for a gap, and every sample needs a label; if it is a class of this name, say \
             `types = {{ {} = \"category\" }}`",
            shown(cell),
            shown(column)
        )),
        _ => {
            let number = Some(cell).filter(|_| !is_value);
            let number = number.and_then(|cell| columns.form.plain(cell));
            Ok(number.unwrap_or_else(|| cell.to_owned()))
        }
    }
}

/// A cell as a number to predict; `true` and `false` are 1 and 0.
fn target(cell: &str, form: &CellForm) -> Result<f32, String> {
    match cell {
        _ if cell.eq_ignore_ascii_case("true") => Ok(1.0),
        _ if cell.eq_ignore_ascii_case("false") => Ok(0.0),
        _ if form.is_gap(cell) => Err(no_gap(cell)),
        _ => form.number(cell),
    }
}

/// The place of a column in the first line.
pub(crate) fn find(file: &str, header: &StringRecord, column: &str) -> Result<usize, TableError> {
    let names = header.iter().map(str::trim);
    let mut found = names
        .clone()
        .enumerate()
        .filter(|&(_, name)| name == column);
    let Some((at, _)) = found.next() else {
        return Err(TableError::no_column(file, column, names));
    };
    if found.next().is_some() {
        return Err(TableError::twice(file, column));
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CsvFormat, Gaps, TableFormat, TableReader};
    use lockstep_place::{Access, Place};

    fn read(text: &[u8], columns: &ColumnNames) -> Result<Vec<RowBatch>, TableError> {
        read_by(b',', 1 << 20, text, columns)
    }

    fn read_by(
        delimiter: u8,
        memory: u64,
        text: &[u8],
        columns: &ColumnNames,
    ) -> Result<Vec<RowBatch>, TableError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        std::fs::write(&path, text).unwrap();
        let place = Place::parse(path.to_str().unwrap(), &Access::default()).unwrap();
        let format = TableFormat::Csv(CsvFormat {
            delimiter: Some(delimiter),
            ..CsvFormat::default()
        });
        TableReader::open(&place, format, columns, memory)?.collect()
    }

    /// The rows of several files, the columns that they were read from, or what is wrong with them.
    fn read_files(texts: &[&str]) -> Result<(Vec<f32>, Vec<String>), String> {
        let folder = tempfile::tempdir().unwrap();
        for (number, text) in texts.iter().enumerate() {
            std::fs::write(folder.path().join(format!("{number}.csv")), text).unwrap();
        }
        let place = Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap();
        let columns = columns(&[], Some("label"), None);
        let format = TableFormat::Csv(CsvFormat::default());
        let mut reader = TableReader::open(&place, format, &columns, 1 << 20).unwrap();
        let mut rows = Vec::new();
        while let Some(batch) = reader.next_batch().map_err(|error| error.to_string())? {
            rows.extend(batch.features);
        }
        Ok((rows, reader.features().to_vec()))
    }

    #[test]
    fn columns_of_several_files_are_those_of_the_first_whatever_their_order() {
        let (rows, columns) = read_files(&["a,b,label\n1,2,x\n", "label,b,a\ny,4,3\n"]).unwrap();
        assert_eq!(rows, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(columns, ["a", "b"]);
        let error = read_files(&["a,b,label\n1,2,x\n", "a,c,label\n3,4,y\n"]).unwrap_err();
        assert!(
            error.contains("1.csv") && error.contains("it has the column `c`"),
            "{error}"
        );
        let error = read_files(&["a,b,label\n1,2,x\n", "a,label\n3,y\n"]).unwrap_err();
        assert!(error.contains("1.csv has no column `b`"), "{error}");
    }

    fn columns(features: &[&str], label: Option<&str>, path: Option<&str>) -> ColumnNames {
        ColumnNames {
            features: features.iter().map(|&name| name.to_owned()).collect(),
            label: label.map(str::to_owned),
            path: path.map(str::to_owned),
            ..ColumnNames::default()
        }
    }

    fn refusal(text: &str, columns: &ColumnNames) -> String {
        let error = read(text.as_bytes(), columns).unwrap_err().to_string();
        error.split_once("x.csv").unwrap().1.to_owned()
    }

    #[test]
    fn gaps_are_nan_where_they_are_kept() {
        let text = "a,b\n1,\nNA,2\n nan , null\n";
        let columns = ColumnNames {
            gaps: Gaps::Keep,
            ..columns(&["a", "b"], None, None)
        };
        let batches = read(text.as_bytes(), &columns).unwrap();
        let bits: Vec<bool> = batches[0].features.iter().map(|x| x.is_nan()).collect();
        assert_eq!(bits, [false, true, true, false, true, true]);
        let said = refusal("a,b\n1,\n", &self::columns(&["a", "b"], None, None));
        assert!(said.contains("is empty"), "{said}");
    }

    #[test]
    fn columns_are_found_by_name_in_any_order() {
        let text =
            "\u{feff}label, b ,file,a\r\n\"pug, \"\"the\"\" dog\",2, x.jpg,-1e-1\r\nhusky,.5,,7";
        let [batch] = &read(
            text.as_bytes(),
            &columns(&["a", "b"], Some("label"), Some("file")),
        )
        .unwrap()[..] else {
            panic!("not one batch")
        };
        assert_eq!((batch.rows, batch.width), (2, 2));
        assert_eq!(batch.features, [-0.1, 2.0, 7.0, 0.5]);
        assert_eq!(
            batch.labels.as_ref().unwrap(),
            &["pug, \"the\" dog", "husky"]
        );
        assert_eq!(batch.paths.as_ref().unwrap(), &[" x.jpg", ""]);
    }

    #[test]
    fn without_names_every_other_column_is_a_number() {
        let batches = read_by(
            b'\t',
            1 << 20,
            b"x\tlabel\ty\n1\ta\t2\n",
            &columns(&[], Some("label"), None),
        );
        assert_eq!(batches.unwrap()[0].features, [1.0, 2.0]);
        let error = refusal("label\na\n", &columns(&[], Some("label"), None));
        assert_eq!(error, ": no column is left for the numbers of a sample");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let chosen = columns(&["x"], Some("label"), None);
        for (text, expected) in [
            (
                "",
                ", line 1: the file is empty; its first line must name the columns",
            ),
            ("x,y\n1,2\n", " has no column `label`; it has `x`, `y`"),
            (
                "x,labels\n",
                " has no column `label`; did you mean `labels`?",
            ),
            ("x,label,x\n", ": two columns are called `x`"),
            (
                "x,label\n1,a\n2\n",
                ", line 3: it has 1 value, where the first line names 2 columns",
            ),
            (
                "x,label\n1,a\ntwo,a\n",
                ", line 3: the column `x` holds `two`, which is not a number",
            ),
            (
                "x,label\n\"1\n\",a\n,a\n",
                ", line 4: the column `x` is empty; every sample needs its numbers",
            ),
            (
                "x,label\nnan,a\n",
                ", line 2: the column `x` holds `nan`; every sample needs its numbers",
            ),
            (
                "x,label\n1e39,a\n",
                ", line 2: the column `x` holds 1e39, which is too large for single precision",
            ),
            (
                "x,label\n1,\n",
                ", line 2: the column `label` is empty; every sample needs one",
            ),
        ] {
            assert_eq!(refusal(text, &chosen), expected, "{text:?}");
        }
        let error = read(b"x,label\n1,\xff\n", &chosen).unwrap_err().to_string();
        assert!(
            error.contains("x.csv, line 2: value 2 is not UTF-8 text; if")
                && error.ends_with("say `encoding = \"latin-1\"`"),
            "{error}"
        );
    }

    #[test]
    fn batches_keep_to_the_memory_and_a_line_without_end_is_refused() {
        let mut text = String::from("x,label\n");
        for row in 0..5000 {
            text += &format!("{row},class {}\n", row % 7);
        }
        let chosen = columns(&["x"], Some("label"), None);
        let batches = read_by(b',', 16 << 10, text.as_bytes(), &chosen).unwrap();
        assert!(batches.len() > 10);
        let numbers: Vec<f32> = batches
            .into_iter()
            .flat_map(|batch| batch.features)
            .collect();
        assert_eq!(numbers, (0..5000u16).map(f32::from).collect::<Vec<_>>());

        let open = format!("x,label\n1,\"{}", "a\n".repeat(200_000));
        let error = read_by(b',', 16 << 10, open.as_bytes(), &chosen)
            .unwrap_err()
            .to_string();
        assert!(error.contains("is a quote left open?"), "{error}");
    }
}
