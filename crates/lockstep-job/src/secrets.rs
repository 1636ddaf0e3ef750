//! URLs without what only their user should know.
//!
//! A URL may carry a user with a password, or a signature that lets whoever has it read for a while. Both are
//! needed to reach the place and by nobody else, and a signature is another one tomorrow. So what is
//! shown, written down or compared is the URL without them: it names the same data.

use serde_json::Value;
use std::borrow::Cow;

/// Parameters that are secrets, or say how and until when a secret holds. In small letters.
const SECRET: [&str; 16] = [
    "access_token",
    "api_key",
    "apikey",
    "auth",
    "awsaccesskeyid",
    "googleaccessid",
    "key",
    "key-pair-id",
    "password",
    "policy",
    "secret",
    "sig",
    "signature",
    "token",
    "hmac",
    "jwt",
];
/// Their beginnings.
const SECRET_PREFIXES: [&str; 2] = ["x-amz-", "x-goog-"];
/// What belongs to a signature where there is one: Azure's terms, and the end of others' time.
const TERMS: [&str; 16] = [
    "expires", "se", "si", "ske", "skoid", "sks", "skt", "sktid", "skv", "sp", "spr", "sr", "srt",
    "ss", "st", "sv",
];

/// `text` as it is, or a URL without its user, its password and its signature.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.into();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    // An `abfs` URL has its container before the `@`, which is no secret; a password comes after a colon.
    let host = match authority.rsplit_once('@') {
        Some((user, host)) if user.contains(':') || scheme.starts_with("http") => host,
        _ => authority,
    };
    // Only on the web does a name end at a question mark.
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) if scheme.starts_with("http") => (path, query),
        _ => (rest, ""),
    };
    let kept = open_parameters(query);
    if host.len() == authority.len() && kept.len() == query.len() {
        return text.into();
    }
    let mark = if kept.is_empty() { "" } else { "?" };
    format!("{scheme}://{host}{path}{mark}{kept}").into()
}

/// A line of a file in which URLs may stand, with a star for every letter of theirs that may be secret.
pub(crate) fn masked(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    // All of a webhook's address but its host is a secret.
    let webhook = line.contains("webhook");
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (before, from) = rest.split_at(at + 3);
        let is_end = |c: char| c.is_whitespace() || c == '"' || c == '\'';
        let (url, after) = from.split_at(from.find(is_end).unwrap_or(from.len()));
        let scheme = before[..at].rsplit(|c: char| !c.is_ascii_alphanumeric());
        let web = scheme.into_iter().next().unwrap_or("").starts_with("http");
        let host_end = url.find(['/', '?', '#']).unwrap_or(url.len());
        let user = match url[..host_end].rfind('@') {
            Some(end) if web || url[..end].contains(':') => end,
            _ => 0,
        };
        let query = url.find('?').filter(|_| web).map_or(url.len(), |at| at + 1);
        shown += before;
        let letters = url.char_indices();
        let open = user..if webhook { host_end } else { query };
        shown.extend(letters.map(|(at, c)| if open.contains(&at) { c } else { '*' }));
        rest = after;
    }
    shown + rest
}

/// A query without what is secret in it.
fn open_parameters(query: &str) -> String {
    let name = |parameter: &str| {
        let name = parameter.split('=').next().unwrap_or_default();
        name.to_ascii_lowercase()
    };
    let is_secret = |parameter: &&str| {
        let name = name(parameter);
        SECRET.contains(&name.as_str()) || SECRET_PREFIXES.iter().any(|p| name.starts_with(p))
    };
    let signed = query.split('&').any(|parameter| is_secret(&parameter));
    let open = query.split('&').filter(|parameter| {
        let term = signed && TERMS.contains(&name(parameter).as_str());
        !is_secret(parameter) && !term
    });
    open.collect::<Vec<_>>().join("&")
}

/// Leaves out of every URL what is another tomorrow and names no other data: its signature.
pub fn hide_secrets(value: &mut Value) {
    match value {
        Value::String(text) => *text = without_secrets(text).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(hide_secrets),
        Value::Object(keys) => keys.values_mut().for_each(hide_secrets),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_signature_is_left_out_and_what_names_the_data_is_kept() {
        for (url, open) in [
            (
                "https://b.s3.amazonaws.com/a.parquet?X-Amz-Algorithm=AWS4&X-Amz-Expires=60&X-Amz-Signature=hunter2",
                "https://b.s3.amazonaws.com/a.parquet",
            ),
            (
                "https://acc.blob.core.windows.net/c/a.csv?sv=2024&se=2026-01-01&sr=b&sp=r&sig=hunter2",
                "https://acc.blob.core.windows.net/c/a.csv",
            ),
            ("https://h/get?id=5&token=hunter2", "https://h/get?id=5"),
            ("https://me:hunter2@h/a?id=5", "https://h/a?id=5"),
            ("http://hunter2@h:9000", "http://h:9000"),
            ("s3://me:hunter2@b/a", "s3://b/a"),
        ] {
            assert_eq!(without_secrets(url), open);
        }
    }

    #[test]
    fn a_line_is_shown_with_stars_where_secrets_may_stand() {
        assert_eq!(
            masked(r#"a = "https://me:pw@h/x?sig=é" # and http://h"#),
            r#"a = "https://*****@h/x?*****" # and http://h"#
        );
        assert_eq!(
            masked(r#"webhook = "https://h/a/b""#),
            r#"webhook = "https://h****""#
        );
        let plain = r#"store = "abfss://c@acc.x/a?b""#;
        assert_eq!(masked(plain), plain);
    }

    #[test]
    fn what_holds_no_secret_stays_as_it_is() {
        for url in [
            "https://h/get?id=5&sp=3",
            "abfss://c@acc.dfs.core.windows.net/a",
            "s3://b/what?sig=this",
            "/data/a?sig=b",
            "a b",
            "",
        ] {
            assert!(matches!(without_secrets(url), Cow::Borrowed(same) if same == url));
        }
    }

    #[test]
    fn a_renewed_signature_names_the_same_data() {
        let data = |signature: &str| {
            let url = format!("https://host/a.csv?id=1&X-Amz-Signature={signature}");
            let mut value = json!({ "train": { "file": url }, "sets": ["/a?sig=b"] });
            hide_secrets(&mut value);
            value
        };
        assert_eq!(data("old"), data("new"));
        assert_eq!(data("x")["train"]["file"], "https://host/a.csv?id=1");
        assert_eq!(data("x")["sets"][0], "/a?sig=b");
    }
}
