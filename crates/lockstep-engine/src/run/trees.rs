//! Prepares a run that grows trees.

use super::folder::{self, Unstarted};
use super::{Early, ReadyRun, Resumed, RunRequest, used_set};
use crate::{EngineError, Stop};
use lockstep_events::control::LearnerKind;
use lockstep_events::event::{Event, Started};
use lockstep_job::{Job, TreesJob};
use lockstep_resolve::ResolvedTrees;
use lockstep_trees::{TreesError, TreesPart};

/// Seconds without any sign of work after which all workers are taken to hang: a round on a large table is one call of
/// XGBoost's.
const STALL_S: f64 = 600.0;

/// Finds the library, opens the data, checks that all fits, and makes the run's folder. Nothing after a stop.
pub(super) fn prepare(
    job: Job,
    own: &TreesJob,
    request: &mut RunRequest,
    early: &mut Early<'_>,
) -> Result<Option<(ReadyRun, Unstarted)>, EngineError> {
    let resolved = ResolvedTrees::of(&job, own).map_err(TreesError::from)?;
    if request.fork.is_some() {
        return Err(EngineError::Trees(TreesError::Misfit {
            key: "--fork",
            reason: "trees do not begin with those of another run; --resume goes on with that one"
                .to_owned(),
        }));
    }
    let earlier = folder::earlier(request, &resolved.store, early)?;
    let mut progress = |message: &str| {
        let message = message.to_owned();
        early.tell(Event::Preparing { message });
    };
    let prepared = lockstep_trees::prepare(&resolved, &request.cache, &mut progress)?;
    for message in prepared.notes.iter().cloned() {
        early.tell(Event::Note { message });
    }
    if request.stop.get() != Stop::No {
        return Ok(None);
    }
    let data = prepared.found.sha256();
    let resume = match &earlier {
        Some(earlier) => {
            let point =
                lockstep_trees::check_resume(&resolved.settings, &data, &earlier.checkpoint)?;
            if point.rounds >= own.model.rounds && earlier.has_succeeded_with(point.rounds) {
                return Err(EngineError::Trees(TreesError::Saved {
                    place: earlier.checkpoint.to_string(),
                    reason: format!(
                        "the run has trained {} rounds already, and the job asks for {}; ask for more",
                        point.rounds, own.model.rounds
                    ),
                }));
            }
            Some(Resumed {
                history: point.history,
                epochs: point.rounds,
            })
        }
        None => None,
    };
    if let (Some(earlier), Some(point)) = (&earlier, &resume) {
        let (name, rounds) = (&earlier.run.name, point.epochs);
        let message = format!("going on with {name} after round {rounds}");
        early.tell(Event::Note { message });
    }
    let resumed_step = earlier.as_ref().map_or(0, |earlier| earlier.step);
    let (run, folder, lock) =
        folder::open(earlier, &resolved.store, request.name.as_deref(), &job.name)?;
    let mut started = Started {
        run: run.name.clone(),
        run_dir: run.place().to_string(),
        workers: own.train.workers.max,
        lanes: own.train.workers.max,
        transport: String::new(),
        train_samples: prepared.train_rows,
        val_samples: prepared.val_rows,
        test_samples: prepared.test_rows,
        parameters: 0,
        steps_per_epoch: 1,
        epochs: own.model.rounds,
        command: Vec::new(),
        metrics: prepared.metrics,
        config: job.rows(),
        data: Vec::new(),
        resumed_step,
    };
    started.data = prepared
        .found
        .by_use()
        .map(|(name, set)| used_set(&started, name, &set.name, &set.sha256))
        .collect();
    let part = TreesPart {
        settings: resolved.settings,
        sources: resolved.sets,
        access: resolved.access,
        found: prepared.found,
    };
    let told = serde_json::to_value(part).expect("settings are plain data");
    let ready = ReadyRun {
        kind: LearnerKind::Trees,
        learner: Box::new(move |_| told.clone()),
        plan: None,
        workers: own.train.workers,
        gang: job.gang.clone(),
        recover: job.recover,
        stall_s: Some(STALL_S),
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
