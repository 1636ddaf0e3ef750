//! How long requests to a head may take, and what it means that they fail.

use crate::jobs::{Client, JobsError};
use lockstep_place::http::{HttpError, Reply};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// How long an answer to something small may take.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// How long a package or a whole log may take.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// The port of Ray's own protocol.
const GCS: u16 = 6379;

/// Whether what answers, if anything does, is no server of HTTP.
fn speaks_no_http(error: &HttpError) -> bool {
    matches!(
        error,
        HttpError::NoTls(_)
            | HttpError::Unreachable(_)
            | HttpError::Late(_)
            | HttpError::Broken(_)
            | HttpError::TooLong(_)
            | HttpError::NoHandshake
    )
}

impl Client {
    /// A request that found no answer, in words.
    pub(crate) fn explain(&self, doing: &str, error: &HttpError) -> JobsError {
        let cause = error.to_string();
        let address = self.address.to_string();
        let doing = doing.to_owned();
        if self.address.port() == Some(GCS) && speaks_no_http(error) {
            return JobsError::GcsPort {
                address,
                port: GCS,
                cause,
            };
        }
        match error {
            HttpError::Roots(_) | HttpError::Setup(_) => JobsError::Setup(cause),
            HttpError::Certificate(_) => JobsError::Certificate { address, cause },
            HttpError::NoTls(_) => JobsError::NoTls { address, cause },
            HttpError::UnknownHost(_) => JobsError::UnknownHost { address, cause },
            HttpError::Unreachable(_) => JobsError::NoHead { address, cause },
            HttpError::TooLong(_) => JobsError::Answer {
                doing,
                address,
                why: cause,
            },
            HttpError::Late(_) | HttpError::Broken(_) | HttpError::NoHandshake => {
                JobsError::Broken {
                    doing,
                    address,
                    cause,
                }
            }
        }
    }

    /// What it means that this is not the answer that was hoped for.
    pub(crate) fn refused(&self, doing: &str, reply: &Reply) -> JobsError {
        JobsError::Refused {
            doing: doing.to_owned(),
            address: self.address.to_string(),
            status: reply.status.as_u16(),
            said: reply.said(),
        }
    }

    /// The answer's JSON.
    pub(crate) fn json<T: DeserializeOwned>(
        &self,
        doing: &str,
        reply: &Reply,
    ) -> Result<T, JobsError> {
        reply.json().map_err(|error| JobsError::Answer {
            doing: doing.to_owned(),
            address: self.address.to_string(),
            why: error.to_string(),
        })
    }
}
