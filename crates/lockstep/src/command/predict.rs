//! `lockstep predict`: what a model says of every sample of one or several sets, as a file or on standard output.

use super::inference::{self, interrupted};
use crate::args::{PredictArgs, is_quiet};
use crate::learners::LEARNERS;
use crate::signals;
use crate::view::{count, from_here};
use anyhow::{Context, bail};
use lockstep_base::cores;
use lockstep_data::{KeptColumn, KeptKind};
use lockstep_engine::infer::{Inference, NamedSamples};
use lockstep_learner::{ModelDevice, TrainedModel};
use lockstep_model::{
    Beside, Block, KeptCell, Named, PredictedRow, PredictionColumns, PredictionFile,
    PredictionFormat, WriteError, each_row,
};
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
    let kept = kept_columns(args, &model)?;
    let mut explained = explained(args, &model)?;
    let names = explained.as_ref().map(|(_, names)| names.clone());
    let columns = PredictionColumns {
        outputs,
        all: args.probabilities,
        is_labelled: model.samples.iter().any(|samples| samples.is_labelled()),
        has_id: args.id.is_some(),
        kept: shared(&kept),
        contributions: names.clone().unwrap_or_default(),
    };
    let kinds: Vec<KeptKind> = columns.kept.iter().map(|(_, kind)| *kind).collect();
    let mut output = PredictionFile::create(format, &args.out, columns)?;
    let mut rows = 0;
    for (samples, kept) in model.samples.iter().zip(&kept) {
        let order = samples.order();
        let mut write = |block: &Block, place: &dyn Fn(usize) -> usize| -> anyhow::Result<()> {
            let of_block = block.first..block.first + block.predictions.len();
            let shap = match &mut explained {
                Some((model, _)) => model.contributions(&samples.set, of_block)?,
                None => Vec::new(),
            };
            let beside = |row: usize| Beside {
                path: samples.path(row).filter(|_| args.id.is_none()),
                kept: cells(kept, &kinds, row),
                shap: names.as_ref().map(|names| Named {
                    names,
                    numbers: &shap[(row - block.first) * names.len()..][..names.len()],
                }),
            };
            let mut add = |row: &PredictedRow<'_>| output.add(row);
            each_row(&samples.set, &beside, (outputs, block), place, &mut add).map_err(written)
        };
        let mut held = Vec::new();
        let whole = inference::go(&model, samples, args.probabilities, &mut |block| {
            match order {
                None => write(&block, &|row| rows + row)?,
                Some(_) => held.push(block),
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
            let block = held.partition_point(|block| block.first <= row) - 1;
            write(&held[block].of_row(row), &|_| rows + place)?;
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

/// The columns of each set that are written as they are, the id first.
fn kept_columns(args: &PredictArgs, model: &Inference<'_>) -> anyhow::Result<Vec<Vec<KeptColumn>>> {
    let mut names: Vec<String> = args.id.iter().cloned().collect();
    for name in &args.keep {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    if names.is_empty() {
        return Ok(vec![Vec::new(); model.samples.len()]);
    }
    let of_set = |samples: &lockstep_engine::infer::Samples| {
        let kept = samples.keep_columns(&names)?;
        match kept.iter().any(|column| column.rows() != samples.set.len()) {
            true => bail!("{} changed while it was read", samples.set.name()),
            false => Ok(kept),
        }
    };
    let sets = model
        .samples
        .iter()
        .map(of_set)
        .collect::<anyhow::Result<_>>();
    sets.context("--id and --keep name columns of the table that is predicted")
}

/// What the kept columns of all sets hold: whole numbers if they are such in every set, and so on.
fn shared(kept: &[Vec<KeptColumn>]) -> Vec<(String, KeptKind)> {
    let first = kept.first().into_iter().flatten().enumerate();
    let column = |(at, column): (usize, &KeptColumn)| {
        let kinds = || kept.iter().map(|columns| columns[at].kind);
        let kind = match () {
            () if kinds().all(|kind| kind == KeptKind::Whole) => KeptKind::Whole,
            () if kinds().all(|kind| kind != KeptKind::Text) => KeptKind::Number,
            () => KeptKind::Text,
        };
        (column.name.clone(), kind)
    };
    first.map(column).collect()
}

/// The cells of the kept columns in a row.
fn cells<'k>(kept: &'k [KeptColumn], kinds: &[KeptKind], row: usize) -> Vec<KeptCell<'k>> {
    let cell = |(column, &kind): (&'k KeptColumn, &KeptKind)| KeptCell {
        name: &column.name,
        kind,
        text: column.cell(row),
    };
    kept.iter().zip(kinds).map(cell).collect()
}

/// The model that is asked for contributions, and what those are of, if they are wanted.
#[allow(clippy::type_complexity, reason = "a pair that is used at once")]
fn explained(
    args: &PredictArgs,
    model: &Inference<'_>,
) -> anyhow::Result<Option<(Box<dyn TrainedModel>, Vec<String>)>> {
    if !args.shap {
        return Ok(None);
    }
    let trained = LEARNERS.open_model(&model.run, ModelDevice::processor(cores::usable()))?;
    match trained.contribution_names() {
        Some(names) => Ok(Some((trained, names))),
        None => bail!(
            "--shap: SHAP values are computed for boosted trees alone, and {} is the run of a network",
            model.run.name
        ),
    }
}

/// The error as it is reported: whether nobody reads standard output any more is seen by its type.
fn written(error: WriteError) -> anyhow::Error {
    match error {
        WriteError::Io(error) => error.into(),
        error => error.into(),
    }
}
