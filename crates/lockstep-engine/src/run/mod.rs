//! From a job to a result: prepares, starts the gang, and says how it ended.

mod folder;
mod network;
mod script;
mod trees;

use crate::node_check::check_nodes;
use crate::ready::ready;
use crate::record::Record;
use crate::resume::begin_generation;
use crate::supervise::generation::{Carrier, GangSettings, GangWorkers, JoinPoint};
use crate::supervise::notice::{JoinListener, WAITING};
use crate::supervise::state::GangLimits;
use crate::supervise::supervisor::{GangOutcome, Supervisor, Watch, in_turn};
use crate::{EngineError, StopFlag, describe};
use folder::Unstarted;
use lockstep_base::fs::CacheDir;
use lockstep_events::control::{Finished, LearnerKind};
use lockstep_events::event::{Event, RunResult, Started, Status, UsedSet};
use lockstep_events::{Recorded, Thin};
use lockstep_gang::{Plan, Rendezvous};
use lockstep_job::{Job, JobGang, LearnerJob, LocalInput, Recover, Storage, Workers};
use lockstep_launch::Launcher;
use lockstep_onnx::OnnxError;
use lockstep_place::Place;
use lockstep_runs::{RunDir, RunLock, RunsError};
use lockstep_train::ForkFrom;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// What to run.
#[derive(Debug)]
pub struct RunRequest {
    /// The job, checked and complete.
    pub job: Job,
    /// The job file's folder, where scripts start.
    pub folder: PathBuf,
    /// When the command started: what the time to the first step counts from.
    pub started_at: Instant,
    /// An earlier run to go on with, instead of beginning a new one.
    pub resume: Option<Place>,
    /// The name of the run, where that was chosen before: the run is gone on with if it is in the job's store, and
    /// begun if not. Nothing where `resume` names one.
    pub name: Option<String>,
    /// The weights of that one which a new run shall begin with instead, if one shall.
    pub fork: Option<ForkFrom>,
    /// Stop after so many steps, as if asked to.
    pub max_steps: Option<u64>,
    /// Measure where the time of steps goes, which costs a little of it.
    pub step_times: bool,
    /// Raised by whoever wants the run to end early.
    pub stop: StopFlag,
    /// Where decoded data is kept here. Workers elsewhere have their own.
    pub cache: CacheDir,
    /// Where the workers run.
    pub launcher: Box<dyn Launcher>,
}

/// Runs a job on the workers of a launcher and returns how it ended.
///
/// # Guarantees
/// The last event is [`Event::Result`], on errors too. No worker is left when this returns or
/// panics, and none outlives the calling thread. A run that could not begin leaves no folder behind;
/// one whose workers trained keeps its folder, with logs and `result.json`, however it ended.
///
/// # Errors
/// When the run could not begin. A run that failed later, or whose end could not be recorded, is a
/// [`RunResult`] with [`Status::Failed`].
pub fn run(
    mut request: RunRequest,
    events: &mut dyn FnMut(Event),
) -> Result<RunResult, EngineError> {
    let result = try_run(&mut request, events);
    let last = match &result {
        Ok(result) => result.clone(),
        Err(error) => RunResult {
            error: Some(describe(error)),
            status: Status::Failed,
            ..unstarted(&request)
        },
    };
    events(Event::Result(last));
    result
}

/// Tells what happens before there is a run, and keeps it: it is recorded when there is one.
struct Early<'a> {
    show: &'a mut dyn FnMut(Event),
    kept: Vec<Recorded>,
    thin: Thin,
}

impl Early<'_> {
    fn tell(&mut self, event: Event) {
        let event = Recorded::now(event);
        if self.thin.keeps(&event.event, event.time) {
            self.kept.push(event.clone());
        }
        (self.show)(event.event);
    }
}

fn try_run(
    request: &mut RunRequest,
    show: &mut dyn FnMut(Event),
) -> Result<RunResult, EngineError> {
    let mut early = Early {
        show: &mut *show,
        kept: Vec::new(),
        thin: Thin::for_curves(Recorded::clock()),
    };
    let job = request.job.clone();
    let ready_run = match job.learner.clone() {
        LearnerJob::Network(own) => network::prepare(job, *own, request, &mut early)?,
        LearnerJob::Script(own) => script::prepare(job, &own, request, &mut early)?,
        LearnerJob::Trees(own) => trees::prepare(job, &own, request, &mut early)?,
    };
    let Some((ready_run, folder)) = ready_run else {
        return Ok(unstarted(request));
    };
    let patience = Duration::from_secs_f64(ready_run.gang.start_deadline_s);
    let mut tell = |event| early.tell(event);
    if !ready(&mut *request.launcher, patience, &request.stop, &mut tell)? {
        return Ok(unstarted(request));
    }
    check_nodes(
        &mut *request.launcher,
        (&ready_run.inputs, &ready_run.storage),
        ("run.store", ready_run.run.place()),
        patience,
    )?;
    let kept = early.kept;
    run_gang(request, ready_run, kept, folder, show)
}

