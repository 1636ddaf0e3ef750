//! Brings MLflow up to date with a run's folder.

use super::artifacts::{self, Artifacts};
use super::batch::{self, Metric};
use super::model::{self, Exporter, Identity};
use super::parameters::{self, entries};
use super::server::{Server, text};
use super::settings::MlflowSettings;
use super::state::{Model, State};
use crate::points::points_of;
use crate::record::read_events;
use crate::{Origin, SinkError};
use lockstep_events::Recorded;
use lockstep_events::event::{EpochResult, Event, RunResult, Started, Status};
use lockstep_place::Access;
use lockstep_runs::RunDir;
use serde_json::json;

/// The state's name for the model that a run ended with.
const LAST: &str = "model";

/// One run on its way to one server.
pub(super) struct Sync {
    settings: MlflowSettings,
    access: Access,
    exporter: Option<Exporter>,
    server: Server,
    run: RunDir,
    state: State,
}

impl Sync {
    /// Goes on where an earlier process stopped.
    pub(super) fn open(
        settings: MlflowSettings,
        access: Access,
        exporter: Option<Exporter>,
        run: RunDir,
    ) -> Result<Self, SinkError> {
        let state = State::load(&run, &settings.server)?.unwrap_or_default();
        Ok(Self {
            server: Server::new(&settings)?,
            settings,
            access,
            exporter,
            run,
            state,
        })
    }

    fn save(&self) -> Result<(), SinkError> {
        self.state.save(&self.run, &self.settings.server)
    }

    /// The id of MLflow's run; empty as long as there is none.
    pub(super) fn run_id(&self) -> &str {
        &self.state.run_id
    }

    /// Sends what was recorded since it was last called.
    pub(super) fn advance(&mut self) -> Result<(), SinkError> {
        loop {
            let (events, next) = read_events(&self.run, &self.state.events)?;
            if next == self.state.events {
                return Ok(());
            }
            self.send(&events)?;
            self.state.events = next;
            self.save()?;
        }
    }

    fn send(&mut self, events: &[Recorded]) -> Result<(), SinkError> {
        let mut metrics = Vec::new();
        for recorded in events {
            let timestamp = milliseconds(recorded.time);
            match &recorded.event {
                Event::Started(started) => self.begin_part(started, timestamp)?,
                Event::Result(result) => {
                    self.state.ended = word(result.status).to_owned();
                    self.state.end_time = timestamp;
                }
                _ => {}
            }
            self.usage(recorded, &mut metrics);
            for point in points_of(&recorded.event, self.state.last_step) {
                let key = parameters::name(&point.name);
                let sent = self.state.steps.get(&key);
                // A result comes again after a resume, with other numbers, but no lower step.
                let again = sent.is_some_and(|sent| point.step <= *sent);
                if again && !matches!(recorded.event, Event::Result(_)) {
                    continue;
                }
                self.state.last_step = self.state.last_step.max(point.step);
                self.state.steps.insert(key.clone(), point.step);
                metrics.push(Metric {
                    key,
                    value: point.value,
                    timestamp,
                    step: point.step,
                    model_id: None,
                });
            }
        }
        batch::send(&self.server, &self.state.run_id, &metrics, &[], &[])
    }

    /// What a worker uses, under the names that MLflow has for it.
    fn usage(&mut self, recorded: &Recorded, metrics: &mut Vec<Metric>) {
        let Event::Usage(usage) = &recorded.event else {
            return;
        };
        if !self.settings.system {
            return;
        }
        let counter = format!("system/worker-{}", usage.rank);
        let step = self.state.steps.get(&counter).map_or(0, |step| step + 1);
        let megabytes = usage.memory_bytes as f64 / 1e6;
        for (name, value) in [
            ("cpu_utilization_percentage", usage.cpu_percent),
            ("system_memory_usage_megabytes", megabytes),
            ("samples_per_s", usage.samples_per_s),
            ("waiting_percentage", usage.waiting * 100.0),
        ] {
            metrics.push(Metric {
                key: format!("{counter}/{name}"),
                value,
                timestamp: milliseconds(recorded.time),
                step,
                model_id: None,
            });
        }
        self.state.steps.insert(counter, step);
    }

    /// A part of the run began: the first, or one after a resume.
    fn begin_part(&mut self, started: &Started, timestamp: i64) -> Result<(), SinkError> {
        let origin = self.run.file("origin.json").read().unwrap_or_default();
        let origin: Origin = serde_json::from_slice(&origin).unwrap_or_default();
        let tags = parameters::tags(&self.settings, &self.run, started, &origin);
        if self.state.run_id.is_empty() {
            self.find_or_create(&tags, timestamp)?;
        } else if self.state.status != "RUNNING" {
            self.update("RUNNING", None)?;
        }
        self.state.ended.clear();
        self.send_params(started)?;
        let inputs = parameters::inputs(started);
        if !self.state.inputs && !inputs.is_empty() {
            let body = json!({ "run_id": self.state.run_id, "datasets": inputs });
            self.server.post("log the data", "runs/log-inputs", &body)?;
            self.state.inputs = true;
        }
        self.save()
    }

