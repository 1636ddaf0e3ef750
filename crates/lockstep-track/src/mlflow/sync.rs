//! Brings MLflow up to date with a run's folder.

use super::artifacts::{self, Artifacts};
use super::batch::{self, Metric};
use super::model::Exporter;
use super::parameters::{self, entries};
use super::server::{Server, text};
use super::settings::MlflowSettings;
use super::state::State;
use crate::{Origin, SinkError};
use lockstep_events::event::{Event, RunResult, Started, Status};
use lockstep_events::{Recorded, points_of};
use lockstep_place::{Access, FileEntry, Place, PlaceError};
use lockstep_runs::{RunDir, store_id};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many epochs' times are kept: those of more checkpoints than most runs have.
const EPOCHS: usize = 100;
/// Milliseconds between two points of training's progress: MLflow's server spends far longer on a point than we do, and
/// often on the cores that train.
const BETWEEN_POINTS: i64 = 1000;

/// One run on its way to one server.
pub(super) struct Sync {
    pub(super) settings: MlflowSettings,
    pub(super) access: Access,
    pub(super) exporter: Exporter,
    pub(super) server: Server,
    pub(super) run: RunDir,
    pub(super) state: State,
    /// Whether MLflow may have a run of ours that `state` does not know.
    may_exist: bool,
    /// Models whose files were sent, and which MLflow does not know as the run's yet.
    pub(super) unlinked: Vec<Unlinked>,
}

/// A model that is not linked with its run yet.
pub(super) struct Unlinked {
    /// The state's name for it.
    pub(super) key: String,
    pub(super) id: String,
    pub(super) step: u64,
    pub(super) metrics: Vec<Metric>,
}

impl Sync {
    /// Goes on where an earlier process stopped. One that `is_tracked` from its beginning cannot be in MLflow before
    /// its folder says so.
    pub(super) fn open(
        settings: MlflowSettings,
        access: Access,
        exporter: Exporter,
        run: RunDir,
        is_tracked: bool,
    ) -> Result<Self, SinkError> {
        let known = State::load(&run, &settings.server)?;
        Ok(Self {
            server: Server::new(&settings)?,
            settings,
            access,
            exporter,
            run,
            may_exist: known.is_some() || !is_tracked,
            state: known.unwrap_or_default(),
            unlinked: Vec::new(),
        })
    }

    /// Whether the server is Lockstep's, and shows the very store that the run lies in. To send the run there would make
    /// a second one of it.
    pub(super) fn is_at_home(&self) -> Result<bool, SinkError> {
        let Some(theirs) = self.server.store_id()? else {
            return Ok(false);
        };
        let place = self.run.place().to_string();
        let (store, _) = place.rsplit_once('/').unwrap_or((".", ""));
        let ours = store_id(&Place::parse(store, &self.access)?)?;
        Ok(ours == Some(theirs))
    }

    pub(super) fn save(&self) -> Result<(), SinkError> {
        self.state.save(&self.run, &self.settings.server)
    }

    /// The id of MLflow's run; empty as long as there is none.
    pub(super) fn run_id(&self) -> &str {
        &self.state.run_id
    }

    /// Sends what was recorded since it was last called.
    pub(super) fn advance(&mut self) -> Result<(), SinkError> {
        loop {
            let piece = self.run.read_events(&self.state.events)?;
            if piece.next == self.state.events {
                return Ok(());
            }
            self.send(piece.events())?;
            self.state.events = piece.next;
            self.save()?;
        }
    }

    fn send(&mut self, events: impl Iterator<Item = Recorded>) -> Result<(), SinkError> {
        let mut metrics = Vec::new();
        // Noted only when they are sent: else they would be passed over the next time.
        let (mut steps, mut last) = (self.state.steps.clone(), self.state.last_step);
        let mut progress = self.state.progress;
        for recorded in events {
            let timestamp = milliseconds(recorded.time);
            match &recorded.event {
                Event::Started(started) => self.begin_part(started, timestamp)?,
                Event::Result(result) => {
                    self.state.ended = word(result.status).to_owned();
                    self.state.end_time = timestamp;
                }
                Event::Epoch(epoch) => {
                    self.state.epochs.entry(epoch.step).or_insert(timestamp);
                    while self.state.epochs.len() > EPOCHS {
                        self.state.epochs.pop_first();
                    }
                }
                Event::Progress(_) if (0..BETWEEN_POINTS).contains(&(timestamp - progress)) => {
                    continue;
                }
                Event::Progress(told) if told.rank == 0 => progress = timestamp,
                _ => {}
            }
            if self.settings.system {
                usage(&recorded, &mut steps, &mut metrics);
            }
            // What the kept weights came to is sent once more at the last step, so that MLflow's last value is theirs. A
            // result comes again after a resume, with other numbers, but no lower step.
            let is_last_word = matches!(recorded.event, Event::Result(_));
            for point in points_of(&recorded.event, last) {
                let key = parameters::name(&point.name);
                let sent = steps.get(&key);
                let again = sent.is_some_and(|sent| point.step <= *sent);
                if again && !is_last_word {
                    continue;
                }
                last = last.max(point.step);
                steps.insert(key.clone(), point.step);
                metrics.push(Metric {
                    key,
                    value: point.value,
                    timestamp,
                    step: point.step,
                    model_id: None,
                });
            }
        }
        batch::send(&self.server, &self.state.run_id, &metrics, &[], &[])?;
        (self.state.steps, self.state.last_step) = (steps, last);
        self.state.progress = progress;
        Ok(())
    }

