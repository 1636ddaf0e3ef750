//! The routes of one model, and of all models that are held.

use crate::live::Live;
use crate::metrics::KIND;
use crate::predict::predict;
use crate::{HeldModels, Refusal, mlflow, model_card, open_inference};
use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

/// The header that says how many bytes of a body are JSON.
const JSON_LENGTH: &str = "inference-header-content-length";

/// A model of a path, as in `/models/NAME@ALIAS/invocations`.
#[derive(Debug, Clone, Deserialize)]
pub struct ModelPath {
    /// The model, as in `NAME@ALIAS`.
    pub name: String,
}

/// One of the models that are held, by its name.
#[derive(Clone)]
struct One {
    models: HeldModels,
    name: Arc<str>,
}

/// The routes of the one model that is held under `name`.
pub fn routes(models: HeldModels, name: &str) -> Router {
    let name = Arc::from(name);
    Router::new()
        .route("/invocations", post(invocations))
        .route("/ping", get(alive))
        .route("/health", get(alive))
        .route("/version", get(version))
        .route("/metrics", get(metrics))
        .route("/v2", get(server))
        .route(
            "/v2/health/live",
            get(async || json_answer(&json!({ "live": true }))),
        )
        .route("/v2/health/ready", get(ready))
        .route("/v2/models/{name}", get(describe))
        .route("/v2/models/{name}/ready", get(model_ready))
        .route("/v2/models/{name}/infer", post(infer))
        .route("/v2/models/{name}/versions/{version}", get(describe))
        .route(
            "/v2/models/{name}/versions/{version}/ready",
            get(model_ready),
        )
        .route("/v2/models/{name}/versions/{version}/infer", post(infer))
        .with_state(One { models, name })
}

/// Answers a request for predictions of any model that is held, in MLflow's words.
pub async fn predictions_of(
    models: &HeldModels,
    model: &ModelPath,
    headers: &HeaderMap,
    body: Bytes,
) -> Response {
    let began = Instant::now();
    let answer = scored(models, &model.name, headers, body).await;
    let answer = answer.unwrap_or_else(Refusal::for_mlflow);
    models.counters().answered(answer.status(), began.elapsed());
    answer
}

async fn scored(
    models: &HeldModels,
    name: &str,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let live = models.live(name).await?;
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.to_owned();
    let said = predict(models, live, body, move |body| mlflow::read(&kind, body)).await?;
    let text = serde_json::to_vec(&said.for_mlflow()).map_err(Refusal::internal)?;
    Ok(of_json(text))
}

async fn invocations(State(one): State<One>, headers: HeaderMap, body: Bytes) -> Response {
    let name = one.name.to_string();
    predictions_of(&one.models, &ModelPath { name }, &headers, body).await
}

/// As MLflow's scoring server answers: an empty line, if all is well.
async fn alive(State(one): State<One>) -> Response {
    match one.models.title(&one.name) {
        Some(_) => "\n".into_response(),
        None => (StatusCode::NOT_FOUND, "\n").into_response(),
    }
}

async fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

async fn metrics(State(one): State<One>) -> Response {
    let text = one.models.metrics() + "# EOF\n";
    ([(header::CONTENT_TYPE, KIND)], text).into_response()
}

async fn server() -> Response {
    json_answer(&json!({
        "name": "lockstep",
        "version": env!("CARGO_PKG_VERSION"),
        "extensions": [],
    }))
}

async fn ready(State(one): State<One>) -> Response {
    let ready = one.models.title(&one.name).is_some();
    json_answer(&json!({ "ready": ready }))
}

/// The model of a path of the Open Inference Protocol, and perhaps its version.
#[derive(Debug, Deserialize)]
struct Asked {
    name: String,
    version: Option<String>,
}

impl One {
    /// The model, if it is the one that is asked for.
    async fn find(&self, asked: &Asked) -> Result<Arc<Live>, Refusal> {
        let live = self.models.live(&self.name).await?;
        let about = &live.about;
        let version = about.version.map(|version| version.to_string());
        if asked.name != about.name {
            return Err(Refusal::missing(format!(
                "there is no model {:?} here; there is {:?}",
                mlflow::shown(&asked.name),
                about.name
            )));
        }
        match &asked.version {
            Some(wanted) if version.as_ref() != Some(wanted) => Err(Refusal::missing(format!(
                "there is no version {:?} of it here; there is {}",
                mlflow::shown(wanted),
                about.title()
            ))),
            _ => Ok(live),
        }
    }
}

async fn describe(State(one): State<One>, Path(asked): Path<Asked>) -> Response {
    match one.find(&asked).await {
        Ok(live) => json_answer(&model_card::describe(&live.about)),
        Err(refusal) => refusal.for_open_inference(),
    }
}

async fn model_ready(State(one): State<One>, Path(asked): Path<Asked>) -> Response {
    match one.find(&asked).await {
        Ok(live) => json_answer(&json!({ "name": live.about.name, "ready": true })),
        Err(refusal) => refusal.for_open_inference(),
    }
}

async fn infer(
    State(one): State<One>,
    Path(asked): Path<Asked>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let began = Instant::now();
    let answer = inferred(&one, &asked, &headers, body).await;
    let answer = answer.unwrap_or_else(Refusal::for_open_inference);
    one.models
        .counters()
        .answered(answer.status(), began.elapsed());
    answer
}

async fn inferred(
    one: &One,
    asked: &Asked,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let live = one.find(asked).await?;
    let head = headers.get(JSON_LENGTH);
    let head = head.map(|head| head.to_str().ok().and_then(|head| head.parse().ok()));
    let head = match head {
        Some(None) => {
            return Err(Refusal::bad(format!(
                "the header {JSON_LENGTH} is no number"
            )));
        }
        Some(head) => head,
        None => None,
    };
    let (tell, told) = tokio::sync::oneshot::channel();
    let said = predict(&one.models, live, body, move |body| {
        let inference = open_inference::read(head, body)?;
        // Whoever asked is still there, or needs no answer.
        let _ = tell.send(inference.reply);
        Ok(inference.asked)
    });
    let said = said.await?;
    let reply = told.await.map_err(Refusal::internal)?;
    let answer = open_inference::answer(&said, &reply)?;
    let text = serde_json::to_vec(&answer).map_err(Refusal::internal)?;
    Ok(of_json(text))
}

fn json_answer(value: &Value) -> Response {
    of_json(value.to_string().into_bytes())
}

fn of_json(text: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
