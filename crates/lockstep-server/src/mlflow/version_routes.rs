//! `model-versions/…`: the versions of registered models.
//!
//! A version has a copy of its files, so it outlives the run and the logged model that it was made from. Files that lie
//! elsewhere (a bucket) are not copied: the client fetches them from there itself.

use super::artifacts::Files;
use super::filter::Name;
use super::owners::{may_change_model, may_change_version};
use super::registry_routes::{leave_out_prompts, registry, tag};
use super::request_fields::RequestFields;
use super::search::Search;
use super::view::{milliseconds, pairs};
use super::{Answer, MlflowError, blocking, logged_model_routes};
use crate::endpoint::Endpoint;
use crate::{Caller, Server};
use axum::Json;
use axum::extract::State;
use lockstep_index::filter::Worth;
use lockstep_place::Place;
use lockstep_runs::registry::{
    Details, Lineage, MLFLOW_FOLDER, MlflowVersion, Model, NewVersion, Pick, Version,
    VersionDetails,
};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How many versions an answer has if that is not said.
const USUAL: i64 = 10_000;
/// What MLflow calls having no stage.
const NO_STAGE: &str = "None";
const STAGES: [&str; 3] = ["Staging", "Production", "Archived"];

pub(super) fn endpoints() -> Vec<Endpoint> {
    let of = |rest: &str| format!("/model-versions/{rest}");
    vec![
        Endpoint::post(
            &of("create"),
            create,
            "Makes a version of a registered model",
        )
        .body("name! source! run_id model_id run_link description tags:pairs")
        .takes(1 << 20),
        Endpoint::get(&of("get"), show, "One version").query("name! version!"),
        Endpoint::get(&of("search"), search, "Versions, chosen and sorted")
            .query("filter max_results:integer order_by page_token"),
        Endpoint::get(
            &of("get-download-uri"),
            download_uri,
            "Where the files of a version are",
        )
        .query("name! version!"),
        Endpoint::patch(&of("update"), update, "Describes a version")
            .body("name! version! description"),
        Endpoint::post(
            &of("transition-stage"),
            transition,
            "Gives a version a stage",
        )
        .body("name! version! stage! archive_existing_versions:boolean"),
        Endpoint::delete(&of("delete"), remove, "Removes a version").body("name! version!"),
        Endpoint::post(&of("set-tag"), set_tag, "Sets a tag of a version")
            .body("name! version! key! value")
            .takes(1 << 20),
        Endpoint::delete(&of("delete-tag"), delete_tag, "Removes a tag of a version")
            .body("name! version! key!"),
    ]
}

/// The number of a version that was asked for; clients write it as text.
pub(super) fn number(asked: &RequestFields) -> Result<u64, MlflowError> {
    let number = asked
        .whole("version")?
        .and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| {
        MlflowError::wrong("Parameter 'version' must be the number of a version, counted from 1")
    })
}

/// The stage of a version, in MLflow's words.
pub(super) fn stage(model: &Model, number: u64) -> &str {
    let said = model
        .details
        .versions
        .get(&number)
        .map(|said| said.stage.as_str());
    said.filter(|stage| !stage.is_empty()).unwrap_or(NO_STAGE)
}

/// Where the files of a version are, for clients.
fn files_of(version: &Version) -> String {
    format!(
        "mlflow-artifacts:/models/{}@{}/artifacts",
        version.name, version.number
    )
}

/// As MLflow's clients read it.
pub(super) fn shown(model: &Model, version: &Version) -> Value {
    let none = VersionDetails::default();
    let said = model.details.versions.get(&version.number).unwrap_or(&none);
    let sent = version.mlflow.clone().unwrap_or_default();
    let source = match &version.mlflow {
        Some(sent) => sent.source.clone(),
        None => files_of(version),
    };
    json!({
        "name": version.name,
        "version": version.number.to_string(),
        "creation_timestamp": milliseconds(version.created),
        "last_updated_timestamp": milliseconds(version.created.max(said.updated)),
        "user_id": sent.owner,
        "current_stage": stage(model, version.number),
        "description": said.note.as_ref().unwrap_or(&version.note),
        "source": source,
        "run_id": version.lineage.run,
        "run_link": sent.run_link,
        "model_id": sent.model_id,
        "status": "READY",
        "tags": pairs(&said.tags),
        "aliases": model.aliases_of(version.number),
    })
}

