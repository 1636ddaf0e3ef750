//! The way a request takes to a server: HTTP by reqwest, TLS by rustls with ring.
//!
//! On the way back, an answer that refuses becomes a typed [`AttemptFailure`], and silence becomes one too.

use super::failure::{AttemptFailure, ServerAnswer};
use bytes::Bytes;
use futures_util::StreamExt;
use http::{Method, StatusCode, header};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService, ReqwestConnector,
};
use std::time::Duration;

/// The most that is read of an error's body or of an answer of STS.
pub(super) const SMALL_ANSWER: usize = 64 * 1024;

/// Where clouds tell their machines who they are. It answers at once or is not there.
const METADATA_HOSTS: [&str; 3] = [
    "169.254.169.254",
    "169.254.170.2",
    "metadata.google.internal",
];

/// Makes clients whose answers are typed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connector {
    pub(super) stall: Duration,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        crate::http::use_ring();
        Ok(HttpClient::new(HttpTransport {
            inner: ReqwestConnector::default().connect(options)?,
            stall: self.stall,
        }))
    }
}

#[derive(Debug)]
struct HttpTransport {
    inner: HttpClient,
    stall: Duration,
}

#[async_trait::async_trait]
impl HttpService for HttpTransport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        // Also one that is tried again: how often that is done has an end.
        lockstep_base::progress::advance();
        let host = request.uri().host().unwrap_or_default();
        let metadata = METADATA_HOSTS.contains(&host);
        let ranged = request.headers().contains_key(header::RANGE);
        // How long a request with a body takes to send depends on its size: the deadline bounds it.
        let sends = matches!(*request.method(), Method::PUT | Method::POST);
        let answer = self.inner.execute(request);
        let answer = if sends {
            answer.await
        } else {
            match tokio::time::timeout(self.stall, answer).await {
                Ok(answer) => answer,
                Err(_) => return Err(typed(AttemptFailure::Stalled(self.stall))),
            }
        };
        match answer {
            Err(_) if metadata => Err(typed(AttemptFailure::NoMetadata)),
            Err(error) => Err(error),
            Ok(answer) if answer.status().is_success() => {
                match ranged && answer.status() != StatusCode::PARTIAL_CONTENT {
                    true => Err(typed(AttemptFailure::NoRanges)),
                    false => Ok(answer),
                }
            }
            Ok(_) if metadata => Err(typed(AttemptFailure::NoMetadata)),
            Ok(answer) => Err(typed(AttemptFailure::Answer(self.understand(answer).await))),
        }
    }
}

impl HttpTransport {
    async fn understand(&self, answer: HttpResponse) -> ServerAnswer {
        let (head, body) = answer.into_parts();
        let said = |name: &str| {
            let value = head.headers.get(name)?.to_str().ok()?;
            (!value.is_empty()).then(|| value.to_owned())
        };
        let body = small(body, self.stall).await.unwrap_or_default();
        let mut answer = ServerAnswer::of(head.status.as_u16(), &body);
        // A HEAD has no body: Azure and S3 repeat in a header what matters.
        answer.code = answer.code.or_else(|| said("x-ms-error-code"));
        if head.status.is_redirection() {
            answer.region = answer.region.or_else(|| said("x-amz-bucket-region"));
        }
        answer
    }
}

/// Reads a body that is known to be small.
pub(super) async fn small(
    body: HttpResponseBody,
    stall: Duration,
) -> Result<Vec<u8>, AttemptFailure> {
    let mut stream = body.bytes_stream();
    let mut bytes = Vec::new();
    loop {
        let next = tokio::time::timeout(stall, stream.next()).await;
        let piece: Bytes = match next.map_err(|_| AttemptFailure::Stalled(stall))? {
            None => return Ok(bytes),
            Some(piece) => piece.map_err(|error| AttemptFailure::Transport {
                cause: error.to_string(),
                passing: true,
            })?,
        };
        if bytes.len() + piece.len() > SMALL_ANSWER {
            let limit = SMALL_ANSWER / 1024;
            return Err(AttemptFailure::Other(format!(
                "the answer is longer than {limit} KiB"
            )));
        }
        bytes.extend_from_slice(&piece);
    }
}

/// Passes a failure through the store library; [`AttemptFailure::from`] finds it again.
fn typed(failure: AttemptFailure) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, failure)
}
