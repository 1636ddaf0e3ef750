//! A file or folder that may lie elsewhere.

use crate::field::Field;
use crate::keys::FromField;
use crate::nearest::suggestion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The places outside this machine that can be read and written.
const SCHEMES: [&str; 7] = ["s3", "az", "abfs", "abfss", "gs", "http", "https"];

/// A file or folder: an absolute path on this machine, or a URL such as `s3://bucket/folder`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Location(String);

impl Location {
    /// What a path or URL leads to; a path must be absolute.
    pub fn new(text: impl Into<String>) -> Location {
        Location(text.into())
    }

    /// The path or URL.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is a URL, not a path on this machine.
    pub fn is_url(&self) -> bool {
        scheme(&self.0).is_some()
    }

    /// What lies under this name in the folder.
    pub fn join(&self, name: &str) -> Location {
        Location(format!("{}/{name}", self.0.trim_end_matches('/')))
    }

    /// The same place, its name without a `/` at the end.
    pub(super) fn without_slash(self) -> Location {
        Location(self.0.trim_end_matches('/').to_owned())
    }

    /// Whether the name ends so, in any case.
    pub(super) fn has_extension(&self, extension: &str) -> bool {
        has_extension(&self.0, extension)
    }

    /// The same of a file that may be gzipped.
    pub(super) fn has_extension_or_gz(&self, extension: &str) -> bool {
        let unpacked = match has_extension(&self.0, "gz") {
            true => &self.0[..self.0.len() - ".gz".len()],
            false => &self.0,
        };
        has_extension(unpacked, extension)
    }
}

fn has_extension(name: &str, extension: &str) -> bool {
    let suffix = name.rsplit_once('.').map(|(_, suffix)| suffix);
    suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case(extension))
}

impl FromField for Location {
    fn from_field(field: &Field<'_>) -> Option<Location> {
        let text = field.text()?;
        let Some(scheme) = scheme(text) else {
            let path = field.path()?;
            return match path.to_str() {
                Some(path) => Some(Location(path.to_owned())),
                None => field.reject("leads through a folder whose name is not text", "rename it"),
            };
        };
        if let Some(path) = text
            .strip_prefix("file://")
            .filter(|path| path.starts_with('/'))
        {
            return Some(Location(path.to_owned()));
        }
        if !SCHEMES.contains(&scheme) {
            return field.reject(
                format!("cannot be a `{scheme}://` URL"),
                suggestion(scheme, &SCHEMES),
            );
        }
        Some(Location(text.to_owned()))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What stands before `://`, if this is a URL.
pub(super) fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    (!scheme.contains('/')).then_some(scheme)
}
