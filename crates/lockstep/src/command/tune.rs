//! `lockstep tune`: which settings are best.
//!
//! What is tried next is [`lockstep_tune`]'s to say; here a trial becomes a job that the engine trains, or that
//! Kubernetes runs.

mod kube;
mod trainer;

use super::print;
use crate::args::{JobArgs, SearchMethod, TrialCluster, TuneArgs};
use crate::signals::{self, INTERRUPTED};
use crate::view::{lines_of, plural, shell, unit};
use anyhow::{Context, bail};
use kube::KubeTrials;
use lockstep_engine::{Stop, StopFlag};
use lockstep_index::keep::is_better_low;
use lockstep_job::{Job, JobError, Validation};
use lockstep_measure::{Best, OwnMetric};
use lockstep_place::Place;
use lockstep_resolve::place;
use lockstep_runs::RunDir;
use lockstep_tune::{BEST, Method, REPORT, Rules, Search, Space, Trial, TuneError, Tuning, rungs};
use std::process::ExitCode;
use trainer::TrialTrainer;

/// The rung of trials that end by themselves: none has so many epochs.
const TO_ITS_END: u32 = u32::MAX;

pub(crate) fn run(args: &TuneArgs) -> anyhow::Result<ExitCode> {
    let space = Space::parse(&args.search)?;
    if args.parallel == 0 {
        return Err(TuneError::Zero { flag: "--parallel" }.into());
    }
    let job = args.job.load()?;
    let rules = rules(args, &job, space)?;
    // What is wrong with a key or with the edges of its range is said before anything is trained.
    for point in rules.space.edges() {
        load(args, &rules.space.values(&point))?;
    }
    let store = place(&job.run.store, &job.storage)?;
    RunDir::check_store(&store)?;
    let resume = match &args.resume {
        Some(Some(path)) => {
            let name = path.file_name().context("--resume: the path has no name")?;
            Some(Some(name.to_string_lossy().into_owned()))
        }
        resume => resume.as_ref().map(|_| None),
    };
    let mut search = Search::open(&store, &job.name, rules, resume)?;
    let stop = StopFlag::new();
    signals::obey(stop.clone())?;
    let kube = match args.to {
        None => None,
        Some(TrialCluster::Kube) => Some(KubeTrials::new(args, &search, stop.clone())?),
    };
    let unit = search.tuning.rules.unit.clone();
    let trainer = TrialTrainer {
        args,
        unit: &unit,
        stop: stop.clone(),
        kube,
    };
    let ended = search.run(&trainer, args.parallel);
    if let Some(kube) = &trainer.kube
        && ended.is_ok()
        && stop.get() == Stop::No
    {
        kube.clean(&search.tuning);
    }
    show(args, &unit, &search.tuning, &search.folder)?;
    ended.context("the search ended early; what was tried is kept, and --resume goes on")?;
    Ok(match stop.get() {
        Stop::No => ExitCode::SUCCESS,
        Stop::Graceful | Stop::Now => {
            eprintln!(
                "interrupted; go on with: lockstep tune {} ... --resume",
                shell(&args.job.path.to_string_lossy())
            );
            ExitCode::from(INTERRUPTED)
        }
    })
}

/// The job file with the values of a trial.
fn job_of(args: &TuneArgs, values: &[(String, String)]) -> JobArgs {
    let mut job = args.job.clone();
    for (key, value) in values {
        // Variables are texts, also those that say a number.
        let value = match key.starts_with("train.env.") && !value.starts_with(['"', '\'']) {
            true => format!("\"{value}\""),
            false => value.clone(),
        };
        job.set.push(format!("{key}={value}"));
    }
    job
}

/// The job with the values of a trial.
fn load(args: &TuneArgs, values: &[(String, String)]) -> Result<Job, JobError> {
    job_of(args, values).load()
}

/// Says what a trial came to, on standard error.
fn tell(args: &TuneArgs, unit: &str, trial: &Trial) {
    let pair = |(key, value): &(String, String)| format!("{key}={value}");
    let values: Vec<String> = trial.values.iter().map(pair).collect();
    let came_to = match (&trial.failed, trial.reached.last()) {
        (Some(why), _) => format!("failed: {why}"),
        (None, Some(reached)) => format!(
            "{} {:.4} after {}",
            args.metric,
            reached.value,
            plural(reached.epochs as usize, unit)
        ),
        (None, None) => String::new(),
    };
    let number = trial.number;
    super::tell(format_args!(
        "trial {number:3}  {}  {came_to}",
        values.join(" ")
    ));
}

fn rules(args: &TuneArgs, job: &Job, space: Space) -> anyhow::Result<Rules> {
    let rungs = match job.epochs() {
        Some(epochs) => rungs(epochs, !args.no_halving),
        // It has no epochs that it could be stopped after.
        None => vec![TO_ITS_END],
    };
    let fixed = ["train.epochs", "model.rounds", "run.store", "name"];
    let searched = space
        .dimensions
        .iter()
        .map(|dimension| dimension.key.as_str());
    if let Some(key) = searched.into_iter().find(|key| fixed.contains(key)) {
        bail!(
            "--search {key}: it must be the same for all trials, which are compared with each other"
        );
    }
    // What has no epochs measures itself.
    let has_validation = job.epochs().is_none()
        || job
            .data
            .as_ref()
            .is_some_and(|data| match &data.validation {
                Validation::Split(share) => *share > 0.0,
                Validation::Set(_) => true,
            });
    if !has_validation {
        bail!(
            "there is no validation set to compare trials on: add --set data.val_split=0.1, or data.val to the job file"
        );
    }
    Ok(Rules {
        space,
        method: match args.method {
            SearchMethod::Grid => Method::Grid,
            SearchMethod::Random => Method::Random,
            SearchMethod::Tpe => Method::Tpe,
        },
        trials: args.trials,
        seed: args.seed,
        rungs,
        maximise: match job.metrics().iter().find(|own| own.name == args.metric) {
            None => !is_better_low(&args.metric),
            Some(OwnMetric {
                best: Some(best), ..
            }) => *best == Best::Highest,
            Some(OwnMetric { name, formula, .. }) => bail!(
                "--metric {name}: [metrics] does not say whether it is better high or low; write there {name} = {{ formula = \
                 \"{formula}\", best = \"lowest\" }}, or \"highest\""
            ),
        },
        metric: args.metric.clone(),
        unit: unit(&job.rows()).to_owned(),
    })
}

fn show(args: &TuneArgs, unit: &str, tuning: &Tuning, folder: &Place) -> anyhow::Result<()> {
    if args.json {
        return Ok(print(serde_json::to_string(tuning)? + "\n")?);
    }
    let titles = tuning.columns().into_iter();
    let titles: Vec<String> = titles.map(|name| format!(">{name}")).collect();
    let mut text = lines_of(&titles, &tuning.rows());
    for (key, share) in tuning.importance() {
        text += &format!(
            "{key} explains {:.0}% of the difference between trials\n",
            100.0 * share
        );
    }
    let epochs = plural(tuning.epochs() as usize, unit);
    text += &format!("{} trained\n", epochs);
    if let Some(best) = tuning.best() {
        text += &format!(
            "\nbest: trial {}\n{folder}/{BEST}\n{folder}/{REPORT}\n",
            best.number
        );
    }
    Ok(print(text)?)
}
