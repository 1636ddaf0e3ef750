//! `registered-models/…`: models by name, over the registry of the store.
//!
//! What `lockstep models` shows and what MLflow's clients see are the same models, versions and aliases. A prompt is a
//! model with a certain tag; it is kept like all others, and shown only to those who ask for prompts, as MLflow does.

use super::filter::Name;
use super::owners::may_change_model;
use super::request_fields::RequestFields;
use super::search::Search;
use super::version_routes::{self, number};
use super::view::{milliseconds, pairs};
use super::{Answer, MlflowError, blocking};
use crate::endpoint::Endpoint;
use crate::{Caller, Server};
use axum::Json;
use axum::extract::State;
use lockstep_index::filter::Worth;
use lockstep_runs::registry::{Details, Model, PROMPT_TAG, Pick, Registry};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many models an answer has if that is not said.
const USUAL: i64 = 100;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let of = |rest: &str| format!("/registered-models/{rest}");
    vec![
        Endpoint::post(&of("create"), create, "Makes a registered model")
            .body("name! description tags:pairs")
            .takes(1 << 20),
        Endpoint::get(&of("get"), show, "One registered model").query("name!"),
        Endpoint::get(
            &of("search"),
            search,
            "Registered models, chosen and sorted",
        )
        .query("filter max_results:integer order_by page_token"),
        Endpoint::patch(&of("update"), update, "Describes a registered model")
            .body("name! description"),
        Endpoint::post(&of("rename"), rename, "Refused: a model keeps its name")
            .body("name! new_name!"),
        Endpoint::delete(
            &of("delete"),
            remove,
            "Removes a model and all its versions",
        )
        .body("name!"),
        Endpoint::get(
            &of("get-latest-versions"),
            latest,
            "The newest version of each stage",
        )
        .query("name! stages"),
        Endpoint::post(
            &of("get-latest-versions"),
            latest,
            "The newest version of each stage",
        )
        .body("name! stages:texts")
        .reads(),
        Endpoint::post(&of("set-tag"), set_tag, "Sets a tag of a registered model")
            .body("name! key! value")
            .takes(1 << 20),
        Endpoint::delete(
            &of("delete-tag"),
            delete_tag,
            "Removes a tag of a registered model",
        )
        .body("name! key!"),
        Endpoint::get(
            &of("alias"),
            by_alias,
            "The version that an alias points to",
        )
        .query("name! alias!"),
        Endpoint::post(&of("alias"), set_alias, "Points an alias to a version")
            .body("name! alias! version!"),
        Endpoint::delete(&of("alias"), delete_alias, "Takes an alias away").body("name! alias!"),
    ]
}

pub(super) fn registry(server: &Server) -> Result<Registry, MlflowError> {
    Ok(Registry::of(&server.settings().store)?)
}

/// As MLflow's clients read it.
fn shown(model: &Model) -> Value {
    let aliases = model.aliases.iter();
    let aliases =
        aliases.map(|(alias, number)| json!({ "alias": alias, "version": number.to_string() }));
    let latest = latest_of(model, &[]);
    json!({
        "name": model.name,
        "creation_timestamp": created(model),
        "last_updated_timestamp": updated(model),
        "user_id": model.details.owner,
        "description": model.details.note,
        "tags": pairs(&model.details.tags),
        "aliases": aliases.collect::<Vec<_>>(),
        "latest_versions": latest,
    })
}

fn created(model: &Model) -> i64 {
    let first = model.versions.first().map_or(0.0, |first| first.created);
    milliseconds(match model.details.created {
        0.0 => first,
        created => created,
    })
}

fn updated(model: &Model) -> i64 {
    let last = model.versions.last().map_or(0.0, |last| last.created);
    milliseconds(last.max(model.details.updated))
}

/// The newest version of each of these stages, or of all.
fn latest_of(model: &Model, stages: &[String]) -> Vec<Value> {
    let mut seen: Vec<&str> = Vec::new();
    let mut latest = Vec::new();
    for version in model.versions.iter().rev() {
        let stage = version_routes::stage(model, version.number);
        let is_wanted = stages.is_empty()
            || stages
                .iter()
                .any(|wanted| wanted.eq_ignore_ascii_case(stage));
        if is_wanted && !seen.contains(&stage) {
            seen.push(stage);
            latest.push(version_routes::shown(model, version));
        }
    }
    latest
}

/// What a model or a version has of a tag. All that are not prompts have a tag that says so, for those who search.
pub(super) fn tag(tags: &BTreeMap<String, String>, key: &str) -> Option<Worth> {
    let found = tags.get(key).cloned();
    let found = found.or_else(|| (key == PROMPT_TAG).then(|| "false".to_owned()));
    found.map(Worth::Text)
}

/// Leaves out prompts, unless a search speaks of them.
pub(super) fn leave_out_prompts(
    models: &mut Vec<Model>,
    asked: &RequestFields,
) -> Result<(), MlflowError> {
    let filter = asked.text("filter")?.unwrap_or_default();
    if !filter.contains(PROMPT_TAG) {
        models.retain(|model| !model.is_prompt());
    }
    Ok(())
}

