//! Files of runs and models, through the server: `mlflow-artifacts/artifacts/EXPERIMENT/RUN/artifacts/PATH`.
//!
//! Those that clients send lie in the folder `artifacts` of the run or of the logged model. Of Lockstep's own runs all files can be read, and none
//! written. Files come back as something to be kept, never as a page: somebody else's HTML has no business in a browser
//! that trusts this server.

use super::logged_models::LoggedModel;
use super::record::Record;
use super::request_fields::RequestFields;
use super::{Answer, MlflowError, blocking, logged_model_routes, may_change, run_dir, view};
use crate::endpoint::{BYTES, Endpoint};
use crate::file_stream::OpenFile;
use crate::{Caller, Server};
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use http::header;
use lockstep_place::{Place, PlaceError, PlaceWriter};
use lockstep_runs::RunDir;
use lockstep_runs::registry::{MLFLOW_FOLDER, Registry};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// So many bytes are written at a time.
const BLOCK: usize = 256 << 10;
/// The folder in a run's.
const FOLDER: &str = "artifacts";
/// What stands in a path in the place of a run, where models are meant.
const MODELS: &str = "models";

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get(
            "/api/2.0/mlflow-artifacts/artifacts",
            list,
            "Files of a run, by EXPERIMENT/RUN/artifacts/PATH",
        )
        .query("path!"),
        Endpoint::get(
            "/api/2.0/mlflow-artifacts/artifacts/{*path}",
            download,
            "A file of a run",
        )
        .answer(BYTES),
        Endpoint::put(
            "/api/2.0/mlflow-artifacts/artifacts/{*path}",
            upload,
            "Sends a file of a run",
        ),
        Endpoint::delete(
            "/api/2.0/mlflow-artifacts/artifacts/{*path}",
            remove,
            "Removes a file of a run",
        ),
        Endpoint::get("/get-artifact", download_of_run, "A file of a run")
            .query("run_uuid! path!")
            .answer(BYTES),
    ]
}

/// Files below the folder of something that has some.
pub(super) struct Files {
    of: Holder,
    root: Place,
    /// Within the folder; empty for all of them.
    path: String,
}

/// Whose files they are.
enum Holder {
    /// A run that MLflow's client made.
    Run(RunDir),
    /// A run of Lockstep's own: its files can be read.
    OwnRun(RunDir),
    /// A logged model.
    Model(Box<LoggedModel>),
    /// A version of a registered model, which never changes.
    Version(String),
}

impl Files {
    /// Those that a path means: `EXPERIMENT/RUN/artifacts/PATH`, `EXPERIMENT/models/ID/artifacts/PATH` of a logged model,
    /// `models/NAME@VERSION/artifacts/PATH` of a registered one.
    pub(super) fn parse(server: &Server, whole: &str) -> Result<Files, MlflowError> {
        let parts: Vec<&str> = whole.trim_end_matches('/').split('/').collect();
        match parts.as_slice() {
            [_, MODELS, id, FOLDER, path @ ..] => Self::of_model(server, id, &path.join("/")),
            [MODELS, version, FOLDER, path @ ..] => {
                Self::of_version(server, version, &path.join("/"))
            }
            [_, run, FOLDER, path @ ..] => Self::of(server, run, &path.join("/")),
            _ => Err(MlflowError::missing(format!(
                "{whole:.200} is not of a run or a model: EXPERIMENT/RUN/{FOLDER}/PATH"
            ))),
        }
    }

    pub(super) fn of(server: &Server, run: &str, path: &str) -> Result<Files, MlflowError> {
        let run = run_dir(server, run)?;
        let (root, of) = match Record::read(&run)? {
            Some(_) => (run.file(FOLDER), Holder::Run(run)),
            None => (run.place().clone(), Holder::OwnRun(run)),
        };
        Self::shown(of, root, path)
    }

    pub(super) fn of_model(server: &Server, id: &str, path: &str) -> Result<Files, MlflowError> {
        let (model, root) = logged_model_routes::models(server)?.files(id)?;
        Self::shown(Holder::Model(Box::new(model)), root, path)
    }

