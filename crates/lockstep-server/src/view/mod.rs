//! What the dashboard's pages ask: JSON under `/api/v1`, and news as they happen.
//!
//! Nothing is kept here that is not in the queue or in the store: answers are made from both when somebody asks. Where
//! something changes, [`live`] says so to all open pages at once, from one reader that all of them share; while no page
//! is open, nobody reads.

mod actions;
mod benchmarks;
mod cluster;
mod curves;
mod evaluation;
mod folder_watch;
mod jobs;
mod live;
mod machine;
mod me;
mod models;
mod overview;
mod pictures;
mod processes;
mod run;
mod run_actions;
mod runs;
mod store;
mod thin;

use crate::endpoint::{BYTES, Endpoint, TEXT};
use crate::{Refusal, Server, Settings, pages};
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use live::Live;
use machine::Meter;
pub(crate) use run::submitter;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};
use store::RunStore;
use tokio::task::spawn_blocking;

/// Answers shorter than this are not worth compressing.
const SHORT: usize = 1400;
/// No answer is longer than this.
const LONGEST: usize = 256 << 20;

/// What the dashboard keeps for all who look.
#[derive(Debug)]
pub(crate) struct View {
    store: RunStore,
    live: Arc<Live>,
    meter: Mutex<Meter>,
}

impl View {
    pub(crate) fn new(settings: &Settings) -> View {
        View {
            store: RunStore::new(settings.store.clone(), settings.cache.clone()),
            live: Arc::new(Live::new()),
            meter: Mutex::new(Meter::default()),
        }
    }

    /// Ends what pages are told, so that their connections do.
    pub(crate) fn end(&self) {
        self.live.end();
        self.store.end();
    }
}

/// Begins to look for news, as long as somebody wants to hear them.
pub(crate) fn start(server: &Server) {
    live::start(server);
}

pub(crate) fn endpoints() -> Vec<Endpoint> {
    let answers = vec![
        Endpoint::get("/api/v1/me", me::show, "Who asks, and what that one may do"),
        Endpoint::get(
            "/api/v1/overview",
            overview::show,
            "What the first page shows",
        ),
        Endpoint::get("/api/v1/runs", runs::list, "Runs, chosen and sorted")
            .query("filter sort ascending:boolean columns offset:integer limit:integer"),
        Endpoint::get(
            "/api/v1/runs/names",
            runs::names,
            "What runs can be chosen and sorted by",
        ),
        Endpoint::post("/api/v1/runs/actions", run_actions::act, "Removes runs")
            .body("action! ids!:texts")
            .takes(256 << 10),
        Endpoint::get("/api/v1/runs/{name}", run::show, "One run"),
        Endpoint::post(
            "/api/v1/runs/{name}/tags",
            run::tag,
            "Sets what is said of a run",
        )
        .body("tags!:words note!"),
        Endpoint::get("/api/v1/runs/{name}/log", run::log, "A worker's log")
            .query("rank!:integer from:integer to:integer most:integer"),
        Endpoint::get(
            "/api/v1/runs/{name}/evaluation",
            evaluation::show,
            "What the model came to on the test set",
        ),
        Endpoint::get(
            "/api/v1/runs/{name}/mistakes",
            pictures::show,
            "Pictures of what the model was most wrong about",
        )
        .answer(BYTES),
        Endpoint::get(
            "/api/v1/curves",
            curves::show,
            "Points of runs, thinned out",
        )
        .query("runs! names system:boolean by width:integer from:number to:number"),
        Endpoint::get("/api/v1/jobs", jobs::list, "Jobs, chosen")
            .query("status text offset:integer limit:integer"),
        Endpoint::post(
            "/api/v1/jobs/actions",
            actions::act,
            "Stops, forgets or submits jobs once more",
        )
        .body("action! ids!:texts")
        .takes(256 << 10),
        Endpoint::get("/api/v1/jobs/{id}", jobs::show, "One job"),
        Endpoint::get("/api/v1/jobs/{id}/log", jobs::log, "A piece of a job's log")
            .query("from:integer to:integer most:integer"),
        Endpoint::get("/api/v1/models", models::list, "Models"),
        Endpoint::post(
            "/api/v1/models",
            models::register,
            "Makes a version of a model from a run",
        )
        .body("name! run! note"),
        Endpoint::get(
            "/api/v1/models/{name}",
            models::show,
            "One model with its versions",
        ),
        Endpoint::post(
            "/api/v1/models/{name}/aliases",
            models::point,
            "Points an alias to a version, or takes it away",
        )
        .body("alias! version:integer"),
        Endpoint::get(
            "/api/v1/cluster",
            cluster::here,
            "This machine and what it does",
        ),
        Endpoint::get(
            "/api/v1/cluster/elsewhere",
            cluster::elsewhere,
            "The Ray cluster and the Kubernetes namespace that the server was pointed at",
        ),
        Endpoint::get(
            "/api/v1/benchmarks",
            benchmarks::list,
            "Benchmarks that were measured",
        ),
        Endpoint::get("/api/v1/benchmarks/{name}", benchmarks::show, "One of them"),
    ];
    let compressed = answers
        .into_iter()
        .map(|one| one.map(|handler| handler.layer(middleware::from_fn(compress))));
    let live = Endpoint::get(
        "/api/v1/live",
        live::listen,
        "News as they happen, as server-sent events",
    )
    .query("runs job machine:boolean")
    .answer(TEXT);
    compressed.chain([live]).collect()
}

/// Runs what blocks where that is allowed.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Refusal::internal(error)),
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

/// Compresses JSON for those who take it so.
async fn compress(request: Request, next: Next) -> Response {
    let takes = pages::takes_gzip(request.headers());
    let response = next.run(request).await;
    let is_json = |headers: &HeaderMap| {
        let kind = headers.get(header::CONTENT_TYPE);
        kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
    };
    if !takes || !is_json(response.headers()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(plain) = to_bytes(body, LONGEST).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    if plain.len() < SHORT {
        return Response::from_parts(parts, Body::from(plain));
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    let gzip = HeaderValue::from_static("gzip");
    parts.headers.insert(header::CONTENT_ENCODING, gzip);
    let body = pages::gzip(&plain, Compression::fast());
    Response::from_parts(parts, Body::from(body))
}