async fn create(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    blocking(move || {
        let (registry, name) = (registry(&server)?, asked.needed("name")?);
        let details = Details {
            owner: Some(caller.name),
            note: asked.text("description")?.unwrap_or_default().to_owned(),
            tags: asked.model_tags()?,
            ..Details::default()
        };
        match registry.create(name, details)? {
            true => Ok(Json(
                json!({ "registered_model": shown(&registry.model(name)?) }),
            )),
            false => Err(MlflowError::exists(format!(
                "Registered Model (name={name}) already exists."
            ))),
        }
    })
    .await
}

async fn show(State(server): State<Server>, asked: RequestFields) -> Answer {
    blocking(move || {
        let model = registry(&server)?.model(asked.needed("name")?)?;
        Ok(Json(json!({ "registered_model": shown(&model) })))
    })
    .await
}

async fn search(State(server): State<Server>, asked: RequestFields) -> Answer {
    blocking(move || {
        let search = Search::of(&asked, "", USUAL)?;
        let mut all = registry(&server)?.all()?;
        leave_out_prompts(&mut all, &asked)?;
        let value = |model: &Model, name: &Name| match name {
            Name::Tag(key) => tag(&model.details.tags, key),
            Name::Attribute(key) => match key.as_str() {
                "name" => Some(Worth::Text(model.name.clone())),
                "timestamp" | "last_updated_timestamp" => {
                    Some(Worth::Number(updated(model) as f64))
                }
                "creation_timestamp" => Some(Worth::Number(created(model) as f64)),
                _ => None,
            },
            _ => None,
        };
        let (page, more) = search.page(all, |_| false, value, |a, b| a.name.cmp(&b.name));
        let shown: Vec<Value> = page.iter().map(shown).collect();
        let mut answer = json!({ "registered_models": shown });
        if let Some(more) = more {
            answer["next_page_token"] = more.into();
        }
        Ok(Json(answer))
    })
    .await
}

async fn update(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    let note = asked.text("description")?.map(str::to_owned);
    describe(server, caller, asked, move |details| {
        if let Some(note) = &note {
            details.note.clone_from(note);
        }
    })
    .await
}

/// Files and runs speak of a model by its name, so it has one for ever.
async fn rename(asked: RequestFields) -> Answer {
    let (name, new) = (asked.needed("name")?, asked.needed("new_name")?);
    Err(MlflowError::wrong(format!(
        "{name:.100} cannot be renamed: a model keeps its name here. Copy its versions to {new:.100} with \
         copy_model_version, and delete it"
    )))
}

async fn remove(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    blocking(move || {
        let (registry, name) = (registry(&server)?, asked.needed("name")?);
        may_change_model(&caller, &registry.model(name)?)?;
        registry.remove_model(name)?;
        Ok(Json(json!({})))
    })
    .await
}

async fn latest(State(server): State<Server>, asked: RequestFields) -> Answer {
    blocking(move || {
        let model = registry(&server)?.model(asked.needed("name")?)?;
        let versions = latest_of(&model, &asked.texts("stages")?);
        Ok(Json(json!({ "model_versions": versions })))
    })
    .await
}

async fn set_tag(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    let (key, value) = asked.model_tag()?;
    describe(server, caller, asked, move |details| {
        details.tags.insert(key.clone(), value.clone());
    })
    .await
}

async fn delete_tag(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    let key = asked.needed("key")?.to_owned();
    describe(server, caller, asked, move |details| {
        details.tags.remove(&key);
    })
    .await
}

async fn describe(
    server: Server,
    caller: Caller,
    asked: RequestFields,
    change: impl Fn(&mut Details) + Send + 'static,
) -> Answer {
    blocking(move || {
        let (registry, name) = (registry(&server)?, asked.needed("name")?);
        may_change_model(&caller, &registry.model(name)?)?;
        registry.describe(name, change)?;
        Ok(Json(
            json!({ "registered_model": shown(&registry.model(name)?) }),
        ))
    })
    .await
}

async fn by_alias(State(server): State<Server>, asked: RequestFields) -> Answer {
    blocking(move || {
        let model = registry(&server)?.model(asked.needed("name")?)?;
        let pick = match asked.needed("alias")? {
            "latest" => Pick::Newest,
            alias => Pick::Alias(alias.to_owned()),
        };
        let version = model.pick(&pick)?;
        Ok(Json(
            json!({ "model_version": version_routes::shown(&model, version) }),
        ))
    })
    .await
}

async fn set_alias(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    let version = Some(number(&asked)?);
    point(server, caller, asked, version).await
}

async fn delete_alias(
    State(server): State<Server>,
    caller: Caller,
    asked: RequestFields,
) -> Answer {
    point(server, caller, asked, None).await
}

async fn point(
    server: Server,
    caller: Caller,
    asked: RequestFields,
    version: Option<u64>,
) -> Answer {
    blocking(move || {
        let (registry, name) = (registry(&server)?, asked.needed("name")?);
        may_change_model(&caller, &registry.model(name)?)?;
        registry.point(name, asked.needed("alias")?, version)?;
        Ok(Json(json!({})))
    })
    .await
}
