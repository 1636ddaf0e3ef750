//! One request to an API server: sent, answered within its time, and told in words when it fails.

use crate::kube::KubeError;
use crate::kube::config::Access;
use base64::Engine;
use http::{Method, StatusCode};
use reqwest::{Client as Http, Response};
use serde_json::Value;
use std::error::Error;
use std::time::Duration;

/// How long a connection may take to be there.
const CONNECT: Duration = Duration::from_secs(10);
/// After so long without a sign of life of the other side, a connection counts as broken.
const SILENCE: Duration = Duration::from_secs(15);

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

/// A client with the certificates of a cluster.
pub(crate) fn http(access: &Access) -> Result<Http, KubeError> {
    // An error says that the process has chosen a provider before, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let wrong = |error: reqwest::Error| KubeError::Setup(root_cause(&error));
    let mut builder = Http::builder()
        .user_agent(concat!("lockstep/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .http1_only()
        .connect_timeout(CONNECT)
        .tcp_keepalive(SILENCE / 3)
        .tcp_keepalive_interval(SILENCE / 3)
        .tcp_keepalive_retries(2);
    if let Some(authority) = &access.authority {
        let certificates = reqwest::Certificate::from_pem_bundle(authority).map_err(wrong)?;
        builder = builder.tls_certs_only(certificates);
    }
    if access.unchecked {
        builder = builder.danger_accept_invalid_certs(true);
    }
    if let Some(identity) = &access.identity {
        builder = builder.identity(reqwest::Identity::from_pem(identity).map_err(wrong)?);
    }
    if let Some(proxy) = &access.proxy {
        builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(wrong)?);
    }
    builder.build().map_err(wrong)
}

/// The request as it stands, with the credentials.
pub(crate) fn request(
    http: &Http,
    access: &Access,
    method: Method,
    path: &str,
) -> reqwest::RequestBuilder {
    let request = http.request(method, format!("{}{path}", access.server));
    match (&access.token, &access.basic) {
        (Some(token), _) => request.bearer_auth(token),
        (None, Some((user, password))) => request.basic_auth(user, Some(password)),
        (None, None) => request,
    }
}

/// A request that found no answer, in words.
pub(crate) fn explain(server: &str, doing: &str, error: &reqwest::Error) -> KubeError {
    let (server, cause) = (server.to_owned(), root_cause(error));
    if cause.contains("certificate") || cause.contains("Certificate") {
        KubeError::Certificate { server, cause }
    } else if error.is_connect() {
        KubeError::Unreachable { server, cause }
    } else {
        KubeError::Broken {
            doing: doing.to_owned(),
            server,
            cause,
        }
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
        None => plain(&String::from_utf8_lossy(body)),
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
            doing: format!("{} {}", about.verb, about.resource),
            server: text(server),
            status: status.as_u16(),
            said,
        },
    }
}

/// Words without control characters, in short.
pub(crate) fn plain(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().take(500).map(plain).collect()
}

/// Reads a whole answer.
pub(crate) async fn body(answer: Response) -> Result<(StatusCode, Vec<u8>), reqwest::Error> {
    let status = answer.status();
    Ok((status, answer.bytes().await?.to_vec()))
}

/// The innermost reason, which is the one that people know: `Connection refused`.
pub(crate) fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
