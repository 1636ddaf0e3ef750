//! What MLflow knows of a run that Lockstep has no place for: `mlflow-run.json` in the run's folder.
//!
//! A run that MLflow's client makes is a folder of the store like all others, so that every tool of Lockstep has it: its
//! parameters are the keys under `[params]` of its `job.toml`, its metrics are in `events.jsonl`, its user's tags in
//! `tags.json`, how it ended in `result.json`. This file keeps the rest, and the parameters to the letter, which MLflow
//! has as text.

use super::MlflowError;
use lockstep_events::event;
use lockstep_place::PlaceError;
use lockstep_runs::{RunDir, files};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The largest file, in bytes.
const LARGEST: u64 = 16 << 20;
/// The version of the file's format.
const VERSION: u32 = 1;

/// How a run is, in MLflow's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Status {
    /// It goes on.
    #[default]
    Running,
    /// It will begin.
    Scheduled,
    /// It ended as it should.
    Finished,
    /// It failed.
    Failed,
    /// Somebody stopped it.
    Killed,
}

impl Status {
    /// In MLflow's words, or the number that its protocol has for it.
    pub(crate) fn parse(value: &Value) -> Option<Status> {
        let by_number = [
            Status::Running,
            Status::Scheduled,
            Status::Finished,
            Status::Failed,
            Status::Killed,
        ];
        match value.as_u64() {
            Some(number) => by_number
                .get(usize::try_from(number).ok()?.checked_sub(1)?)
                .copied(),
            None => serde_json::from_value(value.clone()).ok(),
        }
    }

    /// Whether it is over.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Status::Finished | Status::Failed | Status::Killed)
    }

    /// What a result of Lockstep calls it.
    pub(crate) fn result(self) -> event::Status {
        match self {
            Status::Finished => event::Status::Succeeded,
            Status::Killed => event::Status::Interrupted,
            _ => event::Status::Failed,
        }
    }
}

/// One point of a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    /// The number, or one of `NaN`, `Infinity` and `-Infinity` as text.
    pub(crate) value: Value,
    /// When, in milliseconds since 1970.
    pub(crate) timestamp: i64,
    /// At which step.
    pub(crate) step: i64,
}

impl Point {
    /// The number.
    pub(crate) fn number(&self) -> f64 {
        number(&self.value).unwrap_or(f64::NAN)
    }

    /// As MLflow's clients read it.
    pub(crate) fn shown(&self, key: &str) -> Value {
        json!({ "key": key, "value": self.value, "timestamp": self.timestamp, "step": self.step })
    }
}

/// A number as JSON has it, or as text where it cannot.
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => match text.as_str() {
            "NaN" | "nan" => Some(f64::NAN),
            "Infinity" | "inf" | "+Infinity" => Some(f64::INFINITY),
            "-Infinity" | "-inf" => Some(f64::NEG_INFINITY),
            other => other.parse().ok(),
        },
        value => value.as_f64(),
    }
}

/// The other way round.
pub(crate) fn shown(number: f64) -> Value {
    match number {
        number if number.is_nan() => "NaN".into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        number => number.into(),
    }
}

/// The file's content.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Record {
    /// The version of the format.
    pub(crate) version: u32,
    /// The experiment's id.
    pub(crate) experiment: String,
    /// The name of the token that made it; nobody's of a run from before owners were written down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<String>,
    /// What MLflow's users call the run.
    pub(crate) name: String,
    /// How it is.
    pub(crate) status: Status,
    /// When it began, in milliseconds since 1970.
    pub(crate) start: i64,
    /// When it ended.
    pub(crate) end: Option<i64>,
    /// Whether it was put into the bin.
    pub(crate) deleted: bool,
    /// Parameters, to the letter.
    pub(crate) params: BTreeMap<String, String>,
    /// Tags whose names begin with `mlflow.`; the others are in `tags.json`.
    pub(crate) tags: BTreeMap<String, String>,
    /// The data sets, as they were sent.
    pub(crate) inputs: Vec<Value>,
    /// The logged models that it used, as they were sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) used_models: Vec<Value>,
    /// The logged models that it made: the id of each, and the step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) outputs: Vec<Value>,
    /// The newest point of each metric, as of when the run was closed.
    pub(crate) latest: BTreeMap<String, Point>,
    /// Whether `latest` is all that the run's record has: not while the run is being written.
    pub(crate) closed: bool,
}