    /// The run that an earlier process made and had no time to note, or a new one.
    fn find_or_create(
        &mut self,
        tags: &[(String, String)],
        timestamp: i64,
    ) -> Result<(), SinkError> {
        let experiment = match &self.settings.experiment_id {
            Some(id) => id.clone(),
            None => self.server.experiment(&self.settings.experiment)?,
        };
        let filter = format!("tags.`lockstep.run` = '{}'", self.run.name);
        let search = json!({ "experiment_ids": [experiment], "filter": filter, "max_results": 1 });
        let found = self
            .server
            .post("look for the run", "runs/search", &search)?;
        let found = &found["runs"][0]["info"];
        let created;
        let info = match found.is_null() {
            false => found,
            true => {
                let name = tags.iter().find(|(key, _)| key == "mlflow.runName");
                let body = json!({
                    "experiment_id": experiment,
                    "run_name": name.map(|(_, name)| name),
                    "start_time": timestamp,
                    "tags": entries(tags),
                });
                created = self.server.post("create a run", "runs/create", &body)?;
                &created["run"]["info"]
            }
        };
        self.state.run_id = text(&info["run_id"], "create a run")?;
        self.state.artifact_uri = text(&info["artifact_uri"], "create a run")?;
        self.state.experiment_id = experiment;
        self.state.status = "RUNNING".to_owned();
        self.save()
    }

    /// MLflow never changes a parameter: of one that is another after a resume, a tag says so.
    fn send_params(&mut self, started: &Started) -> Result<(), SinkError> {
        let (mut new, mut changed) = (Vec::new(), Vec::new());
        for (key, value) in parameters::params(started) {
            match self.state.params.get(&key) {
                None => new.push((key, value)),
                Some(sent) if *sent != value => {
                    changed.push((format!("lockstep.now.{key}"), value))
                }
                Some(_) => {}
            }
        }
        batch::send(&self.server, &self.state.run_id, &[], &new, &changed)?;
        self.state.params.extend(new);
        Ok(())
    }

    fn update(&mut self, status: &str, end_time: Option<i64>) -> Result<(), SinkError> {
        let mut body = json!({ "run_id": self.state.run_id, "status": status });
        if let Some(time) = end_time {
            body["end_time"] = json!(time);
        }
        self.server.post("update the run", "runs/update", &body)?;
        self.state.status = status.to_owned();
        Ok(())
    }

    /// Sends what there is at the end: files, models, and how it ended. A run that has not ended keeps its status.
    pub(super) fn conclude(&mut self) -> Result<(), SinkError> {
        self.advance()?;
        if self.state.run_id.is_empty() {
            return Err(SinkError::Failed(format!(
                "{} has no record of events that could be sent",
                self.run.place()
            )));
        }
        self.send_files()?;
        let result = self.run.result().read().unwrap_or_default();
        let result: Option<RunResult> = serde_json::from_slice(&result).ok();
        let result = result.filter(|_| !self.state.ended.is_empty());
        self.send_checkpoints()?;
        if let Some(result) = &result {
            let hash = result.weights_sha256.clone().unwrap_or_default();
            let tags = [
                ("lockstep.weights_sha256".to_owned(), hash),
                ("lockstep.restarts".to_owned(), result.restarts.to_string()),
                (
                    "lockstep.error".to_owned(),
                    result.error.clone().unwrap_or_default(),
                ),
            ];
            let tags: Vec<_> = tags
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .collect();
            batch::send(&self.server, &self.state.run_id, &[], &[], &tags)?;
            if result.status == Status::Succeeded {
                self.send_model(result)?;
            }
        }
        if !self.state.ended.is_empty() && self.state.status != self.state.ended {
            let (ended, time) = (self.state.ended.clone(), self.state.end_time);
            self.update(&ended, Some(time))?;
        }
        self.save()
    }

    fn send_files(&mut self) -> Result<(), SinkError> {
        let to = Artifacts::of(&self.state.artifact_uri, &self.access)?;
        for entry in artifacts::files(&self.run)? {
            if self.state.files.get(&entry.path) == Some(&entry.version) {
                continue;
            }
            let bytes = self.run.file(&entry.path).read()?;
            to.put(&self.server, &entry.path, bytes)?;
            self.state.files.insert(entry.path, entry.version);
        }
        self.save()
    }

