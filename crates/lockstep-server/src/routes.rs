//! All routes, and what every request passes on its way to them.

use crate::{Server, guard};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;

/// The whole server.
pub(crate) fn all(server: Server) -> Router {
    Router::new()
        .merge(crate::metrics::routes())
        .merge(crate::jobs::routes())
        .merge(crate::pages::routes())
        .merge(crate::view::routes())
        .merge(guard::routes())
        .merge(crate::mlflow::routes())
        // The guard has limits of its own, by path.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(server.clone(), guard::guard))
        .with_state(server)
}
