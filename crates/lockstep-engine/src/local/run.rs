//! From a job to a result: prepares, starts the gang, and says how it ended.

use super::blame::Blame;
use super::embed::{EmbedRequest, embed};
use super::fold::Folder;
use super::losses::Losses;
use super::member::Member;
use super::muster::{Muster, kind_of_transport};
use super::notice::{Doorkeeper, WAITING};
use super::record::Record;
use super::resume::{Earlier, newest_state};
use super::roll::Roll;
use super::supervisor::{Outcome, Supervisor, in_turn};
use crate::{EngineError, Stop, StopFlag, describe};
use lockstep_events::control::Finished;
use lockstep_events::event::{Event, RunResult, Started, Status, Timing};
use lockstep_fs::{CacheDir, write_atomic};
use lockstep_gang::{Rendezvous, Secret};
use lockstep_job::Job;
use lockstep_runs::RunDir;
use lockstep_train::{Prepared, ResumePoint};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// What to run.
#[derive(Debug)]
pub struct RunRequest {
    /// The job, checked and complete.
    pub job: Job,
    /// When the command started: what the time to the first step counts from.
    pub started_at: Instant,
    /// The folder of an earlier run to go on with, instead of beginning a new one.
    pub resume: Option<PathBuf>,
    /// Whether a new run shall begin with that one's weights instead.
    pub fork: bool,
    /// Stop after so many steps, as if asked to.
    pub max_steps: Option<u64>,
    /// Raised by whoever wants the run to end early.
    pub stop: StopFlag,
    /// Where decoded data is kept; the workers use the same.
    pub cache: CacheDir,
    /// The program whose `worker` command is a worker; usually this process's own.
    pub worker_exe: PathBuf,
}

/// Runs a job on child processes of this one and returns how it ended.
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
            ..unstarted(&request, Status::Failed)
        },
    };
    events(Event::Result(last));
    result
}

fn try_run(
    request: &mut RunRequest,
    events: &mut dyn FnMut(Event),
) -> Result<RunResult, EngineError> {
    let earlier = request.resume.as_deref().map(Earlier::open).transpose()?;
    for message in earlier.iter().flat_map(|earlier| earlier.warnings.clone()) {
        events(Event::Warning { message });
    }
    let (forked, resumed) = match request.fork {
        true => (earlier, None),
        false => (None, earlier),
    };
    let embedding = EmbedRequest {
        job: &request.job,
        only: None,
        worker_exe: request.worker_exe.clone(),
        stop: request.stop.clone(),
    };
    if !embed(embedding, events)? {
        return Ok(unstarted(request, Status::Interrupted));
    }
    let mut progress = |message: &str| {
        let message = message.to_owned();
        events(Event::Preparing { message });
    };
    let prepared = lockstep_train::prepare(&request.job, &request.cache, &mut progress)?;
    for message in prepared.notes.iter().cloned() {
        events(Event::Note { message });
    }
    let resume = match &resumed {
        Some(earlier) => {
            let point = earlier.point(&request.job, &request.cache)?;
            Some((earlier.checkpoint.clone(), point))
        }
        None => None,
    };
    let mut pretrained = None;
    let mut begin_anew = |job: &Job, events: &mut dyn FnMut(Event)| {
        let start = lockstep_train::check_start(job, &request.cache)?;
        for message in start.notes {
            events(Event::Note { message });
        }
        pretrained = start.pretrained;
        Ok::<_, EngineError>(())
    };
    if resumed.is_none() && forked.is_none() {
        begin_anew(&request.job, events)?;
    }
    if request.stop.get() != Stop::No {
        return Ok(unstarted(request, Status::Interrupted));
    }
    let (run, folder, _lock) = match resumed {
        Some(Earlier { run, lock, .. }) => (run, Folderkeeper { run: None }, lock),
        None => {
            let run = RunDir::create(&request.job.run.store, &request.job.name)?;
            let folder = Folderkeeper {
                run: Some(run.clone()),
            };
            let lock = run.lock()?;
            (run, folder, lock)
        }
    };
    if let Some(earlier) = forked {
        earlier.fork(&run, &mut request.job)?;
        begin_anew(&request.job, events)?;
    }
    run_gang(request, &prepared, pretrained, run, folder, resume, events)
}