    pub(super) fn of_version(
        server: &Server,
        version: &str,
        path: &str,
    ) -> Result<Files, MlflowError> {
        let registry = Registry::of(&server.settings().store)?;
        let found = registry.find(&version.parse()?)?;
        let root = registry.run(&found)?.file(MLFLOW_FOLDER);
        Self::shown(Holder::Version(version.to_owned()), root, path)
    }

    fn shown(of: Holder, root: Place, path: &str) -> Result<Files, MlflowError> {
        let files = Files {
            of,
            root,
            path: path.to_owned(),
        };
        let hidden = path.split('/').any(|part| part.starts_with('.'));
        match hidden && !files.is_sent() {
            true => Err(MlflowError::missing("there is no such file")),
            false => Ok(files),
        }
    }

    /// Whether clients sent them.
    fn is_sent(&self) -> bool {
        matches!(self.of, Holder::Run(_) | Holder::Model(_))
    }

    /// The file or folder itself.
    fn place(&self) -> Result<Place, MlflowError> {
        match self.path.as_str() {
            "" => Ok(self.root.clone()),
            path => Ok(self.root.join(path)?),
        }
    }

    /// The same, for a caller who may write it.
    fn writable(&self, server: &Server, caller: &Caller) -> Result<Place, MlflowError> {
        match &self.of {
            Holder::Run(run) => may_change(server, caller, run)?,
            Holder::Model(model) => logged_model_routes::may_change(caller, model)?,
            Holder::OwnRun(run) => {
                may_change(server, caller, run)?;
                return Err(MlflowError::state(format!(
                    "{} was not made through MLflow: its files can only be read",
                    run.name
                )));
            }
            Holder::Version(version) => {
                return Err(MlflowError::state(format!(
                    "{version:.200} is a version of a model, which never changes"
                )));
            }
        }
        match self.path.is_empty() {
            true => Err(MlflowError::wrong("the path has no file's name")),
            false => self.place(),
        }
    }

    /// All files below it: where each lies, and its name within.
    pub(super) fn all(&self) -> Result<Vec<(Place, String)>, MlflowError> {
        let place = self.place()?;
        let files = place.list()?.into_iter();
        let files = files.filter(|file| self.is_sent() || !file.path.starts_with('.'));
        let files = files.map(|file| Ok((place.join(&file.path)?, file.path)));
        files.collect()
    }

