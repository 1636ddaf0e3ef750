//! `runs/…`, `metrics/…` and `artifacts/list`.

use super::experiments::DEFAULT;
use super::logged_model_routes::note_metrics;
use super::record::{Record, Status};
use super::request_fields::RequestFields;
use super::search::Search;
use super::view::{NOTE, View};
use super::writer::{self, Writer};
use super::{
    Answer, MlflowError, artifacts, blocking, everything, experiment_routes, may_change, now,
    record_of, run_dir, view,
};
use crate::endpoint::Endpoint;
use crate::guard::AuditAction;
use crate::{Caller, Server};
use axum::extract::State;
use axum::{Extension, Json};
use lockstep_index::tags;
use serde_json::{Value, json};
use std::cmp::Reverse;

/// The most points of a metric in one answer, as MLflow's own server has it.
const MOST_POINTS: usize = 25_000;
/// Tags that say something which is kept elsewhere.
const RUN_NAME: &str = "mlflow.runName";

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post("/runs/create", create, "Makes a run")
            .body("experiment_id run_name start_time:integer user_id tags:pairs")
            .takes(1 << 20),
        Endpoint::get("/runs/get", show, "One run").query("run_id!"),
        Endpoint::post("/runs/update", update, "Says how a run is")
            .body("run_id! status end_time:integer run_name"),
        Endpoint::post("/runs/delete", delete, "Puts a run into the bin").body("run_id!"),
        Endpoint::post("/runs/restore", restore, "Takes a run out of the bin").body("run_id!"),
        Endpoint::post("/runs/search", search, "Runs, chosen and sorted")
            .body(
                "experiment_ids!:texts filter run_view_type max_results:integer order_by:texts \
                 page_token",
            )
            .takes(256 << 10)
            .reads(),
        Endpoint::post("/runs/log-metric", log_metric, "Adds a point to a metric")
            .body("run_id! key! value!:number timestamp:integer step:integer"),
        Endpoint::post(
            "/runs/log-parameter",
            log_parameter,
            "Sets a parameter, once",
        )
        .body("run_id! key! value"),
        Endpoint::post(
            "/runs/log-batch",
            log_batch,
            "Points, parameters and tags at once",
        )
        .body("run_id! metrics:points params:pairs tags:pairs")
        .takes(2 << 20),
        Endpoint::post(
            "/runs/log-inputs",
            log_inputs,
            "Says what a run learns from",
        )
        .body("run_id! datasets:tables models:tables")
        .takes(2 << 20),
        Endpoint::post("/runs/set-tag", set_tag, "Sets a tag of a run").body("run_id! key! value"),
        Endpoint::post("/runs/delete-tag", delete_tag, "Removes a tag of a run")
            .body("run_id! key!"),
        Endpoint::get("/metrics/get-history", history, "All points of a metric")
            .query("run_id! metric_key! max_results:integer page_token"),
        Endpoint::get("/artifacts/list", artifacts::list_of_run, "Files of a run")
            .query("run_id! path"),
    ]
}

