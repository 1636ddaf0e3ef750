//! What pages do with runs, one or many at a time: remove them.

use super::blocking;
use super::store::no_run;
use crate::{Caller, Refusal, Role, Server};
use axum::Json;
use axum::extract::State;
use lockstep_index::keep;
use lockstep_runs::{RunDir, RunsError};
use serde::{Deserialize, Serialize};

/// The most runs at once.
const MOST: usize = 1000;

/// What is to be done.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Delete,
}

/// What is to be done with which runs.
#[derive(Debug, Deserialize)]
pub(super) struct ActionRequest {
    action: Action,
    names: Vec<String>,
}

/// What came of one.
#[derive(Debug, Serialize)]
pub(super) struct ActionOutcome {
    name: String,
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
    if asked.names.len() > MOST {
        return Err(Refusal::bad(format!("names: at most {MOST} at once")));
    }
    blocking(move || {
        let done = asked.names.into_iter().map(|name| {
            let done = match asked.action {
                Action::Delete => remove(&server, &caller, &name),
            };
            let error = done.err().map(|refusal| refusal.message);
            ActionOutcome { name, error }
        });
        Ok(Json(done.collect()))
    })
    .await
}

/// Whether the caller may change this run: it is the caller's own, or the caller may do everything.
pub(super) fn may_change(server: &Server, caller: &Caller, run: &RunDir) -> Result<(), Refusal> {
    caller.needs(Role::Submit)?;
    crate::mlflow::may_annotate(server, caller, run)
}

fn remove(server: &Server, caller: &Caller, name: &str) -> Result<(), Refusal> {
    let store = &server.view().store;
    let run = store.run(name)?;
    may_change(server, caller, &run)?;
    let found = store.read(|index| index.details(name))?;
    let found = found.ok_or_else(|| no_run(name))?;
    let (_, kept) = keep::removable(vec![found.run], store.place()).map_err(Refusal::internal)?;
    if let Some(why) = kept.first() {
        return Err(Refusal::bad(why));
    }
    run.remove(&mut |_| ()).map_err(|error| match error {
        RunsError::InUse { .. } => Refusal::bad(error.to_string()),
        error => Refusal::internal(error),
    })?;
    store.read(|index| index.forget(&[name]))
}
