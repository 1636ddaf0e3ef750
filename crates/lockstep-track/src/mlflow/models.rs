//! Models of a run in MLflow: the checkpoints that are kept, and what the run ended with.

use super::artifacts::{self, Artifacts};
use super::batch::{self, Metric};
use super::model::{self, Identity};
use super::parameters::{self, entries};
use super::server::text;
use super::state::Model;
use super::sync::{Sync, Unlinked};
use crate::SinkError;
use lockstep_events::event::{EpochResult, Event, RunResult};
use lockstep_events::{MetricPoint, points_of};
use lockstep_runs::checkpoint::step_of;
use lockstep_runs::files;
use serde_json::{Value, json};

/// The state's name for the model that a run ended with.
const LAST: &str = "model";

impl Sync {
    /// The checkpoints that are kept, each as a model with the metrics of its epoch.
    pub(super) fn send_checkpoints(&mut self) -> Result<(), SinkError> {
        let metrics = self.run.metrics().read().unwrap_or_default();
        let epochs: Vec<EpochResult> = String::from_utf8_lossy(&metrics)
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        // Each was the best when it ended; the last of these is.
        let best = epochs.iter().rev().find(|epoch| epoch.best);
        let best = best.map(|epoch| epoch.epoch);
        for name in self.run.checkpoints().folder().folders()? {
            if self
                .state
                .models
                .get(&name)
                .is_some_and(|model| model.ready)
            {
                continue;
            }
            let Some(step) = step_of(&name) else {
                continue;
            };
            let epoch = epochs.iter().find(|epoch| epoch.step == step);
            let (Some(epoch), Some(time)) = (epoch, self.state.epochs.get(&step).copied()) else {
                continue;
            };
            let tags = [
                ("lockstep.epoch", epoch.epoch.to_string()),
                ("lockstep.best", (best == Some(epoch.epoch)).to_string()),
                (
                    "lockstep.checkpoint",
                    self.run.checkpoints().folder().join(&name)?.to_string(),
                ),
            ];
            let called = format!("epoch-{}", epoch.epoch);
            self.logged_model(&name, &called, &tags, "")?;
            let points = points_of(&Event::Epoch(epoch.clone()), step);
            // Its files stay in the run's folder, and a tag says where.
            self.finish_model(&name, Vec::new(), points, (step, time))?;
        }
        Ok(())
    }

    /// The model that the run ended with, registered if that is asked for.
    pub(super) fn send_model(&mut self, result: &RunResult) -> Result<(), SinkError> {
        let hash = result.weights_sha256.clone().unwrap_or_default();
        let sent = self.state.models.get(LAST).cloned().unwrap_or_default();
        let is_sent = sent.ready && sent.weights_sha256 == hash;
        if !is_sent {
            let tags = [
                ("lockstep.weights_sha256", hash.clone()),
                ("lockstep.run", self.run.name.clone()),
            ];
            let name = self.settings.register.clone();
            let name = name.unwrap_or_else(|| self.settings.experiment.clone());
            let id = self.logged_model(LAST, &model::model_name(&name), &tags, &hash)?;
            let identity = self.identity(&id);
            let mut files = model::files(&self.run, &identity, self.exporter)?;
            for entry in artifacts::model_files(&self.run)? {
                let name = format!("{}/{}", files::MODEL, entry.path);
                let bytes = self.run.file(&name).read()?;
                files.push((name, bytes));
            }
            let last = self.state.last_step;
            let mut points = points_of(&Event::Result(result.clone()), last);
            points.retain(|point| !point.name.starts_with("timing."));
            self.finish_model(LAST, files, points, (last, self.state.end_time))?;
        }
        Ok(())
    }

    fn identity<'a>(&'a self, model_id: &'a str) -> Identity<'a> {
        Identity {
            model_id,
            run_id: &self.state.run_id,
            time: self.state.end_time,
        }
    }

    /// A model in MLflow, which waits for its files.
    fn logged_model(
        &mut self,
        key: &str,
        name: &str,
        tags: &[(&str, String)],
        hash: &str,
    ) -> Result<String, SinkError> {
        // One that an earlier process began is gone on with.
        if let Some(begun) = self.state.models.get(key)
            && !begun.ready
            && begun.weights_sha256 == hash
        {
            return Ok(begun.id.clone());
        }
        let tags: Vec<(String, String)> = tags
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect();
        let body = json!({
            "experiment_id": self.state.experiment_id,
            "name": name,
            "source_run_id": self.state.run_id,
            "tags": entries(&tags),
        });
        let made = self.server.post("make a model", "logged-models", &body)?;
        let id = text(&made["model"]["info"]["model_id"], "make a model")?;
        let uri = text(&made["model"]["info"]["artifact_uri"], "make a model")?;
        let begun = Model {
            id: id.clone(),
            artifact_uri: uri,
            weights_sha256: hash.to_owned(),
            is_new: true,
            ..Model::default()
        };
        self.state.models.insert(key.to_owned(), begun);
        self.save()?;
        Ok(id)
    }

