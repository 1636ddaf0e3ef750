//! What `evaluate` and `predict` have in common: a run, its model, a set, and a crew that goes through it.

mod given;

use crate::args::{Engine, ModelArgs};
use crate::learners::{self, LEARNERS};
use crate::signals;
use crate::view::{count, summary};
use anyhow::{Context, bail};
use given::Given;
use lockstep_base::fs::CacheDir;
use lockstep_data::{Dataset, SkippedFile, Source};
use lockstep_engine::StopFlag;
use lockstep_engine::embed::{EmbedRequest, embed};
use lockstep_engine::infer::{InferRequest, infer};
use lockstep_engine::tasks::CrewSettings;
use lockstep_events::event::Event;
use lockstep_job::{DataRef, Job, Location, Override, Storage};
use lockstep_model::{Block, Outputs, open_test, test_source};
use lockstep_place::Place;
use lockstep_resolve::{PictureInput, TestSource, access, place};
use lockstep_runs::RunDir;
use lockstep_runs::registry::Registry;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The folder that run names are looked for in.
const STORE: &str = "runs";
/// How often it is said how far the work is.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// A trained model and what it is to look at.
pub(super) struct Inference {
    pub(super) run: RunDir,
    pub(super) job: Job,
    /// One set, or several that were named. At least one.
    pub(super) samples: Vec<Samples>,
    /// What the model predicts.
    pub(super) outputs: Outputs,
    cache: CacheDir,
    engine: Engine,
    workers: usize,
    stop: StopFlag,
}

/// A set that a model is to look at.
pub(super) struct Samples {
    pub(super) set: Dataset,
    /// What comes before the names of its samples.
    prefix: String,
    /// Where they come from.
    source: Source,
}

impl Samples {
    /// Where a sample comes from, if the set says so.
    pub(super) fn path(&self, row: usize) -> Option<String> {
        let name = self.set.sample_name(row)?;
        Some(format!("{}{name}", self.prefix))
    }
}

impl Inference {
    /// Opens the run, its model and the set to measure it on, whose pictures are embedded first if the run's
    /// were. What cannot be used is found here. Nothing after Ctrl-C.
    pub(super) fn to_measure(args: &ModelArgs, data: Option<&str>) -> anyhow::Result<Option<Self>> {
        Self::open(args, &[Given::to_measure(data)?])
    }

    /// Opens the run, its model and what it is to look at, as [`Inference::to_measure`] does. It need not be known
    /// what the samples are.
    pub(super) fn to_predict(args: &ModelArgs, data: &[String]) -> anyhow::Result<Option<Self>> {
        Self::open(args, &Given::to_predict(data)?)
    }

