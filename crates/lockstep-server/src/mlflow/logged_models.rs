//! Logged models: what MLflow's clients save while a run goes on, each a folder of files with a description.
//!
//! They lie in the store, beside the runs, since a model may belong to none:
//!
//! ```text
//! logged-models/m-…/logged-model.json   whose it is, its parameters and tags, what it was worth
//! logged-models/m-…/artifacts/…         its files, as the client sent them
//! ```

use super::MlflowError;
use super::record::Point;
use lockstep_base::fs::random_letters;
use lockstep_place::Place;
use lockstep_runs::document::{self, Format};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The folder in a store.
const FOLDER: &str = "logged-models";
/// The description in a model's folder.
const DESCRIPTION: &str = "logged-model.json";
/// How it says of which version its format is.
const FORMAT: Format = Format {
    key: "version",
    known: 1,
};

/// How far a model is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum ModelStatus {
    /// Its files are being sent.
    #[default]
    #[serde(rename = "LOGGED_MODEL_PENDING")]
    Pending,
    /// It is whole.
    #[serde(rename = "LOGGED_MODEL_READY")]
    Ready,
    /// Its client could not send it.
    #[serde(rename = "LOGGED_MODEL_UPLOAD_FAILED")]
    Failed,
}

impl ModelStatus {
    /// In MLflow's words, or the number that its protocol has for it.
    pub(crate) fn parse(value: &Value) -> Option<ModelStatus> {
        match value.as_u64() {
            Some(1) => Some(ModelStatus::Pending),
            Some(2) => Some(ModelStatus::Ready),
            Some(3) => Some(ModelStatus::Failed),
            Some(_) => None,
            None => serde_json::from_value(value.clone()).ok(),
        }
    }
}

/// What a metric of a model was measured by: its name, the run, and the data set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ModelMetric {
    pub(crate) key: String,
    pub(crate) run: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dataset_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dataset_digest: Option<String>,
    #[serde(flatten)]
    pub(crate) point: Point,
}

impl ModelMetric {
    /// What makes it another metric: its name, its run, and its data set.
    fn kind(&self) -> (String, String, Option<String>, Option<String>) {
        let set = (self.dataset_name.clone(), self.dataset_digest.clone());
        (self.key.clone(), self.run.clone(), set.0, set.1)
    }
}

/// A model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LoggedModel {
    /// The version of the format.
    pub(crate) version: u32,
    /// Its id: `m-` and 32 letters.
    pub(crate) id: String,
    /// The name that its user gave it, which others may have too.
    pub(crate) name: String,
    /// The id of its experiment.
    pub(crate) experiment: String,
    /// The run that it was logged in; empty for none.
    pub(crate) run: String,
    /// The name of the token that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<String>,
    /// What kind of model its user says that it is.
    pub(crate) kind: String,
    pub(crate) status: ModelStatus,
    /// When it was made, in milliseconds since 1970.
    pub(crate) created: i64,
    /// When it was changed.
    pub(crate) updated: i64,
    pub(crate) params: BTreeMap<String, String>,
    pub(crate) tags: BTreeMap<String, String>,
    /// The newest of each metric, run and data set; all others are metrics of the run.
    pub(crate) metrics: Vec<ModelMetric>,
}

impl LoggedModel {
    /// Where its files are, for clients.
    pub(crate) fn artifacts(&self) -> String {
        format!(
            "mlflow-artifacts:/{}/models/{}/artifacts",
            self.experiment, self.id
        )
    }

    /// Notes those metrics that are the newest of their kind.
    pub(crate) fn note(&mut self, metrics: &[ModelMetric]) {
        let order = |one: &ModelMetric| (one.point.step, one.point.timestamp);
        let known = self.metrics.drain(..).map(|known| (known.kind(), known));
        let mut known: BTreeMap<_, _> = known.collect();
        for metric in metrics {
            match known.get(&metric.kind()) {
                Some(newer) if order(newer) > order(metric) => {}
                _ => drop(known.insert(metric.kind(), metric.clone())),
            }
        }
        self.metrics = known.into_values().collect();
    }

    /// As MLflow's clients read it.
    pub(crate) fn shown(&self) -> Value {
        let metrics = self.metrics.iter().map(|metric| {
            let mut shown = metric.point.shown(&metric.key);
            shown["model_id"] = self.id.as_str().into();
            shown["run_id"] = metric.run.as_str().into();
            shown["dataset_name"] = metric.dataset_name.clone().into();
            shown["dataset_digest"] = metric.dataset_digest.clone().into();
            shown
        });
        json!({
            "info": {
                "model_id": self.id,
                "experiment_id": self.experiment,
                "name": self.name,
                "creation_timestamp_ms": self.created,
                "last_updated_timestamp_ms": self.updated,
                "artifact_uri": self.artifacts(),
                "status": self.status,
                "model_type": self.kind,
                "source_run_id": self.run,
                "tags": super::view::pairs(&self.tags),
            },
            "data": {
                "params": super::view::pairs(&self.params),
                "metrics": metrics.collect::<Vec<_>>(),
            },
        })
    }
}