fn run_gang(
    request: &RunRequest,
    prepared: &Prepared,
    pretrained: Option<String>,
    run: RunDir,
    mut folder: Folderkeeper,
    resume: Option<(PathBuf, ResumePoint)>,
    events: &mut dyn FnMut(Event),
) -> Result<RunResult, EngineError> {
    let job = &request.job;
    let workers = job.train.workers;
    let secret = Secret::random()?;
    let door = Rendezvous::bind((Ipv4Addr::LOCALHOST, 0), &secret)?;
    let mut record = Record::open(run.clone(), workers)?;
    let (checkpoint, point) = resume.unzip();
    if let Some(point) = &point {
        record.restore(&point.history)?;
    }
    let (sender, notices) = sync_channel(WAITING);
    let mut muster = Muster::new(
        job,
        &run.path,
        &request.cache,
        &request.worker_exe,
        &prepared.plan,
        pretrained,
        request.max_steps,
        job.recover.min_workers,
        door.address(),
        &secret,
        sender.clone(),
    )?;
    events(Event::Started(started(job, prepared, &run)));
    for seat in 0..workers {
        muster.start(seat, 0)?;
    }
    let _door = Doorkeeper::spawn(door, sender).map_err(|source| EngineError::System {
        what: "wait for workers",
        source,
    })?;
    // Written while the workers start, since it waits for the disk; again if a later part of the run
    // is another job: more epochs, or other workers.
    let text = job.to_toml();
    if !std::fs::read_to_string(run.job()).is_ok_and(|written| written == text) {
        write_atomic(&run.job(), text.as_bytes())?;
    }

    let resume_point = || newest_state(&run);
    let mut supervisor = Supervisor {
        muster,
        roll: Roll::new(workers, job.recover.max_restarts, job.recover.min_workers),
        members: (0..workers).map(|_| Member::default()).collect(),
        notices,
        record,
        stop: request.stop.clone(),
        started_at: request.started_at,
        deadline: Duration::from_secs_f64(job.gang.deadline_s),
        resume_point: &resume_point,
        events,
        folder: Folder::new(workers),
        blame: Blame::default(),
        losses: Losses::default(),
        first_step_s: None,
        epochs: point.map_or(0, |point| point.epochs),
        decided: None,
    };
    let watched = supervisor.watch();
    let trained = supervisor.members.iter().any(|member| member.first_step);
    if trained {
        // Whatever fails from here on, what was trained stays.
        folder.keep();
    }
    let outcome = match watched {
        Err(error) if trained => Outcome::Failed(describe(&error)),
        watched => watched?,
    };
    let finished = matches!(outcome, Outcome::Finished(_));
    let mut result = conclude(request, &run, outcome);
    result.timing.start_to_first_step_s = supervisor.first_step_s.unwrap_or(0.0);
    result.epochs = result.epochs.max(supervisor.epochs);
    let (restarts, steps_repeated, seconds_lost) = supervisor.losses.account();
    result.restarts = restarts;
    result.steps_repeated = steps_repeated;
    result.seconds_lost = seconds_lost;
    if !trained && checkpoint.is_none() {
        // There is nothing that a folder could hold.
        return match result.status {
            Status::Failed => Err(EngineError::Start(result.error.unwrap_or_default())),
            _ => Ok(unstarted(request, result.status)),
        };
    }
    // A resumed run that did not get to train is as it was, and so is the record of it.
    if trained || finished {
        record_result(&supervisor.record, &mut result);
    }
    Ok(result)
}

/// Writes how the run ended. A run that cannot say so has failed, but its first failure comes first.
fn record_result(record: &Record, result: &mut RunResult) {
    if let Err(error) = record.result(result) {
        result.status = Status::Failed;
        result.error = Some(match result.error.take() {
            Some(first) => in_turn(&first, &error),
            None => describe(&error),
        });
    }
}

/// Removes the folder of a run that did not begin.
struct Folderkeeper {
    run: Option<RunDir>,
}

impl Folderkeeper {
    fn keep(&mut self) {
        self.run = None;
    }
}

impl Drop for Folderkeeper {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            // The error that brought us here is the one to report.
            let _ = run.discard();
        }
    }
}

fn started(job: &Job, prepared: &Prepared, run: &RunDir) -> Started {
    Started {
        run: run.name.clone(),
        run_dir: run.path.clone(),
        workers: job.train.workers,
        lanes: job.train.lanes,
        transport: kind_of_transport(job).to_owned(),
        train_samples: prepared.train_samples,
        val_samples: prepared.val_samples,
        test_samples: prepared.test_samples,
        parameters: prepared.parameters,
        steps_per_epoch: prepared.steps_per_epoch,
        epochs: job.train.epochs,
        metrics: prepared
            .metrics
            .iter()
            .map(|&name| name.to_owned())
            .collect(),
        config: job.rows(),
    }
}

/// The result of a run that has no folder, because it never began.
fn unstarted(request: &RunRequest, status: Status) -> RunResult {
    RunResult {
        status,
        run: None,
        workers: request.job.train.workers,
        lanes: request.job.train.lanes,
        epochs: 0,
        metrics: None,
        evaluation: None,
        best_epoch: None,
        timing: Timing {
            total_s: request.started_at.elapsed().as_secs_f64(),
            ..Timing::default()
        },
        weights_sha256: None,
        run_dir: None,
        error: None,
        restarts: 0,
        steps_repeated: 0,
        seconds_lost: 0.0,
    }
}

fn conclude(request: &RunRequest, run: &RunDir, outcome: Outcome) -> RunResult {
    let mut result = unstarted(request, Status::Interrupted);
    result.run = Some(run.name.clone());
    result.run_dir = Some(run.path.clone());
    match outcome {
        Outcome::Killed => {
            result.error = Some(
                "ended at once, as asked; what came after the last checkpoint is lost".to_owned(),
            );
        }
        Outcome::Failed(error) => {
            result.status = Status::Failed;
            result.error = Some(error);
        }
        Outcome::Finished(finished) => finish(&mut result, finished),
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
