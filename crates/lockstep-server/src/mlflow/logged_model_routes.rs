//! `logged-models/…`, and `runs/outputs`, which says what a run made.

use super::experiments::DEFAULT;
use super::filter::Name;
use super::logged_models::{LoggedModel, LoggedModels, ModelMetric, ModelStatus};
use super::request_fields::RequestFields;
use super::search::Search;
use super::{
    Answer, MlflowError, artifacts, blocking, experiment_routes, not_own, now, run_dir, run_routes,
};
use crate::endpoint::Endpoint;
use crate::{Caller, Server};
use axum::Json;
use axum::extract::{Path, State};
use lockstep_index::filter::Worth;
use serde_json::json;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How many models an answer has if that is not said.
const USUAL: i64 = 100;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post(
            "/logged-models",
            create,
            "Makes a model, which waits for its files",
        )
        .body("experiment_id! name model_type source_run_id params:pairs tags:pairs")
        .takes(1 << 20),
        Endpoint::post("/logged-models/search", search, "Models, chosen and sorted")
            .body(
                "experiment_ids:texts filter max_results:integer order_by:tables page_token \
                 datasets:tables",
            )
            .takes(256 << 10)
            .reads(),
        Endpoint::get("/logged-models/{id}", show, "One model"),
        Endpoint::patch("/logged-models/{id}", finish, "Says that a model is whole")
            .body("status!"),
        Endpoint::delete(
            "/logged-models/{id}",
            remove,
            "Removes a model and its files",
        ),
        Endpoint::post(
            "/logged-models/{id}/params",
            log_params,
            "Sets parameters of a model",
        )
        .body("params:pairs"),
        Endpoint::patch("/logged-models/{id}/tags", set_tags, "Sets tags of a model")
            .body("tags:pairs"),
        Endpoint::delete(
            "/logged-models/{id}/tags/{key}",
            delete_tag,
            "Removes a tag of a model",
        ),
        Endpoint::get(
            "/logged-models/{id}/artifacts/directories",
            artifacts::list_of_model,
            "Files of a model",
        )
        .query("artifact_directory_path page_token"),
        Endpoint::post("/runs/outputs", outputs, "Says which models a run made")
            .body("run_id! models:tables"),
    ]
}

pub(super) fn models(server: &Server) -> Result<LoggedModels, MlflowError> {
    LoggedModels::of(&server.settings().store)
}

/// Refuses a caller who may not change a model: that is for its owner and for admins.
pub(super) fn may_change(caller: &Caller, model: &LoggedModel) -> Result<(), MlflowError> {
    let owner = model.owner.as_deref();
    match caller.owns(owner) {
        true => Ok(()),
        false => Err(not_own(caller, "model", &model.id, owner)),
    }
}

async fn create(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    blocking(move || {
        let experiment = asked.text("experiment_id")?.filter(|id| !id.is_empty());
        let experiment = experiment_routes::find(&server, experiment.unwrap_or(DEFAULT))?;
        let run = asked.text("source_run_id")?.unwrap_or_default();
        if !run.is_empty() {
            run_dir(&server, run)?;
        }
        let text =
            |key: &str| Ok::<_, MlflowError>(asked.text(key)?.unwrap_or_default().to_owned());
        let now = now();
        let name = match text("name")? {
            name if name.is_empty() => format!("model-{now}"),
            name => name,
        };
        check_name(&name)?;
        let params = asked.tables("params")?;
        let made = models(&server)?.create(LoggedModel {
            name,
            experiment: experiment.id,
            run: run.to_owned(),
            owner: Some(caller.name),
            kind: text("model_type")?,
            created: now,
            updated: now,
            params: params
                .iter()
                .map(RequestFields::param)
                .collect::<Result<_, _>>()?,
            tags: asked.tags("tags")?,
            ..LoggedModel::default()
        })?;
        Ok(Json(json!({ "model": made.shown() })))
    })
    .await
}

/// Refuses names that MLflow refuses.
fn check_name(name: &str) -> Result<(), MlflowError> {
    match name.len() <= 500 && !name.contains(['/', ':', '.', '%', '"', '\'']) {
        true => Ok(()),
        false => Err(MlflowError::wrong(format!(
            "Invalid model name ({name:.100}) provided. Model name must be a non-empty string of at most 500 characters \
             and cannot contain the following characters: ('/', ':', '.', '%', '\"', \"'\")"
        ))),
    }
}

async fn show(State(server): State<Server>, Path((id,)): Path<(String,)>) -> Answer {
    blocking(move || Ok(Json(json!({ "model": models(&server)?.get(&id)?.shown() })))).await
}

async fn finish(
    State(server): State<Server>,
    caller: Caller,
    Path((id,)): Path<(String,)>,
    asked: RequestFields,
) -> Answer {
    let said = asked.get("status").cloned().unwrap_or_default();
    let status = ModelStatus::parse(&said).ok_or_else(|| {
        MlflowError::wrong(format!(
            "Invalid value {:.100} for parameter 'status': it must be LOGGED_MODEL_READY or LOGGED_MODEL_UPLOAD_FAILED",
            said.to_string()
        ))
    })?;
    change(server, caller, id, move |model| model.status = status).await
}

async fn log_params(
    State(server): State<Server>,
    caller: Caller,
    Path((id,)): Path<(String,)>,
    asked: RequestFields,
) -> Answer {
    let params = asked.tables("params")?;
    let params: BTreeMap<String, String> = params
        .iter()
        .map(RequestFields::param)
        .collect::<Result<_, _>>()?;
    change(server, caller, id, move |model| {
        model.params.extend(params.clone())
    })
    .await
}

