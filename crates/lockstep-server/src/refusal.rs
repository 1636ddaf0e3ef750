//! An answer that says no.

use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};

/// A status and a sentence. It is plain text, as Ray's client expects it; the other interfaces have their own shapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: StatusCode,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl Refusal {
    /// One with this status.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }

    /// 400: the request is wrong.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 401: nobody said who asks.
    pub fn unauthorised(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message)
    }

    /// 403: the one who asks may not.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    /// 404: there is no such thing.
    pub fn missing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// 500: it is the server's fault. The cause goes to the server's own log, not to the client.
    pub fn internal(error: impl std::fmt::Display) -> Self {
        eprintln!("error: {error}");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the server could not do this; its log says why",
        )
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
        (self.status, kind, self.message).into_response()
    }
}
