//! Requests to servers, for callers that block.
//!
//! A [`Client`] has a runtime of its own, so it is called from plain threads. What it promises:
//!
//! - **It ends.** Every request has a deadline, and no more of an answer is read than its caller allows.
//! - **It goes where it was sent.** Redirections are told, not followed: behind one, what a request carries would go
//!   elsewhere than it was sent.
//! - **It says what happened.** An [`HttpError`] tells apart what a caller may want to say in its own words. It never
//!   holds an address or anything that was sent, which may be secrets.

mod client;
mod error;
mod reply;
mod websocket;

pub use client::{Client, Roots, Settings};
pub use error::{HttpError, root_cause};
pub use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
pub use reply::{Reply, in_short};
pub use reqwest::{RequestBuilder, Response};
pub use tokio_tungstenite::tungstenite::Message;
pub use websocket::{Handshake, Websocket};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Makes ring the provider of cryptography for TLS in this process, unless another one was chosen before, which serves
/// as well.
pub fn use_ring() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// A request with who asks: a token, or a user with a password where there is no token.
pub fn with_login(
    request: RequestBuilder,
    token: Option<&str>,
    user: Option<&(String, String)>,
) -> RequestBuilder {
    match (token, user) {
        (Some(token), _) => request.bearer_auth(token),
        (None, Some((user, password))) => request.basic_auth(user, Some(password)),
        (None, None) => request,
    }
}

/// A part of a path, with everything escaped that could mean something else.
pub fn encode_part(part: &str) -> String {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'~');
    utf8_percent_encode(part, ESCAPED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_path_stays_one() {
        assert_eq!(encode_part("worker-0.log"), "worker-0.log");
        assert_eq!(encode_part("a b/?ü"), "a%20b%2F%3F%C3%BC");
    }
}
