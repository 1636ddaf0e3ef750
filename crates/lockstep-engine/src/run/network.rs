//! Prepares a run that trains a network.

use super::folder::{self, Unstarted};
use super::{Early, ReadyRun, Resumed, RunRequest, used_set};
use crate::embed::{EmbedRequest, embed};
use crate::tasks::CrewSettings;
use crate::{EngineError, Stop};
use lockstep_events::control::LearnerKind;
use lockstep_events::event::{Event, Started};
use lockstep_job::{Job, LearnerJob, NetworkJob};
use lockstep_model::SampleUse;
use lockstep_resolve::{EncoderInput, PictureInput, ResolvedJob, TrainingSettings};
use lockstep_runs::RunDir;
use lockstep_train::{LearnerPart, Prepared, TrainError};

/// Finds, opens and checks all that training needs, and makes the run's folder. Nothing after a stop.
pub(super) fn prepare(
    mut job: Job,
    mut own: NetworkJob,
    request: &mut RunRequest,
    early: &mut Early<'_>,
) -> Result<Option<(ReadyRun, Unstarted)>, EngineError> {
    let mut resolved = ResolvedJob::of(&job, &own).map_err(TrainError::from)?;
    let earlier = folder::earlier(request, &resolved.store, early)?;
    let events: &mut dyn FnMut(Event) = &mut |event| early.tell(event);
    let (forked, resumed) = match request.fork {
        Some(which) => (earlier.zip(Some(which)), None),
        None => (None, earlier),
    };
    if let Some(embedding) = &resolved.embedding {
        let embedding = EmbedRequest {
            embedding,
            access: &resolved.access,
            samples: SampleUse::Measure,
            crew: CrewSettings::of(&job),
            launcher: &mut *request.launcher,
            stop: request.stop.clone(),
        };
        let Some(recipe) = embed(embedding, events)? else {
            return Ok(None);
        };
        resolved.training.pictures = Some(PictureInput {
            transform: recipe.transform,
            encoder: Some(EncoderInput {
                model: recipe.model,
                sha256: recipe.model_sha256,
                normalise: recipe.normalise,
            }),
        });
    }
    let mut progress = |message: &str| {
        let message = message.to_owned();
        events(Event::Preparing { message });
    };
    let (prepared, found) = lockstep_train::prepare(&resolved, &request.cache, &mut progress)?;
    if own.train.learner.onnx {
        lockstep_onnx::check_size(prepared.parameters).map_err(EngineError::Onnx)?;
    }
    for message in prepared.notes.iter().cloned() {
        events(Event::Note { message });
    }
    let resume = match &resumed {
        Some(earlier) => Some(earlier.point(&resolved.training, &found)?),
        None => None,
    };
    if let (Some(earlier), Some(point)) = (&resumed, &resume) {
        let message = earlier.goes_on(point, prepared.steps_per_epoch);
        events(Event::Note { message });
    }
    let mut pretrained = None;
    let mut begin_anew = |settings: &TrainingSettings, events: &mut dyn FnMut(Event)| {
        let start = lockstep_train::check_start(settings, &prepared.data)?;
        for message in start.notes {
            events(Event::Note { message });
        }
        pretrained = start.pretrained;
        Ok::<_, EngineError>(())
    };
    if resumed.is_none() && forked.is_none() {
        begin_anew(&resolved.training, events)?;
    }
    if request.stop.get() != Stop::No {
        return Ok(None);
    }
    let (run, folder, lock) =
        folder::open(resumed, &resolved.store, request.name.as_deref(), &job.name)?;
    if let Some((earlier, which)) = forked {
        let (weights, message) = earlier.fork(which, &run, &request.cache)?;
        events(Event::Note { message });
        resolved.training.weights = Some(weights.clone());
        own.model.weights = Some(weights);
        job.learner = LearnerJob::Network(Box::new(own.clone()));
        begin_anew(&resolved.training, events)?;
    }
    let mut started = started(&job, &own, &prepared, &run);
    started.data = found
        .by_use()
        .map(|(name, set)| used_set(&started, name, &set.name, &set.sha256))
        .collect();
    started.resumed_step = resume.as_ref().map_or(0, |point| point.step);
    let learner = move |workers| {
        let mut settings = resolved.training.clone();
        settings.workers = workers;
        let part = LearnerPart {
            settings,
            sources: resolved.sets.clone(),
            access: resolved.access.clone(),
            pretrained: pretrained.clone(),
            found: found.clone(),
        };
        serde_json::to_value(part).expect("settings are plain data")
    };
    let ready = ReadyRun {
        kind: LearnerKind::Network,
        learner: Box::new(learner),
        plan: Some(prepared.plan),
        workers: own.train.workers,
        gang: job.gang.clone(),
        recover: job.recover,
        stall_s: None,
        started,
        text: job.to_toml(),
        inputs: job.local_inputs(),
        storage: job.storage.clone(),
        run,
        lock,
        resume: resume.map(|point| Resumed {
            history: point.history,
            epochs: point.epochs,
        }),
        onnx: own.train.learner.onnx,
    };
    Ok(Some((ready, folder)))
}

fn started(job: &Job, own: &NetworkJob, prepared: &Prepared, run: &RunDir) -> Started {
    Started {
        run: run.name.clone(),
        run_dir: run.place().to_string(),
        workers: own.train.workers.max,
        lanes: own.train.lanes,
        transport: String::new(),
        train_samples: prepared.train_samples,
        val_samples: prepared.val_samples,
        test_samples: prepared.test_samples,
        parameters: prepared.parameters,
        steps_per_epoch: prepared.steps_per_epoch,
        epochs: own.train.learner.epochs,
        command: Vec::new(),
        metrics: prepared
            .metrics
            .iter()
            .map(|&name| name.to_owned())
            .collect(),
        config: job.rows(),
        data: Vec::new(),
        resumed_step: 0,
    }
}
