//! `az://container/key` and `abfs[s]://container@account.dfs.core.windows.net/key`: Azure's blobs.

use super::open::{self, OpenedStore};
use crate::{Access, Variables};
use object_store::azure::MicrosoftAzureBuilder;

const ACCOUNT: &str = "AZURE_STORAGE_ACCOUNT_NAME";
/// Those that hold credentials, the first that are set being used.
const SECRETS: [&str; 14] = [
    "AZURE_STORAGE_TOKEN",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_ACCESS_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_SAS_KEY",
    "AZURE_STORAGE_CLIENT_ID",
    "AZURE_STORAGE_CLIENT_SECRET",
    "AZURE_STORAGE_TENANT_ID",
    "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET",
    "AZURE_TENANT_ID",
    "AZURE_AUTHORITY_HOST",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_MSI_ENDPOINT",
];

pub(super) fn open(
    scheme: &str,
    rest: &str,
    access: &Access,
    variables: &Variables,
) -> Result<OpenedStore, String> {
    let (authority, key) = open::bucket_and_key(rest);
    let (container, host) = match authority.split_once('@') {
        Some((container, host)) if scheme != "az" => (container, Some(host)),
        _ => (authority, None),
    };
    if container.is_empty() || container.contains([':', '@']) {
        return Err(format!(
            "after {scheme}:// comes a container's name and no password, as in az://container/folder or \
             abfss://container@account.dfs.core.windows.net/folder"
        ));
    }
    open::check_values(variables, &SECRETS)?;
    let account = host.and_then(|host| host.split('.').next());
    let account = account
        .or(access.account.as_deref())
        .or_else(|| variables.get(ACCOUNT))
        .ok_or_else(|| format!("which storage account? Set `account` or {ACCOUNT}"))?;
    let own = open::endpoint(
        &access.endpoint,
        variables,
        &["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"],
    )?;
    let endpoint = match (&own, host) {
        (Some(endpoint), _) => endpoint.to_string(),
        // The same account speaks both languages; the one of blobs is spoken here.
        (None, Some(host)) => format!("https://{}", host.replacen(".dfs.", ".blob.", 1)),
        (None, None) => format!("https://{account}.blob.core.windows.net"),
    };

    let mut builder = MicrosoftAzureBuilder::new()
        .with_account(account)
        .with_container_name(container)
        .with_endpoint(endpoint.clone())
        .with_skip_signature(access.anonymous)
        .with_client_options(open::client(access, open::plain(own.as_ref(), access)?))
        .with_retry(open::no_retries())
        .with_http_connector(open::connector(access));
    let machine = "the identity of this machine";
    let credentials = open::credentials(access, variables, &SECRETS, machine);
    for (name, value) in credentials.used {
        builder = builder.with_config(open::setting(name)?, value);
    }
    // The library's error may repeat a key that it could not decode.
    let objects = builder.build().map_err(|_| {
        let words = &credentials.words;
        format!("{words} are not of the form that Azure gives")
    })?;
    Ok(OpenedStore::of_cloud(
        objects,
        format!("{scheme}://{authority}"),
        [container, key],
        endpoint,
        credentials.words,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(url: &str, set: &[(&str, &str)]) -> Result<OpenedStore, String> {
        let (scheme, rest) = crate::name::split_scheme(url).unwrap();
        let variables = set.iter().copied().collect();
        open(scheme, rest, &Access::default(), &variables)
    }

    const KEY: (&str, &str) = ("AZURE_STORAGE_ACCOUNT_KEY", "aHVudGVyMg==");

    #[test]
    fn the_account_comes_from_the_url_or_from_the_variable() {
        let lake = opened("abfss://c@acc.dfs.core.windows.net/a/b", &[KEY]).unwrap();
        assert_eq!(lake.endpoint, "https://acc.blob.core.windows.net");
        assert_eq!((lake.bucket.as_str(), lake.key.as_str()), ("c", "a/b"));
        assert_eq!(lake.root, "abfss://c@acc.dfs.core.windows.net");
        let blob = opened("az://c/a", &[KEY, (ACCOUNT, "acc")]).unwrap();
        assert_eq!(blob.endpoint, "https://acc.blob.core.windows.net");
        assert!(opened("az://c/a", &[KEY]).err().unwrap().contains(ACCOUNT));
    }

    #[test]
    fn a_password_in_the_url_and_a_broken_key_are_refused_without_showing_them() {
        for url in [
            "abfss://c:hunter2@acc.dfs.core.windows.net/a",
            "az://c:hunter2@acc/a",
            "az:///a",
        ] {
            let error = opened(url, &[KEY, (ACCOUNT, "acc")]).err().unwrap();
            assert!(
                error.contains("no password") && !error.contains("hunter2"),
                "{error}"
            );
        }
        let broken = [("AZURE_STORAGE_ACCOUNT_KEY", "!hunter2!"), (ACCOUNT, "acc")];
        let error = opened("az://c/a", &broken).err().unwrap();
        assert!(
            error.contains("AZURE_STORAGE_ACCOUNT_KEY") && !error.contains("hunter2"),
            "{error}"
        );
    }
}