    /// The checkpoints that are kept, each as a model with the metrics of its epoch.
    fn send_checkpoints(&mut self) -> Result<(), SinkError> {
        let metrics = self.run.metrics().read().unwrap_or_default();
        let epochs: Vec<(EpochResult, Vec<Metric>)> = String::from_utf8_lossy(&metrics)
            .lines()
            .filter_map(|line| serde_json::from_str::<EpochResult>(line).ok())
            .map(|epoch| {
                let metrics = points_of(&Event::Epoch(epoch.clone()), 0);
                let metrics = metrics.into_iter().map(|point| Metric {
                    key: parameters::name(&point.name),
                    value: point.value,
                    timestamp: 0,
                    step: point.step,
                    model_id: None,
                });
                let metrics = metrics.collect();
                (epoch, metrics)
            })
            .collect();
        for name in self.run.file("checkpoints").folders()? {
            if self
                .state
                .models
                .get(&name)
                .is_some_and(|model| model.ready)
            {
                continue;
            }
            // What a checkpoint is of is in its name: `NUMBER-step-N`.
            let step = name.split('-').skip_while(|part| *part != "step").nth(1);
            let Some(step) = step.and_then(|step| step.parse::<u64>().ok()) else {
                continue;
            };
            let Some((epoch, metrics)) = epochs.iter().find(|(epoch, _)| epoch.step == step) else {
                continue;
            };
            let tags = [
                ("lockstep.epoch", epoch.epoch.to_string()),
                ("lockstep.best", epoch.best.to_string()),
                ("lockstep.checkpoint", name.clone()),
            ];
            let called = format!("epoch-{}", epoch.epoch);
            let id = self.logged_model(&name, &called, &tags, "")?;
            let identity = self.identity(&id);
            let (file, bytes) = model::of_checkpoint(&self.run, &identity, &name);
            self.finish_model(&name, vec![(file, bytes)], metrics, step)?;
        }
        Ok(())
    }

    /// The model that the run ended with, registered if that is asked for.
    fn send_model(&mut self, result: &RunResult) -> Result<(), SinkError> {
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
            let mut files = model::files(&self.run, &identity, self.exporter.as_ref())?;
            for entry in artifacts::model_files(&self.run)? {
                let name = format!("model/{}", entry.path);
                let bytes = self.run.file(&name).read()?;
                files.push((name, bytes));
            }
            let last = self.state.last_step;
            let points = points_of(&Event::Result(result.clone()), last).into_iter();
            let points = points.filter(|point| !point.name.starts_with("timing."));
            let metrics: Vec<Metric> = points
                .map(|point| Metric {
                    key: parameters::name(&point.name),
                    value: point.value,
                    timestamp: 0,
                    step: point.step,
                    model_id: None,
                })
                .collect();
            self.finish_model(LAST, files, &metrics, last)?;
        }
        self.register()
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
        metrics: &[Metric],
        step: u64,
    ) -> Result<(), SinkError> {
        let Model {
            id, artifact_uri, ..
        } = self.state.models.get(key).cloned().unwrap_or_default();
        let to = Artifacts::of(&artifact_uri, &self.access)?;
        for (name, bytes) in files {
            to.put(&self.server, &name, bytes)?;
        }
        let ready = json!({ "model_id": id, "status": "LOGGED_MODEL_READY" });
        self.server
            .patch("finish a model", &format!("logged-models/{id}"), &ready)?;
        let output = json!({
            "run_id": self.state.run_id, "models": [{ "model_id": id, "step": step }],
        });
        self.server.post("link a model", "runs/outputs", &output)?;
        let time = self.state.end_time;
        let metrics: Vec<Metric> = metrics
            .iter()
            .map(|metric| Metric {
                timestamp: time,
                model_id: Some(id.clone()),
                ..metric.clone()
            })
            .collect();
        batch::send(&self.server, &self.state.run_id, &metrics, &[], &[])?;
        if let Some(model) = self.state.models.get_mut(key) {
            model.ready = true;
        }
        self.save()
    }

    /// Registers the model as a new version, and gives it the alias.
    fn register(&mut self) -> Result<(), SinkError> {
        let Some(name) = self.settings.register.clone() else {
            return Ok(());
        };
        let Some(model) = self.state.models.get(LAST).cloned() else {
            return Ok(());
        };
        let mut version = model.version.clone();
        if version.is_empty() {
            let body = json!({ "name": name });
            self.server
                .post_once("register a model", "registered-models/create", &body)?;
            let body = json!({
                "name": name,
                "source": format!("models:/{}", model.id),
                "run_id": self.state.run_id,
                "model_id": model.id,
            });
            let doing = "register a version";
            let made = self.server.post(doing, "model-versions/create", &body)?;
            version = text(&made["model_version"]["version"], doing)?;
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
}

fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

/// MLflow's word for how a run ended.
fn word(status: Status) -> &'static str {
    match status {
        Status::Succeeded => "FINISHED",
        Status::Interrupted => "KILLED",
        Status::Failed => "FAILED",
    }
}
