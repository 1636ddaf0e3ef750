//! Logs of jobs: whole, and as they grow.

use super::manage::job;
use super::websocket::{Socket, accept};
use super::with_queue;
use crate::{Caller, Refusal, Role, Server};
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use futures_util::{SinkExt, StreamExt, stream};
use http::header;
use lockstep_queue::Log;
use std::io;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// The most bytes of a log in one message; clients take 4 MiB.
const FRAME: usize = 64 << 10;
/// What is written within so long goes together.
const TOGETHER: Duration = Duration::from_millis(20);
/// How often a client is asked whether it is there, and how long it may take to read a message.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(60));

/// All that is kept of a log: `{"logs": "…"}`, of which only a piece is in memory at a time.
pub(super) async fn whole(
    State(server): State<Server>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    caller.needs(Role::Read)?;
    let log = with_queue(&server, move |queue| queue.log(&id)).await?;
    let pieces = stream::try_unfold(Reading::new(log), Reading::next);
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((kind, Body::from_stream(pieces)).into_response())
}

/// A log that is being sent as one text of JSON.
struct Reading {
    log: Log,
    text: Text,
    at: u64,
    part: Part,
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Begin,
    Middle,
    End,
}

impl Reading {
    fn new(log: Log) -> Reading {
        Reading {
            log,
            text: Text::default(),
            at: 0,
            part: Part::Begin,
        }
    }

    /// The next piece, and what comes after it; nothing at the end.
    async fn next(mut self) -> io::Result<Option<(Bytes, Reading)>> {
        match self.part {
            Part::Begin => {
                self.part = Part::Middle;
                Ok(Some((Bytes::from_static(b"{\"logs\":\""), self)))
            }
            Part::End => Ok(None),
            Part::Middle => {
                let (log, at) = (self.log.clone(), self.at);
                let (from, bytes) = blocking(move || log.read(at, FRAME)).await?;
                if bytes.is_empty() {
                    self.part = Part::End;
                    let rest = escaped(&self.text.rest()) + "\"}";
                    return Ok(Some((rest.into(), self)));
                }
                self.at = from + bytes.len() as u64;
                let text = self.text.push(&bytes);
                Ok(Some((escaped(&text).into(), self)))
            }
        }
    }
}

/// A text as it stands between the quotes of JSON.
fn escaped(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    let inner = quoted
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    inner.unwrap_or_default().to_owned()
}

/// A log from its beginning, as it grows, to the job's end.
pub(super) async fn tail(
    State(server): State<Server>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    caller.needs(Role::Read)?;
    let job = job(&server, id).await?;
    accept(request, async move |socket| {
        // Whoever listened has gone, or hears of the error by the connection's end.
        let _ = send_all(&server, job.id, socket).await;
    })
}

/// Sends a log as it grows, then that this was all.
async fn send_all(server: &Server, id: String, mut socket: Socket) -> io::Result<()> {
    let queue = server.queue().clone();
    let mut changed = queue.changed();
    let of = (queue.clone(), id.clone());
    let log = blocking(move || of.0.log(&of.1).map_err(io::Error::other)).await?;
    let mut growth = server.logs().follow(&log);
    let mut text = Text::default();
    let mut at = 0;
    loop {
        // A log is whole once its job has ended, so this is asked first.
        let of = (queue.clone(), id.clone());
        let ended =
            blocking(move || Ok(of.0.get(&of.1).is_none_or(|job| job.status.is_final()))).await?;
        loop {
            let log = log.clone();
            let (from, bytes) = blocking(move || log.read(at, FRAME)).await?;
            if bytes.is_empty() {
                break;
            }
            at = from + bytes.len() as u64;
            send(&mut socket, text.push(&bytes)).await?;
        }
        if ended {
            send(&mut socket, text.rest()).await?;
            let frame = CloseFrame {
                code: CloseCode::Normal,
                reason: "".into(),
            };
            return within(socket.close(Some(frame))).await;
        }
        tokio::select! {
            () = growth.heard() => sleep(TOGETHER).await,
            _ = changed.changed() => (),
            said = socket.next() => match said {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Ok(()),
                Some(Ok(_)) => (),
            },
            () = sleep(PATIENCE.0) => within(socket.send(Message::Ping(Default::default()))).await?,
        }
    }
}

async fn send(socket: &mut Socket, text: String) -> io::Result<()> {
    match text.is_empty() {
        true => Ok(()),
        false => within(socket.send(Message::text(text))).await,
    }
}

/// A client that does not read is let go.
async fn within<E: std::error::Error + Send + Sync + 'static>(
    sending: impl Future<Output = Result<(), E>>,
) -> io::Result<()> {
    match timeout(PATIENCE.1, sending).await {
        Ok(sent) => sent.map_err(io::Error::other),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(io::Error::other)?
}

/// Makes text of bytes that come in pieces, the same text as of all at once: what is none becomes `U+FFFD`.
#[derive(Default)]
struct Text {
    /// The beginning of a character.
    begun: Vec<u8>,
}

impl Text {
    fn push(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let mut text = String::new();
        let mut rest = all.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(good) => return text + good,
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    text += &String::from_utf8_lossy(good);
                    match error.error_len() {
                        Some(length) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            rest = &bad[length..];
                        }
                        None => {
                            self.begun = bad.to_vec();
                            return text;
                        }
                    }
                }
            }
        }
    }

    /// What was left at the end.
    fn rest(&mut self) -> String {
        let rest = std::mem::take(&mut self.begun);
        String::from_utf8_lossy(&rest).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_pieces_is_the_same_text() {
        let bytes = "aé€😀\n".as_bytes();
        let broken = [bytes, b"\xff\xe2\x82", b"x\xf0\x9f\x98"].concat();
        for size in 1..broken.len() {
            let mut text = Text::default();
            let pieces = broken.chunks(size).map(|piece| text.push(piece));
            let whole: String = pieces.collect();
            let whole = whole + &text.rest();
            assert_eq!(whole, String::from_utf8_lossy(&broken), "{size}");
        }
    }
}
