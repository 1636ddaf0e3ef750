//! Pictures of the hardest mistakes, as the run kept them.

use super::blocking;
use crate::file_stream::OpenFile;
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
    let file = blocking(move || {
        let file = server.view().store.run(&name)?.mistakes();
        let found = OpenFile::open(&file).map_err(Refusal::internal)?;
        let found = found.filter(|file| file.size() <= LARGEST);
        found.ok_or_else(|| Refusal::missing(format!("{name} kept no pictures of its mistakes")))
    });
    let file = file.await?;
    let headers = [
        (header::CONTENT_TYPE, "image/png".to_owned()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::CACHE_CONTROL, "no-cache".to_owned()),
        (header::CONTENT_LENGTH, file.size().to_string()),
    ];
    Ok((headers, file.stream()))
}
