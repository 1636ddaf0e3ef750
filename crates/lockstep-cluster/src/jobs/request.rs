//! One request to a head: sent, answered within its time, and told in words when it fails.

use crate::jobs::{Address, JobsError};
use http::{HeaderMap, StatusCode};
use reqwest::{Client as Http, RequestBuilder};
use std::error::Error;
use std::time::Duration;

/// How long a connection may take to be there.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an answer to something small may take.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// How long a package or a whole log may take.
pub(crate) const LONG: Duration = Duration::from_secs(600);
/// After so long without a sign of life of the other side, a connection counts as broken.
const SILENCE: Duration = Duration::from_secs(15);
/// How much of an answer is read: more than any log that is worth reading at once.
const MOST: usize = 512 << 20;
/// How much of the head's words is told.
const TOLD: usize = 500;

/// What a head answered.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// A client whose connections notice that the other side is gone. Redirections are told, not followed: behind
/// one, a package or a token would go elsewhere than it was sent.
pub(crate) fn http(headers: HeaderMap) -> Result<Http, JobsError> {
    // An error says that the process has chosen a provider before, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Http::builder()
        .user_agent(concat!("lockstep/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .redirect(reqwest::redirect::Policy::none())
        .http1_only()
        .pool_max_idle_per_host(0)
        .connect_timeout(CONNECT)
        .tcp_keepalive(SILENCE / 3)
        .tcp_keepalive_interval(SILENCE / 3)
        .tcp_keepalive_retries(2)
        .build()
        .map_err(|error| JobsError::Setup(root_cause(&error)))
}

/// Sends a request and reads the whole answer.
pub(crate) async fn answer(
    address: &Address,
    doing: &str,
    request: RequestBuilder,
    limit: Duration,
) -> Result<Reply, JobsError> {
    let read = async {
        let mut answer = request.send().await?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await? {
            if body.len() + piece.len() > MOST {
                return Ok(Err(JobsError::Answer {
                    doing: doing.to_owned(),
                    address: address.to_string(),
                    why: format!("it is longer than {} MiB", MOST >> 20),
                }));
            }
            body.extend_from_slice(&piece);
        }
        Ok(Ok(Reply {
            status,
            headers,
            body,
        }))
    };
    match tokio::time::timeout(limit, read).await {
        Ok(Ok(reply)) => reply,
        Ok(Err(error)) => Err(explain(address, doing, &error)),
        Err(_) => Err(JobsError::Broken {
            doing: doing.to_owned(),
            address: address.to_string(),
            cause: format!("no answer within {} s", limit.as_secs()),
        }),
    }
}

/// A request that found no answer, in words.
pub(crate) fn explain(address: &Address, doing: &str, error: &reqwest::Error) -> JobsError {
    let cause = root_cause(error);
    let address = address.to_string();
    match tls_error(error) {
        Some(rustls::Error::InvalidCertificate(_)) => {
            return JobsError::Certificate { address, cause };
        }
        Some(rustls::Error::InvalidMessage(_)) => return JobsError::NoTls { address, cause },
        _ => (),
    }
    if is_about_names(error) {
        JobsError::UnknownHost { address, cause }
    } else if error.is_connect() {
        JobsError::NoHead { address, cause }
    } else {
        JobsError::Broken {
            doing: doing.to_owned(),
            address,
            cause,
        }
    }
}

/// What went wrong between the two ends of an encrypted connection. Errors of input and output carry it, one inside
/// the other, and leave it out of the chain of their causes.
fn tls_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = match error.downcast_ref::<std::io::Error>() {
            Some(carrier) => carrier
                .get_ref()
                .map(|inner| inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

/// Whether the host's name could not be turned into an address.
fn is_about_names(error: &dyn Error) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.to_string().contains("dns error") {
            return true;
        }
        next = error.source();
    }
    false
}

/// The innermost reason, which is the one that people know: `Connection refused`.
pub(crate) fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

impl Reply {
    /// What the head said, in short and without control characters. Of a traceback, its last line.
    pub(crate) fn said(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let text = text.trim();
        let told = match text.starts_with("Traceback") {
            true => text.lines().next_back().unwrap_or_default(),
            false => text,
        };
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let told: String = told.chars().take(TOLD).map(plain).collect();
        match told.is_empty() {
            true => "nothing".to_owned(),
            false => told,
        }
    }

    /// What it means that this is not the answer that was hoped for.
    pub(crate) fn refused(&self, address: &Address, doing: &str) -> JobsError {
        JobsError::Refused {
            doing: doing.to_owned(),
            address: address.to_string(),
            status: self.status.as_u16(),
            said: self.said(),
        }
    }

    /// The answer's JSON.
    pub(crate) fn json<T: serde::de::DeserializeOwned>(
        &self,
        address: &Address,
        doing: &str,
    ) -> Result<T, JobsError> {
        serde_json::from_slice(&self.body).map_err(|error| JobsError::Answer {
            doing: doing.to_owned(),
            address: address.to_string(),
            why: error.to_string(),
        })
    }
}
