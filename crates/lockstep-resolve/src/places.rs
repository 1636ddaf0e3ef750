//! The places of a job.

use lockstep_job::{Location, Storage, without_secrets};
use lockstep_place::{Access, Place, PlaceError};

/// How the job's places are reached.
///
/// # Errors
/// When an address of the `[storage]` section is none.
pub fn access(storage: &Storage) -> Result<Access, PlaceError> {
    let endpoint = |key: &str, address: &Option<String>| {
        let parsed = address.as_deref().map(str::parse).transpose();
        parsed.map_err(|error| PlaceError::Setting {
            place: without_secrets(address.as_deref().unwrap_or_default()).into_owned(),
            why: format!("storage.{key}: {error}"),
        })
    };
    let default = Access::default();
    Ok(Access {
        endpoint: endpoint("endpoint", &storage.endpoint)?,
        region: storage.region.clone(),
        anonymous: storage.anonymous,
        allow_http: storage.allow_http,
        virtual_host: storage.virtual_host,
        account: storage.account.clone(),
        role_arn: storage.role_arn.clone(),
        external_id: storage.external_id.clone(),
        sts_endpoint: endpoint("sts_endpoint", &storage.sts_endpoint)?,
        retries: storage.retries,
        timeout_s: storage.timeout_s,
        stall_s: storage.stall_s,
        session_name: storage.session_name.clone().unwrap_or(default.session_name),
        session_s: storage.session_s.unwrap_or(default.session_s),
    })
}

/// The place that a location of the job means.
///
/// # Errors
/// When its name or the `[storage]` section makes no sense.
pub fn place(location: &Location, storage: &Storage) -> Result<Place, PlaceError> {
    Place::parse(location.as_str(), &access(storage)?)
}
