//! `[storage]`: how places outside this machine are reached.

use crate::field::Field;
use crate::section::Section;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MAX_RETRIES: u32 = 100;
/// A day.
const MAX_SECONDS: u32 = 86_400;
/// Seconds for which STS hands out a role.
const MIN_SESSION: u32 = 900;
const MAX_SESSION: u32 = 43_200;

/// How places outside this machine are reached. Keys and passwords are not here: they come from the
/// variables of the environment that the tools of each provider use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Storage {
    /// The address of a server of one's own that speaks S3, such as MinIO.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The provider's region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Whether requests are not signed: for public buckets.
    pub anonymous: bool,
    /// Whether S3's bucket is a part of the server's name, not of the path.
    pub virtual_host: bool,
    /// Azure's storage account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The role that is assumed (AWS STS) before a bucket is read or written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_arn: Option<String>,
    /// What the role's owner wants to be told when it is assumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// The name under which the role appears in its owner's logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_name: Option<String>,
    /// Seconds for which the role is assumed at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 900, max = 43_200))]
    pub session_s: Option<u32>,
    /// The address of the service that hands out roles, if it is one's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sts_endpoint: Option<String>,
    /// How often a request is sent again when the place does not answer or breaks off.
    pub retries: u32,
    /// Seconds after which a request is given up, all retries included.
    #[schemars(range(min = 1))]
    pub timeout_s: u32,
    /// Seconds without a byte after which a connection counts as cut.
    #[schemars(range(min = 1))]
    pub stall_s: u32,
}

impl Default for Storage {
    fn default() -> Self {
        Storage {
            endpoint: None,
            region: None,
            anonymous: false,
            virtual_host: false,
            account: None,
            role_arn: None,
            external_id: None,
            session_name: None,
            session_s: None,
            sts_endpoint: None,
            retries: 6,
            timeout_s: 300,
            stall_s: 30,
        }
    }
}

impl Storage {
    pub(crate) fn is_default(&self) -> bool {
        *self == Storage::default()
    }

    pub(crate) fn read(mut section: Section<'_>) -> Option<Storage> {
        let default = Storage::default();
        let endpoint = section.maybe("endpoint", |field| web_address(&field));
        let region = section.maybe("region", |field| words(&field));
        let anonymous = section.or("anonymous", false, |field| field.boolean());
        let virtual_host = section.or("virtual_host", false, |field| field.boolean());
        let account = section.maybe("account", |field| words(&field));
        let role_arn = section.maybe("role_arn", |field| {
            if anonymous == Some(true) {
                return field.reject("cannot be used together with `anonymous`", "leave one out");
            }
            words(&field)
        });
        let external_id = section.maybe("external_id", |field| {
            if matches!(role_arn, Some(None)) {
                return field.reject("is for a role", "add `role_arn`, or leave this out");
            }
            words(&field)
        });
        let session_name = section.maybe("session_name", |field| words(&field));
        let session_s = section.maybe("session_s", |field| {
            let seconds = field.integer(1..=MAX_SESSION)?;
            match seconds < MIN_SESSION {
                true => field.reject(
                    format!("must be at least {MIN_SESSION}, found {seconds}"),
                    "a role cannot be assumed for less",
                ),
                false => Some(seconds),
            }
        });
        let sts_endpoint = section.maybe("sts_endpoint", |field| web_address(&field));
        let retries = section.or("retries", default.retries, |field| {
            field.integer(0..=MAX_RETRIES)
        });
        let timeout_s = section.or("timeout_s", default.timeout_s, |field| {
            field.integer(1..=MAX_SECONDS)
        });
        let stall_s = section.or("stall_s", default.stall_s, |field| {
            field.integer(1..=MAX_SECONDS)
        });
        section.finish();
        Some(Storage {
            endpoint: endpoint?,
            region: region?,
            anonymous: anonymous?,
            virtual_host: virtual_host?,
            account: account?,
            role_arn: role_arn?,
            external_id: external_id?,
            session_name: session_name?,
            session_s: session_s?,
            sts_endpoint: sts_endpoint?,
            retries: retries?,
            timeout_s: timeout_s?,
            stall_s: stall_s?,
        })
    }
}

fn words(field: &Field<'_>) -> Option<String> {
    match field.text()? {
        "" => field.reject("must not be empty", "leave the key out instead"),
        text => Some(text.to_owned()),
    }
}

fn web_address(field: &Field<'_>) -> Option<String> {
    let text = words(field)?;
    let web = text.starts_with("http://") || text.starts_with("https://");
    if !web {
        return field.reject(
            format!("must be a web address, found {text:?}"),
            "for example \"http://127.0.0.1:9000\"",
        );
    }
    Some(text)
}
