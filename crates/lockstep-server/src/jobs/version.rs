//! Which version of Ray this is like.

use crate::Server;
use axum::Json;
use axum::extract::State;
use lockstep_runs::make_store_id;
use serde_json::{Value, json};

/// The version of Ray whose client and server the words are held against. Clients ask for at least 2.8.
pub(super) const RAY: &str = "2.60.0";
/// The version of the interface.
const INTERFACE: &str = "4";

pub(super) async fn version(State(server): State<Server>) -> Json<Value> {
    let store = server.settings().store.clone();
    // One that cannot be written, or is not there yet, has none.
    let asked = store.clone();
    let id = tokio::task::spawn_blocking(move || make_store_id(&asked).ok()).await;
    let store = match store.local().map(std::path::absolute) {
        Some(Ok(path)) => path.display().to_string(),
        _ => store.to_string(),
    };
    Json(json!({
        "version": INTERFACE,
        "ray_version": RAY,
        "ray_commit": "",
        "session_name": "lockstep",
        "lockstep_version": env!("CARGO_PKG_VERSION"),
        "lockstep_store": store,
        "lockstep_store_id": id.ok().flatten(),
    }))
}
