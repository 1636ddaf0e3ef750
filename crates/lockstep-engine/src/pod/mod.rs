//! One of the numbered processes of a run that a cluster starts, all with the same command.
//!
//! Number 0 coordinates and hosts a worker, the others host one each. [`lockstep_job::pod`] is what they are given, and
//! what their exit codes mean: whether the run is over, or goes on when this process is started again.

mod environment;
mod error;

pub use environment::{PodEnvironment, pod_index};
pub use error::PodError;

use crate::EngineError;
use lockstep_events::event::{RunResult, Status};
use lockstep_job::Job;
use lockstep_job::pod::{AGAIN, FAILED};
use lockstep_launch::Launcher;
use lockstep_launch::hosts::{Host, HostEnd, Hosts, HostsError, HostsRequest, Surroundings};
use lockstep_resolve::place;
use lockstep_runs::RunDir;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How a pod ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodEnd {
    /// The run succeeded.
    Succeeded,
    /// The run failed, and would fail again.
    Failed,
    /// The run goes on when the pod is started again.
    Again,
}

impl PodEnd {
    /// What the end of a run means for the pod that coordinated it.
    pub fn of(result: &Result<RunResult, EngineError>) -> Self {
        match result {
            Ok(result) => result.status.into(),
            Err(error) if would_come_again(error) => Self::Failed,
            Err(_) => Self::Again,
        }
    }

    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::Failed => FAILED,
            Self::Again => AGAIN,
        }
    }
}

impl From<Status> for PodEnd {
    fn from(status: Status) -> Self {
        match status {
            Status::Succeeded => Self::Succeeded,
            Status::Failed => Self::Failed,
            Status::Interrupted => Self::Again,
        }
    }
}

/// A pod that knows its part.
pub struct Pod {
    environment: PodEnvironment,
    /// The run, which may not be there yet.
    run: RunDir,
    job: Job,
    /// The job file's folder.
    folder: PathBuf,
}

/// What a pod that coordinates is to run.
pub struct PodRun {
    /// The name of the run, which is gone on with if it is there.
    pub name: String,
    /// The job.
    pub job: Job,
    /// The job file's folder.
    pub folder: PathBuf,
    /// Starts workers on the hosts.
    pub launcher: Box<dyn Launcher>,
}

/// The hosts of a run while this process coordinates it, of which one is in this process.
pub struct Coordination {
    hosts: Hosts,
    leaving: Arc<AtomicBool>,
    own: JoinHandle<Result<HostEnd, HostsError>>,
}

impl Pod {
    /// A pod of a job that was read from `file`.
    ///
    /// # Errors
    /// When the job has no such pod, or no such store.
    pub fn new(environment: PodEnvironment, mut job: Job, file: &Path) -> Result<Self, PodError> {
        if let Some(seconds) = environment.patience_s {
            job.gang.start_deadline_s = seconds;
        }
        let (index, workers) = (environment.index, job.workers().max);
        if index >= workers {
            return Err(PodError::TooMany { index, workers });
        }
        let file = std::path::absolute(file);
        let file = file.map_err(PodError::system("cannot find the job file's folder"))?;
        let name = &environment.run;
        Ok(Self {
            run: RunDir::named(name, place(&job.run.store, &job.storage)?.join(name)?),
            folder: file.parent().map(Path::to_owned).unwrap_or_default(),
            job,
            environment,
        })
    }

    /// The pod's number; 0 coordinates.
    pub fn index(&self) -> usize {
        self.environment.index
    }

    /// The result of the run, if it is over for good.
    pub fn settled(&self) -> Option<RunResult> {
        let result = self.run.read_result().ok()??;
        (result.status != Status::Interrupted).then_some(result)
    }

    /// Hosts a worker until the run is over, or `leaving` is set. What happens is said in `say`.
    ///
    /// # Errors
    /// When it cannot be a host.
    pub fn host(
        &self,
        leaving: &AtomicBool,
        say: &mut dyn FnMut(String),
    ) -> Result<PodEnd, PodError> {
        let mut around = Surroundings {
            leaving,
            is_over: &mut || Some(self.settled()?.status == Status::Succeeded),
            say,
        };
        let host = self.seat(self.environment.coordinator.clone())?;
        Ok(match host.serve(&mut around)? {
            HostEnd::Over { success: true } => PodEnd::Succeeded,
            HostEnd::Over { success: false } => {
                (around.say)("the run failed".to_owned());
                PodEnd::Failed
            }
            HostEnd::Left => PodEnd::Again,
        })
    }

    fn seat(&self, coordinator: String) -> Result<Host, PodError> {
        let program = std::env::current_exe();
        Ok(Host {
            index: self.environment.index,
            coordinator,
            token: self.environment.token.clone(),
            program: program.map_err(PodError::system("cannot find this program's own file"))?,
            patience: Duration::from_secs_f64(self.job.gang.start_deadline_s),
        })
    }

    /// Waits for hosts, and is one itself. Returns what is to be run on them.
    ///
    /// # Errors
    /// When nothing can listen here.
    pub fn coordinate(
        self,
        warn: impl Fn(String) + Send + 'static,
    ) -> Result<(PodRun, Coordination), PodError> {
        let workers = self.job.workers();
        let hosts = Hosts::open(HostsRequest {
            listen: self.environment.listen()?,
            token: self.environment.token.clone(),
            seats: workers.max,
            enough: workers.min,
            lease: Duration::from_secs_f64(self.job.gang.lease_s),
            warn: Box::new(warn),
        })?;
        let own = self.seat(hosts.address().to_string())?;
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
        let run = PodRun {
            name: self.run.name,
            job: self.job,
            folder: self.folder,
            launcher: Box::new(hosts.launcher()),
        };
        let coordination = Coordination {
            own: own.map_err(PodError::system("cannot start a thread"))?,
            hosts,
            leaving,
        };
        Ok((run, coordination))
    }
}

impl Coordination {
    /// Tells the hosts that the run is over, if it is, and waits for the one in this process.
    pub fn end(self, end: PodEnd) {
        if end != PodEnd::Again {
            self.hosts.dismiss(end == PodEnd::Succeeded);
        }
        self.leaving.store(true, Ordering::Relaxed);
        drop(self.hosts);
        let _ = self.own.join();
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
