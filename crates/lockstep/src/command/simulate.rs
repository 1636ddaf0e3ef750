//! `lockstep simulate`: what a job would do on many hosts, from its step on this one.
//!
//! A step is measured here, in two runs that nobody keeps: a short one, which says how many steps make a good measurement,
//! and that one. What follows from it is [`lockstep_bench`]'s model.

use super::scratch::ScratchStore;
use super::{print, run_request};
use crate::args::{Engine, SimulateArgs};
use crate::signals::{self, INTERRUPTED};
use crate::view::{count, lines_of, seconds};
use anyhow::{Context, bail};
use lockstep_base::fs::CacheDir;
use lockstep_bench::{HostCopies, HostStep, Simulated};
use lockstep_engine::{RunRequest, Stop, StopFlag};
use lockstep_events::event::{Event, RunResult, Status};
use lockstep_job::{Every, Job, JobCopies};
use lockstep_resolve::LearningSettings;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

/// Steps of the first run, and seconds and steps of the second one, at the most.
const FIRST_STEPS: u64 = 20;
const SECONDS: f64 = 3.0;
const MOST_STEPS: u64 = 20_000;

pub(crate) fn run(args: &SimulateArgs) -> anyhow::Result<ExitCode> {
    let mut job = args.job.load()?;
    let network = job.network(&args.job.path)?;
    let (batch, every) = (network.train.learner.batch as u64, network.checkpoint.every);
    let learner = LearningSettings::of(&network.train.learner);
    let vectors = 1 + learner.optimizer.planes() as u64 + u64::from(learner.average.is_some());
    let scratch = ScratchStore::new()?;
    job.run.store = scratch.location();
    job.spare_checkpoints();
    let stop = StopFlag::new();
    signals::obey(stop.clone())?;
    let Some(first) = measure(&job, &args.job.path, FIRST_STEPS, &stop)? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let steps = SECONDS * first.result.timing.samples_per_s / batch as f64;
    let steps = (steps as u64).clamp(FIRST_STEPS, MOST_STEPS);
    let Some(measured) = measure(&job, &args.job.path, steps, &stop)? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let timing = &measured.result.timing;
    let step_s = batch as f64 / timing.samples_per_s;
    let parts = timing.step.context("the time of steps was not measured")?;
    let all: f64 = parts.parts().iter().sum();
    let detection = args.detection.unwrap_or(job.gang.lease_s);
    let host = HostStep {
        step_s,
        backward: parts.backward_s / all.max(f64::MIN_POSITIVE),
        batch,
        numbers: measured.parameters,
        vectors,
        copies: match job.recover.copies {
            JobCopies::Off => HostCopies::Off,
            JobCopies::Auto => HostCopies::Auto,
            JobCopies::EveryStep => HostCopies::EveryStep,
        },
        checkpoint_steps: match every {
            Every::Steps(steps) => Some(steps as f64),
            Every::Epochs(epochs) => Some((epochs * measured.steps_per_epoch) as f64),
            Every::Seconds(seconds) => Some(seconds / step_s),
            Every::None => None,
        },
        recovery_s: detection + timing.start_to_first_step_s,
    };
    let simulated = args.hosts.iter();
    let simulated: Vec<Simulated> = simulated
        .map(|&hosts| host.on(hosts, &args.network, args.failures))
        .collect();
    print(match args.json {
        true => format!(
            "{}\n",
            json!({ "event": "simulated", "here": host, "hosts": simulated })
        ),
        false => in_words(&host, &simulated, steps),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What a short run came to.
struct ShortRun {
    result: RunResult,
    parameters: u64,
    steps_per_epoch: u64,
}

/// Trains so many steps; nothing when a stop was asked for.
fn measure(
    job: &Job,
    path: &Path,
    steps: u64,
    stop: &StopFlag,
) -> anyhow::Result<Option<ShortRun>> {
    let file = std::path::absolute(path).context("cannot find the job file's folder")?;
    let folder = file.parent().map(Path::to_owned).unwrap_or_default();
    let request = RunRequest {
        max_steps: Some(steps),
        step_times: true,
        ..run_request(
            job.clone(),
            folder,
            Engine::Local,
            CacheDir::locate()?,
            stop.clone(),
        )?
    };
    let mut known = (0, 0);
    let result = lockstep_engine::run(request, &mut |event| match event {
        Event::Warning { message } => super::tell(format_args!("warning: {message}")),
        Event::Started(started) => known = (started.parameters as u64, started.steps_per_epoch),
        _ => (),
    })?;
    if stop.get() != Stop::No {
        return Ok(None);
    }
    match result.status {
        Status::Succeeded | Status::Interrupted => Ok(Some(ShortRun {
            result,
            parameters: known.0,
            steps_per_epoch: known.1,
        })),
        _ => bail!(result.error.unwrap_or_else(|| "training failed".to_owned())),
    }
}

fn in_words(host: &HostStep, simulated: &[Simulated], steps: u64) -> String {
    let titles = [
        ">hosts",
        ">batch",
        ">exchange",
        ">step",
        ">efficiency",
        ">losses",
        ">state every",
        ">each costs",
        ">goodput",
        ">samples/s",
    ];
    let rows: Vec<Vec<String>> = simulated.iter().map(row).collect();
    let mut text = lines_of(&titles, &rows);
    text += &format!(
        "\nhere, {} steps of {} samples: {:.2} ms each, {:.0}% of it backward; after a loss the first step comes in {}\n",
        count(steps),
        count(host.batch),
        1e3 * host.step_s,
        100.0 * host.backward,
        seconds(host.recovery_s),
    );
    text + "two numbers: by the model, and with an exchange that takes as much longer as was ever measured (docs/scale.md)\n"
}

fn row(of: &Simulated) -> Vec<String> {
    let unknown = || "?".to_owned();
    let percent = |share: f64| format!("{:.1}%", 100.0 * share);
    let both = |numbers: [String; 2]| match numbers[0] == numbers[1] {
        true => numbers[0].clone(),
        false => numbers.join(" to "),
    };
    vec![
        count(of.hosts),
        count(of.batch),
        format!("{:.2} ms", of.exchange_ms),
        both(of.step_ms.map(|ms| format!("{ms:.2}"))) + " ms",
        both(of.efficiency.map(|efficiency| format!("{efficiency:.2}"))),
        match of.losses_per_hour {
            0.0 => "none".to_owned(),
            losses if losses >= 1.0 => format!("{losses:.1} an hour"),
            losses => format!("{:.2} a day", 24.0 * losses),
        },
        of.steps_between
            .map_or_else(unknown, |steps| match steps.round() as u64 {
                1 => "step".to_owned(),
                steps => format!("{} steps", count(steps)),
            }),
        of.lost_s.map_or_else(unknown, seconds),
        of.goodput.map_or_else(unknown, percent),
        both(
            of.samples_per_s
                .map(|rate| rate.map_or_else(unknown, |rate| count(rate as u64))),
        ),
    ]
}
