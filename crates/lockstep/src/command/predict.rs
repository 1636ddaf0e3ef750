//! `lockstep predict`: what a model says of every sample of one or several sets, as a file or on standard output.

mod output;
mod row;

use super::inference::{Inference, interrupted};
use crate::args::PredictArgs;
use crate::signals;
use crate::view::{count, from_here};
use output::{Format, Output};
use std::process::ExitCode;

pub(crate) fn run(args: &PredictArgs) -> anyhow::Result<ExitCode> {
    // Found before anything is computed.
    let format = Format::of(&args.out)?;
    let Some(inference) = Inference::to_predict(&args.model, &args.data)? else {
        return Ok(interrupted());
    };
    let outputs = &inference.outputs;
    let mut output = Output::create(format, &args.out, outputs, args.probabilities)?;
    let mut rows = 0;
    for samples in &inference.samples {
        let whole = inference.go(samples, args.probabilities, &mut |block| {
            row::each(samples, outputs, &block, rows, &mut |row| output.add(row))
        })?;
        if !whole && format == Format::Standard {
            eprintln!("interrupted");
            return Ok(ExitCode::from(signals::INTERRUPTED));
        }
        if !whole {
            return Ok(interrupted());
        }
        rows += samples.set.len();
    }
    output.finish(&args.out, &inference.run.name)?;
    if format != Format::Standard {
        let (rows, file) = (count(rows as u64), from_here(&args.out));
        super::print(format!("{rows} rows in {file}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
