//! From a job to a result: prepares, starts the gang, and says how it ended.

use crate::embed::{EmbedRequest, embed};
use crate::launcher::Launcher;
use crate::node_check::check_nodes;
use crate::ready::ready;
use crate::record::Record;
use crate::resume::{Earlier, begin_generation};
use crate::supervise::generation::{Carrier, GangSettings, GangWorkers, JoinPoint};
use crate::supervise::notice::{JoinListener, WAITING};
use crate::supervise::state::GangLimits;
use crate::supervise::supervisor::{GangOutcome, Supervisor, Watch, in_turn};
use crate::tasks::CrewSettings;
use crate::{EngineError, Stop, StopFlag, describe};
use lockstep_events::control::Finished;
use lockstep_events::event::{Event, RunResult, Started, Status};
use lockstep_events::{Recorded, Thin};
use lockstep_fs::CacheDir;
use lockstep_gang::Rendezvous;
use lockstep_job::Job;
use lockstep_place::Place;
use lockstep_resolve::{ResolvedJob, TrainingSettings};
use lockstep_runs::{RunDir, RunLock, RunsError};
use lockstep_train::{FoundSets, LearnerPart, Prepared, ResumePoint, SampleUse, TrainError};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// What to run.
#[derive(Debug)]
pub struct RunRequest {
    /// The job, checked and complete.
    pub job: Job,
    /// When the command started: what the time to the first step counts from.
    pub started_at: Instant,
    /// An earlier run to go on with, instead of beginning a new one.
    pub resume: Option<Place>,
    /// Whether a new run shall begin with that one's weights instead.
    pub fork: bool,
    /// Stop after so many steps, as if asked to.
    pub max_steps: Option<u64>,
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
            ..unstarted(&request.job, request.started_at)
        },
    };
    events(Event::Result(last));
    result
}

fn try_run(
    request: &mut RunRequest,
    show: &mut dyn FnMut(Event),
) -> Result<RunResult, EngineError> {
    let mut resolved = ResolvedJob::of(&request.job).map_err(TrainError::from)?;
    // What happens before there is a folder is recorded when there is one.
    let mut early = Vec::new();
    let mut thin = Thin::new(Recorded::clock());
    let mut tell = |event: Event| {
        let event = Recorded::now(event);
        if thin.keeps(&event.event, event.time) {
            early.push(event.clone());
        }
        show(event.event);
    };
    let events: &mut dyn FnMut(Event) = &mut tell;
    let mut waiting = |message| events(Event::Preparing { message });
    let earlier = match &request.resume {
        Some(place) => Some(Earlier::open(place, &mut waiting)?),
        None => None,
    };
    for message in earlier.iter().flat_map(|earlier| earlier.warnings.clone()) {
        events(Event::Warning { message });
    }
    let (forked, resumed) = match request.fork {
        true => (earlier, None),
        false => (None, earlier),
    };
    if let Some(embedding) = &resolved.embedding {
        let embedding = EmbedRequest {
            embedding,
            access: &resolved.access,
            samples: SampleUse::Measure,
            crew: CrewSettings::of(&request.job),
            launcher: &mut *request.launcher,
            stop: request.stop.clone(),
        };
        if !embed(embedding, events)? {
            return Ok(unstarted(&request.job, request.started_at));
        }
    }
    let mut progress = |message: &str| {
        let message = message.to_owned();
        events(Event::Preparing { message });
    };
    let (prepared, found) = lockstep_train::prepare(&resolved, &request.cache, &mut progress)?;
    for message in prepared.notes.iter().cloned() {
        events(Event::Note { message });
    }
    let resume = match &resumed {
        Some(earlier) => {
            let point = earlier.point(&resolved.training, &found)?;
            Some((earlier.checkpoint.clone(), point))
        }
        None => None,
    };
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
        return Ok(unstarted(&request.job, request.started_at));
    }
    let (run, folder, lock) = match resumed {
        Some(Earlier { run, lock, .. }) => (run, Unstarted { run: None }, lock),
        None => {
            let (run, lock) = RunDir::create(&resolved.store, &request.job.name)?;
            let folder = Unstarted {
                run: Some(run.clone()),
            };
            (run, folder, lock)
        }
    };
    if let Some(earlier) = forked {
        let weights = earlier.fork(&run, &request.cache)?;
        resolved.training.weights = Some(weights.clone());
        request.job.model.weights = Some(weights);
        begin_anew(&resolved.training, events)?;
    }
    let patience = Duration::from_secs_f64(request.job.gang.start_deadline_s);
    if !ready(&mut *request.launcher, patience, &request.stop, events)? {
        return Ok(unstarted(&request.job, request.started_at));
    }
    check_nodes(
        &mut *request.launcher,
        &request.job,
        ("run.store", run.place()),
    )?;
    let beginning = ReadyRun {
        resolved,
        prepared,
        found,
        pretrained,
        run,
        lock,
        resume,
        early,
    };
    run_gang(request, beginning, folder, show)
}

/// All that is known when the workers are about to start.
struct ReadyRun {
    resolved: ResolvedJob,
    prepared: Prepared,
    /// Where the job's sets are.
    found: FoundSets,
    /// SHA-256 of the file of weights to begin with.
    pretrained: Option<String>,
    run: RunDir,
    /// Proof that the run is this process's.
    lock: RunLock,
    /// The state to go on from, and where that is.
    resume: Option<(Place, ResumePoint)>,
    /// What happened before there was a folder to record it in.
    early: Vec<Recorded>,
}

