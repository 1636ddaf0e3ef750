//! What `evaluate` and `predict` have in common: a run, its model, a set, and a crew that goes through it.

use crate::args::ModelArgs;
use crate::signals;
use crate::view::{count, summary};
use anyhow::{Context, bail};
use lockstep_data::Dataset;
use lockstep_engine::StopFlag;
use lockstep_engine::embed::{EmbedRequest, embed};
use lockstep_engine::infer::{InferRequest, infer};
use lockstep_events::event::Event;
use lockstep_fs::CacheDir;
use lockstep_job::{DataRef, Job, Location, Override, Storage};
use lockstep_runs::RunDir;
use lockstep_train::places::place;
use lockstep_train::{Block, Outputs, Trained, open_test};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The folder that run names are looked for in.
const STORE: &str = "runs";
/// How often it is said how far the work is.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// A trained model and the set that it is to look at.
pub(super) struct Inference {
    pub(super) run: RunDir,
    pub(super) job: Job,
    pub(super) set: Dataset,
    /// What the model predicts.
    pub(super) outputs: Outputs,
    cache: CacheDir,
    workers: usize,
    stop: StopFlag,
}

impl Inference {
    /// Opens the run, its model and the set, whose pictures are embedded first if the run's were. What
    /// cannot be used is found here. Nothing after Ctrl-C.
    pub(super) fn open(args: &ModelArgs) -> anyhow::Result<Option<Self>> {
        let mut overrides = Vec::new();
        for set in &args.set {
            overrides.push(set.parse()?);
        }
        if let Some(data) = &args.data {
            overrides.push(data_override(data)?);
        }
        let run = open_run(&args.run, &args.set)?;
        let job = run.job().local_copy()?;
        let mut job = Job::load(job.path(), &overrides, None)?;
        if job.data.test.is_none() {
            bail!(
                "the job of {} has no data.test; name a set with --data",
                run.name
            );
        }
        let stop = StopFlag::new();
        signals::obey(stop.clone())?;
        let cache = CacheDir::locate()?;
        let trained = Trained::open(&run, 1)?;
        let workers = args.workers.unwrap_or(job.train.workers).max(1);
        if !embed_first(&mut job, args, workers, &cache, &stop)? {
            return Ok(None);
        }
        let mut tell = |message: &str| eprintln!("{message}");
        let set = open_test(&job, trained.outputs(), &cache, &mut tell)?;
        trained.check(&set)?;
        Ok(Some(Self {
            outputs: trained.outputs().clone(),
            workers,
            run,
            job,
            set,
            cache,
            stop,
        }))
    }

    /// Hands what the model says of the set to `each`, in the order of the set. False if that was not all,
    /// because of Ctrl-C.
    pub(super) fn go(
        &self,
        probabilities: bool,
        each: &mut dyn FnMut(Block) -> anyhow::Result<()>,
    ) -> anyhow::Result<bool> {
        let mut launcher = super::launcher(&self.cache)?;
        let request = InferRequest {
            run: &self.run,
            job: &self.job,
            probabilities,
            workers: self.workers,
            stop: self.stop.clone(),
            launcher: &mut launcher,
        };
        let mut events = |event| match event {
            Event::Log(log) => eprintln!("[worker {} · pid {}] {}", log.rank, log.pid, log.line),
            Event::Warning { message } => eprintln!("warning: {message}"),
            _ => (),
        };
        let mut last = Instant::now();
        let mut each = |block: Block| {
            if last.elapsed() > TELL_EVERY {
                last = Instant::now();
                let done = count((block.first + block.predictions.len()) as u64);
                eprintln!("{done} of {} samples", count(self.set.len() as u64));
            }
            each(block)
        };
        infer(request, &self.set, &mut events, &mut each)
    }
}

/// Embeds the pictures that a model of vectors is to look at. Those that are not the job's own test set
/// have their vectors in the cache. False after Ctrl-C: the same command then goes on where this was.
fn embed_first(
    job: &mut Job,
    args: &ModelArgs,
    workers: usize,
    cache: &CacheDir,
    stop: &StopFlag,
) -> anyhow::Result<bool> {
    let (Some(settings), Some(DataRef::Pictures { folder })) = (&mut job.embed, &job.data.test)
    else {
        return Ok(true);
    };
    if args.data.is_some() || !args.set.is_empty() {
        let store = cache.folder("embedded")?.join(settings.name_for(folder));
        settings.store = Location::new(store.to_string_lossy());
    }
    job.train.workers = workers;
    let mut launcher = super::launcher(cache)?;
    let request = EmbedRequest {
        job,
        only: Some("test"),
        launcher: &mut launcher,
        stop: stop.clone(),
    };
    let mut last = Instant::now();
    let done = embed(request, &mut |event| match event {
        Event::Embedding(embedding) if last.elapsed() > TELL_EVERY => {
            last = Instant::now();
            eprintln!("embedding: {}", summary::embedding(&embedding));
        }
        Event::Warning { message } => eprintln!("warning: {message}"),
        _ => (),
    })?;
    Ok(done)
}

/// What is said after Ctrl-C: files are written at the end, all at once.
pub(super) fn interrupted() -> ExitCode {
    eprintln!("interrupted; nothing was written");
    ExitCode::from(signals::INTERRUPTED)
}

/// Opens a run that is given by its path or URL, or by its name. How a bucket is reached is in the run's own
/// job, so here it must be in the variables of the environment, or in `--set storage.KEY=VALUE`.
fn open_run(run: &Path, set: &[String]) -> anyhow::Result<RunDir> {
    let text = run.to_str().context("the run's path is no text")?;
    let location = Location::new(text);
    if location.is_url() {
        let overrides = set.iter().map(|set| set.parse());
        let overrides: Vec<Override> = overrides.collect::<Result<_, _>>()?;
        let storage = Storage::of_overrides(&overrides)?;
        return Ok(RunDir::open(&place(&location, &storage)?)?);
    }
    let found = find(run);
    let found = found.to_str().context("the run's path is no text")?;
    Ok(RunDir::open(&place(
        &Location::new(found),
        &Storage::default(),
    )?)?)
}

/// The folder of a run that is given as such or by its name.
fn find(run: &Path) -> PathBuf {
    let named = Path::new(STORE).join(run);
    match run.exists() || !named.exists() {
        true => run.to_owned(),
        false => named,
    }
}

/// `--data` as a change to the job. Paths in it are of the current folder, not of the job file's.
fn data_override(data: &str) -> anyhow::Result<Override> {
    let path = Path::new(data);
    let whole = std::path::absolute(path).ok().filter(|_| path.exists());
    Ok(match whole.as_deref().and_then(Path::to_str) {
        Some(whole) => {
            // What ends in a slash is a folder of pictures, also when it is whole.
            let end = if data.ends_with('/') && !whole.ends_with('/') {
                "/"
            } else {
                ""
            };
            Override::text("--data", "data.test", &format!("{whole}{end}"))
        }
        None => format!("data.test={data}").parse()?,
    })
}
