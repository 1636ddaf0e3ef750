//! The formats that predictions are written in. A file appears when it is whole.

use crate::row::{Answer, KeptCell, PredictedRow};
use crate::{Outputs, WriteError};
use lockstep_base::fs::{AtomicFile, write_atomic};
use lockstep_data::{KeptKind, TargetKind};
use lockstep_table::{WrittenCell, WrittenColumn, write_table};
use std::io::{self, BufWriter, Stdout, Write};
use std::path::Path;

/// How predictions are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PredictionFormat {
    /// A Parquet file.
    Parquet,
    /// JSON lines in a file.
    Lines,
    /// A CSV file.
    Csv,
    /// JSON lines on standard output.
    Standard,
}

impl PredictionFormat {
    /// What the name of a file says.
    ///
    /// # Errors
    /// When it says nothing.
    pub fn of(out: &Path) -> Result<Self, WriteError> {
        if out == Path::new("-") {
            return Ok(Self::Standard);
        }
        match out.extension().and_then(|extension| extension.to_str()) {
            Some("parquet") => Ok(Self::Parquet),
            Some("jsonl" | "ndjson") => Ok(Self::Lines),
            Some("csv") => Ok(Self::Csv),
            _ => Err(WriteError::Format {
                out: out.to_owned(),
            }),
        }
    }
}

/// What is written of each sample.
#[derive(Debug)]
pub struct PredictionColumns<'a> {
    /// What the model says.
    pub outputs: &'a Outputs,
    /// Whether the probabilities of all classes are written too.
    pub all: bool,
    /// Whether what is right is known of any sample.
    pub is_labelled: bool,
    /// Whether one of the kept columns stands in place of the path.
    pub has_id: bool,
    /// The columns of the table that are kept, and what they hold.
    pub kept: Vec<(String, KeptKind)>,
    /// What contributions are of, if they are written.
    pub contributions: Vec<String>,
}

impl PredictionColumns<'_> {
    /// The columns of a table of predictions, all still empty.
    fn empty(&self) -> Result<Vec<(String, WrittenColumn)>, WriteError> {
        let mut columns: Vec<(String, WrittenColumn)> = Vec::new();
        let text = || WrittenColumn::Text(Vec::new());
        let single = || WrittenColumn::Single(Vec::new());
        if !self.has_id {
            columns.push(("path".to_owned(), text()));
        }
        for (name, kind) in &self.kept {
            let column = match kind {
                KeptKind::Whole => WrittenColumn::Whole(Vec::new()),
                KeptKind::Number => WrittenColumn::Double(Vec::new()),
                KeptKind::Text => text(),
            };
            columns.push((name.clone(), column));
        }
        match self.outputs.kind {
            TargetKind::Classes => {
                if self.is_labelled {
                    columns.push(("label".to_owned(), text()));
                }
                columns.push(("predicted".to_owned(), text()));
                columns.push(("probability".to_owned(), single()));
            }
            TargetKind::Numbers | TargetKind::Labels => {
                for name in &self.outputs.names {
                    if self.is_labelled {
                        columns.push((name.clone(), single()));
                    }
                    columns.push((format!("predicted_{name}"), single()));
                }
            }
        }
        columns.push(("row".to_owned(), WrittenColumn::Whole(Vec::new())));
        // Of labels, what is predicted is each one's probability.
        if self.all && self.outputs.kind == TargetKind::Classes {
            let classes = self.outputs.names.iter();
            columns.extend(classes.map(|class| (format!("probability_{class}"), single())));
        }
        let contributions = self.contributions.iter();
        columns.extend(contributions.map(|name| (format!("shap_{name}"), single())));
        let mut names: Vec<&String> = columns.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => Err(WriteError::Twice {
                column: twice[0].clone(),
            }),
            None => Ok(columns),
        }
    }

    /// The cells of a sample, in the order of the columns.
    fn cells(&self, row: &PredictedRow<'_>) -> Vec<WrittenCell> {
        let mut cells = Vec::new();
        if !self.has_id {
            cells.push(WrittenCell::Text(Some(row.path_or_row())));
        }
        cells.extend(row.kept.iter().map(KeptCell::written));
        match &row.predicted {
            Answer::Class(class) => {
                if self.is_labelled {
                    cells.push(WrittenCell::Text(match &row.label {
                        Some(Answer::Class(label)) => Some((*label).to_owned()),
                        _ => None,
                    }));
                }
                cells.push(WrittenCell::Text(Some((*class).to_owned())));
                cells.push(WrittenCell::Single(Some(
                    row.probability.unwrap_or_default(),
                )));
            }
            Answer::Numbers(named) => {
                for (at, &predicted) in named.numbers.iter().enumerate() {
                    if self.is_labelled {
                        let right = number(row.label.as_ref(), at);
                        cells.push(WrittenCell::Single(right.filter(|right| !right.is_nan())));
                    }
                    cells.push(WrittenCell::Single(Some(predicted)));
                }
            }
        }
        cells.push(WrittenCell::Whole(Some(row.row as i64)));
        for named in row.probabilities.iter().chain(&row.shap) {
            let numbers = named.numbers.iter();
            cells.extend(numbers.map(|&number| WrittenCell::Single(Some(number))));
        }
        cells
    }
}

