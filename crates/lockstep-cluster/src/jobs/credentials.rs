//! What a client shows a head so that it is let in.
//!
//! Tokens are found in `LOCKSTEP_TOKEN`, and where Ray's own client finds them. Unlike it, this one sends a token whenever the head asks
//! for one, and not to a head that asks for none: there it would only be told to a stranger.

use crate::jobs::JobsError;
use lockstep_place::http::{HeaderMap, HeaderName, HeaderValue, header};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The places where a token may lie, in the order in which they count.
pub(crate) const PLACES: &str = "LOCKSTEP_TOKEN, RAY_AUTH_TOKEN, the file that RAY_AUTH_TOKEN_PATH names, and ~/.ray/auth_token";

/// A token, and where it was found.
#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) header: HeaderValue,
    pub(crate) from: String,
}

/// The headers and the token that a client may send.
#[derive(Clone, Default)]
pub struct Credentials {
    /// Sent with every request.
    pub(crate) headers: HeaderMap,
    /// Sent once the head has asked for it.
    pub(crate) token: Option<Token>,
    /// Whether the token is sent without being asked for, as `RAY_AUTH_MODE=token` has it.
    pub(crate) at_once: bool,
}

impl Credentials {
    /// The headers that were given as a JSON object, or those of `RAY_JOB_HEADERS`; the token of the environment
    /// or of its file.
    ///
    /// # Errors
    /// When the headers are none, or a token's file cannot be read.
    pub fn find(
        headers: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Credentials, JobsError> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let headers = match headers {
            Some(text) => parse_headers("--headers", text)?,
            None => match set("RAY_JOB_HEADERS") {
                Some(text) => parse_headers("RAY_JOB_HEADERS", &text)?,
                None => HeaderMap::new(),
            },
        };
        let token = match headers.contains_key(header::AUTHORIZATION) {
            // Whoever writes that header wants it to be the one that counts.
            true => None,
            false => find_token(&set)?,
        };
        let at_once = set("RAY_AUTH_MODE").is_some_and(|mode| mode.eq_ignore_ascii_case("token"));
        Ok(Credentials {
            headers,
            token,
            at_once,
        })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("Credentials")
            .field("headers", &names)
            .field("token", &self.token.as_ref().map(|token| &token.from))
            .finish_non_exhaustive()
    }
}

fn find_token(set: &dyn Fn(&str) -> Option<String>) -> Result<Option<Token>, JobsError> {
    for name in ["LOCKSTEP_TOKEN", "RAY_AUTH_TOKEN"] {
        if let Some(token) = set(name) {
            return bearer(&token, name.to_owned()).map(Some);
        }
    }
    let named = set("RAY_AUTH_TOKEN_PATH").map(PathBuf::from);
    let usual = || set("HOME").map(|home| PathBuf::from(home).join(".ray/auth_token"));
    let Some(path) = named.clone().or_else(usual) else {
        return Ok(None);
    };
    match std::fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() => {
            bearer(text.trim(), path.display().to_string()).map(Some)
        }
        // The usual place need not be there; one that was named must be.
        Ok(_) if named.is_none() => Ok(None),
        Err(_) if named.is_none() && !path.exists() => Ok(None),
        Ok(_) => Err(JobsError::Token {
            from: path.display().to_string(),
            why: "the file is empty".to_owned(),
        }),
        Err(error) => Err(JobsError::Token {
            from: path.display().to_string(),
            why: error.to_string(),
        }),
    }
}

fn bearer(token: &str, from: String) -> Result<Token, JobsError> {
    match HeaderValue::from_str(&format!("Bearer {}", token.trim())) {
        Ok(mut header) => {
            header.set_sensitive(true);
            Ok(Token { header, from })
        }
        Err(_) => Err(JobsError::Token {
            from,
            why: "it has characters that no header may have".to_owned(),
        }),
    }
}

fn parse_headers(from: &str, text: &str) -> Result<HeaderMap, JobsError> {
    let wrong = |why: String| JobsError::Headers {
        from: from.to_owned(),
        why,
    };
    let pairs: std::collections::BTreeMap<String, String> = serde_json::from_str(text)
        .map_err(|_| wrong("it is not a JSON object whose values are strings".to_owned()))?;
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let bad = || {
            wrong(format!(
                "{name:?} is not the name of a header, or its value is not text"
            ))
        };
        let key = HeaderName::from_str(&name).map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(&value).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(headers: Option<&str>, variables: &[(&str, &str)]) -> Result<Credentials, JobsError> {
        Credentials::find(headers, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn token(variables: &[(&str, &str)]) -> Option<String> {
        let found = find(None, variables).unwrap().token?;
        Some(found.header.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_token_is_found_in_rays_order() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".ray")).unwrap();
        std::fs::write(home.path().join(".ray/auth_token"), "of-home\n").unwrap();
        let named = home.path().join("named");
        std::fs::write(&named, "of-file").unwrap();
        let home = ("HOME", home.path().to_str().unwrap());
        let file = ("RAY_AUTH_TOKEN_PATH", named.to_str().unwrap());
        let direct = ("RAY_AUTH_TOKEN", "direct");
        let own = ("LOCKSTEP_TOKEN", "own");
        assert_eq!(token(&[home, file, direct, own]).unwrap(), "Bearer own");
        assert_eq!(token(&[home, file, direct]).unwrap(), "Bearer direct");
        assert_eq!(token(&[home, file]).unwrap(), "Bearer of-file");
        assert_eq!(token(&[home]).unwrap(), "Bearer of-home");
        assert_eq!(token(&[("HOME", "/nowhere")]), None);
    }

    #[test]
    fn a_token_file_that_is_named_must_be_there() {
        let error = find(None, &[("RAY_AUTH_TOKEN_PATH", "/nowhere/token")]).unwrap_err();
        assert!(error.to_string().contains("/nowhere/token"), "{error}");
    }

    #[test]
    fn headers_come_from_the_option_before_the_variable_and_are_never_shown() {
        let variables = [
            ("RAY_JOB_HEADERS", r#"{"a": "1"}"#),
            ("RAY_AUTH_TOKEN", "t"),
        ];
        let of_variable = find(None, &variables).unwrap();
        assert_eq!(of_variable.headers["a"], "1");
        assert!(of_variable.token.is_some());
        let given = find(Some(r#"{"Authorization": "secret"}"#), &variables).unwrap();
        assert!(!given.headers.contains_key("a"));
        assert!(given.token.is_none(), "the header that was given counts");
        assert!(!format!("{given:?}").contains("secret"));
        for wrong in ["[]", "x", r#"{"a": 1}"#, r#"{"a b": "1"}"#] {
            let error = find(Some(wrong), &[]).unwrap_err().to_string();
            assert!(error.contains("--headers"), "{error}");
        }
    }

    #[test]
    fn a_token_that_no_header_can_carry_is_refused_without_being_shown() {
        let error = find(None, &[("RAY_AUTH_TOKEN", "sec\nret")])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("RAY_AUTH_TOKEN") && !error.contains("ret\n"),
            "{error}"
        );
    }
}
