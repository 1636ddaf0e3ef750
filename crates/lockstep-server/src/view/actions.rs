//! What pages do with jobs, one or many at a time: stop, submit once more, forget.

use super::blocking;
use super::jobs::no_job;
use crate::jobs::may_change;
use crate::{Caller, Refusal, Role, Server};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};

/// The most at once.
const MOST: usize = 1000;

/// What is to be done.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Stop,
    Resubmit,
    Delete,
}

/// What is to be done with which jobs.
#[derive(Debug, Deserialize)]
pub(super) struct ActionRequest {
    action: Action,
    ids: Vec<String>,
}

/// What came of one job, or of one run.
#[derive(Debug, Serialize)]
pub(super) struct ActionOutcome {
    id: String,
    /// The id of the new job, of one that was submitted once more.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_id: Option<String>,
    /// Why nothing came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) async fn act(
    State(server): State<Server>,
    caller: Caller,
    Json(asked): Json<ActionRequest>,
) -> Result<Json<Vec<ActionOutcome>>, Refusal> {
    caller.needs(Role::Submit)?;
    let act = move |id: &str| one(&server, &caller, asked.action, id);
    act_on_each(asked.ids, act).await
}

/// Does something with each, and says what came of it: the id of something new, or why nothing did.
pub(super) async fn act_on_each(
    ids: Vec<String>,
    act: impl Fn(&str) -> Result<Option<String>, Refusal> + Send + 'static,
) -> Result<Json<Vec<ActionOutcome>>, Refusal> {
    if ids.len() > MOST {
        return Err(Refusal::bad(format!("ids: at most {MOST} at once")));
    }
    blocking(move || {
        let done = ids.into_iter().map(|id| {
            let (new_id, error) = match act(&id) {
                Ok(new_id) => (new_id, None),
                Err(refusal) => (None, Some(refusal.message)),
            };
            ActionOutcome { id, new_id, error }
        });
        Ok(Json(done.collect()))
    })
    .await
}

fn one(
    server: &Server,
    caller: &Caller,
    action: Action,
    id: &str,
) -> Result<Option<String>, Refusal> {
    let queue = server.queue();
    let job = queue.get(id).ok_or_else(|| no_job(id))?;
    // To submit a job once more is to read its variables, which may be secrets.
    may_change(caller, &job)?;
    let wrong = |error: lockstep_queue::QueueError| Refusal::bad(error.to_string());
    match action {
        Action::Stop => queue.stop(id).map(|_| None).map_err(wrong),
        Action::Delete => queue.remove(id).map(|()| None).map_err(wrong),
        Action::Resubmit => {
            let new = queue.resubmit(id, &caller.name, caller.highest_priority());
            let new = new.map_err(wrong)?;
            Ok(Some(new.id))
        }
    }
}
