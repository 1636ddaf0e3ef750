//! What a run's weights are worth: `evaluation.json` as it is.

use super::blocking;
use crate::file_stream::OpenFile;
use crate::{Refusal, Server};
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use http::header;

pub(super) async fn show(
    State(server): State<Server>,
    Path(name): Path<String>,
) -> Result<impl IntoResponse, Refusal> {
    let file = blocking(move || {
        let run = server.view().store.run(&name)?;
        let found = OpenFile::open(&run.evaluation()).map_err(Refusal::internal)?;
        found.ok_or_else(|| Refusal::missing(format!("{name} was not evaluated")))
    });
    let file = file.await?;
    let headers = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::CONTENT_LENGTH, file.size().to_string()),
    ];
    Ok((headers, file.stream()))
}
