//! What a pod is given: a job file, and variables of the environment.

use crate::args::JobArgs;
use anyhow::{Context, bail};
use lockstep_events::event::{RunResult, Status};
use lockstep_gang::Secret;
use lockstep_job::pod::{ADDRESS, COORDINATOR, INDEX, PATIENCE, RUN, TOKEN};
use lockstep_job::{Job, Workers};
use lockstep_launch::hosts::read_token;
use lockstep_resolve::place;
use lockstep_runs::RunDir;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// All that a pod knows when it begins.
pub(super) struct Given {
    /// The pod's number.
    pub(super) index: usize,
    /// The run, which may not be there yet.
    pub(super) run: RunDir,
    /// Name and port of number 0.
    pub(super) coordinator: String,
    pub(super) token: Secret,
    pub(super) job: Job,
    /// The job file's folder.
    pub(super) folder: PathBuf,
    /// How many hosts there are.
    pub(super) workers: Workers,
    /// How long the others are waited for.
    pub(super) patience: Duration,
    pub(super) lease_s: f64,
}

impl Given {
    /// Reads what this process was given.
    pub(super) fn read(args: &JobArgs) -> anyhow::Result<Self> {
        let index = index()?;
        let name = variable(RUN)?;
        if !Job::is_valid_name(&name) {
            bail!("{RUN}: {name:?} cannot be the name of a run");
        }
        let coordinator = variable(COORDINATOR)?;
        if coordinator.rsplit_once(':').is_none() {
            bail!("{COORDINATOR}: {coordinator:?} has no port; NAME:PORT is needed");
        }
        let token = read_token(Path::new(&variable(TOKEN)?))?;
        let mut job = args.load()?;
        let workers = job.workers();
        if let Ok(seconds) = std::env::var(PATIENCE) {
            let number = seconds
                .parse()
                .ok()
                .filter(|seconds| (0.0..1e9).contains(seconds));
            let wrong = || format!("{PATIENCE}: {seconds:?} is no number of seconds");
            job.gang.start_deadline_s = number.with_context(wrong)?;
        }
        if index >= workers.max {
            bail!(
                "{INDEX} is {index}, but the job has {} workers",
                workers.max
            );
        }
        let file = std::path::absolute(&args.path).context("cannot find the job file's folder")?;
        Ok(Self {
            index,
            run: RunDir::named(&name, place(&job.run.store, &job.storage)?.join(&name)?),
            coordinator,
            token,
            folder: file.parent().map(Path::to_owned).unwrap_or_default(),
            workers,
            patience: Duration::from_secs_f64(job.gang.start_deadline_s),
            lease_s: job.gang.lease_s,
            job,
        })
    }

    /// Where number 0 listens: at its own address, under the port that the others know.
    pub(super) fn listen(&self) -> anyhow::Result<SocketAddr> {
        let Ok(address) = std::env::var(ADDRESS) else {
            let name = &self.coordinator;
            let found = name.to_socket_addrs();
            let found = found.with_context(|| format!("{COORDINATOR}: cannot look up {name}"))?;
            let first = found.into_iter().next();
            return first.with_context(|| format!("{COORDINATOR}: {name} has no address"));
        };
        let wrong = || format!("{ADDRESS}: {address:?} is no address");
        let address: IpAddr = address.parse().with_context(wrong)?;
        let port = self.coordinator.rsplit_once(':');
        let port = port.and_then(|(_, port)| port.parse().ok());
        let port = port.with_context(|| format!("{COORDINATOR}: the port is no number"))?;
        Ok(SocketAddr::new(address, port))
    }
}

/// This pod's number.
pub(super) fn index() -> anyhow::Result<usize> {
    let index = variable(INDEX)?;
    let wrong = || format!("{INDEX}: {index:?} is no number");
    index.parse().with_context(wrong)
}

fn variable(name: &str) -> anyhow::Result<String> {
    let value = std::env::var(name);
    value.with_context(|| format!("{name} must be set; `lockstep submit --to kube` does that"))
}

/// The result of a run that is over for good.
pub(super) fn settled(run: &RunDir) -> Option<RunResult> {
    let text = run.result().read().ok()?;
    let result: RunResult = serde_json::from_slice(&text).ok()?;
    (result.status != Status::Interrupted).then_some(result)
}
