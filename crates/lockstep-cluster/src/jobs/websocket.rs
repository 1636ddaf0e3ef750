//! The connection through which a head sends a log as it grows.
//!
//! It begins as a request like all others, with the same headers, token, certificates and proxies, and is then
//! taken over: what travels after that are the frames of a websocket.

use crate::jobs::JobsError;
use crate::jobs::client::{Client, job_path};
use crate::jobs::request::{self, Reply, SOON};
use futures_util::StreamExt;
use http::{Method, StatusCode, header};
use reqwest::Upgraded;
use std::time::Duration;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

/// What is done, in errors.
const DOING: &str = "follow the log";

/// A log's connection.
pub(crate) struct Websocket {
    stream: WebSocketStream<Upgraded>,
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
        let key = generate_key();
        let request = client
            .request(Method::GET, &path)
            .header(header::CONNECTION, "Upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_VERSION, "13")
            .header(header::SEC_WEBSOCKET_KEY, &key);
        let opened = client.block(async { timeout(SOON, open(client, request, &key)).await });
        opened.unwrap_or_else(|_| {
            Err(NotOpened::Failed(JobsError::Broken {
                doing: DOING.to_owned(),
                address: client.address.to_string(),
                cause: format!("no answer within {} s", SOON.as_secs()),
            }))
        })
    }

    /// Waits for what comes next.
    pub(crate) fn receive(&mut self, client: &Client, wait: Duration) -> Received {
        match client.block(async { timeout(wait, self.stream.next()).await }) {
            Err(_) => Received::Nothing,
            Ok(Some(Ok(Message::Text(text)))) => Received::Text(text.as_str().to_owned()),
            Ok(Some(Ok(Message::Close(_)))) => Received::Closed,
            Ok(Some(Ok(_))) => Received::Nothing,
            Ok(Some(Err(error))) => Received::Broken(request::root_cause(&error)),
            Ok(None) => Received::Broken("it was cut off".to_owned()),
        }
    }
}

async fn open(
    client: &Client,
    request: reqwest::RequestBuilder,
    key: &str,
) -> Result<Websocket, NotOpened> {
    let failed =
        |error: &reqwest::Error| NotOpened::Failed(request::explain(&client.address, DOING, error));
    let answer = request.send().await.map_err(|error| failed(&error))?;
    let (status, headers) = (answer.status(), answer.headers().clone());
    if status != StatusCode::SWITCHING_PROTOCOLS {
        let body = answer.bytes().await.unwrap_or_default().to_vec();
        let reply = Reply {
            status,
            headers,
            body,
        };
        return Err(NotOpened::NoUpgrade(format!("{status}: {}", reply.said())));
    }
    let accepted = headers.get(header::SEC_WEBSOCKET_ACCEPT);
    if accepted
        .is_none_or(|accepted| accepted.as_bytes() != derive_accept_key(key.as_bytes()).as_bytes())
    {
        let why = "the answer does not belong to the question".to_owned();
        return Err(NotOpened::NoUpgrade(why));
    }
    let upgraded = answer.upgrade().await.map_err(|error| failed(&error))?;
    let stream = WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await;
    Ok(Websocket { stream })
}
