//! What can go wrong with a place: which one, what was tried, and what was said.
//!
//! No message holds a secret: places show themselves without queries and passwords, and of a server's
//! answer only its code and its sentence are kept.

use lockstep_base::fs::FsError;
use std::error::Error;
use std::io;
use std::ops::Range;
use std::path::Path;

/// The schemes that a place may have, for the messages.
pub(crate) const SCHEMES: &str =
    "a local path, file://, s3://, az://, abfs://, abfss://, gs://, http:// or https://";

/// Why something failed that may succeed later: a store is out of reach, or somebody is writing there.
///
/// It is the last source of such an error. So it is found however that error is wrapped: a wrapper that hides itself
/// (`#[error(transparent)]`) hides the [`PlaceError`] from whoever follows the sources, but not what lies behind it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Passing(String);

impl Passing {
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }

    /// What is said of an object that changed; a part of the whole message.
    pub(crate) fn changed() -> Self {
        Self::new("changed while it was read")
    }
}

/// Whether an error, or what it comes from, may be gone later: a place was out of reach, or changed meanwhile.
pub fn is_passing(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<Passing>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// A place could not be used as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The scheme is none that is known.
    #[error("{place}: there is no scheme `{scheme}://`; use {SCHEMES}")]
    Scheme {
        /// The place as given, without secrets.
        place: String,
        /// What stood before `://`.
        scheme: String,
    },
    /// The place's own name is wrong.
    #[error("{place}: {why}")]
    Url {
        /// The place as given, without secrets.
        place: String,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// A name does not lead to something within the place.
    #[error(
        "`{name}` names nothing within {place}: {why}; a name is made of parts between single slashes, like a/b.jpg"
    )]
    Name {
        /// The place.
        place: String,
        /// The name within it.
        name: String,
        /// What is wrong with the name.
        why: &'static str,
    },
    /// A key of [`Access`](crate::Access) or a variable of the environment makes no sense.
    #[error("cannot reach {place}: {why}")]
    Setting {
        /// The place.
        place: String,
        /// Which key or variable, and what would be right. Never its value if that is secret.
        why: String,
    },
    /// The file system refused.
    #[error("cannot {doing} {place}: {source}")]
    Io {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The path.
        place: String,
        /// Why it failed.
        source: io::Error,
    },
    /// A local file could not be written whole.
    #[error(transparent)]
    Write(#[from] FsError),
    /// There is no such file or object.
    #[error("{place} does not exist")]
    NotFound {
        /// The place.
        place: String,
    },
    /// There is no such bucket or container.
    #[error("cannot {doing} {place}: there is no bucket `{bucket}` at {endpoint}")]
    NoBucket {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The place.
        place: String,
        /// The bucket, or Azure's container.
        bucket: String,
        /// The server that was asked.
        endpoint: String,
    },
    /// The store does not accept who asks, or does not allow it.
    #[error("cannot {doing} {place}: the store refused with {said}; asked with {credentials}")]
    Refused {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The place.
        place: String,
        /// The server's status and words.
        said: String,
        /// Which credentials were used and which variables were looked at; no secret.
        credentials: String,
    },
    /// There are no credentials, and the machine has no role of its own.
    #[error(
        "cannot {doing} {place}: there are no credentials; {credentials}; set them, or `anonymous = true` for public data"
    )]
    NoCredentials {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The place.
        place: String,
        /// Which variables were looked at.
        credentials: String,
    },
    /// The server could not be reached, or broke off, as often as it was tried.
    #[error("cannot {doing} {place}: {endpoint} failed {tries}: {cause}", tries = times(*.tries))]
    Unreachable {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The place.
        place: String,
        /// The server that was asked.
        endpoint: String,
        /// How often.
        tries: u32,
        /// What happened the last time.
        #[source]
        cause: Passing,
    },
    /// The time for the operation is over.
    #[error(
        "cannot {doing} {place}: not done after {seconds} s (timeout_s){progress}, tried {tries}{cause}",
        tries = times(*.tries)
    )]
    TimedOut {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The place.
        place: String,
        /// The time that there was.
        seconds: u64,
        /// How far it came, or nothing.
        progress: String,
        /// How often.
        tries: u32,
        /// What went wrong before, or nothing.
        #[source]
        cause: Passing,
    },
    /// The server answered with an error that would come again.
    #[error("cannot {doing} {place}: {endpoint} answered {said}")]
    Answer {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The place.
        place: String,
        /// The server that was asked.
        endpoint: String,
        /// The server's status and words.
        said: String,
    },
    /// The object was replaced while it was read.
    #[error(
        "{place} changed while it was read: nothing of it was used; read it again when its writer is done"
    )]
    Changed {
        /// The place.
        place: String,
        /// That it changed.
        #[source]
        cause: Passing,
    },
    /// The file is larger than one of its kind is.
    #[error("{place} has {size} bytes, and a file of its kind has at most {most}: it is not read")]
    TooLarge {
        /// The place.
        place: String,
        /// Its size.
        size: u64,
        /// The most that is read.
        most: u64,
    },
    /// The range goes past the end.
    #[error("{place} has {size} bytes: it has none of {} to {}", range.start, range.end)]
    PastTheEnd {
        /// The place.
        place: String,
        /// Its size.
        size: u64,
        /// What was asked for.
        range: Range<u64>,
    },
    /// The server answers whole files only.
    #[error(
        "cannot read a part of {place}: the server sends whole files only (it ignores `Range`)"
    )]
    NoRanges {
        /// The place.
        place: String,
    },
    /// A web server cannot be asked what it has.
    #[error(
        "cannot list {place}: a web server has no list of its files; name a single file, or use a store (s3://, az://, gs://)"
    )]
    NoListing {
        /// The place.
        place: String,
    },
    /// A web server cannot be written to.
    #[error("cannot {doing} {place}: http and https places can only be read")]
    ReadOnly {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The place.
        place: String,
    },
    /// It is known by name only, and may not be downloaded.
    #[error("--offline or LOCKSTEP_OFFLINE forbids to download {place}")]
    Offline {
        /// The place.
        place: String,
    },
    /// A published package is not as it should be.
    #[error("{place}: {why}")]
    Package {
        /// The place.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// The store library or the system failed in a way of its own.
    #[error("cannot {doing} {place}: {cause}")]
    Other {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The place.
        place: String,
        /// What it said.
        cause: String,
    },
}

