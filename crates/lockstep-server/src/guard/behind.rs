//! What a guard must know of the routes behind it.

use crate::{Role, routes};
use http::Method;

/// The routes behind a guard.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Behind {
    /// Those of the jobs server.
    Jobs {
        /// The largest package.
        package_limit: u64,
        /// The largest artifact.
        upload_limit: u64,
        /// The longest request for predictions.
        prediction_limit: u64,
    },
    /// Those of one model.
    Model {
        /// The longest request for predictions.
        prediction_limit: u64,
    },
}

impl Behind {
    /// Whether a path needs no token, whatever the method.
    pub(super) fn is_open(self, path: &str) -> bool {
        match self {
            Self::Jobs { .. } => routes::is_open(path),
            // What balancers ask before they send anybody here.
            Self::Model { .. } => matches!(
                path,
                "/ping" | "/health" | "/v2/health/live" | "/v2/health/ready"
            ),
        }
    }

    /// The role that a request needs where a token is needed. Also asked for paths that no route has.
    pub(super) fn role(self, method: &Method, path: &str) -> Role {
        match self {
            Self::Jobs { .. } => routes::role(method, path),
            Self::Model { .. } => Role::Read,
        }
    }

    /// How many bytes the body of a request to this path may have. Also asked for paths that no route has.
    pub(super) fn body_limit(self, path: &str) -> u64 {
        match self {
            Self::Jobs { package_limit, .. } if path.starts_with("/api/packages/") => package_limit,
            Self::Jobs { upload_limit, .. } if path.starts_with("/api/2.0/mlflow-artifacts/") => {
                upload_limit
            }
            Self::Jobs {
                prediction_limit, ..
            } if routes::predicts(path) => prediction_limit,
            Self::Jobs { .. } => routes::body_limit(path),
            Self::Model { prediction_limit } => prediction_limit,
        }
    }

    /// Whether there are pages, one of which asks for a token.
    pub(super) fn has_pages(self) -> bool {
        matches!(self, Self::Jobs { .. })
    }
}
