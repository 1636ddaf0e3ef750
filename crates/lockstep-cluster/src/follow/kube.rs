//! A job on Kubernetes, as whoever follows it needs it.

use crate::follow::{OURS, Remote};
use crate::jobs::{JobInfo, JobStatus};
use crate::kube::{Client, JobEnd, JobName, JobState, Tail, Wanted};
use crate::shell;
use crate::{ClusterError, LogEvent};
use std::collections::BTreeMap;
use std::time::Duration;

/// A job on Kubernetes.
pub struct KubeJob<'c> {
    client: &'c Client,
    job: JobName,
    at: Wanted,
    tail: Tail<'c>,
}

impl<'c> KubeJob<'c> {
    /// A job of a cluster that was chosen by `at`. A lost connection is tried again for as long as `patience`.
    pub fn new(client: &'c Client, job: JobName, at: Wanted, patience: Duration) -> KubeJob<'c> {
        KubeJob {
            tail: client.tail(job.clone(), patience),
            client,
            job,
            at,
        }
    }

    /// What the cluster says of the job, in the words that are judged. Why pods failed is asked once it has.
    fn info(&self, state: &JobState) -> JobInfo {
        let failed = state.ended == Some(JobEnd::Failed);
        let why = match failed {
            true => self.tail.why_not_yet(),
            false => None,
        };
        let message = match (state.message.clone(), why) {
            (Some(message), Some(why)) => Some(format!("{why} ({message})")),
            (message, why) => why.or(message),
        };
        JobInfo {
            submission_id: Some(self.job.name.clone()),
            job_id: None,
            status: match state.ended {
                Some(JobEnd::Succeeded) => JobStatus::Succeeded,
                Some(JobEnd::Failed) => JobStatus::Failed,
                Some(JobEnd::Stopped) => JobStatus::Stopped,
                None => JobStatus::Running,
            },
            entrypoint: String::new(),
            message,
            error_type: None,
            start_time: None,
            lockstep_began: None,
            end_time: None,
            metadata: Some(BTreeMap::from([(OURS.to_owned(), String::new())])),
            driver_exit_code: None,
        }
    }
}

impl Remote for KubeJob<'_> {
    fn id(&self) -> &str {
        &self.job.name
    }

    fn who(&self) -> &'static str {
        "the API server"
    }

    fn next(&mut self, wait: Duration) -> Result<LogEvent, ClusterError> {
        Ok(match self.tail.next(wait)? {
            LogEvent::Text(text) => LogEvent::Text(text),
            LogEvent::Nothing => LogEvent::Nothing,
            LogEvent::Lost(why) => LogEvent::Lost(why),
            LogEvent::Ended(state) => LogEvent::Ended(Box::new(self.info(&state))),
        })
    }

    fn job(&self) -> Result<JobInfo, ClusterError> {
        let state = self.client.state(&self.job)?;
        Ok(self.info(&state))
    }

    /// The pods whose log it was may be gone.
    fn log(&self) -> Result<Option<String>, ClusterError> {
        Ok(None)
    }

    fn stop(&self) -> Result<(), ClusterError> {
        Ok(self.client.suspend(&self.job, true)?)
    }

    fn why_not_yet(&self) -> Option<String> {
        self.tail.why_not_yet()
    }

    fn again(&self) -> [String; 2] {
        let mut at = format!(" --namespace {}", shell(&self.job.namespace));
        if let Some(context) = &self.at.context {
            at += &format!(" --context {}", shell(context));
        }
        if let Some(file) = &self.at.kubeconfig {
            at += &format!(" --kubeconfig {}", shell(&file.to_string_lossy()));
        }
        let name = &self.job.name;
        [
            format!("lockstep kube wait {name}{at}"),
            format!("lockstep kube stop {name}{at}"),
        ]
    }

    /// A pod that was evicted says that its run was interrupted, and the one in its place goes on.
    fn may_go_on(&self) -> bool {
        true
    }
}
