//! `[storage]`: how places outside this machine are reached.

use crate::field::Field;
use crate::keys::{Any, By, Check, SchemaLimits, keys};
use crate::without_secrets;
use serde_json::{Map, Value, json};

const MAX_RETRIES: u32 = 100;
/// A day.
const MAX_SECONDS: u32 = 86_400;
/// Seconds for which STS hands out a role.
const MIN_SESSION: u32 = 900;
const MAX_SESSION: u32 = 43_200;

keys! {
    /// How places outside this machine are reached. Keys and passwords are not here: they come from the
    /// variables of the environment that the tools of each provider use.
    pub struct Storage: all default {
        /// The address of a server of one's own that speaks S3, such as MinIO.
        endpoint: Option<String> = optional => By(web_address);
        /// The provider's region.
        region: Option<String> = optional => By(words);
        /// Whether requests are not signed: for public buckets.
        anonymous: bool = default(false) => Any;
        /// Whether credentials may be sent without encryption to an `http://` endpoint on another machine.
        allow_http: bool = default(false) => Any;
        /// Whether S3's bucket is a part of the server's name, not of the path.
        virtual_host: bool = default(false) => Any;
        /// Azure's storage account.
        account: Option<String> = optional => By(words);
        /// The role that is assumed (AWS STS) before a bucket is read or written.
        role_arn: Option<String> = optional => Any, |field, ()| match anonymous {
            Some(true) => field.reject("cannot be used together with `anonymous`", "leave one out"),
            _ => words(field),
        };
        /// What the role's owner wants to be told when it is assumed.
        external_id: Option<String> = optional => Any, |field, ()| match role_arn {
            Some(None) => field.reject("is for a role", "add `role_arn`, or leave this out"),
            _ => words(field),
        };
        /// The name under which the role appears in its owner's logs.
        session_name: Option<String> = optional => By(words);
        /// Seconds for which the role is assumed at a time.
        session_s: Option<u32> = optional => SessionSeconds;
        /// The address of the service that hands out roles, if it is one's own.
        sts_endpoint: Option<String> = optional => By(web_address);
        /// How often a request is sent again when the place does not answer or breaks off.
        retries: u32 = default(6) => 0..=MAX_RETRIES;
        /// Seconds after which a request is given up, all retries included.
        timeout_s: u32 = default(300) => 1..=MAX_SECONDS;
        /// Seconds without a byte after which a connection counts as cut.
        stall_s: u32 = default(30) => 1..=MAX_SECONDS;
    }
}

/// What STS allows.
struct SessionSeconds;

impl SchemaLimits for SessionSeconds {
    fn describe(&self, schema: &mut Map<String, Value>) {
        schema.insert("minimum".to_owned(), json!(MIN_SESSION));
        schema.insert("maximum".to_owned(), json!(MAX_SESSION));
    }
}

impl Check<u32> for SessionSeconds {
    fn read(&self, field: &Field<'_>) -> Option<u32> {
        let seconds = field.integer(1..=MAX_SESSION)?;
        match seconds < MIN_SESSION {
            true => field.reject(
                format!("must be at least {MIN_SESSION}, found {seconds}"),
                "a role cannot be assumed for less",
            ),
            false => Some(seconds),
        }
    }
}

pub(crate) fn words(field: &Field<'_>) -> Option<String> {
    match field.text()? {
        "" => field.reject("must not be empty", "leave the key out instead"),
        text => Some(text.to_owned()),
    }
}

pub(crate) fn web_address(field: &Field<'_>) -> Option<String> {
    let text = words(field)?;
    let web = text.starts_with("http://") || text.starts_with("https://");
    if !web {
        return field.reject(
            format!("must be a web address, found {:?}", without_secrets(&text)),
            "for example \"http://127.0.0.1:9000\"",
        );
    }
    if without_secrets(&text) != text {
        return field.reject(
            "must not carry a user, a password or a signature",
            "they come from the variables of the environment; see docs/storage.md",
        );
    }
    Some(text)
}