/// The models of a store.
pub(crate) struct LoggedModels(Place);

impl LoggedModels {
    pub(crate) fn of(store: &Place) -> Result<LoggedModels, MlflowError> {
        Ok(LoggedModels(store.beneath().join(FOLDER)?))
    }

    /// The folder of a model, if its id can be one: an id is never a path.
    fn folder(&self, id: &str) -> Result<Place, MlflowError> {
        let letters = id.strip_prefix("m-").unwrap_or_default();
        let right = (1..=100).contains(&letters.len())
            && letters.bytes().all(|byte| byte.is_ascii_alphanumeric());
        match right {
            true => Ok(self.0.join(id)?),
            false => Err(missing(id)),
        }
    }

    /// The files of a model that is there.
    pub(crate) fn files(&self, id: &str) -> Result<(LoggedModel, Place), MlflowError> {
        let model = self.get(id)?;
        Ok((model, self.folder(id)?.join("artifacts")?))
    }

    /// Makes a model, and gives it an id.
    pub(crate) fn create(&self, mut model: LoggedModel) -> Result<LoggedModel, MlflowError> {
        let letters = random_letters::<32>().map_err(std::io::Error::other)?;
        model.id = format!("m-{letters}");
        let file = self.folder(&model.id)?.join(DESCRIPTION)?;
        document::change(&file, FORMAT, |made: &mut LoggedModel| {
            made.clone_from(&model);
            made.version = FORMAT.known;
        })?;
        Ok(model)
    }

    pub(crate) fn get(&self, id: &str) -> Result<LoggedModel, MlflowError> {
        let found = document::read(&self.folder(id)?.join(DESCRIPTION)?, FORMAT)?;
        found.ok_or_else(|| missing(id))
    }

    /// All models. One that cannot be read is left out: it may be going in this moment.
    pub(crate) fn all(&self) -> Result<Vec<LoggedModel>, MlflowError> {
        let names = self.0.folders()?;
        Ok(names.iter().filter_map(|id| self.get(id).ok()).collect())
    }

    /// Changes a model that is there, and returns what it became.
    pub(crate) fn change(
        &self,
        id: &str,
        change: impl Fn(&mut LoggedModel),
    ) -> Result<LoggedModel, MlflowError> {
        self.get(id)?;
        let file = self.folder(id)?.join(DESCRIPTION)?;
        let changed = document::change(&file, FORMAT, |model: &mut LoggedModel| {
            change(model);
            model.updated = super::now();
            model.clone()
        });
        Ok(changed?)
    }

    /// Removes a model and its files.
    pub(crate) fn remove(&self, id: &str) -> Result<(), MlflowError> {
        Ok(self.folder(id)?.delete_all()?)
    }
}

fn missing(id: &str) -> MlflowError {
    MlflowError::missing(format!("Logged model with ID '{id:.200}' not found."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_place::Access;

    #[test]
    fn a_model_is_kept_and_its_newest_metrics_too() {
        let folder = tempfile::tempdir().unwrap();
        let store = Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap();
        let models = LoggedModels::of(&store).unwrap();
        let made = models.create(LoggedModel::default()).unwrap();
        let metric = |step, value: f64, set: Option<&str>| ModelMetric {
            key: "loss".to_owned(),
            run: "run".to_owned(),
            dataset_name: set.map(str::to_owned),
            dataset_digest: None,
            point: Point {
                value: value.into(),
                timestamp: 1,
                step,
            },
        };
        let said = [
            metric(2, 0.2, None),
            metric(1, 0.5, None),
            metric(0, 0.9, Some("test")),
        ];
        models.change(&made.id, |model| model.note(&said)).unwrap();
        let kept = models.get(&made.id).unwrap().metrics;
        assert_eq!(kept, [said[0].clone(), said[2].clone()]);
        models.remove(&made.id).unwrap();
        assert!(models.all().unwrap().is_empty());
    }

    #[test]
    fn an_id_is_never_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let store = Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap();
        let models = LoggedModels::of(&store).unwrap();
        for wrong in ["", "m-", "..", "m-../x", "m-a/b", "run-1", "m-a.b"] {
            assert!(models.folder(wrong).is_err(), "{wrong}");
        }
    }
}
