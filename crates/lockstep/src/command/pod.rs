//! `lockstep pod`: one of the numbered processes of a run that a cluster starts ([`lockstep_engine::pod`]).

use super::run::failure;
use super::watched::StoppableView;
use crate::args::PodArgs;
use crate::learners;
use crate::print_error;
use crate::signals;
use crate::tracking::Tracked;
use crate::view::{Json, Options, View};
use anyhow::Context;
use lockstep_base::fs::CacheDir;
use lockstep_engine::pod::{Pod, PodEnd, PodEnvironment, pod_index};
use lockstep_engine::{RunRequest, StopFlag, describe};
use lockstep_events::event::{Event, Status};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

pub(crate) fn run(args: &PodArgs, started_at: Instant) -> anyhow::Result<ExitCode> {
    let pod = match open(args) {
        Ok(pod) => pod,
        // Whoever follows the log of number 0 gets a result in any case.
        Err(error) => {
            if pod_index().is_ok_and(|index| index == 0) {
                view().show(&Event::Result(failure(started_at, &error)))?;
            }
            print_error(&describe(error.as_ref()));
            return Ok(ExitCode::from(PodEnd::Failed.code()));
        }
    };
    let ended = match pod.index() {
        0 => coordinate(pod, started_at),
        _ => host(&pod),
    };
    let end = ended.unwrap_or_else(|error| {
        print_error(&describe(error.as_ref()));
        PodEnd::Again
    });
    Ok(ExitCode::from(end.code()))
}

fn open(args: &PodArgs) -> anyhow::Result<Pod> {
    let environment = PodEnvironment::read()?;
    Ok(Pod::new(environment, args.job.load()?, &args.job.path)?)
}

/// Events as JSON, for whoever follows the log.
fn view() -> Json<io::Stdout> {
    let options = Options {
        elsewhere: true,
        ..Options::default()
    };
    Json::new(io::stdout(), options)
}

/// Hosts a worker until the run is over.
fn host(pod: &Pod) -> anyhow::Result<PodEnd> {
    let leaving = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        let heard = signal_hook::flag::register(signal, leaving.clone());
        heard.context("cannot handle signals")?;
    }
    let mut say = |words: String| eprintln!("host {}: {words}", pod.index());
    Ok(pod.host(&leaving, &mut say)?)
}

/// Runs the job on the hosts that come.
fn coordinate(pod: Pod, started_at: Instant) -> anyhow::Result<PodEnd> {
    if let Some(result) = pod.settled() {
        // An earlier start of this pod came to an end, and could not say so.
        let end = PodEnd::from(result.status);
        view().show(&Event::Result(result))?;
        return Ok(end);
    }
    let stop = StopFlag::new();
    signals::obey(stop.clone())?;
    let warn = |odd| eprintln!("warning: {odd}");
    let (run, hosts) = pod.coordinate(warn)?;
    let request = RunRequest {
        coordinator: learners::coordinator,
        job: run.job,
        folder: run.folder,
        started_at,
        resume: None,
        name: Some(run.name),
        fork: None,
        max_steps: None,
        step_times: false,
        profile: None,
        stop: stop.clone(),
        cache: CacheDir::locate()?,
        launcher: run.launcher,
    };
    let mut watched = StoppableView::new(Box::new(view()), stop);
    let mut tracked = Tracked::of(&request);
    let mut last = None;
    let result = lockstep_engine::run(request, &mut |event| match event {
        Event::Result(result) => last = Some(result),
        event => tracked.show(&mut watched, &event),
    });
    match &result {
        Ok(result) => result.error.iter().for_each(|error| print_error(error)),
        Err(error) => print_error(&describe(error)),
    }
    let end = PodEnd::of(&result);
    if let Some(mut last) = last {
        // Whoever follows the log must not take for the end what another start goes on with.
        if end == PodEnd::Again {
            last.status = Status::Interrupted;
        }
        tracked.show(&mut watched, &Event::Result(last));
    }
    let seen = watched.end();
    hosts.end(end);
    match seen? {
        Some(_) => Ok(PodEnd::Again),
        None => Ok(end),
    }
}
