//! The seam between following a job and where it runs: a Ray cluster, or Kubernetes.

use crate::jobs::JobInfo;
use crate::{ClusterError, LogEvent};
use std::time::Duration;

/// A job on a cluster, as whoever follows it needs it.
pub trait Remote {
    /// The job's id.
    fn id(&self) -> &str;

    /// Who is asked about it, in words: `the head`.
    fn who(&self) -> &'static str;

    /// Waits for more of its log.
    ///
    /// # Errors
    /// When it cannot be followed any more.
    fn next(&mut self, wait: Duration) -> Result<LogEvent, ClusterError>;

    /// Asks for what is in the log beyond what was heard.
    fn look(&mut self) -> Option<String> {
        None
    }

    /// How the job is.
    ///
    /// # Errors
    /// When nobody can say, for now or for good.
    fn job(&self) -> Result<JobInfo, ClusterError>;

    /// Its whole log, where that can be had once more.
    ///
    /// # Errors
    /// When it cannot be asked for.
    fn log(&self) -> Result<Option<String>, ClusterError>;

    /// Asks it to stop, in good order.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn stop(&self) -> Result<(), ClusterError>;

    /// Why its run has not begun.
    fn why_not_yet(&self) -> Option<String>;

    /// How it is found again, and how it is stopped: two commands.
    fn again(&self) -> [String; 2];

    /// Whether a run that told its result may go on: a process that was taken away is started anew.
    fn may_go_on(&self) -> bool {
        false
    }
}
