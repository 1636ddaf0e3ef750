//! What all parts of the server share, and its life from start to end.

use crate::guard::{Behind, Guard};
use crate::log_watch::LogWatch;
use crate::metrics::Counters;
use crate::mlflow::Mlflow;
use crate::view::{self, View};
use crate::{ServerError, Settings, listen, memory, routes};
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
    guard: Arc<Guard>,
    mlflow: Mlflow,
    logs: LogWatch,
}

/// What is to be said when a server is ready.
#[derive(Debug, Clone)]
pub struct Ready {
    /// Where it listens.
    pub address: SocketAddr,
    /// Whether what is sent is encrypted.
    pub encrypted: bool,
    /// Whether jobs can do whatever the server can, so that a token that may submit may do everything.
    pub jobs_are_admins: bool,
    /// The first token, which was made just now and is never shown again.
    pub token: Option<String>,
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

    /// What stands in front of all routes.
    pub(crate) fn guard(&self) -> &Arc<Guard> {
        &self.0.guard
    }

    /// What MLflow's clients write.
    pub(crate) fn mlflow(&self) -> &Mlflow {
        &self.0.mlflow
    }

    /// What hears that logs of jobs grow.
    pub(crate) fn logs(&self) -> &LogWatch {
        &self.0.logs
    }

    /// How it has answered so far.
    pub(crate) fn counters(&self) -> &Counters {
        self.0.guard.answers()
    }
}

/// Answers until `stop` is done. `ready` hears of it as soon as connections are accepted.
///
/// # Errors
/// When the server cannot start.
pub async fn serve(
    settings: Settings,
    ready: impl FnOnce(Ready),
    stop: impl Future<Output = ()>,
) -> Result<(), ServerError> {
    let mut settings = settings;
    // Whoever may write into the store must not lead the server out of it.
    settings.store = settings.store.beneath();
    let address = settings.listen;
    let unable = |source| ServerError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(unable)?;
    let local = listener.local_addr().map_err(unable)?;
    let queue = Queue::open(settings.queue.clone())?;
    let view = View::new(&settings);
    let tls = listen::tls(&settings.guard)?;
    let behind = Behind::Jobs {
        package_limit: settings.queue.package_limit,
        upload_limit: settings.guard.upload_limit,
        prediction_limit: settings.models.settings().max_body,
    };
    let (guard, token) = Guard::open(&settings.guard, address, &settings.folder, behind)?;
    let mlflow = Mlflow::new(&settings);
    let jobs_are_admins = guard.needs_token() && settings.queue.job_user.is_none();
    let server = Server(Arc::new(Shared {
        settings,
        queue,
        view,
        guard: Arc::new(guard),
        mlflow,
        logs: LogWatch::new(),
    }));
    tokio::spawn(memory::give_back_again_and_again());
    view::start(&server);
    let ending = server.clone();
    let stop = async move {
        stop.await;
        ending.view().end();
    };
    ready(Ready {
        address: local,
        encrypted: tls.is_some(),
        jobs_are_admins,
        token,
    });
    listen::answer(listener, tls, routes::all(server), stop).await;
    Ok(())
}
