//! How large a request may be, and how long it may take.
//!
//! A body must come at [`PACE`] at least, after [`PATIENCE`]; so a client that sends a byte now and then is not waited
//! for, and a large upload over a slow line is. An answer must begin within [`PATIENCE`] of the body's end.

use super::held::{Held, REQUESTS, SMALL};
use crate::Refusal;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, StatusCode, header};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long a client may take before its pace counts, and a route to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes a second that a body must come at.
const PACE: u64 = 4 << 10;
/// How long it may take for a small body.
const SMALL_PATIENCE: Duration = Duration::from_secs(10);

/// What a body did wrong, seen by the guard when the route is done with it. While there is a clone of it, the body counts
/// as held in memory.
#[derive(Debug, Clone)]
pub(crate) struct Watch(Arc<(AtomicU8, Held)>);

const TOO_LARGE: u8 = 1;
const TOO_SLOW: u8 = 2;
const TOO_MANY: u8 = 3;

impl Default for Watch {
    fn default() -> Watch {
        Watch(Arc::new((AtomicU8::new(0), REQUESTS.hold())))
    }
}

impl Watch {
    /// What the client should hear instead of the route's own words about a body that broke off.
    pub(crate) fn refusal(&self, limit: u64) -> Option<Refusal> {
        match self.0.0.load(Ordering::Relaxed) {
            TOO_LARGE => Some(too_large(limit)),
            TOO_SLOW => Some(Refusal::new(
                StatusCode::REQUEST_TIMEOUT,
                "the request came too slowly",
            )),
            TOO_MANY => Some(busy()),
            _ => None,
        }
    }
}

/// Whether a body goes to a file while it comes, and is never whole in memory.
fn is_upload(path: &str) -> bool {
    path.starts_with("/api/packages/") || path.starts_with("/api/2.0/mlflow-artifacts/")
}

/// There is too much at this moment.
pub(crate) fn busy() -> Refusal {
    Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "too much is being sent at this moment; try again",
    )
}

/// In Ray's words.
fn too_large(limit: u64) -> Refusal {
    Refusal::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("Maximum request body size {limit} exceeded."),
    )
}

/// Refuses a body that says itself that it is too large.
pub(crate) fn check(headers: &HeaderMap, limit: u64) -> Result<(), Refusal> {
    match length(headers) {
        Some(length) if length > limit => Err(too_large(limit)),
        _ => Ok(()),
    }
}

fn length(headers: &HeaderMap) -> Option<u64> {
    let length = headers.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}

/// How long the route may take until it answers: its body comes in that time too.
pub(crate) fn time(headers: &HeaderMap, limit: u64) -> Duration {
    let bytes = match headers.contains_key(header::TRANSFER_ENCODING) {
        true => limit,
        false => length(headers).unwrap_or(0).min(limit),
    };
    2 * PATIENCE + Duration::from_secs(bytes / PACE)
}

/// The same request, whose body breaks off when it becomes too large or too slow.
pub(crate) fn bound(request: Request, limit: u64, watch: Watch) -> Request {
    struct Reading {
        body: axum::body::BodyDataStream,
        began: Instant,
        received: u64,
        limit: u64,
        watch: Watch,
        in_memory: bool,
    }
    let in_memory = !is_upload(request.uri().path());
    let ended = length(request.headers()) == Some(0)
        || (length(request.headers()).is_none()
            && !request.headers().contains_key(header::TRANSFER_ENCODING));
    if ended {
        return request;
    }
    request.map(|body| {
        let reading = Reading {
            body: body.into_data_stream(),
            began: Instant::now(),
            received: 0,
            limit,
            watch,
            in_memory,
        };
        let pieces = stream::try_unfold(reading, async |mut reading| {
            let patience = if reading.limit <= SMALL {
                SMALL_PATIENCE
            } else {
                PATIENCE
            };
            let may_take = patience + Duration::from_secs(reading.received / PACE);
            let until = reading.began + may_take;
            let fail = |watch: &Watch, what, why: &str| {
                watch.0.0.store(what, Ordering::Relaxed);
                axum::Error::new(std::io::Error::other(why.to_owned()))
            };
            let Ok(piece) = timeout_at(until, reading.body.next()).await else {
                return Err(fail(&reading.watch, TOO_SLOW, "the body came too slowly"));
            };
            let Some(piece) = piece.transpose()? else {
                return Ok(None);
            };
            reading.received += piece.len() as u64;
            if reading.received > reading.limit {
                return Err(fail(&reading.watch, TOO_LARGE, "the body is too large"));
            }
            let counts = reading.in_memory && reading.received > SMALL;
            if counts && !reading.watch.0.1.take(piece.len() as u64) {
                return Err(fail(
                    &reading.watch,
                    TOO_MANY,
                    "there is no room for the body",
                ));
            }
            Ok::<_, axum::Error>(Some((piece, reading)))
        });
        Body::from_stream(pieces.map(|piece: Result<Bytes, axum::Error>| piece))
    })
}
