//! Pictures that a model took for something else, as the run kept them.

use super::blocking;
use crate::{Refusal, Server};
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use http::header;

/// The largest picture that is sent.
const LARGEST: u64 = 16 << 20;

pub(super) async fn show(
    State(server): State<Server>,
    Path((name, row)): Path<(String, u64)>,
) -> Result<impl IntoResponse, Refusal> {
    let bytes = blocking(move || {
        let run = server.view().store.run(&name)?;
        let file = run.file(&format!("mistakes/{row}.png"));
        let missing = || Refusal::missing(format!("{name} kept no picture of row {row}"));
        let entry = file.entry().map_err(Refusal::internal)?;
        entry
            .filter(|entry| entry.size <= LARGEST)
            .ok_or_else(missing)?;
        file.read().map_err(Refusal::internal)
    });
    let headers = [
        (header::CONTENT_TYPE, "image/png"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "private, max-age=3600"),
    ];
    Ok((headers, bytes.await?))
}
