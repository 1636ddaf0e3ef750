//! How far a job has come: a function of the files in its folder.

use crate::folder::{AttemptEnd, Begun, Folder, Started};
use crate::{JobRecord, JobStatus, JobView};
use std::time::Duration;

/// The first pause before another attempt, and the longest, in milliseconds.
const PAUSES_MS: (u64, u64) = (1_000, 60_000);

/// How far a job has come.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Progress {
    /// The attempt that runs, waits to begin, or was the last.
    pub(crate) attempt: u32,
    pub(crate) begun: Option<Begun>,
    pub(crate) started: Option<Started>,
    /// How the last attempt ended, if the job has.
    pub(crate) ended: Option<AttemptEnd>,
    /// How the attempt before this one ended.
    pub(crate) before: Option<AttemptEnd>,
    pub(crate) stop: bool,
}

impl Progress {
    /// Reads how far a job has come. Attempts before `known` are over.
    pub(crate) fn read(folder: &Folder, asked: &JobRecord, known: u32) -> Progress {
        let stop = folder.is_to_stop();
        let mut attempt = known.max(1);
        let mut before = match attempt {
            1 => None,
            later => folder.ended(later - 1),
        };
        loop {
            let ended = folder.ended(attempt);
            if ended
                .as_ref()
                .is_some_and(|end| may_retry(asked, attempt, end))
            {
                before = ended;
                attempt += 1;
                continue;
            }
            return Progress {
                attempt,
                begun: folder.begun(attempt),
                started: folder.started(attempt),
                ended,
                before,
                stop,
            };
        }
    }

    pub(crate) fn status(&self) -> JobStatus {
        match (&self.ended, &self.started) {
            (Some(ended), _) => ended.status,
            (None, Some(_)) => JobStatus::Running,
            (None, None) => JobStatus::Pending,
        }
    }

    pub(crate) fn is_final(&self) -> bool {
        self.ended.is_some()
    }

    /// How long after the end of the attempt before this one is due.
    pub(crate) fn pause(&self) -> Duration {
        if self.before.is_none() || self.begun.is_some() {
            return Duration::ZERO;
        }
        let doublings = self.attempt.saturating_sub(2).min(16);
        Duration::from_millis((PAUSES_MS.0 << doublings).min(PAUSES_MS.1))
    }

    /// The job as whoever asks is told of it.
    pub(crate) fn view(&self, asked: &JobRecord, waits_for: Option<String>) -> JobView {
        let last = self.ended.as_ref().or(self.before.as_ref());
        JobView {
            id: asked.id.clone(),
            number: asked.number,
            user: asked.user.clone(),
            status: self.status(),
            message: self.message(asked, waits_for),
            error_type: self.ended.as_ref().and_then(|end| end.error_type.clone()),
            entrypoint: asked.entrypoint.clone(),
            runtime_env: asked.runtime_env.clone(),
            metadata: asked.metadata.clone(),
            needs: asked.needs.clone(),
            gpus: self
                .begun
                .as_ref()
                .map(|begun| begun.gpus.clone())
                .unwrap_or_default(),
            priority: asked.priority,
            after: asked.after.clone(),
            submitted_ms: asked.submitted_ms,
            started_ms: self.started.as_ref().map(|started| started.at_ms),
            ended_ms: self.ended.as_ref().map(|ended| ended.at_ms),
            attempt: self.attempt,
            attempts: asked.retries + 1,
            exit_code: last.and_then(|end| end.exit_code),
            pid: match self.ended {
                Some(_) => None,
                None => self.started.as_ref().map(|started| started.pid),
            },
            stopping: self.stop && !self.is_final(),
            position: None,
        }
    }

    /// How it is, in Ray's words and then in more.
    fn message(&self, asked: &JobRecord, waits_for: Option<String>) -> String {
        if let Some(ended) = &self.ended {
            return ended.message.clone();
        }
        if self.started.is_some() {
            return "Job is currently running.".to_owned();
        }
        let mut message = "Job has not started yet.".to_owned();
        let needs = &asked.needs;
        if needs.cpus.is_some()
            || needs.gpus > 0.0
            || needs.memory > 0
            || !needs.resources.is_empty()
        {
            message += " It may be waiting for resources (CPUs, GPUs, memory, custom resources) to become available.";
        }
        if !asked.runtime_env.is_empty() {
            message += " It may be waiting for the runtime environment to be set up.";
        }
        if let Some(before) = &self.before {
            message += &format!(
                " Attempt {} ended with exit code {}; attempt {} of {} follows.",
                self.attempt - 1,
                before.exit_code.unwrap_or_default(),
                self.attempt,
                asked.retries + 1
            );
        }
        if let Some(what) = waits_for {
            message += &format!(" {what}");
        }
        message
    }
}

fn may_retry(asked: &JobRecord, attempt: u32, ended: &AttemptEnd) -> bool {
    ended.status == JobStatus::Failed
        && attempt <= asked.retries
        && ended
            .exit_code
            .is_some_and(|code| asked.retry_codes.contains(&code))
}
