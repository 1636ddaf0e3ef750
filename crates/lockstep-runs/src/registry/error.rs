//! What can go wrong with a registry of models.

use crate::document::DocumentError;
use lockstep_base::fs::FsError;
use lockstep_place::PlaceError;
use thiserror::Error;

/// A registry could not be used as asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// What was given does not name a version.
    #[error("`{given}` names no version of a model: {why}")]
    Reference {
        /// As it was given.
        given: String,
        /// Why it does not.
        why: &'static str,
    },
    /// There is no such model.
    #[error(
        "there is no model `{name}` in {store}{}",
        listed("; there are", known)
    )]
    NoModel {
        /// Its name.
        name: String,
        /// The store.
        store: String,
        /// The names of those there are.
        known: Vec<String>,
    },
    /// There is no such version of a model.
    #[error("the model `{name}` has no {what}{}", listed("; it has", known))]
    NoVersion {
        /// The model's name.
        name: String,
        /// The version or alias that was asked for, in words.
        what: String,
        /// What there is.
        known: Vec<String>,
    },
    /// An alias points to a version that is to go.
    #[error(
        "`{name}@{number}` is `{alias}`; point the alias elsewhere first, or take it away: \
         lockstep models alias {name} {alias} --remove"
    )]
    Aliased {
        /// The model's name.
        name: String,
        /// The version.
        number: u64,
        /// The alias.
        alias: String,
    },
    /// A run has learned nothing that could be a version.
    #[error("the run {run} has no model: it has not ended, or it failed")]
    NoModelInRun {
        /// The run's name.
        run: String,
    },
    /// A file of the registry could not be read or changed.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A place could not be read or written.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The system refused something.
    #[error(transparent)]
    Fs(#[from] FsError),
}

fn listed(words: &str, known: &[String]) -> String {
    match known {
        [] => String::new(),
        known => format!("{words} {}", known.join(", ")),
    }
}
