//! `s3://bucket/key`: Amazon's, or any server that speaks its language.

use super::open::{self, OpenedStore};
use super::sts::AssumedRole;
use crate::{Access, Endpoint, Variables};
use object_store::aws::AmazonS3Builder;
use object_store::client::HttpConnector;
use std::sync::Arc;

const KEYS: [&str; 3] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
];
const WEB_IDENTITY: [&str; 3] = [
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
];
const CONTAINER: [&str; 3] = [
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
];

pub(super) fn open(
    rest: &str,
    access: &Access,
    variables: &Variables,
) -> Result<OpenedStore, String> {
    let (bucket, key) = open::bucket_and_key(rest);
    if bucket.is_empty() {
        return Err("a bucket's name comes after s3://, as in s3://bucket/folder".into());
    }
    if bucket.contains(['@', ':']) {
        return Err("the URL carries a user or a password; credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".into());
    }
    open::check_values(variables, &KEYS)?;
    let own = open::endpoint(
        &access.endpoint,
        variables,
        &["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"],
    )?;
    let region = access
        .region
        .as_deref()
        .or_else(|| {
            Some(
                variables
                    .set(&["AWS_REGION", "AWS_DEFAULT_REGION"])
                    .next()?
                    .1,
            )
        })
        .unwrap_or("us-east-1");
    let (credentials, used) = credentials(access, variables)?;

    let plain = open::plain(own.as_ref(), access)?;
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_region(region)
        .with_skip_signature(access.anonymous)
        .with_virtual_hosted_style_request(access.virtual_host)
        // One object is deleted at a time, and not all servers know how to delete many.
        .with_disable_bulk_delete(true)
        .with_client_options(open::client(access, plain))
        .with_retry(open::no_retries())
        .with_http_connector(open::connector(access));
    for (name, value) in variables.set(&used) {
        builder = builder.with_config(open::setting(name)?, value);
    }
    let endpoint = match &own {
        None => format!("https://s3.{region}.amazonaws.com"),
        Some(endpoint) => {
            let address = with_bucket(endpoint, bucket, access.virtual_host);
            builder = builder.with_endpoint(address);
            endpoint.to_string()
        }
    };
    if let Some(role) = &access.role_arn {
        let base = builder.clone().build().map_err(|error| error.to_string())?;
        let sts = sts_endpoint(access, variables, own.as_ref(), region)?;
        let options = open::client(access, sts.plain(access)?);
        let client = open::connector(access).connect(&options);
        let client = client.map_err(|error| error.to_string())?;
        let base = base.credentials().clone();
        let address = sts.to_string();
        let role = AssumedRole::new(role, access, address, region.into(), base, client);
        builder = builder.with_credentials(Arc::new(role));
    }
    Ok(OpenedStore::of_cloud(
        builder.build().map_err(|error| error.to_string())?,
        format!("s3://{bucket}"),
        [bucket, key],
        endpoint,
        credentials,
    ))
}

/// Which credentials there are, in words, and the variables to take them from.
fn credentials(
    access: &Access,
    variables: &Variables,
) -> Result<(String, Vec<&'static str>), String> {
    if access.anonymous {
        return Ok((open::ANONYMOUS.into(), Vec::new()));
    }
    let has = |name| variables.get(name).is_some();
    let (words, used) = match (has(KEYS[0]), has(KEYS[1])) {
        (true, true) if has(KEYS[2]) => (
            "the keys of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY with the token of AWS_SESSION_TOKEN".into(),
            KEYS.to_vec(),
        ),
        (true, true) => (
            "the keys of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN is not set)".into(),
            KEYS.to_vec(),
        ),
        (true, false) => return Err("AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not".into()),
        (false, true) => return Err("AWS_SECRET_ACCESS_KEY is set, but AWS_ACCESS_KEY_ID is not".into()),
        (false, false) if has(WEB_IDENTITY[0]) && has(WEB_IDENTITY[1]) => (
            "the web identity of AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN".into(),
            WEB_IDENTITY.to_vec(),
        ),
        (false, false) if has(CONTAINER[0]) || has(CONTAINER[1]) => (
            "the container's role, by AWS_CONTAINER_CREDENTIALS_*".into(),
            CONTAINER.to_vec(),
        ),
        (false, false) => (
            format!(
                "the role of this machine, as none of {}, {}, {}, {} and {} is set",
                KEYS[0], KEYS[1], WEB_IDENTITY[0], CONTAINER[0], CONTAINER[1]
            ),
            Vec::new(),
        ),
    };
    Ok(match &access.role_arn {
        Some(role) => (format!("the role {role}, assumed with {words}"), used),
        None => (words, used),
    })
}