impl Record {
    /// That of a run; none if MLflow did not make it.
    pub(crate) fn read(run: &RunDir) -> Result<Option<Record>, MlflowError> {
        let bytes = match run.file(files::MLFLOW_RUN).read_at_most(LARGEST) {
            Ok(bytes) => bytes,
            Err(PlaceError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match serde_json::from_slice::<Record>(&bytes) {
            Ok(record) if record.version <= VERSION => Ok(Some(record)),
            _ => {
                let file = run.file(files::MLFLOW_RUN);
                Err(MlflowError::state(format!(
                    "{file} is damaged, or of a later version"
                )))
            }
        }
    }

    /// Writes it, in one step.
    pub(crate) fn write(&mut self, run: &RunDir) -> Result<(), MlflowError> {
        self.version = VERSION;
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        Ok(run.file(files::MLFLOW_RUN).write(text.as_bytes())?)
    }

    /// The job file that says to Lockstep what the run was told. Numbers are numbers there, so that filters compare them
    /// as such.
    pub(crate) fn job(&self, experiment: &str) -> String {
        let params = self.params.iter().map(|(key, text)| {
            let whole = text.parse::<i64>().ok().map(toml::Value::Integer);
            let number = || text.parse::<f64>().ok().filter(|number| number.is_finite());
            let value = whole.or_else(|| number().map(toml::Value::Float));
            (key.clone(), value.unwrap_or_else(|| text.clone().into()))
        });
        let params: toml::Table = params.collect();
        let mut job = toml::Table::new();
        job.insert("name".to_owned(), experiment.into());
        if !params.is_empty() {
            job.insert("params".to_owned(), params.into());
        }
        job.to_string()
    }

    /// Notes a point if it is the newest of its metric: that of the highest step, and of those the latest.
    pub(crate) fn note(&mut self, key: &str, point: &Point) {
        let order = |point: &Point| (point.step, point.timestamp);
        let newer = self
            .latest
            .get(key)
            .is_none_or(|known| order(known) <= order(point));
        if newer {
            self.latest.insert(key.to_owned(), point.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_parameters_as_numbers_where_they_are() {
        let mut record = Record::default();
        for (key, value) in [
            ("lr", "1e-05"),
            ("layers.0.out", "128"),
            ("kind", "adam\n\"x\""),
            ("n", "nan"),
            ("a b", ""),
        ] {
            record.params.insert(key.to_owned(), value.to_owned());
        }
        let job: toml::Table = record.job("my \"experiment\"").parse().unwrap();
        assert_eq!(job["name"].as_str(), Some("my \"experiment\""));
        let params = &job["params"];
        assert_eq!(params["lr"].as_float(), Some(1e-5));
        assert_eq!(params["layers.0.out"].as_integer(), Some(128));
        assert_eq!(params["kind"].as_str(), Some("adam\n\"x\""));
        assert_eq!(
            (params["n"].as_str(), params["a b"].as_str()),
            (Some("nan"), Some(""))
        );
    }

    #[test]
    fn the_newest_point_is_that_of_the_highest_step() {
        let mut record = Record::default();
        let point = |step, timestamp, value: f64| Point {
            value: shown(value),
            timestamp,
            step,
        };
        record.note("loss", &point(5, 10, 0.5));
        record.note("loss", &point(3, 11, 0.3));
        assert_eq!(record.latest["loss"].number(), 0.5);
        record.note("loss", &point(5, 12, f64::NAN));
        assert_eq!(record.latest["loss"].value, "NaN");
        assert!(record.latest["loss"].number().is_nan());
    }

    #[test]
    fn a_status_is_understood_as_a_word_and_as_a_number() {
        assert_eq!(Status::parse(&"FINISHED".into()), Some(Status::Finished));
        assert_eq!(Status::parse(&3.into()), Some(Status::Finished));
        for wrong in [
            json!("finished"),
            json!(0),
            json!(6),
            json!(null),
            json!([]),
        ] {
            assert_eq!(Status::parse(&wrong), None, "{wrong}");
        }
    }
}
