//! `lockstep predict`: what a model says of every sample of a set, as a file.

mod numbers;

use super::inference::{Inference, interrupted};
use crate::args::PredictArgs;
use crate::view::{count, from_here};
use anyhow::bail;
use lockstep_data::{Dataset, TargetKind};
use lockstep_fs::{AtomicFile, write_atomic};
use lockstep_table::{Prediction, write_predictions};
use lockstep_train::{Block, Predictions, class_name};
use serde::{Serialize, Serializer};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

/// How predictions are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Parquet,
    Lines,
}

pub(crate) fn run(args: &PredictArgs) -> anyhow::Result<ExitCode> {
    // Found before anything is computed.
    let format = format_of(&args.out)?;
    if args.probabilities && format == Format::Parquet {
        bail!("--probabilities is for .jsonl; Parquet files hold that of the predicted class");
    }
    let Some(inference) = Inference::open(&args.model)? else {
        return Ok(interrupted());
    };
    let whole = match format {
        Format::Lines => lines(&inference, args)?,
        Format::Parquet => parquet(&inference, args)?,
    };
    if !whole {
        return Ok(interrupted());
    }
    let rows = count(inference.set.len() as u64);
    super::print(format!("{rows} rows in {}\n", from_here(&args.out)))?;
    Ok(ExitCode::SUCCESS)
}

fn format_of(out: &Path) -> anyhow::Result<Format> {
    match out.extension().and_then(|extension| extension.to_str()) {
        Some("parquet") => Ok(Format::Parquet),
        Some("jsonl" | "ndjson") => Ok(Format::Lines),
        _ => bail!(
            "--out {}: the name must end in .parquet or .jsonl, which says what is written",
            out.display()
        ),
    }
}

/// Writes a JSON object a sample, as they come.
fn lines(inference: &Inference, args: &PredictArgs) -> anyhow::Result<bool> {
    let mut file = BufWriter::new(AtomicFile::create(&args.out)?);
    let (set, outputs) = (&inference.set, &inference.outputs);
    let whole = inference.go(args.probabilities, &mut |block| match &block.predictions {
        Predictions::Classes(said) => write_lines(&mut file, set, &outputs.names, &block, said),
        Predictions::Numbers { values, .. } => {
            numbers::write_lines(&mut file, set, outputs, block.first, values)
        }
    })?;
    if whole {
        let file = file.into_inner().map_err(|error| error.into_error())?;
        file.commit()?;
    }
    Ok(whole)
}

/// What is written of one sample.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    label: &'a str,
    predicted: &'a str,
    probability: f32,
    row: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    probabilities: Option<Probabilities<'a>>,
}

/// The probability of every class, by name.
struct Probabilities<'a> {
    classes: &'a [String],
    numbers: &'a [f32],
}

impl Serialize for Probabilities<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.classes.iter().zip(self.numbers))
    }
}

fn write_lines(
    out: &mut impl Write,
    set: &Dataset,
    classes: &[String],
    block: &Block,
    predictions: &[lockstep_train::Prediction],
) -> anyhow::Result<()> {
    let mut all = block.probabilities.chunks_exact(classes.len().max(1));
    for (row, said) in (block.first..).zip(predictions) {
        let probabilities = all.next();
        let line = Line {
            path: set.sample_name(row),
            label: class_name(set, set.labels()[row] as usize),
            predicted: &classes[said.class as usize],
            probability: said.probability,
            row,
            probabilities: probabilities.map(|numbers| Probabilities { classes, numbers }),
        };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Writes a Parquet file at the end.
fn parquet(inference: &Inference, args: &PredictArgs) -> anyhow::Result<bool> {
    let (set, outputs) = (&inference.set, &inference.outputs);
    if outputs.kind != TargetKind::Classes {
        return numbers::parquet(inference, args);
    }
    let classes = &outputs.names;
    let mut rows = Vec::with_capacity(set.len());
    let whole = inference.go(false, &mut |block| {
        let Predictions::Classes(predictions) = block.predictions else {
            return Ok(());
        };
        for (row, said) in (block.first..).zip(predictions) {
            let path = set.sample_name(row);
            rows.push(Prediction {
                path: path.map_or_else(|| row.to_string(), str::to_owned),
                label: Some(class_name(set, set.labels()[row] as usize).to_owned()),
                predicted: classes[said.class as usize].clone(),
                probability: said.probability,
                row: row as i64,
            });
        }
        Ok(())
    })?;
    if whole {
        let bytes = write_predictions(&rows, &[("run", &inference.run.name)])?;
        write_atomic(&args.out, &bytes)?;
    }
    Ok(whole)
}
