//! `gs://bucket/key`: Google's cloud storage.

use super::open::{self, OpenedStore};
use crate::{Access, Variables};
use object_store::gcp::GoogleCloudStorageBuilder;

/// Those that name a file with credentials.
const FILES: [&str; 3] = [
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_PATH",
    "GOOGLE_APPLICATION_CREDENTIALS",
];
const TOKEN: &str = "GOOGLE_BEARER_TOKEN";
/// Those, and the ones that hold credentials themselves.
const SECRETS: [&str; 5] = [
    FILES[0],
    FILES[1],
    FILES[2],
    "GOOGLE_SERVICE_ACCOUNT_KEY",
    TOKEN,
];

pub(super) fn open(
    rest: &str,
    access: &Access,
    variables: &Variables,
) -> Result<OpenedStore, String> {
    let (bucket, key) = open::bucket_and_key(rest);
    if bucket.is_empty() || bucket.contains(['@', ':']) {
        return Err(
            "after gs:// comes a bucket's name and no password, as in gs://bucket/folder".into(),
        );
    }
    open::check_values(variables, &[TOKEN])?;
    let own = open::endpoint(&access.endpoint, variables, &["GOOGLE_BASE_URL"])?;
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(bucket)
        .with_skip_signature(access.anonymous)
        .with_client_options(open::client(access, open::plain(own.as_ref(), access)?))
        .with_retry(open::no_retries())
        .with_http_connector(open::connector(access));
    if let Some(endpoint) = &own {
        builder = builder.with_base_url(endpoint.as_str());
    }
    let machine = "the user's gcloud login or the service account of this machine";
    let credentials = open::credentials(access, variables, &SECRETS, machine);
    for (name, value) in credentials.used {
        if FILES.contains(&name) {
            std::fs::metadata(value)
                .map_err(|error| format!("{name} names the file {value}: {error}"))?;
        }
        builder = builder.with_config(open::setting(name)?, value);
    }
    // The library's error may repeat a part of a key that it could not decode.
    let objects = builder.build().map_err(|_| {
        let words = &credentials.words;
        format!(
            "{words} cannot be understood: each is the JSON of one service account, or a file of it"
        )
    })?;
    Ok(OpenedStore::of_cloud(
        objects,
        format!("gs://{bucket}"),
        [bucket, key],
        own.map_or("https://storage.googleapis.com".into(), |own| {
            own.to_string()
        }),
        credentials.words,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_not_understood_is_named_and_not_shown() {
        let opened = |set: &[(&str, &str)]| {
            let variables = set.iter().copied().collect();
            open("b/k", &Access::default(), &variables)
        };
        let error = opened(&[(
            "GOOGLE_SERVICE_ACCOUNT_KEY",
            r#"{"private_key": "hunter2"}"#,
        )]);
        let error = error.err().unwrap();
        assert!(
            error.contains("GOOGLE_SERVICE_ACCOUNT_KEY") && !error.contains("hunter2"),
            "{error}"
        );
        let missing = opened(&[("GOOGLE_SERVICE_ACCOUNT", "/no/such/file")])
            .err()
            .unwrap();
        assert!(missing.contains("GOOGLE_SERVICE_ACCOUNT") && missing.contains("/no/such/file"));
    }

    #[test]
    fn anonymous_access_looks_at_no_credentials() {
        let access = Access {
            anonymous: true,
            ..Access::default()
        };
        let variables = Variables::from_iter([("GOOGLE_SERVICE_ACCOUNT", "/no/such/file")]);
        let opened = open("b/k/", &access, &variables).unwrap();
        assert_eq!((opened.bucket.as_str(), opened.key.as_str()), ("b", "k"));
        assert!(opened.credentials.contains("anonymous"));
    }
}
