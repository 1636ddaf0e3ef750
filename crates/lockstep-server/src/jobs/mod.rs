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
mod submission;
mod submit;
mod version;
mod websocket;

use crate::{Caller, Refusal, Role, Server};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use http::StatusCode;
use lockstep_queue::{JobView, Queue, QueueError};

/// The longest description of a job, in bytes.
const LONGEST_SUBMISSION: usize = 2 << 20;

/// The routes of jobs.
pub(crate) fn routes() -> Router<Server> {
    let jobs = get(manage::list).merge(post(submit::submit));
    let jobs = jobs.layer(DefaultBodyLimit::max(LONGEST_SUBMISSION));
    let package = get(packages::exists).put(packages::upload);
    Router::new()
        .route("/api/version", get(version::version))
        .route("/api/ray/version", get(version::version))
        .route("/api/jobs/", jobs.clone())
        .route("/api/jobs", jobs)
        .route("/api/jobs/{id}", get(manage::get).delete(manage::delete))
        .route("/api/jobs/{id}/stop", post(manage::stop))
        .route("/api/jobs/{id}/logs", get(log::whole))
        .route("/api/jobs/{id}/logs/tail", get(log::tail))
        .route("/api/packages/{protocol}/{name}", package)
        .route("/nodes", get(cluster::nodes))
        .route("/api/cluster_status", get(cluster::status))
        .route("/api/gcs_healthz", get(async || "success"))
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
fn may_change(caller: &Caller, job: &JobView) -> Result<(), Refusal> {
    caller.needs(Role::Submit)?;
    match is_own(caller, job) {
        true => Ok(()),
        false => Err(Refusal::forbidden(format!(
            "the job {} is of {}; {} may change only jobs of its own",
            job.id, job.user, caller.name
        ))),
    }
}

/// Whether a caller may treat a job as one's own.
fn is_own(caller: &Caller, job: &JobView) -> bool {
    caller.role == Role::Admin || caller.name == job.user
}

impl From<QueueError> for Refusal {
    fn from(error: QueueError) -> Refusal {
        let status = match &error {
            QueueError::Wrong(_) => StatusCode::BAD_REQUEST,
            QueueError::Missing(_) => StatusCode::NOT_FOUND,
            QueueError::Exists(_) | QueueError::NotEnded { .. } | QueueError::Needed { .. } => {
                StatusCode::CONFLICT
            }
            QueueError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            _ => return Refusal::internal(error),
        };
        Refusal::new(status, error.to_string())
    }
}
