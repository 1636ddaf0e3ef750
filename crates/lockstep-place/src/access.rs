//! How a place is reached: what a job file may say, which is everything but secrets.
//!
//! Secrets come from the environment ([`Variables`](crate::Variables)), so a job file can be shown to
//! anyone. An address that carries a user name or a password is refused when it is read.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

/// How to reach the places of one store. All keys have defaults that fit a public cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Access {
    /// The server, where it is not the cloud's own: `http://localhost:9000`. Only one that says `http://`
    /// is spoken to without encryption.
    pub endpoint: Option<Endpoint>,
    /// The region of S3's bucket; else `AWS_REGION`, `AWS_DEFAULT_REGION`, `us-east-1`.
    pub region: Option<String>,
    /// Asks without credentials, as public data allows.
    pub anonymous: bool,
    /// Whether credentials may go to an `http://` endpoint on another machine, where all on the way can read
    /// them.
    pub allow_http: bool,
    /// Puts S3's bucket into the host's name (`bucket.host/key`) instead of the path (`host/bucket/key`).
    pub virtual_host: bool,
    /// Azure's storage account; else that of an `abfs` URL, or `AZURE_STORAGE_ACCOUNT_NAME`.
    pub account: Option<String>,
    /// The role to assume through STS before S3 is asked: `arn:aws:iam::123456789012:role/reader`.
    pub role_arn: Option<String>,
    /// What the role's owner asks for besides, so that one role serves several customers.
    pub external_id: Option<String>,
    /// The name under which the assumed role appears in the owner's logs.
    pub session_name: String,
    /// For how long a role is assumed at a time, in seconds: 900 to 43,200. It is assumed anew before it ends.
    pub session_s: u32,
    /// The server of STS; else `AWS_ENDPOINT_URL_STS`, the endpoint if there is one, AWS' own of the region.
    pub sts_endpoint: Option<Endpoint>,
    /// How often a request is repeated that failed for a reason that may pass.
    pub retries: u32,
    /// After how many seconds one operation is given up, all its repetitions included.
    pub timeout_s: u32,
    /// After how many seconds without a single byte an answer counts as cut.
    pub stall_s: u32,
}

impl Default for Access {
    fn default() -> Access {
        Access {
            endpoint: None,
            region: None,
            anonymous: false,
            allow_http: false,
            virtual_host: false,
            account: None,
            role_arn: None,
            external_id: None,
            session_name: "lockstep".into(),
            session_s: 3600,
            sts_endpoint: None,
            retries: 6,
            timeout_s: 300,
            stall_s: 30,
        }
    }
}

impl Access {
    /// The first key that makes no sense, and what would.
    pub(crate) fn check(&self) -> Result<(), String> {
        let session_name_fits = (2..=64).contains(&self.session_name.len())
            && self
                .session_name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_=,.@-".contains(&byte));
        if self.timeout_s == 0 || self.stall_s == 0 {
            return Err("timeout_s and stall_s are seconds from 1 on, not 0".into());
        }
        if self.role_arn.is_none() && self.external_id.is_some() {
            return Err("external_id belongs to a role_arn, which is missing".into());
        }
        if self.role_arn.is_some() && self.anonymous {
            return Err("anonymous access assumes no role: take role_arn or anonymous away".into());
        }
        if !(900..=43_200).contains(&self.session_s) {
            let given = self.session_s;
            return Err(format!(
                "session_s is {given}, but STS gives 900 to 43200 seconds"
            ));
        }
        if !session_name_fits {
            let given = &self.session_name;
            return Err(format!(
                "session_name is `{given}`, but STS takes 2 to 64 letters, digits and `_=,.@-`"
            ));
        }
        Ok(())
    }

    /// The end of an operation's time.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_s.into())
    }

    /// The longest silence.
    pub(crate) fn stall(&self) -> Duration {
        Duration::from_secs(self.stall_s.into()).min(self.timeout())
    }
}

/// The address of a server, `http://host:port` or `https://host/path`, with no secret in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Endpoint(String);

impl Endpoint {
    /// The address, without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it asks to be spoken to without encryption.
    pub fn is_plain(&self) -> bool {
        self.0.starts_with("http://")
    }

    /// Whether the server is this machine itself.
    fn is_loopback(&self) -> bool {
        let host = self.0.split_once("://").map_or("", |(_, rest)| rest);
        let host = host.split('/').next().unwrap_or_default();
        let host = match host.strip_prefix('[') {
            Some(v6) => v6.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        let named = host == "localhost" || host.ends_with(".localhost");
        let numbered = host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback());
        named || numbered
    }

