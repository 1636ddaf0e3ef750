//! How a version is named: `digits@champion`, `digits@3`, or `digits` for the newest.

use crate::registry::RegistryError;
use std::str::FromStr;

/// A version as a user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The model.
    pub name: String,
    /// Which of its versions.
    pub pick: Pick,
}

/// Which version of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pick {
    /// The one with the highest number.
    Newest,
    /// The one of this number.
    Number(u64),
    /// The one that an alias points to.
    Alias(String),
}

impl FromStr for Reference {
    type Err = RegistryError;

    fn from_str(given: &str) -> Result<Self, RegistryError> {
        let wrong = |why| RegistryError::Reference {
            given: given.to_owned(),
            why,
        };
        let (name, pick) = match given.split_once('@') {
            None => (given, Pick::Newest),
            Some((name, "latest" | "newest")) => (name, Pick::Newest),
            Some((name, which)) => match which.parse() {
                Ok(0) => return Err(wrong("versions are counted from 1")),
                Ok(number) => (name, Pick::Number(number)),
                Err(_) => (name, Pick::Alias(check_alias(which)?.to_owned())),
            },
        };
        let name = check_name(name)?.to_owned();
        Ok(Self { name, pick })
    }
}

/// Refuses a name of a model that would lead elsewhere, or hide.
pub(crate) fn check_name(name: &str) -> Result<&str, RegistryError> {
    let why = "a model's name is 1 to 100 letters, digits, `-`, `_` or `.`, the first of them a letter or a digit";
    check(name, why, |first| first.is_ascii_alphanumeric())
}

/// Refuses an alias that could be taken for a number or for the newest version.
pub(crate) fn check_alias(alias: &str) -> Result<&str, RegistryError> {
    let why = "an alias is 1 to 100 letters, digits, `-`, `_` or `.`, the first of them a letter, and not `latest`";
    if matches!(alias, "latest" | "newest") {
        let given = alias.to_owned();
        return Err(RegistryError::Reference { given, why });
    }
    check(alias, why, |first| first.is_ascii_alphabetic())
}

fn check<'a>(
    text: &'a str,
    why: &'static str,
    starts_well: fn(&u8) -> bool,
) -> Result<&'a str, RegistryError> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let starts_well = text.as_bytes().first().is_some_and(starts_well);
    match starts_well && text.len() <= 100 && text.bytes().all(fits) {
        true => Ok(text),
        false => Err(RegistryError::Reference {
            given: text.to_owned(),
            why,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_named_by_its_number_by_an_alias_or_is_the_newest() {
        let parse = |text: &str| text.parse::<Reference>().unwrap();
        assert_eq!(parse("digits").pick, Pick::Newest);
        assert_eq!(parse("digits@latest").pick, Pick::Newest);
        assert_eq!(parse("digits@3").pick, Pick::Number(3));
        assert_eq!(
            parse("digits@champion").pick,
            Pick::Alias("champion".into())
        );
        for wrong in [
            "", "@3", "digits@", "digits@0", "../x@1", "a@b@c", "a@-x", "a/b",
        ] {
            let error = wrong.parse::<Reference>().unwrap_err().to_string();
            assert!(error.contains("names no version"), "{wrong}: {error}");
        }
    }
}
