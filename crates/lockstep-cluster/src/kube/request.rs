//! One request to an API server: sent, answered within its time, and told in words when it fails.

use crate::kube::KubeError;
use crate::kube::config::Access;
use base64::Engine;
use lockstep_place::http::{HttpError, Roots, Settings, StatusCode, in_short};
use serde_json::Value;
use std::time::Duration;

/// How long a connection is kept for the next request.
const IDLE: Duration = Duration::from_secs(90);

/// Bytes as manifests write them.
pub(crate) fn base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// What was asked for, for errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    /// What Kubernetes calls it: `create`, `get`.
    pub(crate) verb: &'static str,
    /// The kind, as paths write it: `jobs`.
    pub(crate) resource: &'a str,
    /// The object's name, if it is about one.
    pub(crate) name: &'a str,
    /// Where.
    pub(crate) namespace: &'a str,
}

impl<'a> About<'a> {
    /// Something that is done to an object of this name, or to all if it is empty.
    pub(crate) fn new(
        verb: &'static str,
        resource: &'a str,
        name: &'a str,
        namespace: &'a str,
    ) -> Self {
        Self {
            verb,
            resource,
            name,
            namespace,
        }
    }

    /// The same in words.
    pub(crate) fn doing(&self) -> String {
        format!("{} {}", self.verb, self.resource)
    }
}

/// A client with the certificates of a cluster.
pub(crate) fn settings(access: &Access) -> Settings {
    Settings {
        idle: Some(IDLE),
        roots: match &access.authority {
            Some(authority) => Roots::Only(authority.clone()),
            None => Roots::System,
        },
        insecure: access.unchecked,
        identity: access.identity.clone(),
        proxy: access.proxy.clone(),
        ..Settings::default()
    }
}

/// A request that found no answer, in words.
pub(crate) fn explain(server: &str, doing: &str, error: &HttpError) -> KubeError {
    let (server, cause) = (server.to_owned(), error.to_string());
    match error {
        HttpError::Roots(_) | HttpError::Setup(_) => KubeError::Setup(cause),
        // Also where the server does not accept ours.
        _ if cause.contains("ertificate") => KubeError::Certificate { server, cause },
        HttpError::NoTls(_) | HttpError::UnknownHost(_) | HttpError::Unreachable(_) => {
            KubeError::Unreachable { server, cause }
        }
        _ => KubeError::Broken {
            doing: doing.to_owned(),
            server,
            cause,
        },
    }
}

/// An answer that is not the one that was hoped for, in words.
pub(crate) fn refusal(
    server: &str,
    about: About<'_>,
    status: StatusCode,
    body: &[u8],
) -> KubeError {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let said = match answer["message"].as_str() {
        Some(said) => said.to_owned(),
        None => in_short(&String::from_utf8_lossy(body)),
    };
    let text = |text: &str| text.to_owned();
    let details = answer["details"]["kind"].as_str().unwrap_or_default();
    match status {
        StatusCode::UNAUTHORIZED => KubeError::Unauthorized {
            server: text(server),
            said,
        },
        StatusCode::FORBIDDEN if said.contains("exceeded quota") => KubeError::Quota {
            namespace: text(about.namespace),
            said,
        },
        StatusCode::FORBIDDEN => KubeError::Forbidden {
            verb: text(about.verb),
            resource: text(about.resource),
            namespace: text(about.namespace),
            said,
        },
        StatusCode::NOT_FOUND if details == "namespaces" => {
            KubeError::NoNamespace(text(about.namespace))
        }
        // A path that the server does not know is answered without an object's details.
        StatusCode::NOT_FOUND if details.is_empty() => KubeError::NoKind {
            kind: text(about.resource),
        },
        StatusCode::NOT_FOUND => KubeError::NoSuchJob {
            name: text(about.name),
            namespace: text(about.namespace),
        },
        StatusCode::CONFLICT if about.verb == "create" => KubeError::Exists {
            kind: text(about.resource.trim_end_matches('s')),
            name: text(about.name),
            namespace: text(about.namespace),
        },
        StatusCode::UNPROCESSABLE_ENTITY | StatusCode::BAD_REQUEST => KubeError::Invalid {
            what: format!("{} `{}`", about.resource, about.name),
            said,
        },
        status => KubeError::Refused {
            doing: about.doing(),
            server: text(server),
            status: status.as_u16(),
            said,
        },
    }
}
