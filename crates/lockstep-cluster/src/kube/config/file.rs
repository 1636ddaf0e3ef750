//! The kubeconfig file, as far as it is needed here.

use super::exec::Exec;
use crate::kube::KubeError;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::path::{Path, PathBuf};

#[derive(Debug, Default, Deserialize)]
pub(super) struct File {
    #[serde(default, rename = "current-context")]
    pub(super) current_context: Option<String>,
    #[serde(default, deserialize_with = "clusters")]
    pub(super) clusters: Vec<Named<Cluster>>,
    #[serde(default, deserialize_with = "contexts")]
    pub(super) contexts: Vec<Named<Context>>,
    #[serde(default, deserialize_with = "users")]
    pub(super) users: Vec<Named<User>>,
}

/// An entry of a list, with its name.
#[derive(Debug)]
pub(super) struct Named<T> {
    pub(super) name: String,
    pub(super) value: T,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Cluster {
    #[serde(default)]
    pub(super) server: String,
    #[serde(default, rename = "certificate-authority-data")]
    pub(super) authority_data: Option<String>,
    #[serde(default, rename = "certificate-authority")]
    pub(super) authority: Option<PathBuf>,
    #[serde(default, rename = "insecure-skip-tls-verify")]
    pub(super) unchecked: bool,
    #[serde(default, rename = "proxy-url")]
    pub(super) proxy: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Context {
    #[serde(default)]
    pub(super) cluster: String,
    #[serde(default)]
    pub(super) user: String,
    #[serde(default)]
    pub(super) namespace: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct User {
    #[serde(default, rename = "client-certificate-data")]
    pub(super) certificate_data: Option<String>,
    #[serde(default, rename = "client-certificate")]
    pub(super) certificate: Option<PathBuf>,
    #[serde(default, rename = "client-key-data")]
    pub(super) key_data: Option<String>,
    #[serde(default, rename = "client-key")]
    pub(super) key: Option<PathBuf>,
    #[serde(default)]
    pub(super) token: Option<String>,
    #[serde(default, rename = "tokenFile")]
    pub(super) token_file: Option<PathBuf>,
    #[serde(default)]
    pub(super) username: Option<String>,
    #[serde(default)]
    pub(super) password: Option<String>,
    #[serde(default)]
    pub(super) exec: Option<Exec>,
    #[serde(default, rename = "auth-provider")]
    pub(super) auth_provider: Option<IgnoredAny>,
}

/// Reads a list whose entries hold their value under a key of its own; `null` is an empty one.
macro_rules! list {
    ($name:ident, $type:ty, $key:literal) => {
        fn $name<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Named<$type>>, D::Error> {
            #[derive(Deserialize)]
            struct Entry {
                name: String,
                #[serde(default, rename = $key)]
                value: Option<$type>,
            }
            let entries = Option::<Vec<Entry>>::deserialize(from)?.unwrap_or_default();
            let named = |entry: Entry| Named {
                name: entry.name,
                value: entry.value.unwrap_or_default(),
            };
            Ok(entries.into_iter().map(named).collect())
        }
    };
}

list!(clusters, Cluster, "cluster");
list!(contexts, Context, "context");
list!(users, User, "user");

impl File {
    pub(super) fn read(path: &Path) -> Result<Self, KubeError> {
        let wrong = |why: String| KubeError::Config {
            path: path.to_owned(),
            why,
        };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        serde_saphyr::from_str(&text)
            .map_err(|error| wrong(format!("it is no kubeconfig: {error}")))
    }
}
