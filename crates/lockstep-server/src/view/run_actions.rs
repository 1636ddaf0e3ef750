//! What pages do with runs, one or many at a time: remove them.

use super::actions::{ActionOutcome, act_on_each};
use super::store::no_run;
use crate::{Caller, Refusal, Role, Server};
use axum::Json;
use axum::extract::State;
use lockstep_index::keep;
use lockstep_runs::{RunDir, RunsError};
use serde::Deserialize;

/// What is to be done.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Delete,
}

/// What is to be done with which runs.
#[derive(Debug, Deserialize)]
pub(super) struct RunActionRequest {
    action: Action,
    /// Their names.
    ids: Vec<String>,
}

pub(super) async fn act(
    State(server): State<Server>,
    caller: Caller,
    Json(asked): Json<RunActionRequest>,
) -> Result<Json<Vec<ActionOutcome>>, Refusal> {
    caller.needs(Role::Submit)?;
    let act = move |name: &str| match asked.action {
        Action::Delete => remove(&server, &caller, name).map(|()| None),
    };
    act_on_each(asked.ids, act).await
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
