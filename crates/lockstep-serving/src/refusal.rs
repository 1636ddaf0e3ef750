//! An answer that says no, in the shape that the protocol has for it.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

/// A status and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: StatusCode,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl Refusal {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { status, message }
    }

    /// 400: the request is wrong.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 404: there is no such model.
    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// 413: there is too much of it.
    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    /// 415: it is of a type that nobody here reads.
    pub(crate) fn type_of(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
    }

    /// 503: too many are waiting.
    pub(crate) fn busy() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many requests are waiting for this model; try again",
        )
    }

    /// 504: it took too long.
    pub(crate) fn late() -> Self {
        Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            "the model has not answered within the time that a request may take",
        )
    }

    /// 500: it is the server's fault. The cause goes to the server's own log, not to the client.
    pub(crate) fn internal(error: impl std::fmt::Display) -> Self {
        eprintln!("error: {error}");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the model could not say this; the server's log says why",
        )
    }

    /// As MLflow's scoring server says it.
    pub(crate) fn for_mlflow(self) -> Response {
        let code = match self.status {
            StatusCode::BAD_REQUEST
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE => "BAD_REQUEST",
            StatusCode::NOT_FOUND => "RESOURCE_DOES_NOT_EXIST",
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
                "TEMPORARILY_UNAVAILABLE"
            }
            _ => "INTERNAL_ERROR",
        };
        self.with(&json!({ "error_code": code, "message": self.message }))
    }

    /// As the Open Inference Protocol says it.
    pub(crate) fn for_open_inference(self) -> Response {
        self.with(&json!({ "error": self.message }))
    }

    fn with(&self, body: &serde_json::Value) -> Response {
        let kind = [(header::CONTENT_TYPE, "application/json")];
        let mut answer = (self.status, kind, body.to_string()).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            let soon = HeaderValue::from_static("1");
            answer.headers_mut().insert(header::RETRY_AFTER, soon);
        }
        answer
    }
}