async fn create(
    State(server): State<Server>,
    caller: Caller,
    asked: RequestFields,
) -> Result<(Extension<AuditAction>, Json<Value>), MlflowError> {
    blocking(move || {
        let id = asked.text("experiment_id")?.filter(|id| !id.is_empty()).unwrap_or(DEFAULT);
        let experiment = experiment_routes::find(&server, id)?;
        if experiment.deleted {
            let name = &experiment.name;
            return Err(MlflowError::state(format!("The experiment '{name}' is in the bin: restore it first")));
        }
        let mut given = asked.tags("tags")?;
        let tagged = given.remove(RUN_NAME);
        let name = asked.text("run_name")?.map(str::to_owned).filter(|name| !name.is_empty()).or(tagged);
        let note = given.remove(NOTE);
        let (own, users): (Vec<_>, Vec<_>) = given.into_iter().partition(|(key, _)| is_own_tag(key));
        let record = Record {
            experiment: experiment.id,
            owner: Some(caller.name),
            name: name.clone().unwrap_or_default(),
            start: asked.whole("start_time")?.unwrap_or_else(now),
            tags: own.into_iter().collect(),
            ..Record::default()
        };
        let tag = |key: &str| record.tags.get(key).cloned();
        let user = tag("mlflow.user").or(asked.text("user_id")?.map(str::to_owned));
        let command = tag("mlflow.source.name").unwrap_or_else(|| "mlflow".to_owned());
        let origin = json!({
            "user": user,
            "command": [command],
            "git": { "commit": tag("mlflow.source.git.commit"), "branch": tag("mlflow.source.git.branch") },
            "logged_with": "mlflow",
        });
        let store = &server.settings().store;
        let mut writer = Writer::create(store, &experiment.name, record, &origin, &command)?;
        if name.is_none() {
            writer.record.name.clone_from(&writer.run.name);
            writer.record.write(&writer.run)?;
        }
        if !users.is_empty() || note.is_some() {
            tags::change(&writer.run, &|said| {
                said.tags.extend(users.iter().cloned());
                said.note = note.clone().unwrap_or_default();
            })?;
        }
        let id = writer.run.name.clone();
        server.mlflow().writers.keep(writer);
        let answer = json!({ "run": view(&server, &id)?.shown() });
        Ok((Extension(AuditAction(format!("made the run {id}"))), Json(answer)))
    })
    .await
}

/// Whether a tag is MLflow's own and not its user's.
fn is_own_tag(key: &str) -> bool {
    key.starts_with("mlflow.")
}

async fn show(State(server): State<Server>, asked: RequestFields) -> Answer {
    blocking(move || Ok(Json(json!({ "run": view(&server, asked.run()?)?.shown() })))).await
}

async fn search(State(server): State<Server>, asked: RequestFields) -> Answer {
    blocking(move || {
        let search = Search::of(&asked, "run_view_type", 1000)?;
        let wanted = asked.texts("experiment_ids")?;
        let (runs, experiments) = everything(&server)?;
        let mut views = Vec::new();
        for run in &runs {
            let Ok(place) = run_dir(&server, &run.name) else {
                // It was removed in this moment.
                continue;
            };
            let view = View::of(run, record_of(&server, &place)?, &experiments);
            if wanted.contains(&view.experiment) {
                views.push(view);
            }
        }
        let order = |view: &View| (Reverse(view.record.start), view.id.clone());
        let (page, more) = search.page(
            views,
            |view| view.record.deleted,
            |view, name| view.find(name),
            |a, b| order(a).cmp(&order(b)),
        );
        let shown: Vec<Value> = page.iter().map(View::shown).collect();
        let mut answer = json!({ "runs": shown });
        if let Some(more) = more {
            answer["next_page_token"] = more.into();
        }
        Ok(Json(answer))
    })
    .await
}

/// Does something with a run that MLflow made.
pub(super) fn write<T>(
    server: &Server,
    caller: &Caller,
    id: &str,
    work: impl FnOnce(&mut Writer) -> Result<T, MlflowError>,
) -> Result<T, MlflowError> {
    may_change(server, caller, &run_dir(server, id)?)?;
    let store = &server.settings().store;
    let done = server.mlflow().writers.with(store, id, work)?;
    done.ok_or_else(|| {
        MlflowError::state(format!(
            "{id} was not made through MLflow: of a run of Lockstep's own only tags can be changed"
        ))
    })
}

fn check_active(writer: &Writer) -> Result<(), MlflowError> {
    match writer.record.deleted {
        false => Ok(()),
        true => Err(MlflowError::wrong(format!(
            "The run {} must be in the 'active' state. Current state is deleted.",
            writer.run.name
        ))),
    }
}

