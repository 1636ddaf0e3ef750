//! Models, their versions and aliases.

use super::blocking;
use crate::{Refusal, Server};
use axum::Json;
use axum::extract::{Path, State};
use lockstep_runs::registry::{Model, Registry, RegistryError};

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

fn registry(server: &Server) -> Result<Registry, Refusal> {
    let wrong = |error: RegistryError| Refusal::internal(error);
    Registry::of(server.view().store.place()).map_err(wrong)
}