    /// A part of the run began: the first, or one after a resume.
    fn begin_part(&mut self, started: &Started, timestamp: i64) -> Result<(), SinkError> {
        let origin = self.run.origin().read().unwrap_or_default();
        let origin: Origin = serde_json::from_slice(&origin).unwrap_or_default();
        let tags = parameters::tags(&self.settings, &self.run, started, &origin);
        if self.state.run_id.is_empty() {
            self.may_exist |= started.resumed_step > 0;
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
        self.send_files(|name| artifacts::EARLY.contains(&name))
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
        let found = self.find(&experiment)?;
        let created;
        let info = match found.is_null() {
            false => &found,
            true => {
                // If this process ends before it can note the run's id, the next one looks for it.
                self.save()?;
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

    /// What MLflow says of the run; null if it has none.
    fn find(&self, experiment: &str) -> Result<Value, SinkError> {
        if !self.may_exist {
            return Ok(Value::Null);
        }
        let filter = format!("tags.`lockstep.run` = '{}'", self.run.name);
        let search = json!({ "experiment_ids": [experiment], "filter": filter, "max_results": 1 });
        let found = self
            .server
            .post("look for the run", "runs/search", &search)?;
        Ok(found["runs"][0]["info"].clone())
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

    /// How many events and files are not sent.
    pub(super) fn unsent(&self) -> Result<(usize, usize), SinkError> {
        let mut events = 0;
        let mut position = self.state.events.clone();
        loop {
            let piece = self.run.read_events(&position)?;
            if piece.next == position {
                break;
            }
            events += piece.events().count();
            position = piece.next;
        }
        let files = artifacts::files(&self.run, self.settings.uncommitted)?;
        let is_sent = |file: &&FileEntry| self.state.files.get(&file.path) == Some(&file.version);
        let sent = files.iter().filter(is_sent).count();
        Ok((events, files.len() - sent))
    }

    /// Sends what there is at the end: files, models, and how it ended. A run that has not ended keeps its status. One
    /// that has is told as ended whatever else the server refuses.
    pub(super) fn conclude(&mut self) -> Result<(), SinkError> {
        self.advance()?;
        if self.state.run_id.is_empty() {
            return Err(SinkError::Failed(format!(
                "{} has no record of events that could be sent",
                self.run.place()
            )));
        }
        let sent = self.send_rest();
        if !self.state.ended.is_empty() && self.state.status != self.state.ended {
            let (ended, time) = (self.state.ended.clone(), self.state.end_time);
            self.update(&ended, Some(time))?;
        }
        self.save()?;
        sent
    }

    /// Sends files and models, and registers the model.
    fn send_rest(&mut self) -> Result<(), SinkError> {
        self.send_files(|_| true)?;
        let result = self.run.result().read().unwrap_or_default();
        let result: Option<RunResult> = serde_json::from_slice(&result).ok();
        let result = result.filter(|_| !self.state.ended.is_empty());
        self.send_checkpoints()?;
        let mut tags = Vec::new();
        if let Some(result) = &result {
            let hash = result.weights_sha256.clone().unwrap_or_default();
            let known = [
                ("lockstep.weights_sha256".to_owned(), hash),
                ("lockstep.restarts".to_owned(), result.restarts.to_string()),
                (
                    "lockstep.error".to_owned(),
                    result.error.clone().unwrap_or_default(),
                ),
            ];
            let known = known.into_iter().filter(|(_, value)| !value.is_empty());
            tags.extend(known);
            if result.status == Status::Succeeded {
                self.send_model(result)?;
            }
        }
        self.link_models(&tags)?;
        match result.is_some_and(|result| result.status == Status::Succeeded) {
            true => self.register(),
            false => Ok(()),
        }
    }

    /// Sends the chosen files, those that were sent as they are now excepted.
    fn send_files(&mut self, is_chosen: impl Fn(&str) -> bool) -> Result<(), SinkError> {
        let to = Artifacts::of(&self.state.artifact_uri, &self.access)?;
        let mut files = artifacts::files(&self.run, self.settings.uncommitted)?;
        files.retain(|entry| {
            let sent = self.state.files.get(&entry.path);
            is_chosen(&entry.path) && sent != Some(&entry.version)
        });
        for group in artifacts::groups(files) {
            let read = |entry: &FileEntry| {
                let bytes = self.run.file(&entry.path).read()?;
                Ok((entry.path.clone(), bytes))
            };
            let bytes: Result<Vec<_>, PlaceError> = group.iter().map(read).collect();
            to.put(&self.server, bytes?)?;
            let sent = group.into_iter().map(|entry| (entry.path, entry.version));
            self.state.files.extend(sent);
        }
        self.save()
    }
}

/// What a worker uses, under the names that MLflow has for it. Its steps are a count.
fn usage(recorded: &Recorded, steps: &mut BTreeMap<String, u64>, metrics: &mut Vec<Metric>) {
    let Event::Usage(usage) = &recorded.event else {
        return;
    };
    let counter = format!("system/worker-{}", usage.rank);
    let step = steps.get(&counter).map_or(0, |step| step + 1);
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
    steps.insert(counter, step);
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