fn run_gang(
    request: &mut RunRequest,
    beginning: ReadyRun,
    mut folder: Unstarted,
    events: &mut dyn FnMut(Event),
) -> Result<RunResult, EngineError> {
    let ReadyRun {
        resolved,
        prepared,
        found,
        pretrained,
        run,
        lock,
        resume,
        mut early,
    } = beginning;
    let job = &request.job;
    let workers = job.train.workers.max;
    let site = request.launcher.site();
    let carrier = Carrier::of(job.gang.transport, workers, &site)?;
    let door = Rendezvous::bind(site.listen)?;
    let mut record = Record::open(run.clone(), workers)?;
    let (checkpoint, point) = resume.unzip();
    if let Some(point) = &point {
        record.restore(&point.history)?;
    }
    let (sender, notices) = sync_channel(WAITING);
    let learner = |workers| {
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
    let settings = GangSettings {
        plan: &prepared.plan,
        carrier,
        encrypt: job.gang.encrypt,
        learner: &learner,
        run_dir: run.place().to_string(),
        max_steps: request.max_steps,
        deadline_s: job.gang.deadline_s,
        start_deadline_s: job.gang.start_deadline_s,
        lease_s: job.gang.lease_s,
    };
    let at = JoinPoint {
        address: door.address(),
        admissions: door.admissions(),
        notices: sender.clone(),
    };
    let mut gang = GangWorkers::new(&mut *request.launcher, settings, at)?;
    let started = Event::Started(started(job, &prepared, carrier, &run));
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
    let text = job.to_toml();
    if !run
        .job()
        .read()
        .is_ok_and(|written| written == text.as_bytes())
    {
        run.job().write(text.as_bytes()).map_err(RunsError::from)?;
    }
    run.sync_name()?;

    let begin_generation = |generation| begin_generation(&run, &lock, generation);
    let watch = Watch {
        notices,
        record,
        stop: request.stop.clone(),
        started_at: request.started_at,
        limits: GangLimits {
            max_restarts: job.recover.max_restarts,
            min_workers: job.recover.min_workers,
            enough: resolved.enough_workers,
        },
        epochs: point.map_or(0, |point| point.epochs),
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
    let mut result = conclude(unstarted(job, request.started_at), &run, outcome);
    result.timing.start_to_first_step_s = supervisor.first_step_s.unwrap_or(0.0);
    result.epochs = result.epochs.max(supervisor.epochs);
    let (restarts, steps_repeated, seconds_lost) = supervisor.losses.account();
    result.restarts = restarts;
    result.steps_repeated = steps_repeated;
    result.seconds_lost = seconds_lost;
    (result.resizes, result.seconds_resizing) = supervisor.losses.resizes();
    if !trained && checkpoint.is_none() {
        // There is nothing that a folder could hold.
        return match result.status {
            Status::Failed => Err(EngineError::Start(result.error.unwrap_or_default())),
            status => Ok(RunResult {
                status,
                ..unstarted(job, request.started_at)
            }),
        };
    }
    // A resumed run that did not get to train is as it was, and so is the record of it.
    if trained || finished {
        record_result(supervisor.record(), &mut result);
    }
    Ok(result)
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

/// Removes the folder of a run that did not begin.
struct Unstarted {
    run: Option<RunDir>,
}

impl Unstarted {
    fn keep(&mut self) {
        self.run = None;
    }
}

impl Drop for Unstarted {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            // The error that brought us here is the one to report.
            let _ = run.discard();
        }
    }
}

fn started(job: &Job, prepared: &Prepared, carrier: Carrier, run: &RunDir) -> Started {
    Started {
        run: run.name.clone(),
        run_dir: run.place().to_string(),
        workers: job.train.workers.max,
        lanes: job.train.lanes,
        transport: carrier.word().to_owned(),
        train_samples: prepared.train_samples,
        val_samples: prepared.val_samples,
        test_samples: prepared.test_samples,
        parameters: prepared.parameters,
        steps_per_epoch: prepared.steps_per_epoch,
        epochs: job.train.learner.epochs,
        metrics: prepared
            .metrics
            .iter()
            .map(|&name| name.to_owned())
            .collect(),
        config: job.rows(),
    }
}

/// The result of a run that was stopped before it began, so that it has no folder.
fn unstarted(job: &Job, started_at: Instant) -> RunResult {
    RunResult {
        workers: job.train.workers.max,
        lanes: job.train.lanes,
        ..RunResult::without_run(Status::Interrupted, started_at.elapsed())
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
        GangOutcome::Finished(finished) => finish(&mut result, finished),
    }
    result
}

fn finish(result: &mut RunResult, finished: Finished) {
    if !finished.interrupted {
        result.status = Status::Succeeded;
    }
    result.epochs = finished.epochs;
    result.metrics = finished.metrics;
    result.evaluation = finished.evaluation;
    result.best_epoch = finished.best_epoch;
    result.weights_sha256 = Some(finished.weights_sha256);
    result.timing.train_s = finished.train_s;
    if finished.step_s > 0.0 {
        result.timing.samples_per_s = finished.samples as f64 / finished.step_s;
    }
}
