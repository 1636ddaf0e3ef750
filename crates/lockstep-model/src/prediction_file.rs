//! The formats that predictions are written in. A file appears when it is whole.

use crate::row::{Answer, PredictedRow};
use crate::{Outputs, WriteError};
use lockstep_base::fs::{AtomicFile, write_atomic};
use lockstep_data::TargetKind;
use lockstep_table::{
    ClassProbabilities, PredictedColumn, PredictionRow, write_predicted_numbers, write_predictions,
};
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

/// Predictions on their way to a file or to standard output.
pub struct PredictionFile(Output);

enum Output {
    /// A JSON object a sample, as they come.
    Lines(BufWriter<AtomicFile>),
    Standard(BufWriter<Stdout>),
    /// The names of the columns, then a line a sample, as they come.
    Csv(Box<csv::Writer<AtomicFile>>),
    /// Parquet files, which are written at the end.
    Classes {
        rows: Vec<PredictionRow>,
        /// The classes whose probabilities are written too, and those.
        names: Vec<String>,
        probabilities: Vec<f32>,
    },
    Numbers {
        kind: TargetKind,
        paths: Vec<String>,
        columns: Vec<PredictedColumn>,
    },
}

impl PredictionFile {
    /// For what a model with these outputs says; with `all`, the probabilities of all classes too.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(
        format: PredictionFormat,
        out: &Path,
        outputs: &Outputs,
        all: bool,
    ) -> Result<Self, WriteError> {
        // Of labels, what is predicted is each one's probability.
        let names: &[String] = match all && outputs.kind == TargetKind::Classes {
            true => &outputs.names,
            false => &[],
        };
        Ok(Self(match format {
            PredictionFormat::Lines => Output::Lines(BufWriter::new(AtomicFile::create(out)?)),
            PredictionFormat::Standard => Output::Standard(BufWriter::new(io::stdout())),
            PredictionFormat::Csv => {
                let mut writer = csv::Writer::from_writer(AtomicFile::create(out)?);
                writer.write_record(csv_columns(outputs, names))?;
                Output::Csv(Box::new(writer))
            }
            PredictionFormat::Parquet if outputs.kind == TargetKind::Classes => Output::Classes {
                rows: Vec::new(),
                names: names.to_vec(),
                probabilities: Vec::new(),
            },
            PredictionFormat::Parquet => {
                let column = |name: &String| PredictedColumn {
                    name: name.clone(),
                    ..PredictedColumn::default()
                };
                Output::Numbers {
                    kind: outputs.kind,
                    paths: Vec::new(),
                    columns: outputs.names.iter().map(column).collect(),
                }
            }
        }))
    }

    /// Takes what is said of the next sample.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, row: &PredictedRow<'_>) -> Result<(), WriteError> {
        match &mut self.0 {
            Output::Lines(out) => write_line(out, row),
            Output::Standard(out) => write_line(out, row),
            Output::Csv(out) => Ok(out.write_record(csv_record(row))?),
            Output::Classes {
                rows,
                probabilities,
                ..
            } => {
                if let Some(all) = &row.probabilities {
                    probabilities.extend(all.numbers);
                }
                let class = |answer: &Answer<'_>| match answer {
                    Answer::Class(class) => (*class).to_owned(),
                    Answer::Numbers(_) => String::new(),
                };
                rows.push(PredictionRow {
                    path: row.path_or_row(),
                    label: row.label.as_ref().map(class),
                    predicted: class(&row.predicted),
                    probability: row.probability.unwrap_or_default(),
                    row: row.row as i64,
                });
                Ok(())
            }
            Output::Numbers { paths, columns, .. } => {
                paths.push(row.path_or_row());
                for (at, column) in columns.iter_mut().enumerate() {
                    column.actual.push(number(row.label.as_ref(), at));
                    let predicted = number(Some(&row.predicted), at);
                    column.predicted.push(predicted.unwrap_or_default());
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
        match self.0 {
            Output::Lines(file) => {
                let file = file.into_inner().map_err(|error| error.into_error())?;
                file.commit()?;
            }
            Output::Standard(mut out) => out.flush()?,
            Output::Csv(file) => {
                let file = file.into_inner().map_err(|error| error.into_error())?;
                file.commit()?;
            }
            Output::Classes {
                rows,
                names,
                probabilities,
            } => {
                let all = ClassProbabilities {
                    classes: &names,
                    numbers: &probabilities,
                };
                write_atomic(out, &write_predictions(&rows, all, &[("run", run)])?)?;
            }
            Output::Numbers {
                kind,
                paths,
                columns,
            } => {
                let kind = match kind {
                    TargetKind::Labels => "probabilities",
                    TargetKind::Numbers | TargetKind::Classes => "numbers",
                };
                let metadata = [("run", run), ("predicted", kind)];
                let bytes = write_predicted_numbers(&paths, &columns, &metadata)?;
                write_atomic(out, &bytes)?;
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

/// The columns of a CSV file: those of a Parquet file, with the probabilities of `all` classes.
fn csv_columns(outputs: &Outputs, all: &[String]) -> Vec<String> {
    let mut columns = vec!["path".to_owned()];
    match outputs.kind {
        TargetKind::Classes => {
            columns.extend(["label", "predicted", "probability"].map(str::to_owned));
        }
        TargetKind::Numbers | TargetKind::Labels => {
            let both = |name: &String| [name.clone(), format!("predicted_{name}")];
            columns.extend(outputs.names.iter().flat_map(both));
        }
    }
    columns.push("row".to_owned());
    columns.extend(all.iter().map(|class| format!("probability_{class}")));
    columns
}

/// The cells of a sample. What is not known is left empty.
fn csv_record(row: &PredictedRow<'_>) -> Vec<String> {
    let mut cells = vec![row.path_or_row()];
    match &row.predicted {
        Answer::Class(class) => {
            cells.push(match &row.label {
                Some(Answer::Class(label)) => (*label).to_owned(),
                _ => String::new(),
            });
            cells.push((*class).to_owned());
            cells.push(row.probability.unwrap_or_default().to_string());
        }
        Answer::Numbers(named) => {
            for (at, predicted) in named.numbers.iter().enumerate() {
                let right = number(row.label.as_ref(), at);
                cells.push(right.map_or_else(String::new, |right| right.to_string()));
                cells.push(predicted.to_string());
            }
        }
    }
    cells.push(row.row.to_string());
    if let Some(all) = &row.probabilities {
        cells.extend(all.numbers.iter().map(f32::to_string));
    }
    cells
}
