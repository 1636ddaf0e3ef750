//! What a run's weights are worth: `evaluation.json` as it is.

use super::blocking;
use crate::{Refusal, Server};
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use http::header;

pub(super) async fn show(
    State(server): State<Server>,
    Path(name): Path<String>,
) -> Result<impl IntoResponse, Refusal> {
    let bytes = blocking(move || {
        let run = server.view().store.run(&name)?;
        let found = run.evaluation().read_versioned();
        let found = found.map_err(Refusal::internal)?;
        let missing = || Refusal::missing(format!("{name} was not evaluated"));
        found.map(|(bytes, _)| bytes).ok_or_else(missing)
    });
    Ok(([(header::CONTENT_TYPE, "application/json")], bytes.await?))
}
