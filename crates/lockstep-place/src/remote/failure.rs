//! Why one attempt failed, and whether another may go better.
//!
//! The store library buries causes under texts. The [transport](super::transport) therefore turns every
//! refusing answer into an [`AttemptFailure`] before the library sees it, and here it is dug out again. So what is
//! retried and what is reported depends on types, not on wording.

use object_store::client::{HttpError, HttpErrorKind};
use serde::Deserialize;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// How much of a server's sentence is kept.
const SENTENCE: usize = 300;

/// Why one attempt failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum AttemptFailure {
    #[error("{0}")]
    Answer(ServerAnswer),
    /// No connection, or one that broke.
    #[error("{cause}")]
    Transport { cause: String, passing: bool },
    #[error("no byte came for {} s (stall_s)", .0.as_secs())]
    Stalled(Duration),
    #[error("the connection ended after {got} of {wanted} bytes")]
    Short { got: u64, wanted: u64 },
    /// The operation's time is over.
    #[error("the time is over")]
    Late,
    #[error("it changed while it was read")]
    Changed,
    #[error("the server ignores `Range`")]
    NoRanges,
    /// The range asked for is not all there; the object's size.
    #[error("it has only {0} bytes")]
    PastTheEnd(u64),
    /// The machine has no credentials of its own to give.
    #[error("this machine has no role: its metadata service does not answer")]
    NoMetadata,
    #[error("{0}")]
    Other(String),
}

/// A server's answer that is not the one wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerAnswer {
    pub(crate) status: u16,
    /// The store's word for it, such as `NoSuchBucket`.
    pub(crate) code: Option<String>,
    /// The store's sentence.
    pub(crate) message: Option<String>,
    /// Where the bucket is, if not here.
    pub(crate) region: Option<String>,
}

impl AttemptFailure {
    /// Whether the same attempt may succeed a moment later.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            AttemptFailure::Answer(answer) => {
                answer.status >= 500
                    || matches!(answer.status, 408 | 429)
                    || answer.is_clock_or_load()
            }
            AttemptFailure::Transport { passing, .. } => *passing,
            AttemptFailure::Stalled(_)
            | AttemptFailure::Short { .. }
            | AttemptFailure::NoRanges => true,
            _ => false,
        }
    }
}

impl ServerAnswer {
    /// Understands the body of an error: the XML of S3, STS and Azure; of others, only the status counts.
    pub(crate) fn of(status: u16, body: &[u8]) -> ServerAnswer {
        // No type holds itself, so that an answer cannot nest deeper than the stack.
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "PascalCase", default)]
        struct Said {
            code: Option<String>,
            message: Option<String>,
            region: Option<String>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "PascalCase", default)]
        struct Wrapped {
            error: Option<Said>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "PascalCase", default)]
        struct Document {
            code: Option<String>,
            message: Option<String>,
            region: Option<String>,
            error: Option<Said>,
            errors: Option<Wrapped>,
        }
        let document: Document = std::str::from_utf8(body)
            .ok()
            .and_then(|text| quick_xml::de::from_str(text.trim_start_matches('\u{feff}')).ok())
            .unwrap_or_default();
        let wrapped = document.errors.and_then(|errors| errors.error);
        let said = document.error.or(wrapped).unwrap_or(Said {
            code: document.code,
            message: document.message,
            region: document.region,
        });
        ServerAnswer {
            status,
            code: said.code.map(sentence),
            message: said.message.map(sentence),
            region: said.region.map(sentence),
        }
    }

    /// Whether the store's code is one of `codes`.
    pub(crate) fn is(&self, codes: &[&str]) -> bool {
        self.code
            .as_deref()
            .is_some_and(|code| codes.contains(&code))
    }

    fn is_clock_or_load(&self) -> bool {
        self.is(&[
            "RequestTimeout",
            "SlowDown",
            "InternalError",
            "ConditionalRequestConflict",
            "ServerBusy",
            "OperationTimedOut",
        ])
    }

    /// Whether the answer is about who asks.
    pub(crate) fn is_about_credentials(&self) -> bool {
        matches!(self.status, 401 | 403)
            || self.is(&[
                "ExpiredToken",
                "ExpiredTokenException",
                "InvalidToken",
                "InvalidClientTokenId",
            ])
    }

    /// Whether the answer is that the object is not what the request says it must be.
    pub(crate) fn is_about_a_condition(&self) -> bool {
        matches!(self.status, 304 | 412) || self.is(&["BlobAlreadyExists"])
    }

    /// Whether the bucket or container is missing, not only the object.
    pub(crate) fn is_about_the_bucket(&self) -> bool {
        self.is(&["NoSuchBucket", "ContainerNotFound", "InvalidBucketName"])
    }
}

