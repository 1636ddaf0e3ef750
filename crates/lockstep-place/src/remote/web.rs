//! `http://host/file` and `https://host/file`: a plain web server, which can be read and not listed.

use super::open::{self, OpenedStore};
use crate::Access;
use object_store::http::HttpBuilder;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::sync::Arc;
use url::Url;

pub(super) fn open(scheme: &str, rest: &str, access: &Access) -> Result<OpenedStore, String> {
    let malformed = |_| format!("it is not a URL; one looks like {scheme}://host/folder/file");
    let mut url = Url::parse(&format!("{scheme}://{rest}")).map_err(malformed)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "the URL carries a user or a password; places on the web are read without".into(),
        );
    }
    let key = decoded(url.path())?;
    let query = url.query().map(str::to_owned);
    let origin = url.origin().ascii_serialization();
    url.set_path("");
    url.set_fragment(None);
    let objects = HttpBuilder::new()
        .with_url(url.as_str())
        .with_client_options(open::client(access, scheme == "http"))
        .with_retry(open::no_retries())
        .with_http_connector(open::connector(access))
        .build()
        .map_err(|_| "the server's name is wrong".to_owned())?;
    Ok(OpenedStore {
        objects: Arc::new(objects),
        pieces: None,
        root: origin.clone(),
        query,
        bucket: url.host_str().unwrap_or_default().into(),
        endpoint: origin,
        credentials: "no credentials (it is a web server)".into(),
        key,
    })
}

/// A URL's path as a name: `%20` stands for a blank.
fn decoded(path: &str) -> Result<String, String> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    let parts = path.split('/');
    let parts = parts.map(|part| percent_decode_str(part).decode_utf8());
    let parts: Vec<Cow<'_, str>> = parts
        .collect::<Result<_, _>>()
        .map_err(|_| "its path is not UTF-8".to_owned())?;
    if parts.iter().any(|part| part.contains('/')) {
        return Err("its path has a slash (%2F) inside a name".into());
    }
    Ok(parts.join("/"))
}

/// A name as the path of a URL: [`decoded`] gives it back.
pub(super) fn encoded(name: &str) -> String {
    let mut path = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            // What would mean something else there.
            '%' | '?' | '#' | '\\' => path.push_str(&format!("%{:02X}", letter as u32)),
            _ => path.push(letter),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_decoded_into_a_name() {
        assert_eq!(decoded("/a%20b/%C3%BC.jpg").unwrap(), "a b/ü.jpg");
        assert_eq!(decoded("/100%/%zz/%4").unwrap(), "100%/%zz/%4");
        assert!(decoded("/a%2Fb").is_err() && decoded("/%FF").is_err());
    }

    #[test]
    fn a_name_comes_back_from_the_path_of_its_url() {
        for name in ["a b/ü.jpg", "100%/%41/a?b#c", "a\\b"] {
            let url = Url::parse(&format!("https://host/{}", encoded(name))).unwrap();
            assert_eq!(decoded(url.path()).unwrap(), name);
        }
    }

    #[test]
    fn a_password_is_refused_and_a_query_is_not_shown() {
        let error = open("https", "me:hunter2@host/a", &Access::default())
            .err()
            .unwrap();
        assert!(error.contains("password") && !error.contains("hunter2"));
        let signed = open("https", "host/a?sig=hunter2", &Access::default()).unwrap();
        assert_eq!(signed.root, "https://host");
        assert_eq!(signed.query.as_deref(), Some("sig=hunter2"));
    }
}
