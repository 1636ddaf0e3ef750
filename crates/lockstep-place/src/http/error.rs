//! Why a request found no answer.

use std::error::Error;
use std::time::Duration;

/// Why a request found no answer. Its words are the cause alone: whom it was sent to, and what for, its sender knows.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The certificates that are to be trusted cannot be used.
    #[error("{0}")]
    Roots(String),
    /// There can be no client.
    #[error("{0}")]
    Setup(String),
    /// There was no answer in time.
    #[error("no answer within {:.0} s", .0.as_secs_f64())]
    Late(Duration),
    /// There is more of an answer than was to be read.
    #[error("it is longer than {} MiB", .0 >> 20)]
    TooLong(usize),
    /// The certificate of what answers is not to be trusted.
    #[error("{0}")]
    Certificate(String),
    /// What answers does not speak TLS.
    #[error("{0}")]
    NoTls(String),
    /// The host's name could not be turned into an address.
    #[error("{0}")]
    UnknownHost(String),
    /// There is no connection.
    #[error("{0}")]
    Unreachable(String),
    /// The connection broke.
    #[error("{0}")]
    Broken(String),
    /// The answer to a [`Handshake`](super::Handshake) is none.
    #[error("the answer does not belong to the question")]
    NoHandshake,
}

impl From<reqwest::Error> for HttpError {
    fn from(error: reqwest::Error) -> Self {
        let cause = root_cause(&error);
        match chain(&error).find_map(|error| error.downcast_ref()) {
            Some(rustls::Error::InvalidCertificate(_)) => Self::Certificate(cause),
            Some(rustls::Error::InvalidMessage(_)) => Self::NoTls(cause),
            _ if chain(&error).any(|error| error.to_string().contains("dns error")) => {
                Self::UnknownHost(cause)
            }
            _ if error.is_connect() => Self::Unreachable(cause),
            _ => Self::Broken(cause),
        }
    }
}

/// An error with its causes. Those of input and output carry theirs inside, and leave it out of its own chain.
fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        match error.downcast_ref::<std::io::Error>() {
            Some(carrier) => carrier
                .get_ref()
                .map(|inner| inner as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}

/// The innermost reason, which is the one that people know: `Connection refused`.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    let cause = chain(error).last().unwrap_or(error);
    cause.to_string()
}
