//! Errors in the shape that MLflow's clients read.

use crate::Refusal;
use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use lockstep_index::IndexError;
use lockstep_place::PlaceError;
use lockstep_runs::RunsError;
use lockstep_runs::document::DocumentError;
use lockstep_runs::registry::RegistryError;
use serde_json::json;
use std::error::Error;
use std::io::{self, ErrorKind};

/// A status, a word of MLflow's, and a sentence.
#[derive(Debug, Clone)]
pub(crate) struct MlflowError {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl MlflowError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            status,
            code,
            message,
        }
    }

    /// There is no such thing.
    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "RESOURCE_DOES_NOT_EXIST", message)
    }

    /// Something that was sent is wrong.
    pub(crate) fn wrong(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "INVALID_PARAMETER_VALUE", message)
    }

    /// It is there already.
    pub(crate) fn exists(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "RESOURCE_ALREADY_EXISTS", message)
    }

    /// It cannot be done as things are.
    pub(crate) fn state(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "INVALID_STATE", message)
    }

    /// It is somebody else's.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "PERMISSION_DENIED", message)
    }

    /// MLflow's server has it, and this one does not.
    pub(crate) fn unknown(path: &str) -> Self {
        let message = format!(
            "{path} is not supported: this server keeps MLflow's experiments, runs, artifacts, models and prompts, not \
             traces; docs/server.md says what it has"
        );
        Self::new(StatusCode::NOT_FOUND, "ENDPOINT_NOT_FOUND", message)
    }

    fn internal(error: &dyn std::fmt::Display) -> Self {
        eprintln!("error: {error}");
        let message = "the server could not do this; its log says why";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", message)
    }
}

impl IntoResponse for MlflowError {
    fn into_response(self) -> Response {
        let body = json!({ "error_code": self.code, "message": self.message });
        (self.status, Json(body)).into_response()
    }
}

impl From<MlflowError> for Refusal {
    fn from(error: MlflowError) -> Refusal {
        Refusal::new(error.status, error.message)
    }
}

impl From<IndexError> for MlflowError {
    fn from(error: IndexError) -> Self {
        Self::internal(&error)
    }
}

impl From<PlaceError> for MlflowError {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::NotFound { .. } => Self::missing("there is no such file"),
            PlaceError::Name { .. } => Self::wrong(error.to_string()),
            _ if is_about_the_name(&error) => Self::wrong(
                "a file cannot have this name: it is too long, or that of a folder, or lies below a file",
            ),
            _ => Self::internal(&error),
        }
    }
}

/// Whether what went wrong is the name that a client chose.
fn is_about_the_name(error: &PlaceError) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if let Some(
            ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::InvalidFilename
            | ErrorKind::InvalidInput
            | ErrorKind::AlreadyExists
            | ErrorKind::DirectoryNotEmpty,
        ) = kind
        {
            return true;
        }
        cause = error.source();
    }
    false
}

impl From<RunsError> for MlflowError {
    fn from(error: RunsError) -> Self {
        match error {
            RunsError::InUse { .. } => Self::state(error.to_string()),
            _ => Self::internal(&error),
        }
    }
}

impl From<RegistryError> for MlflowError {
    fn from(error: RegistryError) -> Self {
        match error {
            RegistryError::Reference { .. } => Self::wrong(error.to_string()),
            // Not which others there are: the message is made for people at a terminal.
            RegistryError::NoModel { name, .. } => {
                Self::missing(format!("Registered Model with name={name:.200} not found"))
            }
            RegistryError::NoVersion { .. } => Self::missing(error.to_string()),
            RegistryError::Aliased { .. } | RegistryError::NoModelInRun { .. } => {
                Self::state(error.to_string())
            }
            RegistryError::Place(error) => error.into(),
            RegistryError::Document(error) => error.into(),
            _ => Self::internal(&error),
        }
    }
}

impl From<DocumentError> for MlflowError {
    fn from(error: DocumentError) -> Self {
        match error {
            DocumentError::Place(error) => error.into(),
            DocumentError::Full { size, most, .. } => Self::wrong(format!(
                "this is more than is kept here: what is said of it would have {size} bytes, and may have {most}"
            )),
            _ => Self::internal(&error),
        }
    }
}

impl From<io::Error> for MlflowError {
    fn from(error: io::Error) -> Self {
        Self::internal(&error)
    }
}

impl From<tokio::task::JoinError> for MlflowError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::internal(&error)
    }
}
