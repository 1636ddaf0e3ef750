//! How a job ended: what its run said of itself, held against what the head says of its command.
//!
//! Neither counts alone. A run that never told its result has not succeeded, whatever the head says; and one that
//! told of success has failed if its command did after that.

use crate::jobs::{JobInfo, JobStatus, Needs, unfit};
use lockstep_events::event::{RunResult, Status};

/// What a command ends with that Ctrl-C has ended.
const INTERRUPTED: u8 = 130;

/// The exit codes of a run that are passed on; any other end is a plain failure.
const PASSED_ON: [i64; 3] = [1, 2, INTERRUPTED as i64];

/// How a job ended.
#[derive(Debug)]
pub struct Outcome {
    /// What the run said, if it is to be believed.
    pub result: Option<RunResult>,
    /// What went wrong beyond that.
    pub error: Option<String>,
    /// What a command that waited for the job ends with.
    pub code: u8,
}

/// Judges a job that has ended. `result` is the last that its run told; `said` are the last other lines of its
/// log; `sent` is what the program needs that travelled with it.
pub(crate) fn outcome(
    job: &JobInfo,
    result: Option<RunResult>,
    said: &str,
    sent: Option<&Needs>,
) -> Outcome {
    let passed_on = |default: u8| match job.driver_exit_code {
        Some(code) if PASSED_ON.contains(&code) => code as u8,
        _ => default,
    };
    let Some(mut result) = result else {
        let (error, code) = match job.status {
            JobStatus::Stopped => (stopped(job), INTERRUPTED),
            JobStatus::Succeeded => (silent(job), 1),
            _ => (broken(job, said, sent), passed_on(1)),
        };
        return Outcome {
            result: None,
            error: Some(error),
            code,
        };
    };
    let code = match (job.status, result.status) {
        (JobStatus::Failed, Status::Succeeded) => {
            let why = message(job);
            result.status = Status::Failed;
            result.error = Some(format!(
                "the run told of success, but its command failed after that: {why}"
            ));
            passed_on(1)
        }
        (_, Status::Succeeded) => 0,
        (_, Status::Interrupted) => INTERRUPTED,
        (_, Status::Failed) => passed_on(1),
    };
    let failed = result.status == Status::Failed;
    let error = failed.then(|| {
        let said = result.error.clone();
        said.unwrap_or_else(|| "the run failed".to_owned())
    });
    Outcome {
        result: Some(result),
        error,
        code,
    }
}

/// A job that is not one of ours: its command's end is all there is to know.
pub fn command_outcome(job: &JobInfo) -> Outcome {
    let (error, code) = match job.status {
        JobStatus::Succeeded => (None, 0),
        JobStatus::Stopped => (Some(stopped(job)), INTERRUPTED),
        _ => (
            Some(format!("the job failed: {}", message(job))),
            job.driver_exit_code
                .and_then(|code| u8::try_from(code).ok())
                .filter(|code| *code != 0)
                .unwrap_or(1),
        ),
    };
    Outcome {
        result: None,
        error,
        code,
    }
}

fn stopped(job: &JobInfo) -> String {
    format!(
        "the job `{}` was stopped before its run told a result",
        job.id()
    )
}

fn silent(job: &JobInfo) -> String {
    format!(
        "the command of the job `{}` ended without telling a result; nothing says that it trained anything",
        job.id()
    )
}

/// Why a command failed that told nothing.
fn broken(job: &JobInfo, said: &str, sent: Option<&Needs>) -> String {
    if let Some(unfit) = unfit(said, job.driver_exit_code, sent) {
        return unfit;
    }
    let last = said.trim();
    let why = match last.is_empty() {
        true => message(job),
        false => format!("{}; its last words:\n{last}", first_line(&message(job))),
    };
    format!("the job `{}` failed: {why}", job.id())
}

fn message(job: &JobInfo) -> String {
    let message = job.message.as_deref().unwrap_or_default().trim();
    match (message.is_empty(), job.driver_exit_code) {
        (false, _) => message.to_owned(),
        (true, Some(code)) => format!("its command ended with {code}"),
        (true, None) => "the head does not say why".to_owned(),
    }
}

/// The head puts the log's end into its message, which is told anyway.
fn first_line(message: &str) -> &str {
    let line = message.lines().next().unwrap_or_default();
    line.split(", last available logs").next().unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn result(status: Status) -> RunResult {
        RunResult::without_run(status, Duration::from_secs(13))
    }

    fn job(status: JobStatus, code: Option<i64>) -> JobInfo {
        let status = serde_json::to_value(status).unwrap();
        serde_json::from_value(serde_json::json!({
            "submission_id": "j", "status": status, "entrypoint": "x", "driver_exit_code": code,
            "message": "Job entrypoint command failed with exit code 3, last available logs (truncated):\nboom",
        }))
        .unwrap()
    }

    #[test]
    fn success_takes_the_runs_word_and_the_heads() {
        use JobStatus::{Failed, Stopped, Succeeded};
        let code = |status, exit, told: Option<Status>| {
            outcome(&job(status, exit), told.map(result), "", None).code
        };
        assert_eq!(code(Succeeded, Some(0), Some(Status::Succeeded)), 0);
        // Stopped after all was done.
        assert_eq!(code(Stopped, None, Some(Status::Succeeded)), 0);
        for (status, exit, told, wanted) in [
            (Succeeded, Some(0), None, 1),
            (Succeeded, Some(0), Some(Status::Failed), 1),
            (Failed, Some(137), Some(Status::Succeeded), 1),
            (Failed, Some(1), Some(Status::Failed), 1),
            (Failed, Some(2), Some(Status::Failed), 2),
            (Failed, Some(130), Some(Status::Interrupted), 130),
            (Stopped, None, Some(Status::Interrupted), 130),
            (Stopped, None, None, 130),
            (Failed, Some(3), None, 1),
            (Failed, None, None, 1),
        ] {
            assert_eq!(
                code(status, exit, told),
                wanted,
                "{status} {exit:?} {told:?}"
            );
        }
    }

    #[test]
    fn success_that_was_taken_back_is_a_failure_in_the_result_too() {
        let told = Some(result(Status::Succeeded));
        let outcome = outcome(&job(JobStatus::Failed, Some(137)), told, "", None);
        assert_eq!(outcome.result.unwrap().status, Status::Failed);
        assert!(outcome.error.unwrap().contains("after that"));
    }

    #[test]
    fn a_failure_without_a_result_has_the_last_words() {
        let outcome = outcome(&job(JobStatus::Failed, Some(3)), None, "a\nb\n", None);
        let error = outcome.error.unwrap();
        assert!(
            error.contains("exit code 3; its last words:\na\nb"),
            "{error}"
        );
    }

    #[test]
    fn a_foreign_job_ends_as_its_command() {
        assert_eq!(command_outcome(&job(JobStatus::Succeeded, Some(0))).code, 0);
        assert_eq!(command_outcome(&job(JobStatus::Failed, Some(7))).code, 7);
        assert_eq!(command_outcome(&job(JobStatus::Failed, None)).code, 1);
        assert_eq!(command_outcome(&job(JobStatus::Stopped, None)).code, 130);
    }
}