async fn create(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    blocking(move || {
        let (registry, name) = (registry(&server)?, asked.needed("name")?);
        may_change_model(&caller, &registry.model(name)?)?;
        let text =
            |key: &str| Ok::<_, MlflowError>(asked.text(key)?.unwrap_or_default().to_owned());
        let source = asked.needed("source")?;
        let mut copied = copied_from(&server, source)?;
        for (_, name) in &mut copied {
            *name = format!("{MLFLOW_FOLDER}/{name}");
        }
        let (mut run, mut model_id) = (text("run_id")?, text("model_id")?);
        if let Some(id) = source
            .strip_prefix("models:/")
            .filter(|id| id.starts_with("m-"))
        {
            id.clone_into(&mut model_id);
            if run.is_empty() {
                run = logged_model_routes::models(&server)?.get(id)?.run;
            }
        }
        let made = registry.add(
            name,
            NewVersion {
                note: text("description")?,
                lineage: lineage(&server, &run)?,
                mlflow: Some(MlflowVersion {
                    source: source.to_owned(),
                    model_id,
                    run_link: text("run_link")?,
                    owner: Some(caller.name),
                }),
                copied,
                written: Vec::new(),
            },
        )?;
        let tags = asked.model_tags()?;
        if !tags.is_empty() {
            registry.describe_version(name, made.number, |details, number| {
                let said = details.versions.entry(number).or_default();
                said.tags.clone_from(&tags);
            })?;
        }
        answer(&server, name, made.number)
    })
    .await
}

/// Where a version comes from, as far as its run says.
fn lineage(server: &Server, run: &str) -> Result<Lineage, MlflowError> {
    if run.is_empty() {
        return Ok(Lineage::default());
    }
    let view = super::view(server, run)?;
    let numbers = view.record.latest.iter();
    let metrics = numbers.map(|(key, point)| (key.clone(), point.number()));
    let metrics: BTreeMap<String, f64> = metrics.filter(|(_, value)| value.is_finite()).collect();
    Ok(Lineage {
        run: run.to_owned(),
        metrics,
        ..Lineage::default()
    })
}

/// The files that a source names, if they lie here.
fn copied_from(server: &Server, source: &str) -> Result<Vec<(Place, String)>, MlflowError> {
    let wrong = |why: &str| {
        MlflowError::wrong(format!(
            "Invalid model version source: '{source:.500}'. {why}"
        ))
    };
    let files = if let Some(model) = source.strip_prefix("models:/") {
        match model.split_once('/') {
            None if model.starts_with("m-") => Files::of_model(server, model, "")?,
            None => Files::of_version(server, model, "")?,
            Some((name, version)) => Files::of_version(server, &format!("{name}@{version}"), "")?,
        }
    } else if let Some(of_run) = source.strip_prefix("runs:/") {
        let (run, path) = of_run.split_once('/').unwrap_or((of_run, ""));
        Files::of(server, run, path)?
    } else if let Some(path) = source.strip_prefix("mlflow-artifacts:/") {
        // A host may be named, and it is this one for whoever asks this one.
        let path = match path.strip_prefix('/') {
            Some(with_host) => with_host.split_once('/').map_or("", |(_, path)| path),
            None => path,
        };
        Files::parse(server, path)?
    } else if source.starts_with('/') || source.starts_with("file:") {
        // Whoever loads the version would read the file of that name on a machine of their own.
        return Err(wrong(
            "It is a path of one machine: log the model in a run first",
        ));
    } else {
        return Ok(Vec::new());
    };
    let found = files.all()?;
    match found.is_empty() {
        true => Err(wrong("There are no files")),
        false => Ok(found),
    }
}

fn answer(server: &Server, name: &str, number: u64) -> Answer {
    let model = registry(server)?.model(name)?;
    let version = model.pick(&Pick::Number(number))?;
    Ok(Json(json!({ "model_version": shown(&model, version) })))
}

async fn show(State(server): State<Server>, asked: RequestFields) -> Answer {
    blocking(move || answer(&server, asked.needed("name")?, number(&asked)?)).await
}

async fn search(State(server): State<Server>, asked: RequestFields) -> Answer {
    blocking(move || {
        let search = Search::of(&asked, "", USUAL)?;
        let mut models = registry(&server)?.all()?;
        leave_out_prompts(&mut models, &asked)?;
        let all = models.iter();
        let all = all.flat_map(|model| model.versions.iter().map(move |version| (model, version)));
        let order = |(_, version): &(&Model, &Version)| {
            let created = milliseconds(version.created);
            (
                Reverse(created),
                version.name.clone(),
                Reverse(version.number),
            )
        };
        let (page, more) = search.page(
            all.collect(),
            |_| false,
            |(model, version), name| value(model, version, name),
            |a, b| order(a).cmp(&order(b)),
        );
        let versions: Vec<Value> = page
            .iter()
            .map(|(model, version)| shown(model, version))
            .collect();
        let mut answer = json!({ "model_versions": versions });
        if let Some(more) = more {
            answer["next_page_token"] = more.into();
        }
        Ok(Json(answer))
    })
    .await
}

