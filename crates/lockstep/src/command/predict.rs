//! `lockstep predict`: what a model says of every sample of one or several sets, as a file or on standard output.

use super::inference::{self, interrupted};
use crate::args::{PredictArgs, is_quiet};
use crate::signals;
use crate::view::{count, from_here};
use lockstep_engine::infer::NamedSamples;
use lockstep_model::{Block, PredictionFile, PredictionFormat, WriteError, each_row};
use std::process::ExitCode;

pub(crate) fn run(args: &PredictArgs) -> anyhow::Result<ExitCode> {
    // Found before anything is computed.
    let format = PredictionFormat::of(&args.out)?;
    let samples = NamedSamples::to_predict(&args.data)?;
    let launcher = inference::launch(&args.model);
    let Some(model) = inference::open(&args.model, &samples, &launcher)? else {
        return Ok(interrupted());
    };
    let outputs = &model.outputs;
    let mut output = PredictionFile::create(format, &args.out, outputs, args.probabilities)?;
    let mut rows = 0;
    for samples in &model.samples {
        let order = samples.order();
        let mut write = |block: &Block, place: &dyn Fn(usize) -> usize| {
            let (path, said) = (|row| samples.path(row), (outputs, block));
            each_row(&samples.set, &path, said, place, &mut |row| output.add(row)).map_err(written)
        };
        let mut kept = Vec::new();
        let whole = inference::go(&model, samples, args.probabilities, &mut |block| {
            match order {
                None => write(&block, &|row| rows + row)?,
                Some(_) => kept.push(block),
            }
            Ok(())
        })?;
        if !whole && format == PredictionFormat::Standard {
            eprintln!("interrupted");
            return Ok(ExitCode::from(signals::INTERRUPTED));
        }
        if !whole {
            return Ok(interrupted());
        }
        for (place, &row) in order.iter().flatten().enumerate() {
            let block = kept.partition_point(|block| block.first <= row) - 1;
            write(&kept[block].of_row(row), &|_| rows + place)?;
        }
        rows += order.map_or(samples.set.len(), |order| order.len());
    }
    output.finish(&args.out, &model.run.name).map_err(written)?;
    if format != PredictionFormat::Standard && !is_quiet() {
        let (rows, file) = (count(rows as u64), from_here(&args.out));
        super::print(format!("{rows} rows in {file}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The error as it is reported: whether nobody reads standard output any more is seen by its type.
fn written(error: WriteError) -> anyhow::Error {
    match error {
        WriteError::Io(error) => error.into(),
        error => error.into(),
    }
}
