//! A script as a learner: one generation of it after the other.

use crate::checkpoints::{Resumed, Store};
use crate::environment::{Placing, WorkerAddress, variables};
use crate::leftovers;
use crate::part::ScriptPart;
use crate::process::{ScriptProcess, Start};
use crate::service::{Service, Shards, lock};
use crate::{ScriptError, package};
use lockstep_events::control::{Assignment, Finished, FromWorker};
use lockstep_learner::{Gang, GenerationEnd, Learner, LearnerFailure, Reporter, ShareError, Wish};
use lockstep_place::Place;
use lockstep_runs::{Generation, RunDir};
use std::ffi::OsString;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often a script is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How often it is looked whether it uses the processor.
const LOOK_AT_PROCESSOR: Duration = Duration::from_secs(1);
/// After how long a script that asks for nothing is taken to be at work.
const AT_WORK: Duration = Duration::from_secs(2);
/// How long after a script failed it is waited for the news that another failed first: a peer that loses its
/// connection fails too.
const CAUSE: Duration = Duration::from_secs(1);
/// The longest that a script may take to end after it was asked to: the coordinator waits a little longer.
const LONGEST_STOP: Duration = Duration::from_secs(50);
/// How long the ranks may take to tell each other where they are.
const MEET: Duration = Duration::from_secs(60);

/// Opens the learner that a script's assignment is for.
///
/// # Errors
/// When the assignment is not one.
pub(crate) fn open(assignment: &Assignment) -> Result<Box<dyn Learner>, LearnerFailure> {
    let part = serde_json::from_value(assignment.learner.clone());
    let part: ScriptPart = part.map_err(ScriptError::Assignment)?;
    Ok(Box::new(Started { part }))
}

struct Started {
    part: ScriptPart,
}

impl Learner for Started {
    fn train(
        &mut self,
        gang: &Gang<'_>,
        reporter: &mut Reporter,
    ) -> Result<GenerationEnd, LearnerFailure> {
        generation(&self.part, gang, reporter)
    }
}

/// How a script's process ended, or why it was ended.
enum End {
    Exited(ExitStatus),
    Asked(Wish),
    CalledOff,
}

fn generation(
    part: &ScriptPart,
    gang: &Gang<'_>,
    reporter: &mut Reporter,
) -> Result<GenerationEnd, LearnerFailure> {
    let assignment = gang.assignment();
    let mark = format!("{}/{}", part.run, assignment.rank);
    // What a script of this seat left behind when its worker was killed.
    leftovers::end(&mark);
    let here =
        WorkerAddress::here(gang.address()).map_err(ScriptError::system("find free ports"))?;
    let here = serde_json::to_value(here).expect("it is plain data");
    let all = gang.share("where", here, None, MEET).map_err(shared)?;
    let all: Vec<WorkerAddress> = all
        .into_iter()
        .map(serde_json::from_value)
        .collect::<Result<_, _>>()
        .map_err(ScriptError::Assignment)?;
    let placing = Placing::of(assignment.rank, &all);
    let resumed = match &assignment.resume {
        Some(place) => Some(Resumed::open(place, &part.access)?),
        None => None,
    };
    let header = resumed.as_ref().map(|resumed| &resumed.header);
    let before = header.map_or(0, |header| header.report);
    let run = Place::parse(&assignment.run_dir, &part.access).map_err(ScriptError::from)?;
    let run = RunDir::open(&run).map_err(ScriptError::from)?;
    let generation = Generation {
        incarnation: assignment.incarnation.clone(),
        generation: assignment.generation,
    };
    let store = Store::new(run, generation, part.settings.checkpoint.clone(), header);
    if let Some(resumed) = resumed.as_ref().filter(|_| assignment.rank == 0) {
        store.finish_publishing(resumed)?;
    }
    let shards = Shards::resumed(header);

    let scratch = tempfile::Builder::new().prefix("lockstep-").tempdir();
    let scratch = scratch.map_err(ScriptError::system("make a folder for the script"))?;
    let socket = scratch.path().join("socket");
    let listener =
        UnixListener::bind(&socket).map_err(ScriptError::system("listen for the script"))?;
    let error_file = scratch.path().join("error.json");
    let named = error_file.to_string_lossy();
    let restarts = (assignment.generation, part.settings.max_restarts);
    let mut environment: Vec<(OsString, OsString)> = Vec::new();
    for (name, value) in variables(&all, &placing, &part.run, restarts, &named) {
        environment.push((name.into(), value.into()));
    }
    environment.push(("LOCKSTEP_SOCKET".into(), socket.clone().into()));
    if let Ok(program) = std::env::current_exe() {
        environment.push(("LOCKSTEP_BINARY".into(), program.into()));
    }
    let python_path = package::python_path(std::env::var_os("PYTHONPATH"))?;
    environment.push(("PYTHONPATH".into(), python_path));
    for (name, value) in &part.settings.env {
        environment.push((name.into(), value.into()));
    }

    let service = Service {
        gang,
        part,
        placing,
        all,
        resumed,
        scratch: scratch.path().to_owned(),
        store: Mutex::new(store),
        reporter: Mutex::new(reporter),
        shards: Mutex::new(shards),
        reports: AtomicU64::new(before),
        is_used: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
        connections: Mutex::default(),
    };
    let began = Instant::now();
    let end = thread::scope(|scope| {
        service.listen(scope, listener);
        let start = Start {
            command: &part.settings.command,
            folder: &part.folder,
            variables: environment,
            mark,
            error_file,
        };
        let ended = attend(&service, start, before);
        service.close(&socket);
        ended
    })?;
    let stored = lock(&service.store).settle();
    let reports = service.reports.load(Ordering::SeqCst);
    if let Some(words) = stored? {
        gang.warn(words);
    }
    let (asked, sha256) = match end {
        Attended::Asked(Wish::Pause) => return Ok(GenerationEnd::Paused { step: reports }),
        Attended::Asked(_) => (true, None),
        Attended::Done { sha256 } => (false, sha256),
    };
    Ok(GenerationEnd::Finished(Box::new(Finished {
        interrupted: asked,
        weights_sha256: sha256,
        train_s: began.elapsed().as_secs_f64(),
        ..Finished::default()
    })))
}