/// What a version has of a name.
fn value(model: &Model, version: &Version, name: &Name) -> Option<Worth> {
    let text = |text: &str| Some(Worth::Text(text.to_owned()));
    let said = model.details.versions.get(&version.number);
    match name {
        Name::Tag(key) => tag(said.map_or(&BTreeMap::new(), |said| &said.tags), key),
        Name::Attribute(key) => match key.as_str() {
            "name" => text(&version.name),
            "run_id" => text(&version.lineage.run),
            "source_path" | "source" => text(shown(model, version)["source"].as_str()?),
            "version_number" | "version" => Some(Worth::Number(version.number as f64)),
            "creation_timestamp" => Some(Worth::Number(version.created * 1000.0)),
            "last_updated_timestamp" => {
                let updated = said.map_or(0.0, |said| said.updated);
                Some(Worth::Number(version.created.max(updated) * 1000.0))
            }
            _ => None,
        },
        _ => None,
    }
}

async fn download_uri(State(server): State<Server>, asked: RequestFields) -> Answer {
    blocking(move || {
        let registry = registry(&server)?;
        let model = registry.model(asked.needed("name")?)?;
        let version = model.pick(&Pick::Number(number(&asked)?))?;
        let files = registry.run(version)?.file(MLFLOW_FOLDER).list()?;
        let uri = match (&version.mlflow, files.is_empty()) {
            (Some(sent), true) => sent.source.clone(),
            (None, true) => {
                return Err(MlflowError::state(format!(
                    "{}@{} has no files for MLflow: it was registered by a program that wrote none, or is a model that \
                     ONNX cannot express. Register its run again",
                    version.name, version.number
                )));
            }
            (_, false) => files_of(version),
        };
        Ok(Json(json!({ "artifact_uri": uri })))
    })
    .await
}

async fn update(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    let note = asked.text("description")?.map(str::to_owned);
    describe(server, caller, asked, move |details, number| {
        details
            .versions
            .entry(number)
            .or_default()
            .note
            .clone_from(&note);
    })
    .await
}

async fn set_tag(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    let (key, value) = asked.model_tag()?;
    describe(server, caller, asked, move |details, number| {
        let tags = &mut details.versions.entry(number).or_default().tags;
        tags.insert(key.clone(), value.clone());
    })
    .await
}

async fn delete_tag(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    let key = asked.needed("key")?.to_owned();
    describe(server, caller, asked, move |details, number| {
        details
            .versions
            .entry(number)
            .or_default()
            .tags
            .remove(&key);
    })
    .await
}

async fn transition(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    let said = asked.needed("stage")?;
    let mut known = STAGES.into_iter().chain([NO_STAGE]);
    let stage = known.find(|known| known.eq_ignore_ascii_case(said)).ok_or_else(|| {
        MlflowError::wrong(format!(
            "Invalid Model Version stage: {said:.100}. Value must be one of None, Staging, Production, Archived."
        ))
    })?;
    let archives = asked
        .get("archive_existing_versions")
        .and_then(Value::as_bool)
        == Some(true);
    describe(server, caller, asked, move |details, number| {
        if archives {
            let others = details
                .versions
                .values_mut()
                .filter(|other| other.stage == stage);
            others.for_each(|other| "Archived".clone_into(&mut other.stage));
        }
        let version = details.versions.entry(number).or_default();
        match stage {
            NO_STAGE => version.stage.clear(),
            stage => stage.clone_into(&mut version.stage),
        }
    })
    .await
}

async fn describe(
    server: Server,
    caller: Caller,
    asked: RequestFields,
    change: impl Fn(&mut Details, u64) + Send + 'static,
) -> Answer {
    blocking(move || {
        let (registry, name, number) = (registry(&server)?, asked.needed("name")?, number(&asked)?);
        let model = registry.model(name)?;
        let version = model.pick(&Pick::Number(number))?;
        may_change_version(&server, &caller, &model, version)?;
        registry.describe_version(name, number, change)?;
        answer(&server, name, number)
    })
    .await
}

async fn remove(State(server): State<Server>, caller: Caller, asked: RequestFields) -> Answer {
    blocking(move || {
        let (registry, name, number) = (registry(&server)?, asked.needed("name")?, number(&asked)?);
        let model = registry.model(name)?;
        may_change_version(&server, &caller, &model, model.pick(&Pick::Number(number))?)?;
        for alias in model.aliases_of(number) {
            registry.point(name, alias, None)?;
        }
        registry.remove(name, number)?;
        Ok(Json(json!({})))
    })
    .await
}
