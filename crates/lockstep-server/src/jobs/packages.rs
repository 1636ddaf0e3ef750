//! Packages that clients send before the jobs that run in them.

use super::with_queue;
use crate::{Caller, Refusal, Role, Server};
use axum::body::{Body, BodyDataStream};
use axum::extract::{Path, State};
use futures_util::StreamExt;
use http::{HeaderMap, StatusCode, header};
use lockstep_queue::{QueueError, Upload};
use std::time::Duration;

/// The protocol that stands in a package's address.
const PROTOCOL: &str = "gcs";
/// So many bytes are written at a time.
const BLOCK: usize = 256 << 10;
/// How much of a package that is refused is read, and for how long: a client that is still sending hears no answer.
const PASSED_OVER: (u64, Duration) = (1 << 30, Duration::from_secs(60));

/// Whether a package is there.
pub(super) async fn exists(
    State(server): State<Server>,
    caller: Caller,
    Path((protocol, name)): Path<(String, String)>,
) -> Result<StatusCode, Refusal> {
    caller.needs(Role::Read)?;
    let missing = format!("Package {protocol}://{name} does not exist");
    let has = move |queue: &lockstep_queue::Queue| Ok(queue.packages().has(&caller.name, &name));
    match protocol == PROTOCOL && with_queue(&server, has).await? {
        true => Ok(StatusCode::OK),
        false => Err(Refusal::missing(missing)),
    }
}

/// Takes a package.
pub(super) async fn upload(
    State(server): State<Server>,
    caller: Caller,
    Path((protocol, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Refusal> {
    caller.needs(Role::Submit)?;
    if protocol != PROTOCOL {
        return Err(Refusal::bad(format!(
            "packages are sent to {PROTOCOL}://, not to {protocol}://"
        )));
    }
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    let mut body = body.into_data_stream();
    let begun = with_queue(&server, move |queue| {
        queue.packages().upload(&caller.name, &name, length)
    });
    let begun = begun.await;
    let received = match begun {
        Ok(upload) => receive(&server, &mut body, upload).await,
        Err(refusal) => Err(refusal),
    };
    if received.is_err() {
        let (most, limit) = PASSED_OVER;
        let _ = tokio::time::timeout(limit, pass_over(&mut body, most)).await;
    }
    received.map(|()| StatusCode::OK)
}

async fn receive(
    server: &Server,
    body: &mut BodyDataStream,
    mut upload: Upload,
) -> Result<(), Refusal> {
    let mut block = Vec::new();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|_| Refusal::bad("the package did not arrive in full"))?;
        block.extend_from_slice(&piece);
        if block.len() >= BLOCK {
            upload = write(server, upload, std::mem::take(&mut block)).await?;
        }
    }
    let upload = write(server, upload, block).await?;
    with_queue(server, move |_| upload.finish()).await
}

async fn write(server: &Server, mut upload: Upload, block: Vec<u8>) -> Result<Upload, Refusal> {
    with_queue(server, move |_| -> Result<Upload, QueueError> {
        upload.write(&block)?;
        Ok(upload)
    })
    .await
}

async fn pass_over(body: &mut BodyDataStream, most: u64) {
    let mut seen = 0;
    while let Some(Ok(piece)) = body.next().await {
        seen += piece.len() as u64;
        if seen > most {
            return;
        }
    }
}