    fn open(args: &ModelArgs, given: &[Given]) -> anyhow::Result<Option<Self>> {
        let mut overrides = Vec::new();
        for set in &args.set {
            overrides.push(given::here(set)?);
        }
        let run = open_model(args)?;
        let file = run.job().local_copy()?;
        let load = |given: &Given| given.load(file.path(), &overrides);
        let mut jobs: Vec<Job> = given.iter().map(load).collect::<Result<_, _>>()?;
        if jobs
            .iter()
            .any(|job| job.data.as_ref().is_none_or(|data| data.test.is_none()))
        {
            bail!(
                "the job of {} has no data.test; name a set with --data",
                run.name
            );
        }
        let stop = StopFlag::new();
        signals::obey(stop.clone())?;
        let cache = CacheDir::locate()?;
        let trained = LEARNERS.open_model(&run, 1)?;
        let engine = args.engine.engine;
        let workers = args.workers.unwrap_or(jobs[0].workers().max).max(1);
        let mut samples = Vec::new();
        for (job, given) in jobs.iter_mut().zip(given) {
            let own = given.is_own() && args.set.is_empty();
            let crew = CrewSettings {
                workers,
                ..CrewSettings::of(job)
            };
            if !own {
                own_vectors(job, given, &cache)?;
            }
            let mut test = learners::test_source(job)?;
            if let Some(pictures) = trained.pictures() {
                as_trained(&mut test, pictures, &run.name)?;
            }
            if !embed_first(&test, job, given, (engine, crew), &cache, &stop)? {
                return Ok(None);
            }
            let mut tell = |message: &str| eprintln!("{message}");
            let (outputs, samples_use) = (trained.outputs(), given.samples());
            let source = test_source(&test, outputs, trained.inputs(), samples_use);
            let set = open_test(&source, outputs, &cache, &mut tell)?;
            trained.check(&set)?;
            for note in set.table().unseen_notes() {
                eprintln!("note: {}: {note}", set.name());
            }
            if let Some(first) = set.skipped().first() {
                let (bad, folder) = (set.skipped().len(), set.name());
                let SkippedFile { path, reason } = first;
                eprintln!(
                    "warning: {bad} unreadable in {folder}, left out; first {path:?}: {reason}"
                );
            }
            samples.push(Samples {
                set,
                prefix: given.prefix(job),
                source,
            });
        }
        Ok(Some(Self {
            outputs: trained.outputs().clone(),
            engine,
            workers,
            run,
            job: jobs.swap_remove(0),
            samples,
            cache,
            stop,
        }))
    }

    /// Hands what the model says of a set to `each`, in the order of the set. False if that was not all,
    /// because of Ctrl-C.
    pub(super) fn go(
        &self,
        samples: &Samples,
        probabilities: bool,
        each: &mut dyn FnMut(Block) -> anyhow::Result<()>,
    ) -> anyhow::Result<bool> {
        let mut launcher = super::launcher(self.engine, &self.job, self.workers, &self.cache)?;
        let set = &samples.set;
        let request = InferRequest {
            run: &self.run,
            access: &access(&self.job.storage)?,
            source: &samples.source,
            threads: self.job.threads(),
            probabilities,
            crew: CrewSettings {
                workers: self.workers,
                ..CrewSettings::of(&self.job)
            },
            stop: self.stop.clone(),
            launcher: &mut *launcher,
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
                eprintln!("{done} of {} samples", count(set.len() as u64));
            }
            each(block)
        };
        infer(request, set, &mut events, &mut each)
    }
}

/// Has the pictures of `test` become samples as those did that the model of `run` learned from.
fn as_trained(test: &mut TestSource, trained: &PictureInput, run: &str) -> anyhow::Result<()> {
    match (&mut test.source, &mut test.embedding, &trained.encoder) {
        (Source::Pictures(pictures), _, None) => {
            pictures.transform.clone_from(&trained.transform);
        }
        (_, Some(embedding), Some(encoder)) => {
            if !embedding.model.exists() {
                bail!(
                    "{run} was trained on vectors of an encoder that is not at {} (SHA-256 {}); say where it is: --set \
                     embed.model=PATH",
                    embedding.model.display(),
                    encoder.sha256
                );
            }
            embedding.model_sha256 = Some(encoder.sha256.clone());
            embedding.transform = Some(trained.transform.clone());
            embedding.normalise = Some(encoder.normalise);
        }
        _ => (),
    }
    Ok(())
}

/// Lets the vectors of pictures that are not the job's own test set go to the cache.
fn own_vectors(job: &mut Job, given: &Given, cache: &CacheDir) -> anyhow::Result<()> {
    let test = job.data.as_ref().and_then(|data| data.test.as_ref());
    if let Some(DataRef::Pictures { folder }) = test {
        // Some pictures of a folder have vectors of their own.
        let named = match &given.pictures {
            Some(names) => folder.join(&names.join(":")),
            None => folder.clone(),
        };
        let Some(settings) = job.embed_mut() else {
            return Ok(());
        };
        let store = cache.folder("embedded")?.join(settings.name_for(&named));
        settings.store = Location::new(store.to_string_lossy());
    }
    Ok(())
}

