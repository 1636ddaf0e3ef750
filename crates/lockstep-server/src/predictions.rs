//! What the models of the store say of rows: the same answers as those of `lockstep serve-model`.

use crate::Server;
use crate::endpoint::Endpoint;
use axum::extract::{Path, State};
use axum::response::Response;
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
    predictions_of(&server.settings().models, &model, &headers, body).await
}
