//! `experiments/…`

use super::experiments::Experiment;
use super::filter::Name;
use super::request_fields::RequestFields;
use super::search::Search;
use super::{Answer, MlflowError, blocking, everything, not_own, now};
use crate::endpoint::Endpoint;
use crate::{Caller, Server};
use axum::Json;
use axum::extract::State;
use lockstep_index::filter::Worth as Found;
use serde_json::json;
use std::cmp::Reverse;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post("/experiments/create", create, "Makes an experiment")
            .body("name! tags:pairs"),
        Endpoint::get("/experiments/get", by_id, "One experiment").query("experiment_id!"),
        Endpoint::get("/experiments/get-by-name", by_name, "One experiment")
            .query("experiment_name!"),
        Endpoint::get(
            "/experiments/search",
            search,
            "Experiments, chosen and sorted",
        )
        .query("filter max_results:integer page_token order_by view_type"),
        Endpoint::post(
            "/experiments/search",
            search,
            "Experiments, chosen and sorted",
        )
        .body("filter max_results:integer page_token order_by:texts view_type")
        .reads(),
        Endpoint::post("/experiments/update", update, "Renames an experiment")
            .body("experiment_id! new_name"),
        Endpoint::post(
            "/experiments/delete",
            delete,
            "Puts an experiment into the bin",
        )
        .body("experiment_id!"),
        Endpoint::post(
            "/experiments/restore",
            restore,
            "Takes an experiment out of the bin",
        )
        .body("experiment_id!"),
        Endpoint::post(
            "/experiments/set-experiment-tag",
            set_tag,
            "Sets a tag of an experiment",
        )
        .body("experiment_id! key! value"),
        Endpoint::post(
            "/experiments/delete-experiment-tag",
            delete_tag,
            "Removes a tag of an experiment",
        )
        .body("experiment_id! key!"),
    ]
}

/// The experiment of this id.
pub(super) fn find(server: &Server, id: &str) -> Result<Experiment, MlflowError> {
    let (_, all) = everything(server)?;
    let found = all.into_iter().find(|experiment| experiment.id == id);
    found.ok_or_else(|| MlflowError::missing(format!("No Experiment with id={id:.200} exists")))
}

async fn create(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    blocking(move || {
        let name = asked.needed("name")?;
        let (_, all) = everything(&server)?;
        if all.iter().any(|known| known.name == name && !known.deleted) {
            return Err(MlflowError::exists(format!(
                "Experiment '{name:.500}' already exists."
            )));
        }
        let experiments = &server.mlflow().experiments;
        let made = experiments.create(name, &caller.name, asked.tags("tags")?, now())?;
        Ok(Json(json!({ "experiment_id": made.id })))
    })
    .await
}

async fn by_id(State(server): State<Server>, asked: RequestFields) -> Answer {
    blocking(move || {
        let found = find(&server, asked.needed("experiment_id")?)?;
        Ok(Json(json!({ "experiment": found.shown() })))
    })
    .await
}

async fn by_name(State(server): State<Server>, asked: RequestFields) -> Answer {
    blocking(move || {
        let name = asked.needed("experiment_name")?;
        let (_, all) = everything(&server)?;
        let found = all.iter().find(|experiment| experiment.name == name);
        let found = found.ok_or_else(|| {
            MlflowError::missing(format!("Could not find experiment with name '{name:.500}'"))
        })?;
        Ok(Json(json!({ "experiment": found.shown() })))
    })
    .await
}

async fn search(State(server): State<Server>, asked: RequestFields) -> Answer {
    blocking(move || {
        let search = Search::of(&asked, "view_type", 1000)?;
        let (_, all) = everything(&server)?;
        let value = |one: &Experiment, name: &Name| {
            let text = |text: &str| Some(Found::Text(text.to_owned()));
            match name {
                Name::Tag(key) => one.tags.get(key).and_then(|value| text(value)),
                Name::Attribute(key) => match key.as_str() {
                    "name" => text(&one.name),
                    "experiment_id" => text(&one.id),
                    "creation_time" => Some(Found::Number(one.created as f64)),
                    "last_update_time" => Some(Found::Number(one.updated as f64)),
                    _ => None,
                },
                _ => None,
            }
        };
        let order = |one: &Experiment| (Reverse(one.created), one.name.clone());
        let (page, more) = search.page(
            all,
            |one| one.deleted,
            value,
            |a, b| order(a).cmp(&order(b)),
        );
        let shown: Vec<_> = page.iter().map(Experiment::shown).collect();
        let mut answer = json!({ "experiments": shown });
        if let Some(more) = more {
            answer["next_page_token"] = more.into();
        }
        Ok(Json(answer))
    })
    .await
}

async fn update(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    let name = asked.text("new_name")?.map(str::to_owned);
    change(server, caller, asked, move |one| {
        if let Some(name) = name {
            one.name = name;
        }
    })
    .await
}

async fn delete(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    change(server, caller, asked, |one| one.deleted = true).await
}

async fn restore(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    change(server, caller, asked, |one| one.deleted = false).await
}

async fn set_tag(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    let (key, value) = asked.tag()?;
    change(server, caller, asked, move |one| {
        drop(one.tags.insert(key, value))
    })
    .await
}

async fn delete_tag(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    let key = asked.needed("key")?.to_owned();
    change(server, caller, asked, move |one| {
        drop(one.tags.remove(&key))
    })
    .await
}

async fn change(
    server: Server,
    caller: Caller,
    asked: RequestFields,
    change: impl FnOnce(&mut Experiment) + Send + 'static,
) -> Answer {
    blocking(move || {
        let found = find(&server, asked.needed("experiment_id")?)?;
        if !caller.owns(found.owner.as_deref()) {
            return Err(not_own(
                &caller,
                "experiment",
                &found.name,
                found.owner.as_deref(),
            ));
        }
        server.mlflow().experiments.update(found, now(), change)?;
        Ok(Json(json!({})))
    })
    .await
}
