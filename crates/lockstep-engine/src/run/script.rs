//! Prepares a run that starts a script as a gang.

use super::folder::{self, Unstarted};
use super::{Early, ReadyRun, Resumed, RunRequest, used_set};
use crate::{EngineError, Stop};
use lockstep_events::control::LearnerKind;
use lockstep_events::event::{Event, Started};
use lockstep_job::{Job, ScriptJob};
use lockstep_resolve::ResolvedScript;
use lockstep_script::{ScriptPart, ScriptSets};

/// Finds and opens the data that the script may ask for, and makes the run's folder. Nothing after a stop.
pub(super) fn prepare(
    job: Job,
    own: &ScriptJob,
    request: &mut RunRequest,
    early: &mut Early<'_>,
) -> Result<Option<(ReadyRun, Unstarted)>, EngineError> {
    let resolved = ResolvedScript::of(&job, own).map_err(lockstep_script::ScriptError::from)?;
    let earlier = folder::earlier(request, &resolved.store, early)?;
    let mut progress = |message: &str| {
        let message = message.to_owned();
        early.tell(Event::Preparing { message });
    };
    let sets = ScriptSets::find(&resolved, &request.cache, &mut progress)?;
    if request.stop.get() != Stop::No {
        return Ok(None);
    }
    let resume = match &earlier {
        Some(earlier) => Some(Resumed {
            history: lockstep_script::history(&earlier.run, &earlier.checkpoint)?,
            epochs: 0,
        }),
        None => None,
    };
    let resumed_step = earlier.as_ref().map_or(0, |earlier| earlier.step);
    let (run, folder, lock) =
        folder::open(earlier, &resolved.store, request.name.as_deref(), &job.name)?;
    let mut started = Started {
        run: run.name.clone(),
        run_dir: run.place().to_string(),
        workers: own.train.workers.max,
        lanes: own.train.workers.max,
        transport: String::new(),
        train_samples: sets.samples("train"),
        val_samples: sets.samples("val"),
        test_samples: sets.samples("test"),
        parameters: 0,
        steps_per_epoch: 0,
        epochs: 0,
        command: own.train.command.clone(),
        metrics: Vec::new(),
        config: job.rows(),
        data: Vec::new(),
        resumed_step,
    };
    started.data = sets
        .by_use()
        .map(|(name, called, sha256)| used_set(&started, name, called, sha256))
        .collect();
    let part = ScriptPart::new(&resolved, sets, &run.name, request.folder.clone());
    let told = serde_json::to_value(part).expect("settings are plain data");
    let ready = ReadyRun {
        kind: LearnerKind::Script,
        learner: Box::new(move |_| told.clone()),
        plan: None,
        workers: own.train.workers,
        gang: job.gang.clone(),
        recover: job.recover,
        stall_s: Some(own.train.stall_s),
        started,
        text: job.to_toml(),
        inputs: job.local_inputs(),
        storage: job.storage.clone(),
        run,
        lock,
        resume,
        onnx: false,
    };
    Ok(Some((ready, folder)))
}