async fn update(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    blocking(move || {
        let id = asked.run()?;
        let status = asked.get("status").map(|said| {
            Status::parse(said).ok_or_else(|| {
                MlflowError::wrong(format!(
                    "Invalid value {said:.100} for parameter 'status': it must be RUNNING, SCHEDULED, FINISHED, FAILED \
                     or KILLED"
                ))
            })
        });
        let status = status.transpose()?;
        let name = asked.text("run_name")?.filter(|name| !name.is_empty());
        let end = asked.whole("end_time")?;
        write(&server, &caller, id, |writer| {
            check_active(writer)?;
            if let Some(name) = name {
                name.clone_into(&mut writer.record.name);
            }
            writer.set_status(status.unwrap_or(writer.record.status), end)
        })?;
        Ok(Json(json!({ "run_info": view(&server, id)?.info() })))
    })
    .await
}

async fn delete(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    set_deleted(server, caller, asked, true).await
}

async fn restore(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    set_deleted(server, caller, asked, false).await
}

async fn set_deleted(
    server: Server,
    caller: Caller,
    asked: RequestFields,
    deleted: bool,
) -> Answer {
    blocking(move || {
        write(&server, &caller, asked.run()?, |writer| {
            writer.record.deleted = deleted;
            writer.record.write(&writer.run)
        })?;
        Ok(Json(json!({})))
    })
    .await
}

async fn log_metric(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    blocking(move || {
        let (id, point) = (asked.run()?, asked.point(now())?);
        note_metrics(&server, &caller, id, std::slice::from_ref(&asked))?;
        write(&server, &caller, id, |writer| {
            check_active(writer)?;
            writer.log(&[point])
        })?;
        Ok(Json(json!({})))
    })
    .await
}

async fn log_parameter(
    State(server): State<Server>,
    caller: Caller,
    asked: RequestFields,
) -> Answer {
    blocking(move || {
        let param = asked.param()?;
        write(&server, &caller, asked.run()?, |writer| {
            check_active(writer)?;
            writer.set_params(&[param])
        })?;
        Ok(Json(json!({})))
    })
    .await
}

async fn log_batch(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    blocking(move || {
        let now = now();
        let said = asked.tables("metrics")?;
        let mut points = said
            .iter()
            .map(|metric| metric.point(now))
            .collect::<Result<Vec<_>, _>>()?;
        // The order in which they came stays within a step.
        points.sort_by_key(|(_, point)| point.step);
        let params = asked.tables("params")?;
        let params = params
            .iter()
            .map(RequestFields::param)
            .collect::<Result<Vec<_>, _>>()?;
        let tags: Vec<_> = asked.tags("tags")?.into_iter().collect();
        let id = asked.run()?;
        note_metrics(&server, &caller, id, &said)?;
        write(&server, &caller, id, |writer| {
            check_active(writer)?;
            writer.set_params(&params)?;
            writer.log(&points)
        })?;
        set_tags(&server, &caller, id, &tags)?;
        Ok(Json(json!({})))
    })
    .await
}

async fn log_inputs(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    blocking(move || {
        let list = |key: &str| {
            let list = asked.get(key).and_then(Value::as_array);
            list.cloned().unwrap_or_default()
        };
        write(&server, &caller, asked.run()?, |writer| {
            check_active(writer)?;
            add_new(&mut writer.record.inputs, list("datasets"));
            add_new(&mut writer.record.used_models, list("models"));
            writer.record.write(&writer.run)
        })?;
        Ok(Json(json!({})))
    })
    .await
}

/// Adds those that are not there yet.
pub(super) fn add_new(to: &mut Vec<Value>, new: Vec<Value>) {
    for one in new {
        if !to.contains(&one) {
            to.push(one);
        }
    }
}

async fn set_tag(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    blocking(move || {
        set_tags(&server, &caller, asked.run()?, &[asked.tag()?])?;
        Ok(Json(json!({})))
    })
    .await
}

