//! How a job is: what the Job controller, or KubeRay's operator, says of it.

use crate::kube::manifest::{Manifest, ManifestKind};
use serde_json::Value;

/// A job by its name: where it is, and as what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobName {
    /// What it is.
    pub kind: ManifestKind,
    /// Where it is.
    pub namespace: String,
    /// What it is called.
    pub name: String,
}

impl JobName {
    /// The name of what a manifest describes.
    pub fn of(manifest: &Manifest) -> Self {
        let meta = &manifest.value["metadata"];
        let text = |key: &str| meta[key].as_str().unwrap_or_default().to_owned();
        Self {
            kind: manifest.kind,
            namespace: text("namespace"),
            name: text("name"),
        }
    }

    /// Its kind, its namespace and its name.
    pub(crate) fn parts(&self) -> (ManifestKind, &str, &str) {
        (self.kind, &self.namespace, &self.name)
    }
}

/// A job as the cluster has it.
#[derive(Debug, Clone)]
pub struct ClusterJob {
    /// What it is.
    pub kind: ManifestKind,
    /// All of it.
    pub value: Value,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEnd {
    /// All its pods did what they should.
    Succeeded,
    /// It did not.
    Failed,
    /// Somebody stopped it.
    Stopped,
}

/// How a job is.
#[derive(Debug, Clone)]
pub struct JobState {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: ManifestKind,
    /// How it ended, if it has.
    pub ended: Option<JobEnd>,
    /// One word for how it is.
    pub word: String,
    /// Why, in the words of whoever decided it.
    pub message: Option<String>,
    /// Workers that it has at most.
    pub workers: u64,
    /// When it was made, as the cluster writes it.
    pub created: String,
}

/// The word for a job whose pods were asked to stop, and still write their state.
const STOPPING: &str = "stopping";

impl JobState {
    /// Whether it was stopped, and its pods still write their state.
    pub fn is_stopping(&self) -> bool {
        self.word == STOPPING
    }
}

impl ClusterJob {
    /// How it is.
    pub fn state(&self) -> JobState {
        let value = &self.value;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (ended, word, message) = match self.kind {
            ManifestKind::Job => job(value),
            _ => ray(value),
        };
        let workers = match self.kind {
            ManifestKind::Job => &value["spec"]["completions"],
            ManifestKind::RayJob => {
                &value["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["maxReplicas"]
            }
            _ => &value["spec"]["workerGroupSpecs"][0]["maxReplicas"],
        };
        JobState {
            name: text(&value["metadata"]["name"]),
            kind: self.kind,
            ended,
            word,
            message: message.filter(|message| !message.is_empty()),
            workers: workers.as_u64().unwrap_or_default(),
            created: text(&value["metadata"]["creationTimestamp"]),
        }
    }
}

type StateWords = (Option<JobEnd>, String, Option<String>);

/// What a condition says, if it holds.
fn condition<'v>(value: &'v Value, kind: &str) -> Option<&'v Value> {
    let conditions = value["status"]["conditions"].as_array()?;
    let holds = |c: &&Value| c["type"] == kind && c["status"] == "True";
    conditions.iter().find(holds)
}

fn job(value: &Value) -> StateWords {
    let why = |condition: &Value| {
        let part = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
        Some(format!("{}: {}", part("reason"), part("message")))
    };
    if condition(value, "Complete").is_some() {
        return (Some(JobEnd::Succeeded), "succeeded".to_owned(), None);
    }
    if let Some(failed) = condition(value, "Failed") {
        return (Some(JobEnd::Failed), "failed".to_owned(), why(failed));
    }
    if let Some(failing) = condition(value, "FailureTarget") {
        return (None, "failing".to_owned(), why(failing));
    }
    let active = value["status"]["active"].as_u64().unwrap_or_default();
    let ready = value["status"]["ready"].as_u64().unwrap_or_default();
    if value["spec"]["suspend"] == true {
        // One that ran and was held back was stopped; one that never ran waits to be let in.
        let ran =
            value["status"]["startTime"].is_string() || condition(value, "Suspended").is_some();
        let queued = value["metadata"]["labels"]["kueue.x-k8s.io/queue-name"].is_string();
        // Pods that are on their way out are not active any more, and may still write a checkpoint.
        let leaving = value["status"]["terminating"].as_u64().unwrap_or_default();
        return match (ran && !queued, active + leaving) {
            (true, 0) => (Some(JobEnd::Stopped), "stopped".to_owned(), None),
            (true, _) => (None, STOPPING.to_owned(), None),
            _ => (None, "queued".to_owned(), None),
        };
    }
    match (active, ready) {
        (0, _) => (None, "starting".to_owned(), None),
        (active, ready) if ready < active => (None, format!("{ready}/{active} pods run"), None),
        _ => (None, "running".to_owned(), None),
    }
}

