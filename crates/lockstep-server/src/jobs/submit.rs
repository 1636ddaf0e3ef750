//! Submitting a job.

use super::submission::read;
use super::with_queue;
use crate::guard::AuditAction;
use crate::{Caller, Refusal, Role, Server};
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use bytes::Bytes;
use serde_json::json;

pub(super) async fn submit(
    State(server): State<Server>,
    caller: Caller,
    body: Result<Bytes, BytesRejection>,
) -> Result<impl IntoResponse, Refusal> {
    caller.needs(Role::Submit)?;
    let body = body.map_err(|error| Refusal::new(error.status(), error.body_text()))?;
    let mut submission = read(&body).map_err(Refusal::bad)?;
    submission.highest_priority = caller.highest_priority();
    submission.user = caller.name;
    let job = with_queue(&server, move |queue| queue.submit(submission)).await?;
    // These keys and no others: Ray's client knows no more.
    let deed = Extension(AuditAction(format!("submitted the job {}", job.id)));
    let answer = Json(json!({"job_id": job.id, "submission_id": job.id}));
    Ok((deed, answer))
}
