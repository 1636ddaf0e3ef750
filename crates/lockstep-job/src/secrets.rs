//! Text without what only its user should know: the one list of what is a secret, and the two ways to leave it out.
//!
//! A URL may carry a user with a password, or a signature that lets whoever has it read for a while. Both are
//! needed to reach the place and by nobody else, and a signature is another one tomorrow. So what is
//! written down or compared is the URL without them ([`without_secrets`]): it names the same data.
//!
//! Command lines, changes that are not committed and lines of job files are any text. There, every letter that may be
//! secret becomes a star ([`masked`]): passwords and queries of URLs, addresses of webhooks, what is assigned to a name
//! that says that it is a secret, and what looks like a key of a service.

use serde_json::Value;
use std::borrow::Cow;
use std::ops::Range;

/// How names of secrets end, wherever they stand. Here and below in small letters, without `-`, `_` and `.`.
const SECRET_ENDINGS: [&str; 20] = [
    "accesskey",
    "accesskeyid",
    "accountkey",
    "apikey",
    "authkey",
    "connectionstring",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "secret",
    "secretkey",
    "signature",
    "signingkey",
    "token",
    "webhook",
    "webhookurl",
];
/// Names that are secrets only as a whole.
const SECRET_NAMES: [&str; 10] = [
    "auth",
    "authorization",
    "bearer",
    "hmac",
    "jwt",
    "pass",
    "pat",
    "pw",
    "sas",
    "sig",
];
/// Names that are secrets in the query of a URL, and words like any other elsewhere.
const SECRET_IN_QUERY: [&str; 8] = [
    "code",
    "googleaccessid",
    "key",
    "keypairid",
    "policy",
    "sessionid",
    "sid",
    "ticket",
];
/// How others of them begin: those of Amazon's and of Google's signatures.
const SECRET_PREFIXES: [&str; 2] = ["xamz", "xgoog"];
/// What belongs to a signature where there is one: Azure's terms, and the end of others' time.
const TERMS: [&str; 16] = [
    "expires", "se", "si", "ske", "skoid", "sks", "skt", "sktid", "skv", "sp", "spr", "sr", "srt",
    "ss", "st", "sv",
];
/// Lines with one of these may hold an address all of which is a secret but its host.
const HOOKS: [&str; 2] = ["hook", "api.telegram.org"];
/// How values begin that are looked at as addresses, or only name the place of a secret.
const NO_SECRETS: [&str; 5] = ["http://", "https://", "env:", "os.environ", "os.getenv"];
/// How the keys begin that well-known services hand out.
const KEY_BEGINNINGS: [&str; 14] = [
    "AIza",
    "AKIA",
    "ASIA",
    "eyJ",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "hf_",
    "sk-",
    "xoxb-",
    "xoxp-",
    "ya29.",
];
/// No such key is shorter.
const SHORTEST_KEY: usize = 16;
/// What stands for a secret of which not even the length is told.
pub(crate) const LEFT_OUT: &str = "...";

/// Whether the value of something with this name is a secret, wherever it stands.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = plain(name);
    SECRET_NAMES.contains(&name.as_str()) || SECRET_ENDINGS.iter().any(|end| name.ends_with(end))
}

/// A name in small letters, without what stands between its parts.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

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

/// A text with a star for every letter that may be secret. It has as many letters as before.
pub fn masked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut in_key = false;
    for line in text.split_inclusive('\n') {
        let mut hidden = Vec::new();
        let is_edge = line.contains("PRIVATE KEY-----");
        if in_key && !is_edge {
            hidden.push(0..line.trim_end().len());
        }
        in_key = in_key && !is_edge || line.contains("-----BEGIN") && is_edge;
        find_in_urls(line, &mut hidden);
        find_assigned(line, &mut hidden);
        find_keys(line, &mut hidden);
        let mut is_hidden = vec![false; line.len()];
        for range in hidden {
            is_hidden[range].fill(true);
        }
        let letters = line.char_indices();
        shown.extend(letters.map(|(at, c)| if is_hidden[at] { '*' } else { c }));
    }
    shown
}

/// The words of a command, masked: also one that follows an option such as `--api-key`.
pub fn masked_words<'w>(words: impl IntoIterator<Item = &'w str>) -> Vec<String> {
    let mut follows = false;
    let masked = words.into_iter().map(|word| {
        let is_option = word.starts_with('-');
        let hide = std::mem::replace(&mut follows, is_option && is_secret_name(word));
        match hide && !is_option {
            true => LEFT_OUT.to_owned(),
            false => masked(word),
        }
    });
    masked.collect()
}

/// Whether this word of a command had a secret before it was masked ([`masked_words`]).
pub(crate) fn was_masked(word: &str) -> bool {
    word == LEFT_OUT || word.contains('*') && masked(&word.replace('*', "x")) == word
}