/// Sets tags: MLflow's own in its record, the user's where all runs have them.
fn set_tags(
    server: &Server,
    caller: &Caller,
    id: &str,
    given: &[(String, String)],
) -> Result<(), MlflowError> {
    let run = run_dir(server, id)?;
    may_change(server, caller, &run)?;
    let (own, users): (Vec<_>, Vec<_>) = given
        .iter()
        .partition(|(key, _)| is_own_tag(key) && key != NOTE);
    if !own.is_empty() {
        write(server, caller, id, |writer| {
            check_active(writer)?;
            for (key, value) in &own {
                match key.as_str() {
                    RUN_NAME => writer.record.name.clone_from(value),
                    key => drop(writer.record.tags.insert(key.to_owned(), value.clone())),
                }
            }
            writer.record.write(&writer.run)
        })?;
    }
    if !users.is_empty() {
        tags::change(&run, &|said| {
            for (key, value) in &users {
                match key.as_str() {
                    NOTE => said.note.clone_from(value),
                    key => drop(said.tags.insert(key.to_owned(), value.clone())),
                }
            }
        })?;
    }
    Ok(())
}

async fn delete_tag(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    blocking(move || {
        let (id, key) = (asked.run()?, asked.needed("key")?);
        may_change(&server, &caller, &run_dir(&server, id)?)?;
        if !view(&server, id)?.tags.contains_key(key) {
            return Err(MlflowError::missing(format!(
                "No tag with name: {key:.250} in run with id {id}"
            )));
        }
        if is_own_tag(key) && key != NOTE {
            write(&server, &caller, id, |writer| {
                writer.record.tags.remove(key);
                writer.record.write(&writer.run)
            })?;
        } else {
            let run = run_dir(&server, id)?;
            tags::change(&run, &|said| match key {
                NOTE => said.note.clear(),
                key => drop(said.tags.remove(key)),
            })?;
        }
        Ok(Json(json!({})))
    })
    .await
}

async fn history(State(server): State<Server>, asked: RequestFields) -> Answer {
    blocking(move || {
        let key = asked.needed("metric_key")?;
        let run = run_dir(&server, asked.run()?)?;
        let from: usize = match asked.text("page_token")? {
            None | Some("") => 0,
            Some(token) => token
                .parse()
                .map_err(|_| MlflowError::wrong("Invalid page token"))?,
        };
        let most = asked.whole("max_results")?;
        let most = most.and_then(|most| usize::try_from(most).ok());
        let end = from.saturating_add(most.unwrap_or(MOST_POINTS).min(MOST_POINTS));
        let (mut page, mut count) = (Vec::new(), 0);
        let mut add = |point: Value| {
            if (from..end).contains(&count) {
                page.push(point);
            }
            count += 1;
        };
        match record_of(&server, &run)? {
            Some(_) => writer::each_point(&run, |name, point| {
                if name == key {
                    add(point.shown(key));
                }
            })?,
            None => own_history(&server, &run, key)?.into_iter().for_each(add),
        }
        let mut answer = json!({ "metrics": page });
        if end < count && end > from {
            answer["next_page_token"] = end.to_string().into();
        }
        Ok(Json(answer))
    })
    .await
}

/// The points of a run of Lockstep's own.
fn own_history(
    server: &Server,
    run: &lockstep_runs::RunDir,
    key: &str,
) -> Result<Vec<Value>, MlflowError> {
    let series = super::ask(server, |index| {
        index.refresh(run)?;
        let found = index.series(&run.name, |_, name| name == key)?;
        match lockstep_events::current_name(key).filter(|_| found.is_empty()) {
            Some(now) => index.series(&run.name, |_, name| name == now),
            None => Ok(found),
        }
    })?;
    let points = series.into_iter().flat_map(|series| series.points);
    let shown = points.map(|point| {
        let timestamp = (point.time * 1000.0) as i64;
        json!({ "key": key, "value": super::record::shown(point.value), "timestamp": timestamp, "step": point.step })
    });
    Ok(shown.collect())
}
