//! The connection through which a head sends a log as it grows.

use crate::jobs::JobsError;
use crate::jobs::client::{Client, job_path};
use crate::jobs::request::SOON;
use futures_util::StreamExt;
use lockstep_place::http::{Handshake, HttpError, Message, Method, StatusCode, root_cause};
use std::time::Duration;
use tokio::time::timeout;

/// What is done, in errors.
const DOING: &str = "follow the log";

/// A log's connection.
pub(crate) struct Websocket {
    stream: lockstep_place::http::Websocket,
}

/// What came through it.
pub(crate) enum Received {
    /// More of the log.
    Text(String),
    /// Nothing within the time.
    Nothing,
    /// The head said that this is all.
    Closed,
    /// It broke.
    Broken(String),
}

/// Why there is no connection.
pub(crate) enum NotOpened {
    /// For a reason that has nothing to do with websockets.
    Failed(JobsError),
    /// Something answers, but does not change over to a websocket: there may be no such job, or a proxy in the way.
    NoUpgrade(String),
}

impl Websocket {
    /// Opens the connection of a job's log, which is sent from its beginning.
    pub(crate) fn open(client: &Client, id: &str) -> Result<Websocket, NotOpened> {
        let path =
            job_path(id, "/logs/tail").ok_or_else(|| NotOpened::Failed(client.no_such_job(id)))?;
        let handshake = Handshake::default();
        let request = handshake.ask(client.request(Method::GET, &path));
        let failed = |error: HttpError| match error {
            HttpError::NoHandshake => NotOpened::NoUpgrade(error.to_string()),
            error => NotOpened::Failed(client.explain(DOING, &error)),
        };
        let answer = client.http.open(request, SOON).map_err(failed)?;
        let status = answer.status();
        if status != StatusCode::SWITCHING_PROTOCOLS {
            let said = match client.http.read(answer, SOON) {
                Ok(reply) => reply.said(),
                Err(error) => error.to_string(),
            };
            return Err(NotOpened::NoUpgrade(format!("{status}: {said}")));
        }
        let stream = client.http.block(handshake.take_over(answer));
        let stream = stream.map_err(failed)?;
        Ok(Websocket { stream })
    }

    /// Waits for what comes next.
    pub(crate) fn receive(&mut self, client: &Client, wait: Duration) -> Received {
        match client
            .http
            .block(async { timeout(wait, self.stream.next()).await })
        {
            Err(_) => Received::Nothing,
            Ok(Some(Ok(Message::Text(text)))) => Received::Text(text.as_str().to_owned()),
            Ok(Some(Ok(Message::Close(_)))) => Received::Closed,
            Ok(Some(Ok(_))) => Received::Nothing,
            Ok(Some(Err(error))) => Received::Broken(root_cause(&error)),
            Ok(None) => Received::Broken("it was cut off".to_owned()),
        }
    }
}
