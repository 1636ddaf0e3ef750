//! From a job to a result: prepares, starts the gang, and says how it ended.

mod folder;
mod memory;
mod prepare;

use crate::node_check::check_nodes;
use crate::profile::{ProfileFile, ProfileRequest};
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
use lockstep_events::control::Finished;
use lockstep_events::event::{Event, RunResult, Started, Status};
use lockstep_events::{Recorded, Thin};
use lockstep_gang::Rendezvous;
use lockstep_job::{Job, JobCopies};
use lockstep_launch::Launcher;
use lockstep_learner::{Coordinator, ForkFrom, LearnerError, ResumePoint, RunPlan};
use lockstep_place::Place;
use lockstep_runs::{RunDir, RunLock, RunsError};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// Finds the coordinator's side of the learner of a job whose file lies, or would lie, in a folder.
pub type FindCoordinator = fn(&Job, &Path) -> Result<Box<dyn Coordinator>, LearnerError>;

/// What to run.
pub struct RunRequest {
    /// The job, checked and complete.
    pub job: Job,
    /// What finds its learner.
    pub coordinator: FindCoordinator,
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
    /// The steps of which a profile is made, and where it goes.
    pub profile: Option<ProfileRequest>,
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

    fn note(&mut self, notes: impl IntoIterator<Item = String>) {
        for message in notes {
            self.tell(Event::Note { message });
        }
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
    let Some((ready_run, folder)) = prepare::prepare(request, &mut early)? else {
        return Ok(unstarted(request));
    };
    let patience = Duration::from_secs_f64(ready_run.job.gang.start_deadline_s);
    let mut tell = |event| early.tell(event);
    if !ready(&mut *request.launcher, patience, &request.stop, &mut tell)? {
        return Ok(unstarted(request));
    }
    check_nodes(
        &mut *request.launcher,
        (&ready_run.job.local_inputs(), &ready_run.job.storage),
        ("run.store", ready_run.run.place()),
        patience,
    )?;
    let kept = early.kept;
    run_gang(request, ready_run, kept, folder, show)
}

/// All that is known when the workers are about to start.
struct ReadyRun {
    /// What learns.
    kind: &'static str,
    plan: Box<dyn RunPlan>,
    /// What is told when the gang begins.
    started: Started,
    /// The job, as it is kept in the run's folder.
    job: Job,
    run: RunDir,
    /// Proof that the run is this process's.
    lock: RunLock,
    /// The state that the run goes on from.
    resume: Option<ResumePoint>,
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
        kind,
        plan,
        mut started,
        job,
        run,
        lock,
        resume,
    } = ready_run;
    let workers = job.workers().max;
    let site = request.launcher.site();
    let facts = plan.facts();
    let carrier = match facts.plan {
        Some(_) => Carrier::of(job.gang.transport, workers, &site)?,
        None => Carrier::Own,
    };
    // One worker alone, elsewhere, has nobody who would keep what it copies.
    let keeps = match carrier {
        Carrier::Solo | Carrier::Shm => site.shares_memory,
        Carrier::Tcp | Carrier::Hosts => true,
        Carrier::Own => false,
    };
    let copies = (facts.copies.filter(|_| keeps))
        .map(|shape| (shape, job.recover.copies == JobCopies::EveryStep));
    if site.shares_memory
        && let Some(memory) = &facts.memory
    {
        let mut memory = *memory;
        // Of processes that keep for each other each share is in two.
        let kept = if carrier.is_of_processes() { 2 } else { 1 };
        memory.shared += copies.map_or(0, |(shape, _)| kept * shape.bytes_touched() as u64);
        memory::check(&memory, job.workers().min)?;
    }
    let door = Rendezvous::bind(site.listen)?;
    let profile = request.profile.as_ref();
    let profile = profile.map(|profile| ProfileFile::create(profile.path.clone()));
    let mut record = Record::open(run.clone(), workers)?.with_profile(profile.transpose()?);
    if let Some(resumed) = &resume {
        record.restore(&resumed.history)?;
    }
    let (sender, notices) = sync_channel(WAITING);
    let part = |workers| plan.part(&run.name, workers);
    let settings = GangSettings {
        workers,
        kind,
        plan: facts.plan.as_ref(),
        carrier,
        encrypt: job.gang.encrypt,
        learner: &part,
        run_dir: run.place().to_string(),
        max_steps: request.max_steps,
        step_times: request.step_times,
        copies,
        profile: request.profile.as_ref().map(ProfileRequest::steps),
        deadline_s: job.gang.deadline_s,
        stall_s: facts.stall_s,
        start_deadline_s: job.gang.start_deadline_s,
        lease_s: job.gang.lease_s,
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
    let listening = JoinListener::spawn(door, sender);
    let _door = listening.map_err(EngineError::system("wait for workers"))?;
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
    let elastic = Some(job.workers()).filter(|workers| workers.is_elastic());
    let watch = Watch {
        notices,
        record,
        stop: request.stop.clone(),
        started_at: request.started_at,
        limits: GangLimits {
            max_restarts: job.recover.max_restarts,
            min_workers: job.recover.min_workers,
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
    if result.status == Status::Succeeded
        && let Err(error) = plan.finish(&run)
    {
        // Its model stays.
        result.status = Status::Failed;
        result.error = Some(describe(&error));
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
    result.count_goodput();
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

/// Writes how the run ended, where the run is. A run that cannot say so has failed, but its first failure comes first.
fn record_result(record: &mut Record, result: &mut RunResult) {
    let tell = |record: &mut Record, result: &RunResult| {
        record.check_there()?;
        record.event(&Recorded::now(Event::Result(result.clone())))
    };
    let told = tell(record, result);
    if let Err(error) = told.and_then(|()| record.result(result)) {
        result.status = Status::Failed;
        result.error = Some(match result.error.take() {
            Some(first) => in_turn(&first, &error),
            None => describe(&error),
        });
        // The last event counts. If the disk refuses that too, there is nothing left to do.
        let _ = tell(record, result);
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
    result.evaluation = finished.evaluation;
    result.best_epoch = finished.best_epoch;
    result.weights_sha256 = finished.weights_sha256;
    result.timing.train_s = finished.train_s;
    result.timing.step = finished.step_times;
    if finished.step_s > 0.0 {
        result.timing.samples_per_s = finished.samples as f64 / finished.step_s;
    }
}
