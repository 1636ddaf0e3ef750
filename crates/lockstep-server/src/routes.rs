//! All routes, and what every request passes on its way to them.

use crate::{Caller, Role, Server};
use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;

/// The whole server.
pub(crate) fn all(server: Server) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .merge(crate::jobs::routes())
        .merge(crate::pages::routes())
        .merge(crate::view::routes())
        .layer(middleware::from_fn(guard))
        .with_state(server)
}

/// Lets through who may ask, and says to the routes who it is.
async fn guard(mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(Caller {
        name: "local".to_owned(),
        role: Role::Admin,
    });
    next.run(request).await
}
