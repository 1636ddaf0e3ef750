//! What opening has in common for all stores.

use super::transport::Connector;
use crate::{Access, Endpoint, Variables};
use object_store::multipart::MultipartStore;
use object_store::{ClientOptions, HeaderValue, ObjectStore, RetryConfig};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// How long a server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// What is said of credentials where none are used.
pub(super) const ANONYMOUS: &str = "no credentials (anonymous = true)";

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

impl OpenedStore {
    /// A store of a cloud, which takes objects in pieces too.
    pub(super) fn of_cloud(
        objects: impl ObjectStore + MultipartStore,
        root: String,
        [bucket, key]: [&str; 2],
        endpoint: String,
        credentials: String,
    ) -> OpenedStore {
        let objects = Arc::new(objects);
        OpenedStore {
            pieces: Some(objects.clone()),
            objects,
            root,
            query: None,
            bucket: bucket.into(),
            endpoint,
            credentials,
            key: key.into(),
        }
    }
}

/// What a cloud is asked with that has its credentials in variables, as Azure and Google have.
pub(super) struct Credentials<'v> {
    /// The variables that are set, with their values.
    pub(super) used: Vec<(&'v str, &'v str)>,
    /// The same in words, which name no value.
    pub(super) words: String,
}

/// The credentials in those of `names` that are set; else those that `machine` describes.
pub(super) fn credentials<'v>(
    access: &Access,
    variables: &'v Variables,
    names: &'v [&'v str],
    machine: &str,
) -> Credentials<'v> {
    if access.anonymous {
        return Credentials {
            used: Vec::new(),
            words: ANONYMOUS.into(),
        };
    }
    let used: Vec<_> = variables.set(names).collect();
    let set: Vec<&str> = used.iter().map(|(name, _)| *name).collect();
    let words = match set.is_empty() {
        true => format!("{machine}, as none of {} is set", names.join(", ")),
        false => format!("the credentials of {}", set.join(", ")),
    };
    Credentials { used, words }
}

/// The key of the library's settings that a variable stands for.
pub(super) fn setting<K: FromStr>(name: &str) -> Result<K, String> {
    let key = name.to_ascii_lowercase().parse();
    key.map_err(|_| format!("{name} is not understood"))
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