/// KubeRay's words are kept open: others than those that are documented were seen.
fn ray(value: &Value) -> StateWords {
    let status = &value["status"];
    let part = |key: &str| status[key].as_str().unwrap_or_default();
    let (deployment, run) = (part("jobDeploymentStatus"), part("jobStatus"));
    let message = match (part("reason"), part("message")) {
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    };
    let message = Some(message);
    match (deployment, run) {
        // Never "running" when it failed, whichever of the two says so first.
        ("Failed" | "ValidationFailed", _) => (Some(JobEnd::Failed), "failed".to_owned(), message),
        ("Complete", "SUCCEEDED") => (Some(JobEnd::Succeeded), "succeeded".to_owned(), None),
        ("Complete", "STOPPED") => (Some(JobEnd::Stopped), "stopped".to_owned(), message),
        ("Complete", _) => (Some(JobEnd::Failed), "failed".to_owned(), message),
        ("Suspended", _) => (Some(JobEnd::Stopped), "stopped".to_owned(), message),
        (_, "FAILED") => (None, "failing".to_owned(), message),
        ("", "") => {
            let state = part("state");
            let word = if state.is_empty() { "starting" } else { state };
            (None, word.to_owned(), message)
        }
        (deployment, _) => (None, deployment.to_lowercase(), message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ended(kind: ManifestKind, value: Value) -> Option<JobEnd> {
        ClusterJob { kind, value }.state().ended
    }

    #[test]
    fn a_job_has_ended_when_its_controller_says_so_and_not_before() {
        let with =
            |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True"}]}});
        let job = |value| ended(ManifestKind::Job, value);
        assert_eq!(job(with("Complete")), Some(JobEnd::Succeeded));
        assert_eq!(job(with("Failed")), Some(JobEnd::Failed));
        assert_eq!(job(with("FailureTarget")), None);
        assert_eq!(job(with("SuccessCriteriaMet")), None);
        assert_eq!(job(json!({"status": {"active": 2}})), None);
        let stopped = json!({"spec": {"suspend": true}, "status": {"startTime": "x"}});
        assert_eq!(job(stopped), Some(JobEnd::Stopped));
        let leaving =
            json!({"spec": {"suspend": true}, "status": {"startTime": "x", "terminating": 1}});
        assert_eq!(job(leaving), None);
        let queued = json!({"spec": {"suspend": true}, "status": {},
            "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q"}}});
        assert_eq!(job(queued), None);
    }

    #[test]
    fn a_ray_job_that_failed_is_never_running() {
        let ray = |deployment: &str, run: &str| {
            let status = json!({"jobDeploymentStatus": deployment, "jobStatus": run});
            ended(ManifestKind::RayJob, json!({ "status": status }))
        };
        assert_eq!(ray("Complete", "SUCCEEDED"), Some(JobEnd::Succeeded));
        assert_eq!(ray("Complete", "FAILED"), Some(JobEnd::Failed));
        assert_eq!(ray("Complete", "Failure"), Some(JobEnd::Failed));
        assert_eq!(ray("ValidationFailed", ""), Some(JobEnd::Failed));
        assert_eq!(ray("Failed", "RUNNING"), Some(JobEnd::Failed));
        assert_eq!(ray("Running", "RUNNING"), None);
        assert_eq!(ray("Initializing", ""), None);
    }
}