    /// Whether it is spoken to without encryption, which credentials must allow.
    pub(crate) fn plain(&self, access: &Access) -> Result<bool, String> {
        let safe = access.anonymous || access.allow_http || self.is_loopback();
        match self.is_plain() {
            true if !safe => Err(format!(
                "{self} is not encrypted, and all on the way could read the credentials; use https://, or \
                 set storage.allow_http = true if you trust the network"
            )),
            plain => Ok(plain),
        }
    }
}

/// Why a text is not the address of a server. It does not repeat the text, which may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an endpoint {0}: it should look like https://host or http://host:port")]
pub struct EndpointError(&'static str);

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Endpoint, EndpointError> {
        let rest = text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"));
        let rest = rest.ok_or(EndpointError("begins with http:// or https://"))?;
        let host = rest.split('/').next().unwrap_or_default();
        if host.contains('@') {
            return Err(EndpointError("carries no user name and no password"));
        }
        if rest.contains(['?', '#']) {
            return Err(EndpointError("ends before any `?` or `#`"));
        }
        if host.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(EndpointError("names a host and has no blanks"));
        }
        Ok(Endpoint(text.trim_end_matches('/').to_owned()))
    }
}

impl TryFrom<String> for Endpoint {
    type Error = EndpointError;

    fn try_from(text: String) -> Result<Endpoint, EndpointError> {
        text.parse()
    }
}

impl From<Endpoint> for String {
    fn from(endpoint: Endpoint) -> String {
        endpoint.0
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_with_a_password_is_refused_without_showing_it() {
        let error = "http://user:hunter2@host:9000"
            .parse::<Endpoint>()
            .unwrap_err();
        assert!(error.to_string().contains("no password"), "{error}");
        assert!(!format!("{error}{error:?}").contains("hunter2"));
    }

    #[test]
    fn what_is_no_address_of_a_server_is_refused() {
        for text in [
            "",
            "host:9000",
            "ftp://host",
            "http://",
            "http:///x",
            "https://h?sig=1",
            "http://a b",
        ] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
        let endpoint: Endpoint = "http://[::1]:9000/".parse().unwrap();
        assert_eq!(endpoint.as_str(), "http://[::1]:9000");
        assert!(endpoint.is_plain());
    }

    #[test]
    fn credentials_go_without_encryption_to_this_machine_only_unless_a_key_allows_it() {
        let plain = |endpoint: &str, access: Access| {
            let endpoint: Endpoint = endpoint.parse().unwrap();
            endpoint.plain(&access)
        };
        for here in [
            "http://localhost:9000",
            "http://127.0.0.1",
            "http://[::1]:9000/x",
        ] {
            assert_eq!(plain(here, Access::default()), Ok(true));
        }
        let elsewhere = [
            "http://minio:9000",
            "http://10.0.0.1",
            "http://localhost.evil",
        ];
        for elsewhere in elsewhere {
            let error = plain(elsewhere, Access::default()).unwrap_err();
            assert!(error.contains("allow_http") && error.contains(elsewhere));
            let allowed = Access {
                allow_http: true,
                ..Access::default()
            };
            assert_eq!(plain(elsewhere, allowed), Ok(true));
            let anonymous = Access {
                anonymous: true,
                ..Access::default()
            };
            assert_eq!(plain(elsewhere, anonymous), Ok(true));
        }
        assert_eq!(plain("https://s3.example", Access::default()), Ok(false));
    }

    #[test]
    fn keys_that_contradict_each_other_are_refused_by_name() {
        let refused = |access: Access, word: &str| {
            let why = access.check().unwrap_err();
            assert!(why.contains(word), "{why}");
        };
        let plain = Access::default;
        assert_eq!(plain().check(), Ok(()));
        refused(
            Access {
                external_id: Some("x".into()),
                ..plain()
            },
            "role_arn",
        );
        refused(
            Access {
                timeout_s: 0,
                ..plain()
            },
            "timeout_s",
        );
        refused(
            Access {
                session_s: 60,
                ..plain()
            },
            "900 to 43200",
        );
        refused(
            Access {
                session_name: "a b".into(),
                ..plain()
            },
            "session_name",
        );
        let both = Access {
            role_arn: Some("arn".into()),
            anonymous: true,
            ..plain()
        };
        refused(both, "anonymous");
    }
}
