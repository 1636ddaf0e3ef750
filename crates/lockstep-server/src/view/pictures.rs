//! Pictures of the hardest mistakes, as the run kept them.

use super::blocking;
use crate::{Refusal, Server};
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use http::header;

/// The largest file that is sent.
const LARGEST: u64 = 64 << 20;

pub(super) async fn show(
    State(server): State<Server>,
    Path(name): Path<String>,
) -> Result<impl IntoResponse, Refusal> {
    let bytes = blocking(move || {
        let file = server.view().store.run(&name)?.mistakes();
        let missing = || Refusal::missing(format!("{name} kept no pictures of its mistakes"));
        let entry = file.entry().map_err(Refusal::internal)?;
        let entry = entry.filter(|entry| entry.size <= LARGEST);
        entry.ok_or_else(missing)?;
        file.read().map_err(Refusal::internal)
    });
    let headers = [
        (header::CONTENT_TYPE, "image/png"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    Ok((headers, bytes.await?))
}
