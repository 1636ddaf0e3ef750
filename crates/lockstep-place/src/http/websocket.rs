//! A connection that begins as a request like all others, with the same headers, token, certificates and proxies, and
//! is then taken over: what travels after that are the frames of a websocket.

use super::HttpError;
use http::header;
use reqwest::{RequestBuilder, Response, Upgraded};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

/// A connection whose frames are those of a websocket.
pub type Websocket = WebSocketStream<Upgraded>;

/// The question whether a server changes over to a websocket.
#[derive(Debug)]
pub struct Handshake {
    key: String,
}

impl Default for Handshake {
    fn default() -> Self {
        let key = generate_key();
        Self { key }
    }
}

impl Handshake {
    /// Makes a request one for a websocket.
    pub fn ask(&self, request: RequestBuilder) -> RequestBuilder {
        request
            .header(header::CONNECTION, "Upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_VERSION, "13")
            .header(header::SEC_WEBSOCKET_KEY, &self.key)
    }

    /// Takes over the connection of an answer with the status 101.
    ///
    /// # Errors
    /// When it is no answer to this question, or the connection broke.
    pub async fn take_over(&self, answer: Response) -> Result<Websocket, HttpError> {
        let accepted = answer.headers().get(header::SEC_WEBSOCKET_ACCEPT);
        if accepted.map(http::HeaderValue::as_bytes)
            != Some(derive_accept_key(self.key.as_bytes()).as_bytes())
        {
            return Err(HttpError::NoHandshake);
        }
        let upgraded = answer.upgrade().await?;
        Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await)
    }
}
