//! `lockstep pod`: one of the numbered processes of a run that a cluster starts, all with the same command.
//!
//! Number 0 coordinates and hosts a worker, the others host one each. [`lockstep_job::pod`] is what they are given, and
//! what their exit codes mean: whether the run is over, or goes on when this process is started again.

mod given;

use super::run::failure;
use super::watched::Watched;
use crate::args::PodArgs;
use crate::learners;
use crate::print_error;
use crate::signals;
use crate::tracking::Tracked;
use crate::view::{Json, Options, View};
use anyhow::Context;
use given::{Given, settled};
use lockstep_base::fs::CacheDir;
use lockstep_engine::{EngineError, RunRequest, StopFlag, describe};
use lockstep_events::event::{Event, RunResult, Status};
use lockstep_job::pod::{AGAIN, FAILED};
use lockstep_launch::hosts::{Host, HostEnd, Hosts, HostsRequest, Surroundings};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How a pod ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Succeeded,
    /// The run failed, and would fail again.
    Failed,
    /// The run goes on when the pod is started again.
    Again,
}

impl End {
    fn of(status: Status) -> Self {
        match status {
            Status::Succeeded => Self::Succeeded,
            Status::Failed => Self::Failed,
            Status::Interrupted => Self::Again,
        }
    }

    fn code(self) -> ExitCode {
        match self {
            Self::Succeeded => ExitCode::SUCCESS,
            Self::Failed => ExitCode::from(FAILED),
            Self::Again => ExitCode::from(AGAIN),
        }
    }
}

pub(crate) fn run(args: &PodArgs, started_at: Instant) -> anyhow::Result<ExitCode> {
    let given = match Given::read(&args.job) {
        Ok(given) => given,
        // Whoever follows the log of number 0 gets a result in any case.
        Err(error) => {
            if given::index().is_ok_and(|index| index == 0) {
                view().show(&Event::Result(failure(started_at, &error)))?;
            }
            print_error(&describe(error.as_ref()));
            return Ok(End::Failed.code());
        }
    };
    let ended = match given.index {
        0 => coordinate(given, started_at),
        _ => host(&given),
    };
    let end = ended.unwrap_or_else(|error| {
        print_error(&describe(error.as_ref()));
        End::Again
    });
    Ok(end.code())
}

/// Events as JSON, for whoever follows the log.
fn view() -> Json<io::Stdout> {
    let options = Options {
        quiet: false,
        verbose: false,
        resume_command: String::new(),
        elsewhere: true,
    };
    Json::new(io::stdout(), options)
}

/// Hosts a worker until the run is over.
fn host(given: &Given) -> anyhow::Result<End> {
    let leaving = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        let heard = signal_hook::flag::register(signal, leaving.clone());
        heard.context("cannot handle signals")?;
    }
    let mut around = Surroundings {
        leaving: &leaving,
        is_over: &mut || {
            let result = settled(&given.run)?;
            Some(result.status == Status::Succeeded)
        },
        say: &mut |words| eprintln!("host {}: {words}", given.index),
    };
    let end = seat(given, given.coordinator.clone())?.serve(&mut around)?;
    Ok(match end {
        HostEnd::Over { success: true } => End::Succeeded,
        HostEnd::Over { success: false } => {
            eprintln!("host {}: the run failed", given.index);
            End::Failed
        }
        HostEnd::Left => End::Again,
    })
}

fn seat(given: &Given, coordinator: String) -> anyhow::Result<Host> {
    Ok(Host {
        index: given.index,
        coordinator,
        token: given.token.clone(),
        program: std::env::current_exe().context("cannot find this program's own file")?,
        patience: given.patience,
    })
}

/// Runs the job on the hosts that come, of which one is in this process.
fn coordinate(given: Given, started_at: Instant) -> anyhow::Result<End> {
    if let Some(result) = settled(&given.run) {
        // An earlier start of this pod came to an end, and could not say so.
        let end = End::of(result.status);
        view().show(&Event::Result(result))?;
        return Ok(end);
    }
    let stop = StopFlag::new();
    signals::obey(stop.clone())?;
    let hosts = Hosts::open(HostsRequest {
        listen: given.listen()?,
        token: given.token.clone(),
        seats: given.workers.max,
        enough: given.workers.min,
        lease: Duration::from_secs_f64(given.lease_s),
        warn: Box::new(|odd| eprintln!("warning: {odd}")),
    })?;
    let own = seat(&given, hosts.address().to_string())?;
    let leaving = Arc::new(AtomicBool::new(false));
    let left = leaving.clone();
    let serve = move || {
        own.serve(&mut Surroundings {
            leaving: &left,
            is_over: &mut || None,
            say: &mut |_| {},
        })
    };
    let own = thread::Builder::new().name("host".to_owned()).spawn(serve);
    let own = own.context("cannot start a thread")?;
    let request = RunRequest {
        coordinator: learners::coordinator,
        job: given.job,
        folder: given.folder,
        started_at,
        resume: None,
        name: Some(given.run.name.clone()),
        fork: None,
        max_steps: None,
        step_times: false,
        stop: stop.clone(),
        cache: CacheDir::locate()?,
        launcher: Box::new(hosts.launcher()),
    };
    let mut watched = Watched::new(Box::new(view()), stop);
    let mut tracked = Tracked::of(&request);
    let mut last = None;
    let result = lockstep_engine::run(request, &mut |event| match event {
        Event::Result(result) => last = Some(result),
        event => tracked.show(&mut watched, &event),
    });
    let end = judge(&result);
    if let Some(mut last) = last {
        // Whoever follows the log must not take for the end what another start goes on with.
        if end == End::Again {
            last.status = Status::Interrupted;
        }
        tracked.show(&mut watched, &Event::Result(last));
    }
    let seen = watched.end();
    if end != End::Again {
        hosts.dismiss(end == End::Succeeded);
    }
    leaving.store(true, Ordering::Relaxed);
    drop(hosts);
    let _ = own.join();
    if seen?.is_some() {
        return Ok(End::Again);
    }
    Ok(end)
}

/// What the end of a run means for this pod. An error is said.
fn judge(result: &Result<RunResult, EngineError>) -> End {
    match result {
        Ok(result) => {
            if let Some(error) = &result.error {
                print_error(error);
            }
            End::of(result.status)
        }
        Err(error) => {
            print_error(&describe(error));
            match would_come_again(error) {
                true => End::Failed,
                false => End::Again,
            }
        }
    }
}

/// Whether an error is the job's own, rather than one of machines, hosts or stores.
fn would_come_again(error: &EngineError) -> bool {
    // While a job is prepared, its data and its store are asked for: one that is out of reach may be there later.
    if error.is_passing() {
        return false;
    }
    matches!(
        error,
        EngineError::Learner(_)
            | EngineError::Embed(_)
            | EngineError::Resume(_)
            | EngineError::NoSharedMemory
            | EngineError::Start(_)
            | EngineError::TaskSetup { .. }
            | EngineError::TaskFailed { .. }
            | EngineError::TaskKills { .. }
    )
}
