//! From the last failure of an operation to the words that a person needs.

use super::failure::{AttemptFailure, ServerAnswer};
use super::patience::Patience;
use super::{Remote, StoreKind};
use crate::{Passing, PlaceError};

impl Remote {
    /// The error to report when `doing` ended with `failure`, after coming as far as `progress`.
    pub(super) fn explain(
        &self,
        doing: &'static str,
        failure: AttemptFailure,
        patience: &Patience,
        progress: String,
    ) -> PlaceError {
        let place = self.to_string();
        let endpoint = self.store.opened.endpoint.clone();
        let credentials = self.store.opened.credentials.clone();
        match failure {
            AttemptFailure::Answer(answer) => self.explain_answer(doing, answer, patience.tries),
            AttemptFailure::Changed => PlaceError::Changed {
                place,
                cause: Passing::changed(),
            },
            AttemptFailure::NoRanges => PlaceError::NoRanges { place },
            AttemptFailure::NoMetadata => PlaceError::NoCredentials {
                doing,
                place,
                credentials: format!("it was asked with {credentials}, and it has none"),
            },
            AttemptFailure::Late => PlaceError::TimedOut {
                doing,
                place,
                seconds: self.store.access.timeout().as_secs(),
                progress: match progress.as_str() {
                    "" => progress,
                    _ => format!("; {progress}"),
                },
                tries: patience.tries,
                cause: Passing::new(match &patience.before {
                    Some(failure) => format!(": {failure}"),
                    None => String::new(),
                }),
            },
            AttemptFailure::Transport { .. }
            | AttemptFailure::Stalled(_)
            | AttemptFailure::Short { .. } => {
                let cause = match progress.as_str() {
                    "" => failure.to_string(),
                    _ => format!("{failure}; {progress}"),
                };
                PlaceError::Unreachable {
                    doing,
                    place,
                    endpoint,
                    tries: patience.tries,
                    cause: Passing::new(cause),
                }
            }
            AttemptFailure::PastTheEnd(_) | AttemptFailure::Other(_) => PlaceError::Other {
                doing,
                place,
                cause: failure.to_string(),
            },
        }
    }

    fn explain_answer(&self, doing: &'static str, answer: ServerAnswer, tries: u32) -> PlaceError {
        let place = self.to_string();
        let opened = &self.store.opened;
        if answer.is_about_the_bucket() {
            return PlaceError::NoBucket {
                doing,
                place,
                bucket: opened.bucket.clone(),
                endpoint: opened.endpoint.clone(),
            };
        }
        // A web server without an answer for a name may say 410 as well.
        if answer.status == 404 || (answer.status == 410 && self.store.kind == StoreKind::Web) {
            return PlaceError::NotFound { place };
        }
        let said = answer.to_string();
        if answer.is_about_credentials() {
            return PlaceError::Refused {
                doing,
                place,
                said,
                credentials: opened.credentials.clone(),
            };
        }
        let endpoint = opened.endpoint.clone();
        match AttemptFailure::Answer(answer).may_pass() {
            true => PlaceError::Unreachable {
                doing,
                place,
                endpoint,
                tries,
                cause: Passing::new(said),
            },
            false => PlaceError::Answer {
                doing,
                place,
                endpoint,
                said,
            },
        }
    }
}