/// What came of a script that did not fail.
enum Attended {
    /// It ended on every rank; the hash is that of the newest checkpoint.
    Done { sha256: Option<String> },
    /// It was asked to end.
    Asked(Wish),
}

/// Starts the script and waits until it ended, on every rank.
fn attend(
    service: &Service<'_>,
    start: Start<'_>,
    before: u64,
) -> Result<Attended, LearnerFailure> {
    let mut process = ScriptProcess::start(start)?;
    let patience = Duration::from_secs_f64(service.part.settings.stop_s).min(LONGEST_STOP);
    let end = watch(service, &mut process, before)?;
    let status = match end {
        End::Exited(status) => status,
        End::Asked(wish) => {
            process.stop(patience);
            return Ok(Attended::Asked(wish));
        }
        End::CalledOff => {
            process.end();
            return Err(shared(ShareError::CalledOff));
        }
    };
    let reports = service.reports.load(Ordering::SeqCst);
    if status.success() {
        process.end();
        at_work(service, before)?;
        // A rank that is done waits for the others: only together have they finished.
        let newest = serde_json::to_value(&lock(&service.store).newest);
        let newest = newest.expect("a number and a text are plain data");
        let all = service.gang.share_at_the_end("exit", newest);
        let Some(all) = all.map_err(shared)? else {
            return Ok(Attended::Asked(service.gang.wish()));
        };
        // The one that wrote last knows what it wrote.
        let known = all
            .into_iter()
            .filter_map(|newest| serde_json::from_value::<Option<(u64, String)>>(newest).ok());
        let newest = known.flatten().max();
        return Ok(Attended::Done {
            sha256: newest.map(|(_, sha256)| sha256),
        });
    }
    let words = process.last_words();
    process.end();
    let until = Instant::now() + CAUSE;
    while status.signal().is_none() && Instant::now() < until {
        if service.gang.is_called_off() {
            return Err(shared(ShareError::CalledOff));
        }
        if service.gang.wish() != Wish::GoOn {
            return Ok(Attended::Asked(service.gang.wish()));
        }
        thread::sleep(LOOK);
    }
    let error = ScriptError::Ended {
        end: process.end_words(status),
        words,
    };
    Err(LearnerFailure {
        // One that was killed may have better luck; one that says itself what is wrong will not.
        again: status.signal().is_some(),
        ends_process: false,
        step: reports,
        ..error.into()
    })
}

/// Waits until the script ends, or somebody wants it to.
fn watch(
    service: &Service<'_>,
    process: &mut ScriptProcess,
    before: u64,
) -> Result<End, LearnerFailure> {
    let began = Instant::now();
    let mut looked = began;
    let mut used = 0;
    let mut told = false;
    loop {
        if let Some(status) = process.ended() {
            return Ok(End::Exited(status));
        }
        if service.gang.is_called_off() {
            return Ok(End::CalledOff);
        }
        match service.gang.wish() {
            Wish::GoOn => {}
            wish => return Ok(End::Asked(wish)),
        }
        if !told && (service.is_used.load(Ordering::Relaxed) || began.elapsed() > AT_WORK) {
            told = true;
            at_work(service, before)?;
        }
        if looked.elapsed() > LOOK_AT_PROCESSOR {
            looked = Instant::now();
            let now = leftovers::processor_time(process.id());
            if std::mem::replace(&mut used, now) != now {
                lockstep_base::progress::advance();
            }
        }
        thread::sleep(LOOK);
    }
}

/// Says that the script works.
fn at_work(service: &Service<'_>, before: u64) -> Result<(), LearnerFailure> {
    let mut reporter = lock(&service.reporter);
    reporter.send(&FromWorker::FirstStep { step: before })?;
    Ok(reporter.send(&FromWorker::CaughtUp)?)
}

impl From<ScriptError> for LearnerFailure {
    fn from(error: ScriptError) -> Self {
        Self::new(error)
    }
}

/// What it means that the ranks could not meet.
fn shared(error: ShareError) -> LearnerFailure {
    let waiting_for = match &error {
        ShareError::Missing { missing, .. } => missing.first().copied(),
        _ => None,
    };
    LearnerFailure {
        peer_lost: true,
        waiting_for,
        ..ScriptError::from(error).into()
    }
}
