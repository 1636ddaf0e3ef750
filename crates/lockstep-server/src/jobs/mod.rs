//! Jobs, in the words of Ray's Jobs API, so that the `ray job` client of a cluster works here unchanged.
//!
//! The paths, the keys and the sentences are Ray's. Where Ray answers a mistake of the caller with 500, the status is
//! one of the caller's (409 for a job of that id, 400 for what is no JSON): clients show the sentence either way. Keys
//! of later clients are passed over.

mod cluster;
mod details;
mod log;
mod manage;
mod packages;
mod state;
mod submission;
mod submit;
mod version;
mod websocket;

use crate::endpoint::{Endpoint, TEXT};
use crate::{Caller, Refusal, Role, Server};
use http::StatusCode;
use lockstep_queue::{JobView, Queue, QueueError};

/// The longest description of a job, in bytes.
const LONGEST_SUBMISSION: u64 = 2 << 20;

/// What the description of a job may say.
const SUBMISSION: &str = "entrypoint! submission_id runtime_env:object metadata:words \
     entrypoint_num_cpus:number entrypoint_num_gpus:number entrypoint_memory:integer entrypoint_resources:object \
     entrypoint_label_selector:words";

/// The routes of jobs.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get(
            "/api/version",
            version::version,
            "The version of Ray whose clients are understood",
        ),
        Endpoint::get("/api/ray/version", version::version, "The same"),
        Endpoint::get("/api/jobs/", manage::list, "All jobs"),
        Endpoint::post("/api/jobs/", submit::submit, "Submits a job")
            .body(SUBMISSION)
            .takes(LONGEST_SUBMISSION),
        Endpoint::get("/api/jobs", manage::list, "All jobs"),
        Endpoint::post("/api/jobs", submit::submit, "Submits a job")
            .body(SUBMISSION)
            .takes(LONGEST_SUBMISSION),
        Endpoint::get("/api/jobs/{id}", manage::get, "One job"),
        Endpoint::delete(
            "/api/jobs/{id}",
            manage::delete,
            "Forgets a job that has ended",
        ),
        Endpoint::post("/api/jobs/{id}/stop", manage::stop, "Stops a job"),
        Endpoint::get("/api/jobs/{id}/logs", log::whole, "A job's whole log"),
        Endpoint::get(
            "/api/jobs/{id}/logs/tail",
            log::tail,
            "A job's log as it grows, over a web socket",
        )
        .answer(TEXT),
        Endpoint::get(
            "/api/packages/{protocol}/{name}",
            packages::exists,
            "Whether a package is here",
        )
        .answer(TEXT),
        Endpoint::put(
            "/api/packages/{protocol}/{name}",
            packages::upload,
            "Sends a package: a zip file",
        )
        .answer(TEXT),
        Endpoint::get(
            "/nodes",
            cluster::nodes,
            "This machine, as Ray's dashboard has it",
        )
        .query("view"),
        Endpoint::get(
            "/api/cluster_status",
            cluster::status,
            "What jobs may use, and what they do",
        )
        .query("format"),
        Endpoint::get(
            "/api/v0/{what}",
            state::list,
            "Jobs or nodes, as `ray list` asks for them",
        )
        .query("limit filter_keys filter_predicates filter_values detail timeout exclude_driver"),
        Endpoint::get(
            "/api/gcs_healthz",
            async || "success",
            "The same in Ray's words",
        )
        .answer(TEXT)
        .open(),
    ]
}

/// Does something with the queue where waiting for a disk is allowed.
async fn with_queue<T: Send + 'static>(
    server: &Server,
    work: impl FnOnce(&Queue) -> Result<T, QueueError> + Send + 'static,
) -> Result<T, Refusal> {
    let queue = server.queue().clone();
    let done = tokio::task::spawn_blocking(move || work(&queue)).await;
    Ok(done.map_err(Refusal::internal)??)
}

/// Refuses a caller who may not change this job.
pub(crate) fn may_change(caller: &Caller, job: &JobView) -> Result<(), Refusal> {
    caller.needs(Role::Submit)?;
    match caller.owns(Some(&job.user)) {
        true => Ok(()),
        false => Err(Refusal::forbidden(format!(
            "the job {} is of {}; {} may change only jobs of its own",
            job.id, job.user, caller.name
        ))),
    }
}

impl From<QueueError> for Refusal {
    fn from(error: QueueError) -> Refusal {
        let status = match &error {
            QueueError::Wrong(_) => StatusCode::BAD_REQUEST,
            QueueError::Missing(_) => StatusCode::NOT_FOUND,
            QueueError::Exists(_)
            | QueueError::Taken(_)
            | QueueError::NotEnded { .. }
            | QueueError::Needed { .. } => StatusCode::CONFLICT,
            QueueError::Priority { .. } => StatusCode::FORBIDDEN,
            QueueError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            _ => return Refusal::internal(error),
        };
        Refusal::new(status, error.to_string())
    }
}
