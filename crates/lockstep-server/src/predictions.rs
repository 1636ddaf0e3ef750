//! What the models of the store say of rows: the same answers as those of `lockstep serve-model`.

use crate::endpoint::Endpoint;
use crate::{Refusal, Server};
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::HeaderMap;
use lockstep_serving::{ModelPath, predictions_of};

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post(
            "/models/{name}/invocations",
            invocations,
            "What a model of the store says of rows, as MLflow's scoring server answers it; the name is NAME@ALIAS, \
             NAME@VERSION or NAME",
        )
        .reads(),
    ]
}

async fn invocations(
    State(server): State<Server>,
    Path(model): Path<ModelPath>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    // What jobs wrote could end this process, or fill its memory, when it is opened here.
    if server.queue().settings().job_user.is_some() {
        return Refusal::forbidden(
            "this server keeps jobs apart from itself (--job-user), so it does not open models that jobs may have written; \
             start `lockstep serve-model` for this one",
        )
        .into_response();
    }
    predictions_of(&server.settings().models, &model, &headers, body).await
}
