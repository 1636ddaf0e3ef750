//! Runs as MLflow's clients see them: those that they made, and Lockstep's own.

use super::experiments::Experiment;
use super::filter::Name;
use super::record::{Point, Record, Status, shown};
use lockstep_events::current_name;
use lockstep_index::filter::Worth as Found;
use lockstep_index::{Run, State};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The tag that holds what a user says of a run.
pub(crate) const NOTE: &str = "mlflow.note.content";

/// A run.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// Its name in the store, which is its id.
    pub(crate) id: String,
    /// The id of its experiment.
    pub(crate) experiment: String,
    /// All but what is below.
    pub(crate) record: Record,
    /// All tags.
    pub(crate) tags: BTreeMap<String, String>,
    user: String,
}

impl View {
    /// A run of the index; `record` is what MLflow knows of it, if it is MLflow's.
    pub(crate) fn of(run: &Run, record: Option<Record>, experiments: &[Experiment]) -> View {
        let mut tags = run.tags.clone();
        if !run.note.is_empty() {
            tags.insert(NOTE.to_owned(), run.note.clone());
        }
        let mut record = record.unwrap_or_else(|| own(run, experiments));
        // The run's events say how it ended, to everybody. A full disk may have kept that from MLflow's own record.
        if !record.status.is_final() && run.has_ended() && run.state != State::Lost {
            record.status = status(run.state);
            record.end = record.end.or_else(|| run.ended.map(milliseconds));
        }
        tags.extend(
            record
                .tags
                .iter()
                .map(|(key, value)| (key.clone(), value.clone())),
        );
        tags.insert("mlflow.runName".to_owned(), record.name.clone());
        View {
            id: run.name.clone(),
            experiment: record.experiment.clone(),
            user: run.user.clone().unwrap_or_default(),
            record,
            tags,
        }
    }

    /// Where its artifacts are.
    pub(crate) fn artifacts(&self) -> String {
        format!(
            "mlflow-artifacts:/{}/{}/artifacts",
            self.experiment, self.id
        )
    }

    /// As `runs/get` answers.
    pub(crate) fn shown(&self) -> Value {
        let metrics = self.record.latest.iter();
        let metrics: Vec<Value> = metrics.map(|(key, point)| point.shown(key)).collect();
        json!({
            "info": self.info(),
            "data": { "metrics": metrics, "params": pairs(&self.record.params), "tags": pairs(&self.tags) },
            "inputs": { "dataset_inputs": self.record.inputs, "model_inputs": self.record.used_models },
            "outputs": { "model_outputs": self.record.outputs },
        })
    }

    /// The part without what it learned.
    pub(crate) fn info(&self) -> Value {
        let mut info = json!({
            "run_id": self.id,
            "run_uuid": self.id,
            "run_name": self.record.name,
            "experiment_id": self.experiment,
            "user_id": self.user,
            "status": self.record.status,
            "start_time": self.record.start,
            "artifact_uri": self.artifacts(),
            "lifecycle_stage": if self.record.deleted { "deleted" } else { "active" },
        });
        if let Some(end) = self.record.end {
            info["end_time"] = end.into();
        }
        info
    }

    /// What it has of a name.
    pub(crate) fn find(&self, name: &Name) -> Option<Found> {
        let text = |text: &String| Found::Text(text.clone());
        let number = |number: i64| Found::Number(number as f64);
        match name {
            Name::Metric(key) => {
                let latest = &self.record.latest;
                let earlier = || latest.get(&current_name(key)?);
                let point = latest.get(key).or_else(earlier);
                point.map(|point| Found::Number(point.number()))
            }
            Name::Param(key) => self.record.params.get(key).map(text),
            Name::Tag(key) => self.tags.get(key).map(text),
            Name::Attribute(key) => match key.as_str() {
                "run_id" => Some(text(&self.id)),
                "run_name" | "Run name" | "name" => Some(text(&self.record.name)),
                "experiment_id" => Some(text(&self.experiment)),
                "artifact_uri" => Some(Found::Text(self.artifacts())),
                "user_id" | "User" => Some(text(&self.user)),
                "status" => json!(self.record.status)
                    .as_str()
                    .map(|status| Found::Text(status.to_owned())),
                "start_time" | "created" | "Created" => Some(number(self.record.start)),
                "end_time" => self.record.end.map(number),
                _ => None,
            },
        }
    }
}

/// Keys with values, as MLflow's clients read them.
pub(super) fn pairs(map: &BTreeMap<String, String>) -> Vec<Value> {
    let pairs = map.iter();
    pairs
        .map(|(key, value)| json!({ "key": key, "value": value }))
        .collect()
}

pub(super) fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1000.0) as i64
}

fn status(state: State) -> Status {
    match state {
        State::Running => Status::Running,
        State::Succeeded => Status::Finished,
        State::Interrupted => Status::Killed,
        State::Failed | State::Lost => Status::Failed,
    }
}

/// What MLflow would know of a run of Lockstep's own.
fn own(run: &Run, experiments: &[Experiment]) -> Record {
    let experiment = experiments
        .iter()
        .find(|experiment| experiment.name == run.job);
    let timestamp = milliseconds(run.ended.or(run.started).unwrap_or_default());
    let step = i64::try_from(run.step).unwrap_or(i64::MAX);
    let metrics = run.metrics.iter().map(|(key, value)| {
        let value = shown(*value);
        (
            key.clone(),
            Point {
                value,
                timestamp,
                step,
            },
        )
    });
    let params = run.params.iter().map(|(key, value)| {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        (key.clone(), text)
    });
    Record {
        experiment: experiment
            .map(|experiment| experiment.id.clone())
            .unwrap_or_default(),
        name: run.name.clone(),
        status: status(run.state),
        start: milliseconds(run.started.unwrap_or_default()),
        end: run.ended.map(milliseconds),
        params: params.collect(),
        latest: metrics.collect(),
        closed: true,
        ..Record::default()
    }
}
