//! What opening has in common for all stores.

use super::transport::Connector;
use crate::{Access, Endpoint, Variables};
use object_store::multipart::MultipartStore;
use object_store::{ClientOptions, HeaderValue, ObjectStore, RetryConfig};
use std::sync::Arc;
use std::time::Duration;

/// How long a server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// A store that can be asked.
pub(super) struct OpenedStore {
    pub(super) objects: Arc<dyn ObjectStore>,
    /// The same store, where it takes objects in pieces.
    pub(super) pieces: Option<Arc<dyn MultipartStore>>,
    /// How the root of its names is shown: `s3://bucket`.
    pub(super) root: String,
    /// The query of a URL, which goes along with every request. It may be a signature, so it is never shown.
    pub(super) query: Option<String>,
    /// The bucket, or Azure's container; a web server's host.
    pub(super) bucket: String,
    /// The server.
    pub(super) endpoint: String,
    /// In words: which credentials it is asked with.
    pub(super) credentials: String,
    /// The name of the place within the store.
    pub(super) key: String,
}

/// The library's own retries are off: [`Patience`](super::patience::Patience) counts all attempts in one place.
pub(super) fn no_retries() -> RetryConfig {
    RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    }
}

/// The client's settings; `plain` allows HTTP without TLS.
pub(super) fn client(access: &Access, plain: bool) -> ClientOptions {
    ClientOptions::new()
        .with_user_agent(HeaderValue::from_static(concat!(
            "lockstep/",
            env!("CARGO_PKG_VERSION")
        )))
        .with_allow_http(plain)
        .with_timeout_disabled()
        .with_connect_timeout(CONNECT.min(access.timeout()))
}

/// Whether the endpoint, if there is one, is spoken to without encryption.
pub(super) fn plain(own: Option<&Endpoint>, access: &Access) -> Result<bool, String> {
    own.map_or(Ok(false), |endpoint| endpoint.plain(access))
}

/// The transport that every store uses.
pub(super) fn connector(access: &Access) -> Connector {
    Connector {
        stall: access.stall(),
    }
}

/// `given`, else the address in the first of the variables that is set.
pub(super) fn endpoint(
    given: &Option<Endpoint>,
    variables: &Variables,
    names: &[&str],
) -> Result<Option<Endpoint>, String> {
    if given.is_some() {
        return Ok(given.clone());
    }
    match variables.set(names).next() {
        None => Ok(None),
        Some((name, value)) => match value.parse() {
            Ok(endpoint) => Ok(Some(endpoint)),
            Err(error) => Err(format!("{name}: {error}")),
        },
    }
}

/// Refuses values that a header cannot carry, naming the variable and not the value.
pub(super) fn check_values(variables: &Variables, names: &[&str]) -> Result<(), String> {
    let fits = |value: &str| value.bytes().all(|byte| byte.is_ascii_graphic());
    match variables.set(names).find(|(_, value)| !fits(value)) {
        Some((name, _)) => Err(format!(
            "{name} holds a blank, a line break or another letter that no key has; set it again without"
        )),
        None => Ok(()),
    }
}

/// Cuts `bucket/key` at the first slash. The key is taken as it stands, without slashes at its ends.
pub(super) fn bucket_and_key(rest: &str) -> (&str, &str) {
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    (bucket, key.strip_suffix('/').unwrap_or(key))
}