impl PlaceError {
    /// What the file system said when `doing` failed on `path`.
    pub fn io(doing: &'static str, path: &Path, source: io::Error) -> PlaceError {
        let place = path.display().to_string();
        match source.kind() {
            io::ErrorKind::NotFound => PlaceError::NotFound { place },
            _ => PlaceError::Io {
                doing,
                place,
                source,
            },
        }
    }
}

fn times(tries: u32) -> String {
    match tries {
        1 => "once".into(),
        n => format!("{n} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As other crates wrap errors of places: hidden, and as a cause.
    #[derive(Debug, thiserror::Error)]
    enum Wrapped {
        #[error(transparent)]
        Hidden(PlaceError),
        #[error("cannot prepare")]
        Cause(#[source] Box<Wrapped>),
    }

    #[test]
    fn what_may_pass_is_known_through_any_wrapper() {
        let place = || "s3://bucket/key".to_owned();
        let away = || PlaceError::Unreachable {
            doing: "read",
            place: place(),
            endpoint: "http://127.0.0.1:1".to_owned(),
            tries: 2,
            cause: Passing::new("connection refused"),
        };
        let changed = PlaceError::Changed {
            place: place(),
            cause: Passing::changed(),
        };
        let hidden = Wrapped::Hidden(away());
        assert!(is_passing(&away()) && is_passing(&changed) && is_passing(&hidden));
        assert!(is_passing(&Wrapped::Cause(Box::new(hidden))));
        let wrong = PlaceError::NotFound { place: place() };
        assert!(!is_passing(&Wrapped::Hidden(wrong)));
    }

    #[test]
    fn a_cause_is_a_part_of_its_message() {
        let changed = PlaceError::Changed {
            place: "a".to_owned(),
            cause: Passing::changed(),
        };
        let cause = changed.source().map(ToString::to_string);
        assert!(changed.to_string().contains(&cause.unwrap()));
    }
}
