//! The machines that jobs run on.

use super::blocking;
use super::machine::Sample;
use crate::{Refusal, Server};
use axum::Json;
use axum::extract::State;
use serde::Serialize;

/// The machines that jobs run on.
#[derive(Debug, Serialize)]
pub(super) struct Machines {
    /// This one.
    here: Sample,
}

pub(super) async fn show(State(server): State<Server>) -> Result<Json<Machines>, Refusal> {
    blocking(move || {
        Ok(Json(Machines {
            here: Sample::take(&server),
        }))
    })
    .await
}
