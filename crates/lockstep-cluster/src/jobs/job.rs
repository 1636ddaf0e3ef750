//! Jobs as a head tells of them.

use lockstep_base::JobStatus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a head knows of a job. Keys that this version does not know are passed over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobInfo {
    /// Its name; absent of a driver that was not submitted.
    pub submission_id: Option<String>,
    /// Ray's own number, once its command has joined the cluster.
    pub job_id: Option<String>,
    /// How it is.
    pub status: JobStatus,
    /// The command, as a shell reads it.
    pub entrypoint: String,
    /// The same in the head's words; of a failure, with the end of the log.
    pub message: Option<String>,
    /// What kind of failure it was.
    pub error_type: Option<String>,
    /// When it was submitted, in milliseconds since 1970.
    pub start_time: Option<u64>,
    /// When its command began, in milliseconds since 1970, as a `lockstep serve` tells it; Ray does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lockstep_began: Option<u64>,
    /// When it ended, in milliseconds since 1970.
    pub end_time: Option<u64>,
    /// What whoever submitted it wrote down.
    pub metadata: Option<BTreeMap<String, String>>,
    /// What its command ended with.
    pub driver_exit_code: Option<i64>,
}

/// The key of the metadata under which the job file of a submitted job is found again.
pub(crate) const FILE: &str = "lockstep_file";

impl JobInfo {
    /// What it does, in the words of whoever submitted it: the job file that is run, else the whole command. That of a job
    /// file is a line of shell on a cluster that does not have this program.
    pub fn shown(&self) -> String {
        let file = self.metadata.as_ref().and_then(|said| said.get(FILE));
        match file {
            Some(file) => format!("lockstep run {file}"),
            None => self.entrypoint.clone(),
        }
    }

    /// How long its command has taken by the time `now`, in milliseconds since 1970. Nothing of one that waits: that time
    /// is not the command's.
    pub fn took_ms(&self, now: u64) -> Option<u64> {
        if self.status == JobStatus::Pending {
            return None;
        }
        let began = self.lockstep_began.or(self.start_time)?;
        let end = self.end_time.filter(|end| *end > 0).unwrap_or(now);
        Some(end.saturating_sub(began))
    }

    /// The name by which it is asked for.
    pub fn id(&self) -> &str {
        let own = self.submission_id.as_deref().or(self.job_id.as_deref());
        own.unwrap_or_default()
    }
}

/// A job that is to run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Submission {
    /// The command, as a shell reads it.
    pub entrypoint: String,
    /// Its name, chosen by whoever submits: so a lost answer can be asked for.
    pub submission_id: String,
    /// The package it runs in, and its variables.
    pub runtime_env: RuntimeEnv,
    /// What is to be found again in [`JobInfo::metadata`].
    pub metadata: BTreeMap<String, String>,
    /// Processors that the command itself takes; the head's scheduler finds a node that has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entrypoint_num_cpus: Option<f64>,
    /// GPUs, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entrypoint_num_gpus: Option<f64>,
    /// Bytes of memory, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entrypoint_memory: Option<u64>,
    /// Anything else that the head counts, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub entrypoint_resources: BTreeMap<String, f64>,
}

/// What a job's command finds around it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RuntimeEnv {
    /// The address of its package within the head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Its variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env_vars: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_of_a_later_version_is_read_as_far_as_it_is_known() {
        let text = r#"{"type":"SUBMISSION","job_id":null,"submission_id":"a","status":"RESTING",
            "entrypoint":"true","message":null,"new":{"x":1},"driver_exit_code":null}"#;
        let job: JobInfo = serde_json::from_str(text).unwrap();
        assert_eq!(job.status, JobStatus::Unknown);
        assert!(!job.status.is_final());
        assert_eq!(job.id(), "a");
    }

    #[test]
    fn the_time_that_a_job_waited_is_not_what_it_took() {
        let job = |status: &str, began: &str| {
            let text = format!(
                r#"{{"status":"{status}","entrypoint":"true","start_time":1000,"end_time":null{began}}}"#
            );
            serde_json::from_str::<JobInfo>(&text).unwrap()
        };
        assert_eq!(job("PENDING", "").took_ms(9000), None);
        assert_eq!(
            job("RUNNING", r#","lockstep_began":7000"#).took_ms(9000),
            Some(2000)
        );
        assert_eq!(job("RUNNING", "").took_ms(9000), Some(8000));
    }

    #[test]
    fn a_job_is_shown_by_its_file_and_anything_else_by_its_command() {
        let job = |metadata: &str| {
            let text = format!(
                r#"{{"status":"RUNNING","entrypoint":"chmod +x x && ./x run a.toml","metadata":{metadata}}}"#
            );
            serde_json::from_str::<JobInfo>(&text).unwrap().shown()
        };
        assert_eq!(job(r#"{"lockstep_file": "a.toml"}"#), "lockstep run a.toml");
        assert_eq!(job("null"), "chmod +x x && ./x run a.toml");
    }

    #[test]
    fn a_submission_has_the_keys_that_ray_wants_and_no_others() {
        let submission = Submission {
            entrypoint: "true".into(),
            submission_id: "a".into(),
            ..Submission::default()
        };
        let text = serde_json::to_string(&submission).unwrap();
        assert_eq!(
            text,
            r#"{"entrypoint":"true","submission_id":"a","runtime_env":{},"metadata":{}}"#
        );
    }
}
