//! A job of a Ray head or of `lockstep serve`, as whoever follows it needs it.

use crate::follow::Remote;
use crate::jobs::{Client, JobInfo, Tail};
use crate::shell;
use crate::{ClusterError, LogEvent};
use std::time::{Duration, Instant};

/// How long a job may take to stop; the head kills it after 3 seconds.
const STOPPING: Duration = Duration::from_secs(60);
/// How often a job is asked whether it has stopped.
const STOPPED: Duration = Duration::from_millis(250);

/// Waits for the end of a job that was asked to stop.
///
/// # Errors
/// When nobody can say how it is, and when it has not stopped after a minute.
pub fn wait_stopped(client: &Client, id: &str) -> Result<JobInfo, ClusterError> {
    let began = Instant::now();
    loop {
        let job = client.job(id)?;
        if job.status.is_final() {
            return Ok(job);
        }
        if began.elapsed() > STOPPING {
            return Err(ClusterError::NotStopped {
                id: id.to_owned(),
                status: job.status,
                seconds: STOPPING.as_secs(),
            });
        }
        std::thread::sleep(STOPPED);
    }
}

/// A job on a Ray cluster.
pub struct RayJob<'c> {
    client: &'c Client,
    id: String,
    /// The address as it was given, if it was.
    to: Option<String>,
    tail: Tail<'c>,
}

impl<'c> RayJob<'c> {
    /// The job `id` of a head that was named by `to`. A lost connection is tried again for as long as `patience`.
    pub fn new(client: &'c Client, id: &str, to: Option<&str>, patience: Duration) -> RayJob<'c> {
        RayJob {
            client,
            id: id.to_owned(),
            to: to.map(str::to_owned),
            tail: client.tail(id, patience),
        }
    }
}

impl Remote for RayJob<'_> {
    fn id(&self) -> &str {
        &self.id
    }

    fn who(&self) -> &'static str {
        "the head"
    }

    fn next(&mut self, wait: Duration) -> Result<LogEvent, ClusterError> {
        Ok(self.tail.next(wait)?)
    }

    fn look(&mut self) -> Option<String> {
        self.tail.look()
    }

    fn job(&self) -> Result<JobInfo, ClusterError> {
        Ok(self.client.job(&self.id)?)
    }

    fn log(&self) -> Result<Option<String>, ClusterError> {
        Ok(Some(self.client.logs(&self.id)?))
    }

    fn stop(&self) -> Result<(), ClusterError> {
        self.client.stop(&self.id)?;
        Ok(())
    }

    fn why_not_yet(&self) -> Option<String> {
        let job = self.client.job(&self.id).ok()?;
        match job.status.is_final() {
            true => None,
            false => job.message,
        }
    }

    fn again(&self) -> [String; 2] {
        let to = self.to.as_ref();
        let to = to
            .map(|to| format!(" --to {}", shell(to)))
            .unwrap_or_default();
        let id = &self.id;
        [
            format!("lockstep jobs wait {id}{to}"),
            format!("lockstep jobs stop {id}{to}"),
        ]
    }
}