    /// What lies directly in it: names, and the sizes of files.
    fn list(&self) -> Result<BTreeMap<String, Option<u64>>, MlflowError> {
        let place = self.place()?;
        if place.local().is_some_and(|path| !path.is_dir()) {
            return Ok(BTreeMap::new());
        }
        let files = match place.list() {
            Ok(files) => files,
            Err(PlaceError::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let shown = files
            .into_iter()
            .filter(|file| self.is_sent() || !file.path.starts_with('.'));
        let names = shown.map(|file| match file.path.split_once('/') {
            Some((folder, _)) => (folder.to_owned(), None),
            None => (file.path, Some(file.size)),
        });
        Ok(names.collect())
    }
}

/// As MLflow's clients read it; `before` is what comes before each name.
fn shown(names: BTreeMap<String, Option<u64>>, before: &str) -> Vec<Value> {
    let shown = names.into_iter().map(|(name, size)| {
        let path = match before {
            "" => name,
            before => format!("{before}/{name}"),
        };
        match size {
            Some(size) => json!({ "path": path, "is_dir": false, "file_size": size }),
            None => json!({ "path": path, "is_dir": true }),
        }
    });
    shown.collect()
}

async fn list(State(server): State<Server>, asked: RequestFields) -> Answer {
    blocking(move || {
        let files = Files::parse(&server, asked.needed("path")?)?;
        Ok(Json(json!({ "files": shown(files.list()?, "") })))
    })
    .await
}

pub(super) async fn list_of_run(State(server): State<Server>, asked: RequestFields) -> Answer {
    blocking(move || {
        let id = asked.run()?;
        let path = asked
            .text("path")?
            .unwrap_or_default()
            .trim_end_matches('/');
        let files = Files::of(&server, id, path)?;
        let root = view(&server, id)?.artifacts();
        Ok(Json(
            json!({ "root_uri": root, "files": shown(files.list()?, path) }),
        ))
    })
    .await
}

pub(super) async fn list_of_model(
    State(server): State<Server>,
    Path((id,)): Path<(String,)>,
    asked: RequestFields,
) -> Answer {
    blocking(move || {
        let path = asked
            .text("artifact_directory_path")?
            .unwrap_or_default()
            .trim_matches('/');
        let files = Files::of_model(&server, &id, path)?;
        let (model, _) = logged_model_routes::models(&server)?.files(&id)?;
        Ok(Json(
            json!({ "root_uri": model.artifacts(), "files": shown(files.list()?, path) }),
        ))
    })
    .await
}

async fn download(
    State(server): State<Server>,
    Path(path): Path<String>,
) -> Result<Response, MlflowError> {
    let found = blocking(move || open(&Files::parse(&server, &path)?)).await?;
    Ok(stream_of(found))
}

async fn download_of_run(
    State(server): State<Server>,
    asked: RequestFields,
) -> Result<Response, MlflowError> {
    let found =
        blocking(move || open(&Files::of(&server, asked.run()?, asked.needed("path")?)?)).await?;
    Ok(stream_of(found))
}

/// A file.
fn open(files: &Files) -> Result<OpenFile, MlflowError> {
    let found = match OpenFile::open(&files.place()?) {
        Err(PlaceError::NotFound { .. }) => None,
        found => found?,
    };
    found.ok_or_else(|| {
        MlflowError::missing(format!(
            "there is no file {:.500} among the artifacts",
            files.path
        ))
    })
}

fn stream_of(file: OpenFile) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_DISPOSITION, "attachment".to_owned()),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; sandbox; frame-ancestors 'none'".to_owned(),
        ),
        (header::CONTENT_LENGTH, file.size().to_string()),
    ];
    (headers, file.stream()).into_response()
}

async fn upload(
    State(server): State<Server>,
    caller: Caller,
    Path(path): Path<String>,
    body: Body,
) -> Answer {
    let mut file = blocking(move || {
        let files = Files::parse(&server, &path)?;
        let place = files.writable(&server, &caller)?;
        match place.local().is_some_and(std::path::Path::is_dir) {
            true => Err(MlflowError::wrong("there is a folder of this name")),
            false => Ok(place.writer()?),
        }
    })
    .await?;
    let mut pieces = body.into_data_stream();
    let mut block = Vec::new();
    while let Some(piece) = pieces.next().await {
        // Dropped without a word, the file leaves no trace.
        let piece = piece
            .map_err(|error| MlflowError::wrong(format!("the file did not come whole: {error}")))?;
        block.extend_from_slice(&piece);
        if block.len() >= BLOCK {
            file = write(file, std::mem::take(&mut block)).await?;
        }
    }
    let file = write(file, block).await?;
    blocking(move || Ok(file.commit()?)).await?;
    Ok(Json(json!({})))
}

/// Writes where that holds up nobody.
async fn write(mut file: PlaceWriter, block: Vec<u8>) -> Result<PlaceWriter, MlflowError> {
    blocking(move || {
        file.write_all(&block)?;
        Ok(file)
    })
    .await
}

async fn remove(State(server): State<Server>, caller: Caller, Path(path): Path<String>) -> Answer {
    blocking(move || {
        let files = Files::parse(&server, &path)?;
        let place = files.writable(&server, &caller)?;
        match open(&files) {
            Ok(_) => place.delete()?,
            Err(_) if files.list()?.is_empty() => {
                return Err(MlflowError::missing("there is no such file"));
            }
            Err(_) => place.delete_all()?,
        }
        Ok(Json(json!({})))
    })
    .await
}
