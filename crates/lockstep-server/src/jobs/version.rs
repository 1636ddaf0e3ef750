//! Which version of Ray this is like.

use axum::Json;
use serde_json::{Value, json};

/// The version of Ray whose client and server the words are held against. Clients ask for at least 2.8.
pub(super) const RAY: &str = "2.60.0";
/// The version of the interface.
const INTERFACE: &str = "4";

pub(super) async fn version() -> Json<Value> {
    Json(json!({
        "version": INTERFACE,
        "ray_version": RAY,
        "ray_commit": "",
        "session_name": "lockstep",
        "lockstep_version": env!("CARGO_PKG_VERSION"),
    }))
}