/// Predictions on their way to a file or to standard output.
pub struct PredictionFile<'a> {
    columns: PredictionColumns<'a>,
    output: Output,
}

enum Output {
    /// A JSON object a sample, as they come.
    Lines(BufWriter<AtomicFile>),
    Standard(BufWriter<Stdout>),
    /// The names of the columns, then a line a sample, as they come.
    Csv(Box<csv::Writer<AtomicFile>>),
    /// A Parquet file, which is written at the end.
    Parquet(Vec<(String, WrittenColumn)>),
}

impl<'a> PredictionFile<'a> {
    /// For these columns.
    ///
    /// # Errors
    /// When two columns have one name, or the file cannot be made.
    pub fn create(
        format: PredictionFormat,
        out: &Path,
        columns: PredictionColumns<'a>,
    ) -> Result<Self, WriteError> {
        let empty = columns.empty()?;
        let output = match format {
            PredictionFormat::Lines => Output::Lines(BufWriter::new(AtomicFile::create(out)?)),
            PredictionFormat::Standard => Output::Standard(BufWriter::new(io::stdout())),
            PredictionFormat::Csv => {
                let mut writer = csv::Writer::from_writer(AtomicFile::create(out)?);
                writer.write_record(empty.iter().map(|(name, _)| name))?;
                Output::Csv(Box::new(writer))
            }
            PredictionFormat::Parquet => Output::Parquet(empty),
        };
        Ok(Self { columns, output })
    }

    /// Takes what is said of the next sample.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, row: &PredictedRow<'_>) -> Result<(), WriteError> {
        match &mut self.output {
            Output::Lines(out) => write_line(out, row),
            Output::Standard(out) => write_line(out, row),
            Output::Csv(out) => {
                let cells = self.columns.cells(row).into_iter();
                Ok(out.write_record(cells.map(in_csv))?)
            }
            Output::Parquet(columns) => {
                for ((_, column), cell) in columns.iter_mut().zip(self.columns.cells(row)) {
                    column.push(cell)?;
                }
                Ok(())
            }
        }
    }

    /// Writes what is left, and gives the file its name.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self, out: &Path, run: &str) -> Result<(), WriteError> {
        match self.output {
            Output::Lines(file) => {
                let file = file.into_inner().map_err(|error| error.into_error())?;
                file.commit()?;
            }
            Output::Standard(mut out) => out.flush()?,
            Output::Csv(file) => {
                let file = file.into_inner().map_err(|error| error.into_error())?;
                file.commit()?;
            }
            Output::Parquet(columns) => {
                let kind = match self.columns.outputs.kind {
                    TargetKind::Classes => None,
                    TargetKind::Labels => Some(("predicted", "probabilities")),
                    TargetKind::Numbers => Some(("predicted", "numbers")),
                };
                let metadata: Vec<_> = [("run", run)].into_iter().chain(kind).collect();
                write_atomic(out, &write_table(columns, &metadata)?)?;
            }
        }
        Ok(())
    }
}

fn write_line(out: &mut impl Write, row: &PredictedRow<'_>) -> Result<(), WriteError> {
    let line = serde_json::to_string(row)?;
    Ok(writeln!(out, "{line}")?)
}

/// A number of what can be said of a sample.
fn number(answer: Option<&Answer<'_>>, at: usize) -> Option<f32> {
    match answer {
        Some(Answer::Numbers(named)) => named.numbers.get(at).copied(),
        Some(Answer::Class(_)) | None => None,
    }
}

/// A cell of a CSV file. What is not known is left empty.
fn in_csv(cell: WrittenCell) -> String {
    let text = match cell {
        WrittenCell::Text(text) => text,
        WrittenCell::Whole(number) => number.map(|number| number.to_string()),
        WrittenCell::Single(number) => number.map(|number| number.to_string()),
        WrittenCell::Double(number) => number.map(|number| number.to_string()),
    };
    text.unwrap_or_default()
}
