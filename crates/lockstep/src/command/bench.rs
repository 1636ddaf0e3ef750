//! `lockstep bench`: what more workers gain, and whether they learn the same.
//!
//! What is measured, in which order, what it says and how it looks is [`lockstep_bench`]'s; here each setting becomes a
//! job, which the engine trains, and files are written.

mod trainer;

use super::print;
use super::scratch::ScratchStore;
use crate::args::BenchArgs;
use crate::signals::{self, INTERRUPTED};
use crate::view::{lines_of, plural, shell};
use anyhow::{Context, bail};
use lockstep_base::calendar;
use lockstep_base::fs::CacheDir;
use lockstep_bench::{
    Bench, BenchEnd, BenchError, COMPARISON, Comparison, How, MachineFacts, Network, Part, Peer,
    Plan, REPORT, Runner, Setting, TABLE,
};
use lockstep_engine::StopFlag;
use lockstep_index::dates;
use lockstep_job::{Job, Location, Override};
use lockstep_place::Place;
use lockstep_resolve::place;
use lockstep_runs::RunDir;
use std::path::Path;
use std::process::ExitCode;
use trainer::EngineTrainer;

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    let job = args.job(None).load()?;
    let plan = plan(args, &job)?;
    let scratch = ScratchStore::new()?;
    let stop = StopFlag::new();
    let file = std::path::absolute(&args.path).context("cannot find the job file's folder")?;
    let cache = CacheDir::locate()?;
    let trainer = Box::new(EngineTrainer {
        folder: file.parent().map(Path::to_owned).unwrap_or_default(),
        cache: cache.clone(),
        stop: stop.clone(),
    });
    let jobs = jobs(args, &plan, &scratch.location())?;
    let mut runner = Runner::new(jobs, cache, trainer);
    let folders = folders(args, &job)?;
    signals::obey(stop)?;
    runner.prepare_peers(&peers(args)?)?;
    let bench = Bench {
        plan,
        machine: MachineFacts::find(),
        job: job.name.clone(),
        command: command(),
        created: dates::show(calendar::now()),
        threads: threads(&job),
        predict: predict(args)?,
    };
    let all = bench.plan.turns().len();
    let names = bench
        .plan
        .settings
        .iter()
        .map(|setting| setting.name().len());
    let width = names.max().unwrap_or(0);
    let mut done = 0;
    let mut one = |part, setting: &Setting| {
        let measured = runner.measure(part, setting)?;
        if let (Part::Turn, Some(measured)) = (part, &measured) {
            done += 1;
            let seconds = measured.training_s;
            super::tell(format_args!(
                "{done} of {all}  {:<width$} {seconds:8.2} s",
                setting.name()
            ));
        }
        Ok(measured)
    };
    let mut keep = |comparison: &Comparison| write(&folders, comparison);
    let (comparison, ended) = bench.measure::<anyhow::Error>(&mut one, &mut keep)?;
    if !comparison.turns.is_empty() {
        show(args, &comparison, &folders)?;
    }
    match ended {
        BenchEnd::Failed(error) => {
            Err(error.context("a turn failed; what was measured before is kept"))
        }
        BenchEnd::Stopped => Ok(ExitCode::from(INTERRUPTED)),
        BenchEnd::Complete => judge(args, &comparison),
    }
}

fn plan(args: &BenchArgs, job: &Job) -> anyhow::Result<Plan> {
    let own = job.network(&args.path).ok();
    let own = own.map(|network| network.train.learner.batch as u64);
    let workers = match args.workers.is_empty() {
        true => vec![1, job.workers().max],
        false => args.workers.clone(),
    };
    let peers = peers(args)?;
    if own.is_none() && !peers.is_empty() {
        bail!("--against: only a network can be compared with others");
    }
    let plan = Plan::new(&workers, &args.batch, own, args.repeat, args.weak)?.with_peers(&peers);
    Ok(match args.no_limit || own.is_none() {
        true => plan,
        false => plan.with_limits(),
    })
}

/// The job of every setting, so that what is wrong with one is said before anything is measured.
fn jobs(args: &BenchArgs, plan: &Plan, store: &Location) -> anyhow::Result<Vec<(Setting, Job)>> {
    let mut jobs = Vec::new();
    for setting in &plan.settings {
        let parts = match setting.how {
            How::Apart => setting.workers,
            _ => 1,
        };
        let given = args.job(Some(setting.workers / parts));
        let job = args.job(Some(setting.workers)).load()?;
        // A worker of the gang computes so many lanes; alone it computes the same.
        let lanes = matches!(setting.how, How::Apart).then(|| (job.lanes() / parts).max(1));
        let batch = match args.batch.is_empty() && !args.weak && parts == 1 {
            true => None,
            false => setting.batch.map(|batch| batch / parts as u64),
        };
        let mut overrides = given.overrides()?;
        overrides.extend(changes(batch, lanes, store));
        let mut job = Job::load(&given.path, &overrides, given.workers)?;
        job.set_threads(threads(&job));
        jobs.push((setting.clone(), job));
    }
    Ok(jobs)
}