/// Embeds the pictures that a model of vectors is to look at. False after Ctrl-C: the same command then goes on
/// where this was.
fn embed_first(
    test: &TestSource,
    job: &Job,
    given: &Given,
    (engine, crew): (Engine, CrewSettings),
    cache: &CacheDir,
    stop: &StopFlag,
) -> anyhow::Result<bool> {
    let Some(embedding) = &test.embedding else {
        return Ok(true);
    };
    let mut launcher = super::launcher(engine, job, crew.workers, cache)?;
    let request = EmbedRequest {
        embedding,
        access: &access(&job.storage)?,
        samples: given.samples(),
        crew,
        launcher: &mut *launcher,
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
    Ok(done.is_some())
}

/// What is said after Ctrl-C: files are written at the end, all at once.
pub(super) fn interrupted() -> ExitCode {
    eprintln!("interrupted; nothing was written");
    ExitCode::from(signals::INTERRUPTED)
}

/// Opens what is to predict: a version of a model, or a run.
fn open_model(args: &ModelArgs) -> anyhow::Result<RunDir> {
    let (store, storage) = open_store(&args.store, &args.set)?;
    if let Some(model) = &args.model {
        let registry = Registry::of(&store)?;
        return Ok(registry.run(&registry.find(&model.parse()?)?)?);
    }
    let run = args.run.as_deref().unwrap_or(Path::new("."));
    with_model(open_in(run, &store, &storage)?)
}

/// Opens a run whose model is to be used, given as [`open_run`] takes it.
pub(super) fn open_trained(run: &Path, set: &[String]) -> anyhow::Result<RunDir> {
    with_model(open_run(run, set)?)
}

/// The run, with the model that its newest checkpoint has if it did not end and so left none.
fn with_model(run: RunDir) -> anyhow::Result<RunDir> {
    // Of one that succeeded the newest checkpoint need not be what it kept.
    if run.has_succeeded()? || run.model().entry()?.is_some() || run.checkpoints().is_empty() {
        return Ok(run);
    }
    let name = &run.name;
    let file = run.job().local_copy()?;
    let job = Job::load(file.path(), &[], None)?;
    let learner = learners::of(&job);
    if !learner.predicts() {
        return Ok(run);
    }
    let lock = run.lock(&mut |_| {});
    let _lock = lock.with_context(|| format!("{name} has not ended, so it has no model yet"))?;
    if let Some(words) = learner.recover_model(&run)? {
        eprintln!("{name} did not end; its model is taken from its newest checkpoint: {words}");
    }
    Ok(run)
}

/// Opens a run that is given by its path or URL, or by its name. How a bucket is reached is in the run's own
/// job, so here it must be in the variables of the environment, or in `--set storage.KEY=VALUE`.
pub(super) fn open_run(run: &Path, set: &[String]) -> anyhow::Result<RunDir> {
    let (store, storage) = open_store(STORE, set)?;
    open_in(run, &store, &storage)
}

fn open_store(store: &str, set: &[String]) -> anyhow::Result<(Place, Storage)> {
    let overrides = set.iter().map(|set| set.parse());
    let overrides: Vec<Override> = overrides.collect::<Result<_, _>>()?;
    let storage = Storage::of_overrides(&overrides)?;
    Ok((place(&Location::new(store), &storage)?, storage))
}

fn open_in(run: &Path, store: &Place, storage: &Storage) -> anyhow::Result<RunDir> {
    let text = run.to_str().context("the run's path is no text")?;
    let location = Location::new(text);
    let found = match location.is_url() || run.exists() {
        true => place(&location, storage)?,
        false => match store.join(text) {
            // What is there is known of a folder only; of a bucket, the run's job says it.
            Ok(named) if named.local().is_none_or(Path::exists) => named,
            _ => place(&location, storage)?,
        },
    };
    Ok(RunDir::open(&found)?)
}
