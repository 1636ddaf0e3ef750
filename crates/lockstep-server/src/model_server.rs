//! A server of one model's predictions, behind the same guard as the jobs server.

use crate::guard::{Behind, Guard, guard};
use crate::{GuardSettings, Ready, ServerError, listen, memory};
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use lockstep_serving::{HeldModels, routes};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;

/// How a server of one model is to be.
#[derive(Debug, Clone)]
pub struct ModelServer {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The folder of its tokens and of the log of what was refused: that of the jobs server of the same store.
    pub folder: PathBuf,
    /// How it protects itself.
    pub guard: GuardSettings,
    /// Holds the model.
    pub models: HeldModels,
    /// The name that the model is held under.
    pub name: String,
}

/// Answers until `stop` is done. `ready` hears of it as soon as connections are accepted.
///
/// # Errors
/// When the server cannot start.
pub async fn serve_model(
    server: ModelServer,
    ready: impl FnOnce(Ready),
    stop: impl Future<Output = ()>,
) -> Result<(), ServerError> {
    let address = server.listen;
    let unable = |source| ServerError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(unable)?;
    let local = listener.local_addr().map_err(unable)?;
    let tls = listen::tls(&server.guard)?;
    let behind = Behind::Model {
        prediction_limit: server.models.settings().max_body,
    };
    let (own, token) = Guard::open(&server.guard, address, &server.folder, behind)?;
    let routes = routes(server.models, &server.name)
        // The guard has limits of its own.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(Arc::new(own), guard));
    tokio::spawn(memory::give_back_again_and_again());
    ready(Ready {
        address: local,
        encrypted: tls.is_some(),
        jobs_are_admins: false,
        token,
    });
    listen::answer(listener, tls, routes, stop).await;
    Ok(())
}
