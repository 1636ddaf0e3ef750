//! What all parts of the server share, and its life from start to end.

use crate::view::{self, View};
use crate::{ServerError, Settings, routes};
use lockstep_queue::Queue;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

/// What all parts of the server share. A clone is the same server.
#[derive(Debug, Clone)]
pub struct Server(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: Settings,
    queue: Queue,
    view: View,
}

impl Server {
    /// What it was told when it started.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The jobs. Its functions block; call them where that is allowed.
    pub fn queue(&self) -> &Queue {
        &self.0.queue
    }

    /// What the dashboard keeps.
    pub(crate) fn view(&self) -> &View {
        &self.0.view
    }
}

/// Answers until `stop` is done. `ready` hears the address as soon as connections are accepted.
///
/// # Errors
/// When the server cannot start.
pub async fn serve(
    settings: Settings,
    ready: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServerError> {
    let address = settings.listen;
    let unable = |source| ServerError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(unable)?;
    let local = listener.local_addr().map_err(unable)?;
    let queue = Queue::open(settings.queue.clone())?;
    let view = View::new(&settings);
    let server = Server(Arc::new(Shared {
        settings,
        queue,
        view,
    }));
    view::start(&server);
    let ending = server.clone();
    let stop = async move {
        stop.await;
        ending.view().end();
    };
    ready(local);
    let serving = axum::serve(listener, routes::all(server));
    serving.with_graceful_shutdown(stop).await.map_err(unable)
}
