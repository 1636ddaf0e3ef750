//! Predicted numbers, and labels of which a sample may have several, as a file.

use super::Inference;
use crate::args::PredictArgs;
use lockstep_data::{Dataset, TargetKind};
use lockstep_fs::write_atomic;
use lockstep_table::{PredictedColumn, write_predicted_numbers};
use lockstep_train::{Outputs, Predictions};
use serde::{Serialize, Serializer};
use std::io::Write;

/// What is written of one sample.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    label: Named<'a>,
    predicted: Named<'a>,
    row: usize,
}

/// A number for every column, by its name. Of labels, what is right is 0 or 1, and what is predicted how
/// probable a label is.
struct Named<'a> {
    names: &'a [String],
    numbers: &'a [f32],
}

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.names.iter().zip(self.numbers))
    }
}

/// Writes a JSON object a sample, `first` of which is the first of these.
pub(super) fn write_lines(
    out: &mut impl Write,
    set: &Dataset,
    outputs: &Outputs,
    first: usize,
    values: &[f32],
) -> anyhow::Result<()> {
    let names = &outputs.names[..];
    let width = names.len();
    for (row, numbers) in (first..).zip(values.chunks_exact(width)) {
        let line = Line {
            path: set.sample_name(row),
            label: Named {
                names,
                numbers: &set.numbers()[row * width..][..width],
            },
            predicted: Named { names, numbers },
            row,
        };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Writes a Parquet file at the end.
pub(super) fn parquet(inference: &Inference, args: &PredictArgs) -> anyhow::Result<bool> {
    let (set, outputs) = (&inference.set, &inference.outputs);
    let width = outputs.names.len();
    let mut said = Vec::with_capacity(set.len() * width);
    let whole = inference.go(false, &mut |block| {
        if let Predictions::Numbers { values, .. } = block.predictions {
            said.extend(values);
        }
        Ok(())
    })?;
    if whole {
        let path = |row| {
            let name = set.sample_name(row);
            name.map_or_else(|| row.to_string(), str::to_owned)
        };
        let paths: Vec<String> = (0..set.len()).map(path).collect();
        let column = |(at, name): (usize, &String)| {
            let every = |numbers: &[f32]| numbers.iter().skip(at).step_by(width).copied().collect();
            PredictedColumn {
                name: name.clone(),
                actual: every(set.numbers()),
                predicted: every(&said),
            }
        };
        let columns: Vec<_> = outputs.names.iter().enumerate().map(column).collect();
        let kind = match outputs.kind {
            TargetKind::Labels => "probabilities",
            TargetKind::Numbers | TargetKind::Classes => "numbers",
        };
        let metadata = [("run", &*inference.run.name), ("predicted", kind)];
        write_atomic(
            &args.out,
            &write_predicted_numbers(&paths, &columns, &metadata)?,
        )?;
    }
    Ok(whole)
}