/// Threads of a worker: numbers of workers are compared, so it is one if the job does not say otherwise.
fn threads(job: &Job) -> usize {
    job.threads().unwrap_or(1)
}

fn peers(args: &BenchArgs) -> Result<Vec<Peer>, BenchError> {
    args.against.iter().map(|name| name.parse()).collect()
}

fn predict(args: &BenchArgs) -> anyhow::Result<Option<(Vec<usize>, Network)>> {
    let network = args.network.parse::<Network>()?;
    if args.predict.contains(&0) {
        return Err(BenchError::Zero { flag: "--predict" }.into());
    }
    Ok((!args.predict.is_empty()).then(|| (args.predict.clone(), network)))
}

/// The command as it was given, to be given again, without secrets.
fn command() -> String {
    let mut words = vec!["lockstep".to_owned()];
    let given = lockstep_track::command_line();
    words.extend(given.iter().skip(1).map(|word| shell(word)));
    words.join(" ")
}

/// Where what is measured is kept: a folder of its own in the job's store, which the dashboard shows, and `--out`.
fn folders(args: &BenchArgs, job: &Job) -> anyhow::Result<Vec<Place>> {
    let store = place(&job.run.store, &job.storage)?;
    RunDir::check_store(&store)?;
    let mut folders = vec![store.join(&RunDir::new_name(&format!("bench-{}", &job.name))?)?];
    if let Some(out) = &args.out {
        let out = std::path::absolute(out).context("--out: cannot find the folder")?;
        folders.push(place(&Location::new(out.to_string_lossy()), &job.storage)?);
    }
    Ok(folders)
}

fn write(folders: &[Place], comparison: &Comparison) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(comparison)? + "\n";
    let (table, report) = (comparison.markdown(), comparison.html());
    for folder in folders {
        folder.make_folder()?;
        for (name, text) in [(COMPARISON, &json), (TABLE, &table), (REPORT, &report)] {
            folder.join(name)?.write(text.as_bytes())?;
        }
    }
    Ok(())
}

fn show(args: &BenchArgs, comparison: &Comparison, folders: &[Place]) -> anyhow::Result<()> {
    if args.json {
        return Ok(print(serde_json::to_string(comparison)? + "\n")?);
    }
    let titles = [
        "setting",
        ">training",
        ">samples/s",
        ">speedup",
        ">efficiency",
        ">of the limit",
        ">accuracy",
    ];
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(String::new, |value| format!("{value:.digits$}"))
    };
    let rows: Vec<Vec<String>> = comparison
        .settings
        .iter()
        .map(|row| {
            vec![
                row.setting.clone(),
                format!("{:.2} s", row.training_time_seconds),
                format!("{:.0}", row.samples_per_second),
                number(row.speedup, 2),
                number(row.efficiency, 2),
                number(row.share_of_limit, 2),
                number(row.accuracy, 4),
            ]
        })
        .collect();
    let mut text = lines_of(&titles, &rows);
    if let Some(compared) = &comparison.comparison {
        let same = match compared.same_weights {
            Some(true) => ", the same weights to the bit",
            Some(false) => ", other weights",
            None => "",
        };
        let spread = compared.speedup_spread;
        text += &format!(
            "\nspeedup {:.2} ({:.2} to {:.2}), efficiency {:.2}{same}\n",
            compared.speedup, spread.min, spread.max, compared.efficiency
        );
    }
    for row in &comparison.predictions {
        let measured = row
            .measured_speedup
            .map_or_else(String::new, |measured| format!(", measured {measured:.2}"));
        text += &format!(
            "forecast for {}: speedup {:.2}, efficiency {:.2}{measured}\n",
            plural(row.workers, "worker"),
            row.speedup,
            row.efficiency
        );
    }
    for warning in &comparison.warnings {
        text += &format!("note: {}\n", warning.warning);
    }
    for folder in folders {
        text += &format!("\n{folder}/{REPORT}");
    }
    Ok(print(text + "\n")?)
}

/// Whether it is as fast as it has to be.
fn judge(args: &BenchArgs, comparison: &Comparison) -> anyhow::Result<ExitCode> {
    let compared = comparison.comparison.as_ref();
    if let (Some(least), Some(compared)) = (args.fail_below, compared)
        && compared.speedup < least
    {
        bail!(
            "the speedup is {:.2}, and --fail-below asks for at least {least}",
            compared.speedup
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// What a setting changes in the job, as if the command line had said so.
fn changes(batch: Option<u64>, lanes: Option<usize>, store: &Location) -> Vec<Override> {
    let batch = batch.map(|batch| Override::integer("--batch", "train.batch", batch));
    let lanes = lanes.map(|lanes| Override::integer("--workers", "train.lanes", lanes as u64));
    let store = Override::text("--out", "run.store", store.as_str());
    batch.into_iter().chain(lanes).chain([store]).collect()
}
