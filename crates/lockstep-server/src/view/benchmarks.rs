//! Comparisons: folders of the store that have a `comparison.json`.

use super::blocking;
use crate::{Refusal, Server};
use axum::Json;
use axum::extract::{Path, State};
use lockstep_place::Place;
use serde::Serialize;
use serde_json::Value;

/// What a comparison is in.
const FILE: &str = "comparison.json";
/// The largest that is read.
const LARGEST: u64 = 16 << 20;

/// A comparison.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    /// The name of its folder.
    name: String,
    /// The file as it is.
    comparison: Value,
}

pub(super) async fn list(State(server): State<Server>) -> Result<Json<Vec<Comparison>>, Refusal> {
    blocking(move || all(&server).map(Json)).await
}

pub(super) async fn show(
    State(server): State<Server>,
    Path(name): Path<String>,
) -> Result<Json<Comparison>, Refusal> {
    blocking(move || {
        let found = all(&server)?.into_iter().find(|one| one.name == name);
        let missing = || Refusal::missing(format!("there is no comparison {name:?}"));
        found.map(Json).ok_or_else(missing)
    })
    .await
}

/// All comparisons, the newest first: their names end with the time.
fn all(server: &Server) -> Result<Vec<Comparison>, Refusal> {
    let store = server.view().store.place();
    let folders = store.folders().map_err(Refusal::internal)?;
    let mut found: Vec<Comparison> = folders
        .into_iter()
        .filter_map(|name| comparison(store, name))
        .collect();
    found.reverse();
    Ok(found)
}

/// The comparison of a folder; nothing where there is none, or one that cannot be understood.
fn comparison(store: &Place, name: String) -> Option<Comparison> {
    let file = store.join(&name).ok()?.join(FILE).ok()?;
    let entry = file.entry().ok()??;
    if entry.size > LARGEST {
        return None;
    }
    let comparison = serde_json::from_slice(&file.read().ok()?).ok()?;
    Some(Comparison { name, comparison })
}
