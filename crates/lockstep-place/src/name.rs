//! Names within a place, which cannot lead out of it, and the parts of a URL that may be shown.

/// How many bytes a name may have: as many as a key of S3.
const LONGEST: usize = 1024;

/// Checks that `name` leads from a place to something within it: `a/b.jpg`.
///
/// What it refuses, it refuses for local folders and object stores alike, so that a job that works on
/// one works on the other.
pub(crate) fn check(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("it is empty");
    }
    if name.len() > LONGEST {
        return Err("it has more than 1024 bytes");
    }
    if name.chars().any(|c| c.is_ascii_control()) {
        return Err("it has a control character in it");
    }
    for part in name.split('/') {
        match part {
            "" => return Err("it begins or ends with a slash, or has two in a row"),
            "." | ".." => return Err("it goes through `.` or `..`"),
            _ => {}
        }
    }
    Ok(())
}

/// The scheme and the rest of `scheme://rest`; none for a path.
pub(crate) fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let mut letters = scheme.bytes();
    let fits = letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    fits.then_some((scheme, rest))
}

/// `text` without what may be secret in a URL: a user's name and password, and the query.
pub(crate) fn redacted(text: &str) -> String {
    let Some((scheme, rest)) = split_scheme(text) else {
        return text.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit('@').next().unwrap_or_default();
    let user = if host.len() < authority.len() {
        "…@"
    } else {
        ""
    };
    let (path, query) = match path.find(['?', '#']) {
        Some(at) => (&path[..at], "?…"),
        None => (path, ""),
    };
    format!("{scheme}://{user}{host}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::{Component, Path};

    #[test]
    fn names_that_lead_out_are_refused() {
        for name in [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            "..",
            "../x",
            "a/../../x",
            "a/.",
            "a\0b",
            "a\nb",
        ] {
            assert!(check(name).is_err(), "{name:?}");
        }
        for name in [
            "a",
            "a/b.jpg",
            "..a/b..",
            ".hidden",
            "_SUCCESS",
            "ü/é ?#%.png",
            "a\\b",
        ] {
            assert_eq!(check(name), Ok(()), "{name:?}");
        }
    }

    #[test]
    fn a_name_is_no_longer_than_a_key_of_s3() {
        assert_eq!(check(&"a".repeat(1024)), Ok(()));
        assert!(check(&"a/".repeat(3000)).is_err());
    }

    #[test]
    fn a_url_is_shown_without_its_password_and_its_query() {
        let url = "https://me:hunter2@host:1/a/b?sig=hunter2#hunter2";
        assert_eq!(redacted(url), "https://…@host:1/a/b?…");
        assert_eq!(redacted("https://host?hunter2"), "https://host?…");
        assert_eq!(redacted("s3://b/k"), "s3://b/k");
        assert_eq!(redacted("a/b?c"), "a/b?c");
    }

    #[test]
    fn only_a_scheme_makes_a_url() {
        assert_eq!(split_scheme("s3://b/k"), Some(("s3", "b/k")));
        assert_eq!(split_scheme("data/x"), None);
        assert_eq!(split_scheme("./odd name://x"), None);
    }

    proptest! {
        #[test]
        fn whatever_passes_stays_below_its_folder(name in "[ab./\\\\]{0,12}") {
            if check(&name).is_ok() {
                prop_assert!(Path::new(&name).components().all(|part| matches!(part, Component::Normal(_))));
            }
        }
    }
}
