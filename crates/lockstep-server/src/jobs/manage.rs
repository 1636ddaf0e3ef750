//! Looking at jobs, stopping them, and having them forgotten.

use super::details::details;
use super::{may_change, with_queue};
use crate::{Caller, Refusal, Role, Server};
use axum::Json;
use axum::extract::{Path, State};
use lockstep_queue::{JobView, QueueError};
use serde_json::{Value, json};

pub(super) async fn list(
    State(server): State<Server>,
    caller: Caller,
) -> Result<Json<Value>, Refusal> {
    caller.needs(Role::Read)?;
    let jobs = with_queue(&server, |queue| Ok(queue.list())).await?;
    Ok(Json(jobs.iter().map(|job| details(job, &caller)).collect()))
}

pub(super) async fn get(
    State(server): State<Server>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    caller.needs(Role::Read)?;
    Ok(Json(details(&job(&server, id).await?, &caller)))
}

pub(super) async fn stop(
    State(server): State<Server>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    caller.needs(Role::Submit)?;
    let job = job(&server, id).await?;
    may_change(&caller, &job)?;
    let stopped = with_queue(&server, move |queue| queue.stop(&job.id)).await?;
    Ok(Json(json!({"stopped": stopped})))
}

pub(super) async fn delete(
    State(server): State<Server>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    caller.needs(Role::Submit)?;
    let job = job(&server, id).await?;
    may_change(&caller, &job)?;
    with_queue(&server, move |queue| queue.remove(&job.id)).await?;
    Ok(Json(json!({"deleted": true})))
}

/// A job, which must be there.
pub(super) async fn job(server: &Server, id: String) -> Result<JobView, Refusal> {
    with_queue(server, move |queue| {
        queue.get(&id).ok_or(QueueError::Missing(id))
    })
    .await
}
