//! `mlflow.json`: which of MLflow's runs a run is, and how far it was sent.

use crate::SinkError;
use lockstep_place::PlaceError;
use lockstep_runs::{Position, RunDir, files};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was sent to one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    /// The experiment's number.
    pub(super) experiment_id: String,
    /// The run's id; empty as long as there is none.
    pub(super) run_id: String,
    /// Where its files go.
    pub(super) artifact_uri: String,
    /// How far the events were sent.
    pub(super) events: Position,
    /// The last step that was sent of each metric. What comes again after a failure is not sent again.
    pub(super) steps: BTreeMap<String, u64>,
    /// When the newest epochs ended, by their steps, in milliseconds since 1970.
    pub(super) epochs: BTreeMap<u64, i64>,
    /// When the last point of training's progress was measured that was sent, in milliseconds since 1970.
    pub(super) progress: i64,
    /// The last step of all.
    pub(super) last_step: u64,
    /// Parameters that were sent; MLflow never changes one.
    pub(super) params: BTreeMap<String, String>,
    /// Whether the data sets were sent.
    pub(super) inputs: bool,
    /// The status that MLflow was told.
    pub(super) status: String,
    /// How the run ended, in MLflow's word; empty while it goes on.
    pub(super) ended: String,
    /// When, in milliseconds since 1970.
    pub(super) end_time: i64,
    /// Files that were sent, each in the version that it had.
    pub(super) files: BTreeMap<String, String>,
    /// The model of each state that was sent, by its name: checkpoints, and `model` for the last.
    pub(super) models: BTreeMap<String, Model>,
}

/// A model in MLflow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Model {
    /// Its id.
    pub(super) id: String,
    /// Where its files go.
    pub(super) artifact_uri: String,
    /// The hash of its weights; empty of a checkpoint.
    pub(super) weights_sha256: String,
    /// Whether all of it was sent.
    pub(super) ready: bool,
    /// The version under which it is registered.
    pub(super) version: String,
    /// Whether this process made it: then no earlier one can have registered it.
    #[serde(skip)]
    pub(super) is_new: bool,
}

/// All servers that a run was sent to, by their addresses.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct File {
    servers: BTreeMap<String, State>,
}

fn read(run: &RunDir) -> Result<File, SinkError> {
    match run.file(files::MLFLOW).read() {
        // One that cannot be read is as good as none: what was sent is then found in MLflow.
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
        Err(PlaceError::NotFound { .. }) => Ok(File::default()),
        Err(error) => Err(error.into()),
    }
}

impl State {
    /// What was sent to this server; nothing if no run was begun there.
    pub(super) fn load(run: &RunDir, server: &str) -> Result<Option<Self>, SinkError> {
        Ok(read(run)?.servers.remove(server))
    }

    /// Notes it, beside what was sent to other servers.
    pub(super) fn save(&self, run: &RunDir, server: &str) -> Result<(), SinkError> {
        let mut file = read(run)?;
        file.servers.insert(server.to_owned(), self.clone());
        let text = serde_json::to_string_pretty(&file).unwrap_or_default() + "\n";
        run.check_there()?;
        Ok(run.file(files::MLFLOW).write(text.as_bytes())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_place::{Access, Place};

    #[test]
    fn each_server_has_a_state_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap();
        let run = RunDir::named("run", place);
        run.job().write(b"x").unwrap();
        assert_eq!(State::load(&run, "http://a").unwrap(), None);
        let mut state = State {
            run_id: "1".to_owned(),
            ..State::default()
        };
        state.save(&run, "http://a").unwrap();
        state.run_id = "2".to_owned();
        state.save(&run, "http://b").unwrap();
        assert_eq!(State::load(&run, "http://b").unwrap(), Some(state));
        assert_eq!(State::load(&run, "http://a").unwrap().unwrap().run_id, "1");
    }

    #[test]
    fn a_run_that_was_removed_is_not_made_again() {
        let store = tempfile::tempdir().unwrap();
        let place = Place::parse(store.path().to_str().unwrap(), &Access::default()).unwrap();
        let run = RunDir::named("run", place.join("run").unwrap());
        let error = State::default().save(&run, "http://a").unwrap_err();
        assert!(error.to_string().contains("is gone"), "{error}");
        assert!(!store.path().join("run").exists());
    }
}
