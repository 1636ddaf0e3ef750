//! The kubeconfig file, as far as it is needed here.

use super::exec::Exec;
use crate::kube::KubeError;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::path::{Path, PathBuf};

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct File {
    pub(super) current_context: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) clusters: Vec<Named<Cluster>>,
    #[serde(deserialize_with = "or_default")]
    pub(super) contexts: Vec<Named<Context>>,
    #[serde(deserialize_with = "or_default")]
    pub(super) users: Vec<Named<User>>,
}

/// An entry of a list, with its name. Its value stands under the word for what is listed.
#[derive(Debug, Deserialize)]
#[serde(bound = "T: Default + Deserialize<'de>")]
pub(super) struct Named<T> {
    pub(super) name: String,
    #[serde(
        default,
        alias = "cluster",
        alias = "context",
        alias = "user",
        deserialize_with = "or_default"
    )]
    pub(super) value: T,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct Cluster {
    pub(super) server: String,
    pub(super) certificate_authority_data: Option<String>,
    pub(super) certificate_authority: Option<PathBuf>,
    pub(super) insecure_skip_tls_verify: bool,
    pub(super) proxy_url: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Context {
    pub(super) cluster: String,
    pub(super) user: String,
    pub(super) namespace: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct User {
    pub(super) client_certificate_data: Option<String>,
    pub(super) client_certificate: Option<PathBuf>,
    pub(super) client_key_data: Option<String>,
    pub(super) client_key: Option<PathBuf>,
    pub(super) token: Option<String>,
    #[serde(rename = "tokenFile")]
    pub(super) token_file: Option<PathBuf>,
    pub(super) username: Option<String>,
    pub(super) password: Option<String>,
    pub(super) exec: Option<Exec>,
    pub(super) auth_provider: Option<IgnoredAny>,
}

/// Takes `null` for what is empty.
fn or_default<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

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
            .map_err(|error| wrong(format!("it is not a kubeconfig: {error}")))
    }
}