    /// Sends a model's files, and says that it is whole.
    fn finish_model(
        &mut self,
        key: &str,
        files: Vec<(String, Vec<u8>)>,
        points: Vec<MetricPoint>,
        (step, time): (u64, i64),
    ) -> Result<(), SinkError> {
        let Model {
            id, artifact_uri, ..
        } = self.state.models.get(key).cloned().unwrap_or_default();
        let to = Artifacts::of(&artifact_uri, &self.access)?;
        to.put(&self.server, files)?;
        let ready = json!({ "model_id": id, "status": "LOGGED_MODEL_READY" });
        self.server
            .patch("finish a model", &format!("logged-models/{id}"), &ready)?;
        // With the times that they have as metrics of the run, which MLflow then keeps once.
        let metrics = points.into_iter().map(|point| Metric {
            key: parameters::name(&point.name),
            value: point.value,
            timestamp: time,
            step: point.step,
            model_id: Some(id.clone()),
        });
        self.unlinked.push(Unlinked {
            key: key.to_owned(),
            step,
            metrics: metrics.collect(),
            id,
        });
        Ok(())
    }

    /// Tells MLflow that the models whose files were sent are the run's, what they are worth, and tags of the run: in
    /// as few calls as that takes.
    pub(super) fn link_models(&mut self, tags: &[(String, String)]) -> Result<(), SinkError> {
        let unlinked = std::mem::take(&mut self.unlinked);
        if !unlinked.is_empty() {
            let link = |model: &Unlinked| json!({ "model_id": model.id, "step": model.step });
            let links: Vec<Value> = unlinked.iter().map(link).collect();
            let output = json!({ "run_id": self.state.run_id, "models": links });
            self.server.post("link models", "runs/outputs", &output)?;
        }
        let metrics: Vec<Metric> = (unlinked.iter())
            .flat_map(|model| model.metrics.iter().cloned())
            .collect();
        batch::send(&self.server, &self.state.run_id, &metrics, &[], tags)?;
        for model in unlinked {
            if let Some(known) = self.state.models.get_mut(&model.key) {
                known.ready = true;
            }
        }
        self.save()
    }

    /// Registers the model as a new version, and gives it the alias.
    pub(super) fn register(&mut self) -> Result<(), SinkError> {
        let Some(name) = self.settings.register.clone() else {
            return Ok(());
        };
        let Some(model) = self.state.models.get(LAST).cloned() else {
            return Ok(());
        };
        if model.version.is_empty() {
            let before = match model.is_new {
                true => None,
                false => self.registered(&model.id)?,
            };
            let version = match before {
                Some(version) => version,
                None => self.new_version(&name, &model.id)?,
            };
            if let Some(model) = self.state.models.get_mut(LAST) {
                model.version = version.clone();
            }
            self.save()?;
            // Once: whoever moves the alias later means it.
            if let Some(alias) = &self.settings.alias {
                let body = json!({ "name": name, "alias": alias, "version": version });
                self.server
                    .post("set the alias", "registered-models/alias", &body)?;
            }
        }
        Ok(())
    }

    /// The version that an earlier process made of this model and had no time to note.
    fn registered(&self, model_id: &str) -> Result<Option<String>, SinkError> {
        let filter = format!("run_id = '{}'", self.state.run_id);
        let doing = "look for a version";
        let query = [("filter", filter.as_str()), ("max_results", "100")];
        let found = self.server.get(doing, "model-versions/search", &query)?;
        let versions = found["model_versions"].as_array();
        let mut versions = versions.into_iter().flatten();
        let source = format!("models:/{model_id}");
        let made = versions.find(|version| version["source"] == source);
        made.map(|version| text(&version["version"], doing))
            .transpose()
    }

    fn new_version(&self, name: &str, model_id: &str) -> Result<String, SinkError> {
        let body = json!({
            "name": name,
            "source": format!("models:/{model_id}"),
            "run_id": self.state.run_id,
            "model_id": model_id,
        });
        let (doing, path) = ("register a version", "model-versions/create");
        let made = match self.server.post_if_there(doing, path, &body)? {
            Some(made) => made,
            None => {
                let model = json!({ "name": name });
                let (doing_first, create) = ("register a model", "registered-models/create");
                self.server.post_once(doing_first, create, &model)?;
                self.server.post(doing, path, &body)?
            }
        };
        text(&made["model_version"]["version"], doing)
    }
}
