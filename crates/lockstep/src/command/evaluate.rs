//! `lockstep evaluate`: what the model of a run is worth on a set.

use super::inference::{self, interrupted};
use crate::args::EvaluateArgs;
use crate::view::{evaluation, from_here};
use anyhow::{Context, bail};
use lockstep_data::TargetKind;
use lockstep_engine::infer::NamedSamples;
use lockstep_job::Location;
use lockstep_measure::Evaluation;
use lockstep_model::{Assessor, EvaluationReport, OwnMetrics, Predictions};
use lockstep_resolve::place;
use lockstep_runs::{CONFUSION, EVALUATION};
use std::process::ExitCode;

pub(crate) fn run(args: &EvaluateArgs) -> anyhow::Result<ExitCode> {
    let samples = [NamedSamples::to_measure(args.data.as_deref())?];
    let launcher = inference::launch(&args.model);
    let Some(model) = inference::open(&args.model, &samples, &launcher)? else {
        return Ok(interrupted());
    };
    // A version of a model stays as it is, and so does what a run says of its own test set: what else is found is
    // printed, and written where that is asked for.
    let is_as_trained = args.model.precision.is_none();
    let is_own = args.model.model.is_none() && !args.measures_other_data() && is_as_trained;
    let folder = match &args.out {
        None if !is_own => None,
        None => Some(model.run.place().clone()),
        Some(out) => {
            let out = out.to_str().context("--out: the path is not valid UTF-8")?;
            Some(place(&Location::new(out), &model.job.storage)?)
        }
    };
    if let Some(folder) = &folder {
        folder
            .make_folder()
            .with_context(|| format!("cannot make the folder {folder}"))?;
    }
    let set = &model.samples[0].set;
    let own = match set.groups() {
        None => OwnMetrics::bind(
            model.job.metrics(),
            model.outputs.kind,
            &model.outputs.names,
        )?,
        Some(_) => OwnMetrics::default(),
    };
    let mut assessor = Assessor::new(set, &model.outputs).with_own(&own);
    let mut scores = Vec::new();
    let whole = inference::go(&model, &model.samples[0], false, &mut |block| {
        if let (Some(_), Predictions::Numbers { values, .. }) = (set.groups(), &block.predictions) {
            scores.extend_from_slice(values);
            return Ok(());
        }
        assessor.add(&block.predictions);
        for loss in block.losses {
            assessor.add_loss(loss);
        }
        Ok(())
    })?;
    if !whole {
        return Ok(interrupted());
    }
    let measured = match set.groups() {
        Some(groups) => {
            let mut ranking = lockstep_trees::ranking(groups, &scores, set.numbers());
            ranking.set = Some(set.name().to_owned());
            Evaluation::Ranking(ranking)
        }
        None => assessor.finish(),
    };
    if measured.samples() == 0 {
        bail!(
            "no sample of {} is of a class that the model knows: {}",
            set.name(),
            model.outputs.names.join(", ")
        );
    }
    let report = EvaluationReport {
        run: &model.run.name,
        set,
        pictures: model.picture_files(),
        evaluation: &measured,
    };
    if let Some(folder) = &folder {
        report.write(folder)?;
    }
    if args.json {
        super::print(format!("{}\n", serde_json::to_string(&measured)?))?;
    } else {
        let mut text = format!("{}\n\n", report.title());
        for line in evaluation::lines(&measured) {
            text += &format!("{line}\n");
        }
        if folder.is_some() {
            text.push('\n');
        }
        let picture = model.outputs.kind == TargetKind::Classes;
        for name in [Some(EVALUATION), picture.then_some(CONFUSION)]
            .into_iter()
            .flatten()
        {
            let Some(folder) = &folder else { break };
            let file = folder.join(name)?;
            let shown = file.local().map_or(file.to_string(), from_here);
            text += &format!("{shown}\n");
        }
        if folder.is_none() {
            text += "\nnothing was written; --out DIR writes evaluation.json there\n";
        }
        super::print(text)?;
    }
    Ok(ExitCode::SUCCESS)
}