/// All that is known when the workers are about to start.
struct ReadyRun {
    /// What learns, and what it is told when it begins with so many workers.
    kind: LearnerKind,
    learner: Box<dyn Fn(usize) -> Value>,
    /// The exchange of the whole gang; none where the learner has its own.
    plan: Option<Plan>,
    workers: Workers,
    gang: JobGang,
    recover: Recover,
    /// How long all may get no further, in seconds, where that is not the gang's deadline.
    stall_s: Option<f64>,
    /// What is told when the gang begins.
    started: Started,
    /// The job file as it is kept in the run's folder.
    text: String,
    /// Files and folders of the nodes that the job reads, and how its places are reached.
    inputs: Vec<LocalInput>,
    storage: Storage,
    run: RunDir,
    /// Proof that the run is this process's.
    lock: RunLock,
    /// What was recorded up to the state that the run goes on from.
    resume: Option<Resumed>,
    /// Whether the model is to be written as ONNX too.
    onnx: bool,
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

/// The state that a run goes on from.
struct Resumed {
    /// The record of metrics up to it.
    history: String,
    /// Epochs that were trained completely.
    epochs: u32,
}

fn run_gang(
    request: &mut RunRequest,
    ready_run: ReadyRun,
    mut early: Vec<Recorded>,
    mut folder: Unstarted,
    events: &mut dyn FnMut(Event),
) -> Result<RunResult, EngineError> {
    let unstarted = unstarted(request);
    let ReadyRun {
        gang: job_gang,
        recover,
        run,
        lock,
        resume,
        mut started,
        ..
    } = ready_run;
    let workers = ready_run.workers.max;
    let site = request.launcher.site();
    let carrier = match ready_run.plan {
        Some(_) => Carrier::of(job_gang.transport, workers, &site)?,
        None => Carrier::Own,
    };
    let door = Rendezvous::bind(site.listen)?;
    let mut record = Record::open(run.clone(), workers)?;
    if let Some(resumed) = &resume {
        record.restore(&resumed.history)?;
    }
    let (sender, notices) = sync_channel(WAITING);
    let settings = GangSettings {
        workers,
        kind: ready_run.kind,
        plan: ready_run.plan.as_ref(),
        carrier,
        encrypt: job_gang.encrypt,
        learner: &*ready_run.learner,
        run_dir: run.place().to_string(),
        max_steps: request.max_steps,
        step_times: request.step_times,
        deadline_s: job_gang.deadline_s,
        stall_s: ready_run.stall_s,
        start_deadline_s: job_gang.start_deadline_s,
        lease_s: job_gang.lease_s,
    };
    let at = JoinPoint {
        address: door.address(),
        admissions: door.admissions(),
        notices: sender.clone(),
    };
    let mut gang = GangWorkers::new(&mut *request.launcher, settings, at)?;
    started.transport = carrier.word().to_owned();
    let started = Event::Started(started);
    early.push(Recorded::now(started.clone()));
    events(started);
    for event in &early {
        record.event(event)?;
    }
    for seat in 0..workers {
        gang.start(seat)?;
    }
    let _door = JoinListener::spawn(door, sender).map_err(|source| EngineError::System {
        what: "wait for workers",
        source,
    })?;
    // Written while the workers start, since it waits for the disk; again if a later part of the run
    // is another job: more epochs, or other workers.
    let text = ready_run.text;
    if !run
        .job()
        .read()
        .is_ok_and(|written| written == text.as_bytes())
    {
        run.job().write(text.as_bytes()).map_err(RunsError::from)?;
    }
    run.sync_name()?;

    let begin_generation = |generation| begin_generation(&run, &lock, generation);
    let elastic = Some(ready_run.workers).filter(|workers| workers.is_elastic());
    let watch = Watch {
        notices,
        record,
        stop: request.stop.clone(),
        started_at: request.started_at,
        limits: GangLimits {
            max_restarts: recover.max_restarts,
            min_workers: recover.min_workers,
            enough: elastic.map(|workers| workers.min),
        },
        epochs: resume.as_ref().map_or(0, |resumed| resumed.epochs),
        begin_generation: &begin_generation,
        events,
    };
    let mut supervisor = Supervisor::new(gang, watch);
    let watched = supervisor.watch();
    let trained = supervisor.has_trained();
    if trained {
        // Whatever fails from here on, what was trained stays.
        folder.keep();
    }
    let outcome = match watched {
        Err(error) if trained => GangOutcome::Failed(describe(&error)),
        watched => watched?,
    };
    let finished = matches!(outcome, GangOutcome::Finished(_));
    let mut result = conclude(unstarted.clone(), &run, outcome);
    if ready_run.onnx && result.status == Status::Succeeded {
        write_onnx(&run, &mut result);
    }
    result.timing.start_to_first_step_s = supervisor.first_step_s.unwrap_or(0.0);
    result.timing.total_s = request.started_at.elapsed().as_secs_f64();
    result.epochs = result.epochs.max(supervisor.epochs);
    result.reported = supervisor.reported.take();
    let (restarts, steps_repeated, seconds_lost) = supervisor.losses.account();
    result.restarts = restarts;
    result.steps_repeated = steps_repeated;
    result.seconds_lost = seconds_lost;
    (result.resizes, result.seconds_resizing) = supervisor.losses.resizes();
    if !trained && resume.is_none() {
        // There is nothing that a folder could hold.
        return match result.status {
            Status::Failed => Err(EngineError::Start(result.error.unwrap_or_default())),
            status => Ok(RunResult {
                status,
                ..unstarted
            }),
        };
    }
    // A resumed run that did not get to train is as it was, and so is the record of it.
    if trained || finished {
        record_result(supervisor.record(), &mut result);
    }
    Ok(result)
}

/// Writes the model as ONNX beside its weights. A run that was to do so and cannot has failed; its weights stay.
fn write_onnx(run: &RunDir, result: &mut RunResult) {
    let written = lockstep_onnx::export_run(run)
        .and_then(|content| run.onnx().write(&content).map_err(OnnxError::from));
    if let Err(error) = written {
        result.status = Status::Failed;
        result.error = Some(describe(&EngineError::Onnx(error)));
    }
}

/// Writes how the run ended. A run that cannot say so has failed, but its first failure comes first.
fn record_result(record: &mut Record, result: &mut RunResult) {
    let mut write = |result: &RunResult| {
        record.event(&Recorded::now(Event::Result(result.clone())))?;
        record.result(result)
    };
    if let Err(error) = write(result) {
        result.status = Status::Failed;
        result.error = Some(match result.error.take() {
            Some(first) => in_turn(&first, &error),
            None => describe(&error),
        });
        // The last event counts. If the disk refuses that too, there is nothing left to do.
        let _ = record.event(&Recorded::now(Event::Result(result.clone())));
    }
}

/// The result of a run that was stopped before it began, so that it has no folder.
fn unstarted(request: &RunRequest) -> RunResult {
    RunResult {
        workers: request.job.workers().max,
        lanes: request.job.lanes(),
        ..RunResult::without_run(Status::Interrupted, request.started_at.elapsed())
    }
}

fn conclude(mut result: RunResult, run: &RunDir, outcome: GangOutcome) -> RunResult {
    result.run = Some(run.name.clone());
    result.run_dir = Some(run.place().to_string());
    match outcome {
        GangOutcome::Killed => {
            result.error = Some(
                "ended at once, as asked; what came after the last checkpoint is lost".to_owned(),
            );
        }
        GangOutcome::Failed(error) => {
            result.status = Status::Failed;
            result.error = Some(error);
        }
        GangOutcome::Finished(finished) => finish(&mut result, *finished),
    }
    result
}

fn finish(result: &mut RunResult, finished: Finished) {
    if !finished.interrupted {
        result.status = Status::Succeeded;
    }
    result.epochs = finished.epochs;
    result.stopped_early = finished.stopped_early;
    result.metrics = finished.metrics;
    result.val = finished.val;
    result.evaluation = finished.evaluation.map(Box::new);
    result.best_epoch = finished.best_epoch;
    result.weights_sha256 = finished.weights_sha256;
    result.timing.train_s = finished.train_s;
    result.timing.step = finished.step_times;
    if finished.step_s > 0.0 {
        result.timing.samples_per_s = finished.samples as f64 / finished.step_s;
    }
}
