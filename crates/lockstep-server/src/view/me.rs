//! Who looks at the pages, and what that one may do. Pages show what can be done; the routes check it.

use crate::{Caller, Role, Server};
use axum::Json;
use axum::extract::State;
use serde::Serialize;

/// Who asks.
#[derive(Debug, Serialize)]
pub(super) struct Me {
    name: String,
    role: Role,
    /// Whether that is known from a token, which a browser can be made to forget.
    has_token: bool,
}

pub(super) async fn show(State(server): State<Server>, caller: Caller) -> Json<Me> {
    Json(Me {
        name: caller.name,
        role: caller.role,
        has_token: server.guard().needs_token(),
    })
}
