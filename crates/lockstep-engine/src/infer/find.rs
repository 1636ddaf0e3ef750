//! Finds runs and their models by what people call them.

use super::InferError;
use lockstep_events::event::Event;
use lockstep_job::{Job, Location, Override, Storage};
use lockstep_learner::LearnerType;
use lockstep_place::Place;
use lockstep_resolve::place;
use lockstep_runs::registry::Registry;
use lockstep_runs::{RunDir, named_store};
use std::path::Path;

/// The folder that run names are looked for in where no store is named.
const STORE: &str = "runs";

/// Finds the learner of a job.
pub type FindLearner = fn(&Job) -> &'static dyn LearnerType;

/// What is to predict, as it was named.
#[derive(Debug, Clone, Copy)]
pub struct NamedModel<'a> {
    /// Where runs and models lie: a folder or a URL.
    pub store: &'a str,
    /// A registered model, as in `NAME@ALIAS`.
    pub model: Option<&'a str>,
    /// Where no model is named: the run, by its folder, its URL, or its name in the store.
    pub run: &'a Path,
    /// `KEY=VALUE` of the command line, which may say how a bucket is reached.
    pub set: &'a [String],
}

impl NamedModel<'_> {
    /// Opens a version of a model, or a run. One that did not end gets the model of its newest checkpoint, of which
    /// `events` hears.
    ///
    /// # Errors
    /// When there is no such model or run, or it is still trained.
    pub fn open(
        &self,
        learner: FindLearner,
        events: &mut dyn FnMut(Event),
    ) -> Result<RunDir, InferError> {
        let (store, storage) = open_store(self.store, self.set)?;
        if let Some(model) = self.model {
            let registry = Registry::of(&store)?;
            return Ok(registry.run(&registry.find(&model.parse()?)?)?);
        }
        with_model(open_in(self.run, &store, &storage)?, learner, events)
    }
}

/// Opens a run whose model is to be used, given as [`open_run`] takes it, with its model as [`NamedModel::open`] finds
/// it.
///
/// # Errors
/// As [`NamedModel::open`].
pub fn open_trained(
    run: &Path,
    set: &[String],
    learner: FindLearner,
    events: &mut dyn FnMut(Event),
) -> Result<RunDir, InferError> {
    with_model(open_run(run, set)?, learner, events)
}

/// Opens a run that is given by its path or URL, or by its name in the store that the
/// environment names, else in the folder `runs`, or a part of it that no other has. How a bucket is reached is in the
/// run's own job, so here it must be in the variables of the environment, or in `--set storage.KEY=VALUE`.
///
/// # Errors
/// When there is no such run.
pub fn open_run(run: &Path, set: &[String]) -> Result<RunDir, InferError> {
    let store = named_store().unwrap_or_else(|| STORE.to_owned());
    let (store, storage) = open_store(&store, set)?;
    open_in(run, &store, &storage)
}

/// The run, with the model that its newest checkpoint has if it did not end and so left none.
fn with_model(
    run: RunDir,
    learner: FindLearner,
    events: &mut dyn FnMut(Event),
) -> Result<RunDir, InferError> {
    // Of one that succeeded the newest checkpoint need not be what it kept.
    if run.has_succeeded()? || run.model().entry()?.is_some() || run.checkpoints().is_empty() {
        return Ok(run);
    }
    let file = run.job().local_copy()?;
    let learner = learner(&Job::load(file.path(), &[], None)?);
    if !learner.predicts() {
        return Ok(run);
    }
    let name = &run.name;
    let not_ended = |source| InferError::NotEnded {
        run: name.clone(),
        source: Box::new(source),
    };
    let _lock = run.lock(&mut |_| {}).map_err(not_ended)?;
    if let Some(words) = learner.recover_model(&run)? {
        let message =
            format!("{name} did not end; its model is taken from its newest checkpoint: {words}");
        events(Event::Preparing { message });
    }
    Ok(run)
}

fn open_store(store: &str, set: &[String]) -> Result<(Place, Storage), InferError> {
    let overrides = set.iter().map(|set| set.parse());
    let overrides: Vec<Override> = overrides.collect::<Result<_, _>>()?;
    let storage = Storage::of_overrides(&overrides)?;
    Ok((place(&Location::new(store), &storage)?, storage))
}

fn open_in(run: &Path, store: &Place, storage: &Storage) -> Result<RunDir, InferError> {
    let text = run.to_str().ok_or_else(|| InferError::RunPath {
        path: run.to_owned(),
    })?;
    let location = Location::new(text);
    let found = match location.is_url() || run.exists() {
        true => place(&location, storage)?,
        false => match RunDir::find(store, text)? {
            Some(run) => run.place().clone(),
            None => match store.join(text) {
                // What is there is known of a folder only; of a bucket, the run's job says it.
                Ok(named) if named.local().is_none_or(Path::exists) => named,
                _ => place(&location, storage)?,
            },
        },
    };
    Ok(RunDir::open(&found)?)
}