/// Users and passwords, queries, and all of a webhook's address but its host.
fn find_in_urls(line: &str, hidden: &mut Vec<Range<usize>>) {
    let lower = line.to_ascii_lowercase();
    let hook = HOOKS.iter().any(|mark| lower.contains(mark));
    let mut from = 0;
    while let Some(at) = line[from..].find("://") {
        let scheme = line[from..from + at].rsplit(|c: char| !c.is_ascii_alphanumeric());
        let web = scheme.into_iter().next().unwrap_or("").starts_with("http");
        from += at + 3;
        let is_end = |c: char| c.is_whitespace() || c == '"' || c == '\'';
        let url = &line[from..];
        let url = &url[..url.find(is_end).unwrap_or(url.len())];
        let host_end = url.find(['/', '?', '#']).unwrap_or(url.len());
        match url[..host_end].rfind('@') {
            Some(end) if web || url[..end].contains(':') => hidden.push(from..from + end),
            _ => {}
        }
        let query = url.find('?').filter(|_| web).map_or(url.len(), |at| at + 1);
        let open = if hook { host_end } else { query };
        from += url.len();
        hidden.push(from - (url.len() - open)..from);
    }
}

/// What is assigned to a secret name: `name = value`, `"name": "value"`, `--name value`.
fn find_assigned(line: &str, hidden: &mut Vec<Range<usize>>) {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut rest = line;
    while let Some(start) = rest.find(is_name) {
        let named = &rest[start..];
        let (name, after) = named.split_at(named.find(|c| !is_name(c)).unwrap_or(named.len()));
        rest = after;
        if !is_secret_name(name) {
            continue;
        }
        let value = after.trim_start_matches(['"', '\'']).trim_start();
        let assigned = value.trim_start_matches(['=', ':', '>']);
        if assigned.len() == value.len() && !(name.starts_with("--") && value.len() < after.len()) {
            continue;
        }
        rest = assigned.trim_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let value = &rest[usize::from(quote.is_some())..];
        let is_open = |open: &&str| value.starts_with(*open);
        if NO_SECRETS.iter().any(is_open) || quote.is_none() && value.starts_with(['{', '[']) {
            continue;
        }
        let end = match quote {
            Some(quote) => value.find(quote),
            None => value.find([',', ';', '}', ']', ')', '&', '"', '\'', '\n', '\r']),
        };
        let end = end.unwrap_or(value.len());
        let at = line.len() - value.len();
        hidden.push(at..at + end);
        rest = &value[end..];
    }
}

/// What looks like a key that a service hands out.
fn find_keys(line: &str, hidden: &mut Vec<Range<usize>>) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    for word in line.split(|c| !is_part(c)) {
        let known = KEY_BEGINNINGS.iter().any(|begin| word.starts_with(begin));
        if known && word.len() >= SHORTEST_KEY {
            let at = word.as_ptr() as usize - line.as_ptr() as usize;
            hidden.push(at..at + word.len());
        }
    }
}

/// A query without what is secret in it.
fn open_parameters(query: &str) -> String {
    let name = |parameter: &str| plain(parameter.split('=').next().unwrap_or_default());
    let is_secret = |parameter: &&str| {
        let name = name(parameter);
        is_secret_name(&name)
            || SECRET_IN_QUERY.contains(&name.as_str())
            || SECRET_PREFIXES.iter().any(|p| name.starts_with(p))
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
    fn the_well_known_names_of_secrets_in_urls_are_left_out() {
        for name in [
            "private_token",
            "code",
            "api-key",
            "api_key",
            "sas",
            "access_token",
            "client-secret",
            "X-Goog-Credential",
            "Key-Pair-Id",
        ] {
            let url = format!("https://h/get?id=5&{name}=hunter2");
            assert_eq!(without_secrets(&url), "https://h/get?id=5", "{name}");
        }
    }

    #[test]
    fn what_is_assigned_to_a_secret_name_is_masked() {
        for text in [
            "--api-key=hunter2",
            "--api-key hunter2",
            "notify={webhook=hunter2}",
            r#"notify={webhook="hunter2", on=["failure"]}"#,
            r#"notify = { webhook = "https://h.example/hunter2" }"#,
            "url = 'https://hooks.slack.com/services/hunter2'",
            "AWS_SECRET_ACCESS_KEY=hunter2",
            "+DB_PASSWORD: 'hunter2 and more hunter2'",
            r#"{"client_secret" : "hunter2"}"#,
            "-H 'Authorization: Bearer hunter2'",
            "if token == \"hunter2\":",
            "x = ghp_hunter2hunter2hunter2",
        ] {
            let shown = masked(text);
            assert!(!shown.contains("hunter2"), "{shown}");
            assert_eq!(shown.chars().count(), text.chars().count());
        }
        assert_eq!(
            masked("a=[1]\npassword = \"é\" # b\nlr=0.1"),
            "a=[1]\npassword = \"*\" # b\nlr=0.1"
        );
        let key = "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----\na\n";
        assert_eq!(masked(key), key.replace("hunter2", "*******"));
        for plain in [
            "max_tokens=5",
            "token",
            "tokens: 3",
            r#"webhook = "env:HOOK""#,
            r#"password = os.environ["P"]"#,
            "key = value",
        ] {
            assert_eq!(masked(plain), plain);
        }
    }

    #[test]
    fn the_word_after_a_secret_option_is_left_out() {
        let words = ["x.py", "--token", "hunter2", "--auth", "--lr", "0.1"];
        let shown = ["x.py", "--token", "...", "--auth", "--lr", "0.1"];
        assert_eq!(masked_words(words), shown);
        let hidden = words
            .iter()
            .zip(&shown)
            .filter(|(word, shown)| *word != *shown);
        assert!(hidden.clone().all(|(_, shown)| was_masked(shown)));
        assert!(!words.iter().any(|word| was_masked(word)) && !was_masked("data/*.csv"));
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
