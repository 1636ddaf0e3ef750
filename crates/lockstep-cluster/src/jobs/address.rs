//! The address of a head.

use crate::jobs::JobsError;
use std::fmt;
use url::Url;

/// Where a head is looked for if nothing says otherwise.
const DEFAULT: &str = "http://127.0.0.1:8265";

/// The variables that name a head, in the order in which they count, as for Ray's own client.
const VARIABLES: [&str; 2] = ["RAY_API_SERVER_ADDRESS", "RAY_ADDRESS"];

/// The address of a head: `http://HOST:8265`, or below a path where a proxy stands before it.
///
/// Its `Display` leaves out a user name and password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(Url);

impl Address {
    /// The address that was given, or what the environment says, or this machine's own.
    ///
    /// # Errors
    /// When it can be none of a head; the error says where it came from.
    pub fn find(
        given: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Address, JobsError> {
        if let Some(given) = given {
            return Address::parse("--to", given);
        }
        for name in VARIABLES {
            match variable(name) {
                Some(text) if !text.is_empty() => return Address::parse(name, &text),
                _ => (),
            }
        }
        Address::parse("the default", DEFAULT)
    }

    /// Reads an address that came from `source`.
    fn parse(source: &str, text: &str) -> Result<Address, JobsError> {
        let wrong = |why: &str| JobsError::Address {
            from: source.to_owned(),
            given: without_password(text),
            why: why.to_owned(),
        };
        match text.split_once("://") {
            Some(("http" | "https", _)) => (),
            Some(("ray", _)) => {
                return Err(wrong(
                    "that is the address of Ray Client, which has a port of its own",
                ));
            }
            Some((scheme, _)) => return Err(wrong(&format!("`{scheme}://` is not HTTP"))),
            None => return Err(wrong("it has no `http://` or `https://`")),
        }
        let mut url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it has a `?` or a `#`"));
        }
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Address(url))
    }

    /// The URL of what lies at `path` (with its query) below the address.
    /// The port that it names.
    pub(crate) fn port(&self) -> Option<u16> {
        self.0.port()
    }

    pub(crate) fn at(&self, path: &str) -> String {
        let base = self.0.as_str().trim_end_matches('/');
        format!("{base}{path}")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(without_password(self.0.as_str()).trim_end_matches('/'))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// An address without the user name and password that may stand before an `@`.
fn without_password(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), text),
    };
    let (host, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(given: Option<&str>, variables: &[(&str, &str)]) -> Result<Address, JobsError> {
        Address::find(given, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn what_is_given_counts_before_the_variables_and_those_in_rays_order() {
        let both = [
            ("RAY_ADDRESS", "http://b:1"),
            ("RAY_API_SERVER_ADDRESS", "https://a"),
        ];
        let shown = |given, variables: &[_]| find(given, variables).unwrap().to_string();
        assert_eq!(shown(Some("http://c:8265/"), &both), "http://c:8265");
        assert_eq!(shown(None, &both), "https://a");
        assert_eq!(shown(None, &both[..1]), "http://b:1");
        assert_eq!(shown(None, &[("RAY_ADDRESS", "")]), "http://127.0.0.1:8265");
    }

    #[test]
    fn a_path_before_the_head_stays_and_a_password_is_never_shown() {
        let address = find(Some("https://me:secret@gate/ray/"), &[]).unwrap();
        assert_eq!(
            address.at("/api/version"),
            "https://me:secret@gate/ray/api/version"
        );
        assert_eq!(address.to_string(), "https://gate/ray");
        assert!(!format!("{address:?}").contains("secret"));
    }

    #[test]
    fn what_is_no_address_of_a_head_is_refused_with_where_it_came_from() {
        for (given, why) in [
            ("ray://head:10001", "Ray Client"),
            ("head:6379", "no `http://`"),
            ("auto", "no `http://`"),
            ("ftp://head", "not HTTP"),
            ("http://", "empty host"),
            ("http://head/?x=1", "a `?`"),
        ] {
            let error = find(None, &[("RAY_ADDRESS", given)])
                .unwrap_err()
                .to_string();
            assert!(error.contains("RAY_ADDRESS"), "{error}");
            assert!(error.contains(why), "{error}");
            assert!(error.contains("http://HOST:8265"), "{error}");
        }
    }
}
