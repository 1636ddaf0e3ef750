//! All routes, and what every request passes on its way to them.

use crate::endpoint::{Endpoint, SMALL, role_of};
use crate::{Role, Server, guard, jobs, metrics, mlflow, pages, predictions, view};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use http::Method;
use std::sync::LazyLock;

/// What the server answers, but for the pages of the dashboard.
pub(crate) static ENDPOINTS: LazyLock<Vec<Endpoint>> = LazyLock::new(|| {
    let parts = [
        metrics::endpoints(),
        guard::endpoints(),
        jobs::endpoints(),
        view::endpoints(),
        mlflow::endpoints(),
        predictions::endpoints(),
    ];
    parts.into_iter().flatten().collect()
});

/// The whole server.
pub(crate) fn all(server: Server) -> Router {
    let pages = pages::routes().merge(mlflow::unknown_routes());
    ENDPOINTS
        .iter()
        .fold(pages, |all, one| all.route(&one.path, one.handler.clone()))
        // The guard has limits of its own, by path.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(server.guard().clone(), guard::guard))
        .with_state(server)
}

/// Whether a path needs no token, whatever the method.
pub(crate) fn is_open(path: &str) -> bool {
    ENDPOINTS
        .iter()
        .any(|one| one.role.is_none() && one.path == path)
}

/// How many bytes the body of a request to this path may have. Also asked for paths that no route has.
pub(crate) fn body_limit(path: &str) -> u64 {
    let of_path = ENDPOINTS.iter().filter(|one| one.path == path);
    of_path.map(|one| one.takes).max().unwrap_or(SMALL)
}

/// Whether a request to this path asks a model what rows are. That only reads, and may be long.
pub(crate) fn predicts(path: &str) -> bool {
    let model = path.strip_prefix("/models/");
    let model = model.and_then(|rest| rest.strip_suffix("/invocations"));
    model.is_some_and(|model| !model.is_empty() && !model.contains('/'))
}

/// The role that a request needs where a token is needed. Also asked for paths that no route has.
pub(crate) fn role(method: &Method, path: &str) -> Role {
    if *method == Method::POST && predicts(path) {
        return Role::Read;
    }
    let declared = ENDPOINTS
        .iter()
        .find(|one| one.method == *method && one.path == path);
    declared
        .and_then(|one| one.role)
        .unwrap_or_else(|| role_of(method))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guard compares paths as they stand, so a path with names in it cannot have a role of its own, but for
    /// predictions.
    #[test]
    fn only_plain_paths_have_another_role_than_their_method_says() {
        for one in ENDPOINTS.iter().filter(|one| one.path.contains('{')) {
            let role = if predicts(&one.path) {
                Role::Read
            } else {
                role_of(&one.method)
            };
            assert_eq!(one.role, Some(role), "{}", one.path);
        }
    }

    #[test]
    fn predictions_need_no_more_than_reading() {
        let path = "/models/digits@champion/invocations";
        assert_eq!(role(&Method::POST, path), Role::Read);
        assert_eq!(role(&Method::DELETE, path), Role::Submit);
        for other in [
            "/models//invocations",
            "/models/a/b/invocations",
            "/models/a",
        ] {
            assert_eq!(role(&Method::POST, other), Role::Submit, "{other}");
        }
    }

    #[test]
    fn searches_of_mlflow_need_no_more_than_reading() {
        for search in ["runs", "experiments", "logged-models"] {
            let path = format!("/api/2.0/mlflow/{search}/search");
            assert_eq!(role(&Method::POST, &path), Role::Read, "{path}");
        }
        assert_eq!(
            role(&Method::POST, "/api/2.0/mlflow/runs/create"),
            Role::Submit
        );
        assert_eq!(role(&Method::POST, "/nowhere"), Role::Submit);
        assert_eq!(role(&Method::GET, "/nowhere"), Role::Read);
    }

    #[test]
    fn small_requests_have_small_limits() {
        for open in ["/login", "/logout", "/api/authenticate"] {
            assert_eq!(body_limit(open), 4 << 10, "{open}");
        }
        assert_eq!(body_limit("/nowhere"), 64 << 10);
        let largest = ENDPOINTS.iter().map(|one| one.takes).max();
        assert_eq!(largest, Some(2 << 20));
    }

    #[test]
    fn what_needs_no_token_is_the_door_and_signs_of_life() {
        let mut open: Vec<&str> = ENDPOINTS
            .iter()
            .filter(|one| one.role.is_none())
            .map(|one| one.path.as_str())
            .collect();
        open.sort_unstable();
        open.dedup();
        let wanted = [
            "/api/authenticate",
            "/api/authentication_mode",
            "/api/gcs_healthz",
            "/healthz",
            "/login",
            "/login.css",
            "/logout",
        ];
        assert_eq!(open, wanted);
    }
}
