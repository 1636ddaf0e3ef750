//! All that comes before the workers: the learner prepares, an earlier run is opened, the run's folder is made.

use super::folder::{self, Unstarted};
use super::{Early, ReadyRun, RunRequest};
use crate::embed::{EmbedRequest, embed};
use crate::tasks::CrewSettings;
use crate::{EngineError, Stop};
use lockstep_events::event::{Event, Started, UsedSet};
use lockstep_job::Job;
use lockstep_learner::{Coordinator, LearnerError, RunFacts};
use lockstep_model::SampleUse;
use lockstep_resolve::{EncoderInput, PictureInput, access, place};
use lockstep_runs::RunDir;

/// Finds, opens and checks all that training needs, and makes the run's folder. Nothing after a stop.
pub(super) fn prepare(
    request: &mut RunRequest,
    early: &mut Early<'_>,
) -> Result<Option<(ReadyRun, Unstarted)>, EngineError> {
    let mut job = request.job.clone();
    let learner = (request.coordinator)(&job, &request.folder)?;
    let kind = learner.kind();
    let fork = match request.fork {
        Some(which) => learner.forks()?.then_some(which),
        None => None,
    };
    let store = place(&job.run.store, &job.storage).map_err(LearnerError::of_job)?;
    let earlier = folder::earlier(request, &store, early)?;
    let (forked, resumed) = match fork {
        Some(which) => (earlier.zip(Some(which)), None),
        None => (None, earlier),
    };
    let pictures = match learner.embedding() {
        None => None,
        Some(_) => match embed_pictures(&*learner, request, early)? {
            Some(pictures) => Some(pictures),
            None => return Ok(None),
        },
    };
    let mut progress = |message: &str| {
        let message = message.to_owned();
        early.tell(Event::Preparing { message });
    };
    let mut plan = learner.prepare(pictures, &request.cache, &mut progress)?;
    let notes = plan.facts().notes.clone();
    early.note(notes);
    let resume = match &resumed {
        Some(earlier) => Some(plan.check_resume(&earlier.run())?),
        None => None,
    };
    early.note(resume.iter().filter_map(|point| point.words.clone()));
    if resumed.is_none() && forked.is_none() {
        early.note(plan.begin()?);
    }
    if request.stop.get() != Stop::No {
        return Ok(None);
    }
    let (run, folder, lock) = folder::open(resumed, &store, request.name.as_deref(), &job.name)?;
    if let Some((earlier, which)) = forked
        && let Some(fork) = plan.fork(&earlier.run(), which, &run, &request.cache)?
    {
        early.note([fork.words]);
        job.begin_with(fork.weights);
        early.note(plan.begin()?);
    }
    let mut started = started(&job, plan.facts(), &run);
    started.resumed_step = resume.as_ref().map_or(0, |point| point.step);
    let ready = ReadyRun {
        kind,
        plan,
        started,
        job,
        run,
        lock,
        resume,
    };
    Ok(Some((ready, folder)))
}

/// Has a crew make vectors of the pictures that `learner` names, and says how they became those. Nothing after a stop.
fn embed_pictures(
    learner: &dyn Coordinator,
    request: &mut RunRequest,
    early: &mut Early<'_>,
) -> Result<Option<PictureInput>, EngineError> {
    let Some(embedding) = learner.embedding() else {
        return Ok(None);
    };
    let access = access(&request.job.storage).map_err(LearnerError::of_job)?;
    let embedding = EmbedRequest {
        embedding,
        access: &access,
        samples: SampleUse::Measure,
        crew: CrewSettings::of(&request.job),
        launcher: &mut *request.launcher,
        stop: request.stop.clone(),
    };
    let recipe = embed(embedding, &mut |event| early.tell(event))?;
    Ok(recipe.map(|recipe| PictureInput {
        transform: recipe.transform,
        encoder: Some(EncoderInput {
            model: recipe.model,
            sha256: recipe.model_sha256,
            normalise: recipe.normalise,
        }),
    }))
}

/// What is told when the gang begins.
fn started(job: &Job, facts: &RunFacts, run: &RunDir) -> Started {
    let mut started = Started {
        run: run.name.clone(),
        run_dir: run.place().to_string(),
        workers: job.workers().max,
        min_workers: (job.workers().is_elastic()).then(|| job.workers().min),
        threads: facts.threads.clone(),
        device: facts.device.clone(),
        lanes: job.lanes(),
        train_samples: facts.train_samples,
        val_samples: facts.val_samples,
        test_samples: facts.test_samples,
        parameters: facts.parameters,
        steps_per_epoch: facts.steps_per_epoch,
        epochs: facts.epochs,
        command: facts.command.clone(),
        metrics: facts.metrics.clone(),
        config: job.rows(),
        libraries: facts.libraries.clone(),
        ..Started::default()
    };
    let sets = facts.sets.iter();
    started.data = sets
        .map(|found| used_set(&started, &found.set, &found.name, &found.sha256))
        .collect();
    started
}

/// A set as it is told: what it is used for, what it is called, its hash, and what the job file says of it.
fn used_set(started: &Started, set: &str, name: &str, sha256: &str) -> UsedSet {
    let key = format!("data.{set}");
    let is_of_set = |row: &&(String, String)| {
        let rest = row.0.strip_prefix(&key);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let rows = started.config.iter().filter(is_of_set);
    let sources: Vec<&str> = rows.map(|(_, value)| value.as_str()).collect();
    UsedSet {
        set: set.to_owned(),
        name: name.to_owned(),
        source: sources.join(" "),
        samples: match set {
            "train" => started.train_samples,
            "val" => started.val_samples,
            _ => started.test_samples,
        },
        sha256: sha256.to_owned(),
    }
}