async fn set_tags(
    State(server): State<Server>,
    caller: Caller,
    Path((id,)): Path<(String,)>,
    asked: RequestFields,
) -> Answer {
    let tags = asked.tags("tags")?;
    change(server, caller, id, move |model| {
        model.tags.extend(tags.clone())
    })
    .await
}

async fn delete_tag(
    State(server): State<Server>,
    caller: Caller,
    Path((id, key)): Path<(String, String)>,
) -> Answer {
    let found = {
        let (server, id) = (server.clone(), id.clone());
        blocking(move || models(&server)?.get(&id)).await?
    };
    if !found.tags.contains_key(&key) {
        return Err(MlflowError::missing(format!(
            "No tag with key {key:.250} found for model with ID {id}"
        )));
    }
    change(server, caller, id, move |model| {
        drop(model.tags.remove(&key))
    })
    .await
}

async fn change(
    server: Server,
    caller: Caller,
    id: String,
    change: impl Fn(&mut LoggedModel) + Send + 'static,
) -> Answer {
    blocking(move || {
        let models = models(&server)?;
        may_change(&caller, &models.get(&id)?)?;
        Ok(Json(
            json!({ "model": models.change(&id, change)?.shown() }),
        ))
    })
    .await
}

async fn remove(
    State(server): State<Server>,
    caller: Caller,
    Path((id,)): Path<(String,)>,
) -> Answer {
    blocking(move || {
        let models = models(&server)?;
        may_change(&caller, &models.get(&id)?)?;
        models.remove(&id)?;
        Ok(Json(json!({})))
    })
    .await
}

async fn search(State(server): State<Server>, asked: RequestFields) -> Answer {
    blocking(move || {
        let search = Search::of_models(&asked, USUAL)?;
        let experiments = asked.texts("experiment_ids")?;
        let mut all = models(&server)?.all()?;
        all.retain(|model| experiments.is_empty() || experiments.contains(&model.experiment));
        let order = |model: &LoggedModel| (Reverse(model.created), model.id.clone());
        let (page, more) = search.page(all, |_| false, value, |a, b| order(a).cmp(&order(b)));
        let shown: Vec<_> = page.iter().map(LoggedModel::shown).collect();
        let mut answer = json!({ "models": shown });
        if let Some(more) = more {
            answer["next_page_token"] = more.into();
        }
        Ok(Json(answer))
    })
    .await
}

/// What a model has of a name.
fn value(model: &LoggedModel, name: &Name) -> Option<Worth> {
    let text = |text: &str| Some(Worth::Text(text.to_owned()));
    match name {
        Name::Metric(key) => {
            let of = model.metrics.iter().filter(|metric| metric.key == *key);
            let newest = of.max_by_key(|metric| (metric.point.step, metric.point.timestamp));
            newest.map(|metric| Worth::Number(metric.point.number()))
        }
        Name::Param(key) => model.params.get(key).and_then(|value| text(value)),
        Name::Tag(key) => model.tags.get(key).and_then(|value| text(value)),
        Name::Attribute(key) => match key.as_str() {
            "name" | "model_name" => text(&model.name),
            "model_id" => text(&model.id),
            "model_type" => text(&model.kind),
            "source_run_id" => text(&model.run),
            "experiment_id" => text(&model.experiment),
            "status" => text(match model.status {
                ModelStatus::Pending => "PENDING",
                ModelStatus::Ready => "READY",
                ModelStatus::Failed => "FAILED",
            }),
            "creation_timestamp" | "creation_time" => Some(Worth::Number(model.created as f64)),
            "last_updated_timestamp" | "last_updated_time" => {
                Some(Worth::Number(model.updated as f64))
            }
            _ => None,
        },
    }
}

async fn outputs(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    blocking(move || {
        let mut made = Vec::new();
        for model in asked.tables("models")? {
            let id = model.needed("model_id")?;
            models(&server)?.get(id)?;
            let step = model.whole("step")?.unwrap_or(0);
            made.push(json!({ "model_id": id, "step": step }));
        }
        run_routes::write(&server, &caller, asked.run()?, |writer| {
            run_routes::add_new(&mut writer.record.outputs, made);
            writer.record.write(&writer.run)
        })?;
        Ok(Json(json!({})))
    })
    .await
}

/// Notes metrics of a run with the models that they are said to be of. This comes before they are the run's: a client
/// that is refused sends them once more, and the run would have them twice.
pub(super) fn note_metrics(
    server: &Server,
    caller: &Caller,
    run: &str,
    said: &[RequestFields],
) -> Result<(), MlflowError> {
    let mut by_model: BTreeMap<&str, Vec<ModelMetric>> = BTreeMap::new();
    for metric in said {
        let Some(id) = metric.text("model_id")?.filter(|id| !id.is_empty()) else {
            continue;
        };
        let text = |key: &str| Ok::<_, MlflowError>(metric.text(key)?.map(str::to_owned));
        let (key, point) = metric.point(now())?;
        by_model.entry(id).or_default().push(ModelMetric {
            key,
            run: run.to_owned(),
            dataset_name: text("dataset_name")?,
            dataset_digest: text("dataset_digest")?,
            point,
        });
    }
    for (id, metrics) in by_model {
        let models = models(server)?;
        may_change(caller, &models.get(id)?)?;
        models.change(id, |model| model.note(&metrics))?;
    }
    Ok(())
}
