//! Models, their versions and aliases: shown, made from runs, and pointed at.
//!
//! Who may do so is the same as for MLflow's clients.

use super::blocking;
use super::run_actions::may_change;
use super::store::no_run;
use crate::mlflow::may_change_model;
use crate::{Caller, Refusal, Role, Server};
use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use lockstep_index::State as RunState;
use lockstep_runs::registry::{Details, Model, Registry, RegistryError, Version};
use serde::Deserialize;

/// How long a note may be.
const LONGEST: usize = 4096;

/// A run whose model becomes a version.
#[derive(Debug, Deserialize)]
pub(super) struct RegisterRequest {
    /// The model's name.
    name: String,
    /// The run's.
    run: String,
    #[serde(default)]
    note: String,
}

/// Where an alias is to point.
#[derive(Debug, Deserialize)]
pub(super) struct AliasRequest {
    alias: String,
    /// A version; without one the alias is taken away.
    version: Option<u64>,
}

pub(super) async fn list(State(server): State<Server>) -> Result<Json<Vec<Model>>, Refusal> {
    blocking(move || {
        let models = registry(&server)?.models();
        models.map(Json).map_err(Refusal::internal)
    })
    .await
}

pub(super) async fn show(
    State(server): State<Server>,
    Path(name): Path<String>,
) -> Result<Json<Model>, Refusal> {
    blocking(move || {
        // Only what is listed is opened: a name is never a path.
        let models = registry(&server)?.models().map_err(Refusal::internal)?;
        let found = models.into_iter().find(|model| model.name == name);
        let missing = || Refusal::missing(format!("there is no model {name:?}"));
        found.map(Json).ok_or_else(missing)
    })
    .await
}

pub(super) async fn register(
    State(server): State<Server>,
    caller: Caller,
    Json(asked): Json<RegisterRequest>,
) -> Result<Json<Version>, Refusal> {
    caller.needs(Role::Submit)?;
    if asked.note.len() > LONGEST {
        let most = format!("note: at most {LONGEST} bytes");
        return Err(Refusal::bad(most));
    }
    blocking(move || {
        let store = &server.view().store;
        let run = store.run(&asked.run)?;
        may_change(&server, &caller, &run)?;
        let details = store.read(|index| index.details(&asked.run))?;
        let details = details.ok_or_else(|| no_run(&asked.run))?;
        if details.run.state == RunState::Running {
            let name = &asked.run;
            let early = format!("{name} goes on; what it learns is not done yet");
            return Err(Refusal::bad(early));
        }
        let lineage = details.lineage(&run).map_err(Refusal::internal)?;
        let for_mlflow = (server.settings().for_mlflow)(&run).map_err(Refusal::internal)?;
        let registry = registry(&server)?;
        let all = registry.all().map_err(refusal)?;
        let known = all.iter().find(|model| model.name == asked.name);
        if let Some(model) = known {
            may_change_model(&caller, model)?;
        }
        let made = registry.register(&asked.name, &run, lineage, &asked.note, for_mlflow);
        let made = made.map_err(refusal)?;
        if known.is_none() {
            // Killed before this, it is nobody's, and for admins.
            let owner = |details: &mut Details| {
                details.owner.get_or_insert(caller.name.clone());
            };
            registry.describe(&asked.name, owner).map_err(refusal)?;
        }
        Ok(Json(made))
    })
    .await
}

pub(super) async fn point(
    State(server): State<Server>,
    caller: Caller,
    Path(name): Path<String>,
    Json(asked): Json<AliasRequest>,
) -> Result<Json<Model>, Refusal> {
    caller.needs(Role::Submit)?;
    blocking(move || {
        let registry = registry(&server)?;
        let model = registry.model(&name).map_err(refusal)?;
        may_change_model(&caller, &model)?;
        let pointed = registry.point(&name, &asked.alias, asked.version);
        pointed.map_err(refusal)?;
        registry.model(&name).map(Json).map_err(refusal)
    })
    .await
}

fn registry(server: &Server) -> Result<Registry, Refusal> {
    let wrong = |error: RegistryError| Refusal::internal(error);
    Registry::of(server.view().store.place()).map_err(wrong)
}

fn refusal(error: RegistryError) -> Refusal {
    let status = match error {
        RegistryError::Reference { .. } | RegistryError::NoModelInRun { .. } => {
            StatusCode::BAD_REQUEST
        }
        RegistryError::NoModel { .. } | RegistryError::NoVersion { .. } => StatusCode::NOT_FOUND,
        error => return Refusal::internal(error),
    };
    Refusal::new(status, error.to_string())
}
