//! Why a model cannot be served.

use lockstep_learner::LearnerError;
use lockstep_runs::registry::RegistryError;
use std::io;
use thiserror::Error;

/// Why a model cannot be served.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServingError {
    /// The registry does not have it.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// Its files cannot be used.
    #[error("{model} cannot be served")]
    Model {
        /// What it is called.
        model: String,
        /// Why.
        source: LearnerError,
    },
    /// No thread could be started for it.
    #[error("cannot start a thread for {model}")]
    Thread {
        /// What it is called.
        model: String,
        /// Why.
        source: io::Error,
    },
    /// Its thread ended while it was opened.
    #[error("{model} cannot be served: its thread ended while the model was opened")]
    Ended {
        /// What it is called.
        model: String,
    },
}

impl ServingError {
    /// All that is known of it, the causes behind it.
    pub(crate) fn whole(&self) -> String {
        let mut words = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let more = error.to_string();
            if !words.ends_with(&more) {
                words += &format!(": {more}");
            }
            cause = error.source();
        }
        words
    }
}