/// Where roles are asked for: never at AWS when the objects lie elsewhere, whose keys AWS must not see.
fn sts_endpoint(
    access: &Access,
    variables: &Variables,
    own: Option<&Endpoint>,
    region: &str,
) -> Result<Endpoint, String> {
    let set = open::endpoint(&access.sts_endpoint, variables, &["AWS_ENDPOINT_URL_STS"])?;
    match set.or_else(|| own.cloned()) {
        Some(endpoint) => Ok(endpoint),
        None => format!("https://sts.{region}.amazonaws.com")
            .parse()
            .map_err(|_| format!("the region `{region}` is not one")),
    }
}

/// The endpoint as the library wants it: with the bucket in the host's name if that is asked for.
fn with_bucket(endpoint: &Endpoint, bucket: &str, virtual_host: bool) -> String {
    match (virtual_host, endpoint.as_str().split_once("://")) {
        (true, Some((scheme, host))) => format!("{scheme}://{bucket}.{host}"),
        _ => endpoint.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(access: Access, set: &[&str]) -> Result<String, String> {
        let variables = set.iter().map(|&name| (name, "hunter2")).collect();
        credentials(&access, &variables).map(|(words, _)| words)
    }

    #[test]
    fn the_words_for_credentials_name_variables_and_no_values() {
        let plain = Access::default;
        let keys = words(plain(), &KEYS[..2]).unwrap();
        assert!(
            keys.contains("AWS_ACCESS_KEY_ID") && keys.contains("AWS_SESSION_TOKEN is not set")
        );
        let machine = words(plain(), &[]).unwrap();
        assert!(machine.contains("role of this machine") && machine.contains("AWS_ACCESS_KEY_ID"));
        let role = Access {
            role_arn: Some("arn:r".into()),
            ..plain()
        };
        assert!(
            words(role, &KEYS)
                .unwrap()
                .starts_with("the role arn:r, assumed with the keys")
        );
        let anonymous = Access {
            anonymous: true,
            ..plain()
        };
        assert!(words(anonymous, &KEYS).unwrap().contains("anonymous"));
        assert!(
            words(plain(), &KEYS[..1])
                .unwrap_err()
                .contains("AWS_SECRET_ACCESS_KEY is not")
        );
        assert!(
            words(plain(), &WEB_IDENTITY)
                .unwrap()
                .contains("web identity")
        );
        assert!(words(plain(), &CONTAINER).unwrap().contains("container"));
    }

    #[test]
    fn a_role_for_a_server_of_ones_own_is_not_asked_for_at_amazon() {
        let own: Endpoint = "http://minio:9000".parse().unwrap();
        let none = Variables::default();
        let access = Access::default();
        let chosen = sts_endpoint(&access, &none, Some(&own), "eu-west-1").unwrap();
        assert_eq!(chosen.as_str(), "http://minio:9000");
        let amazon = sts_endpoint(&access, &none, None, "eu-west-1").unwrap();
        assert_eq!(amazon.as_str(), "https://sts.eu-west-1.amazonaws.com");
        let set = Variables::from_iter([("AWS_ENDPOINT_URL_STS", "https://sts.example")]);
        let set = sts_endpoint(&access, &set, Some(&own), "eu-west-1").unwrap();
        assert_eq!(set.as_str(), "https://sts.example");
    }

    #[test]
    fn a_bucket_in_the_hosts_name_comes_before_it() {
        let own: Endpoint = "http://minio:9000".parse().unwrap();
        assert_eq!(with_bucket(&own, "b", true), "http://b.minio:9000");
        assert_eq!(with_bucket(&own, "b", false), "http://minio:9000");
    }
}