/// One line of at most [`SENTENCE`] letters.
fn sentence(text: String) -> String {
    let clean: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(SENTENCE)
        .collect();
    clean.trim().to_owned()
}

impl fmt::Display for ServerAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        if let Some(code) = &self.code {
            write!(f, " {code}")?;
        } else if let Ok(status) = http::StatusCode::from_u16(self.status) {
            write!(
                f,
                " {}",
                status.canonical_reason().unwrap_or("(no reason given)")
            )?;
        }
        if let Some(message) = &self.message {
            write!(f, ": {message}")?;
        }
        match &self.region {
            Some(region) => write!(f, " (set region = \"{region}\")"),
            None => Ok(()),
        }
    }
}

impl From<object_store::Error> for AttemptFailure {
    fn from(error: object_store::Error) -> AttemptFailure {
        let mut transport = None;
        // A connection that the other side closed before anything was sent over it.
        let mut unsent = false;
        let mut level: &(dyn Error + 'static) = &error;
        loop {
            if let Some(failure) = level.downcast_ref::<AttemptFailure>() {
                return failure.clone();
            }
            if let Some(http) = level.downcast_ref::<HttpError>() {
                transport = Some(http.kind());
            }
            if let Some(hyper) = level.downcast_ref::<hyper::Error>() {
                unsent |= hyper.is_canceled();
            }
            match level.source() {
                Some(deeper) => level = deeper,
                None => break,
            }
        }
        // The innermost cause says what happened; the levels above it repeat it, with the URL.
        let cause = level.to_string();
        match transport {
            Some(kind) => AttemptFailure::Transport {
                cause,
                passing: unsent || kind != HttpErrorKind::Unknown,
            },
            None => AttemptFailure::Other(cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_and_the_sentence_of_an_answer_are_kept_and_nothing_else_is() {
        let body = br#"<?xml version="1.0" encoding="UTF-8"?>
            <Error><Code>SignatureDoesNotMatch</Code><Message>The signature does
            not match &amp; so on</Message><StringToSign>hunter2</StringToSign></Error>"#;
        let answer = ServerAnswer::of(403, body);
        let shown = answer.to_string();
        assert!(
            shown.starts_with("403 SignatureDoesNotMatch: The signature does"),
            "{shown}"
        );
        assert!(
            shown.ends_with("not match & so on") && !shown.contains('\n'),
            "{shown}"
        );
        assert!(!format!("{answer:?}{answer}").contains("hunter2"));
        assert!(answer.is_about_credentials());
    }

    #[test]
    fn an_answer_of_sts_is_understood() {
        let body = br#"<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error>
            <Type>Sender</Type><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>"#;
        assert_eq!(
            ServerAnswer::of(403, body).to_string(),
            "403 AccessDenied: no"
        );
    }

    #[test]
    fn an_answer_that_nests_without_end_is_survived() {
        let body = "<Error>".repeat(9000);
        assert_eq!(
            ServerAnswer::of(400, body.as_bytes()).to_string(),
            "400 Bad Request"
        );
    }

    #[test]
    fn a_body_that_is_no_xml_leaves_the_status() {
        for body in [
            &b"<html><body>proxy</body>"[..],
            b"",
            b"\xff\xfe",
            b"{}",
            b"<!DOCTYPE a [<!ENTITY x 'y'>]>",
        ] {
            assert_eq!(
                ServerAnswer::of(502, body).to_string(),
                "502 Bad Gateway",
                "{body:?}"
            );
        }
    }

    #[test]
    fn what_may_pass_is_told_from_what_will_not() {
        let passes = |status| {
            AttemptFailure::Answer(ServerAnswer {
                status,
                ..ServerAnswer::default()
            })
            .may_pass()
        };
        assert!([500, 503, 429, 408].into_iter().all(passes));
        assert!(![301, 400, 403, 404, 416].into_iter().any(passes));
        assert!(!AttemptFailure::Changed.may_pass() && !AttemptFailure::NoMetadata.may_pass());
    }

    #[test]
    fn a_failure_is_found_below_what_the_library_wraps_around_it() {
        let http = HttpError::new(HttpErrorKind::Request, AttemptFailure::NoRanges);
        let wrapped = object_store::Error::Generic {
            store: "S3",
            source: Box::new(http),
        };
        assert!(matches!(
            AttemptFailure::from(wrapped),
            AttemptFailure::NoRanges
        ));
    }
}
