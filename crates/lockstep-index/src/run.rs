//! What is known of a run at a glance.

use lockstep_events::current_name;
use lockstep_events::event::UsedSet;
use lockstep_runs::Position;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// How a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It goes on, as far as anybody can tell.
    #[default]
    Running,
    /// All epochs were trained.
    Succeeded,
    /// It was asked to stop, and can be gone on with.
    Interrupted,
    /// It failed, and said why.
    Failed,
    /// Its process is gone without a word: killed, or the machine was.
    Lost,
}

impl State {
    /// All of them.
    pub const ALL: [State; 5] = [
        State::Running,
        State::Succeeded,
        State::Interrupted,
        State::Failed,
        State::Lost,
    ];

    /// In one word.
    pub fn word(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Succeeded => "succeeded",
            State::Interrupted => "interrupted",
            State::Failed => "failed",
            State::Lost => "lost",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// What interrupts the curves of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// A worker was lost, and the gang began again.
    Restart,
    /// The gang became larger or smaller in good order.
    Resized,
    /// The run was gone on with.
    Resumed,
}

/// Something that happened to a run, to be marked on its curves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// What it was.
    pub kind: MarkKind,
    /// The step that the run went on from.
    pub step: u64,
    /// When, in seconds since 1970 in UTC.
    pub time: f64,
    /// How many workers there are from here on.
    pub workers: u64,
    /// Why, as a sentence.
    pub reason: String,
}

/// What lists need of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// Its unique name, also that of its folder.
    pub name: String,
    /// What a client of MLflow's calls it; empty of all others.
    pub run_name: String,
    /// The name of its job.
    pub job: String,
    /// How it is.
    pub state: State,
    /// When it began, in seconds since 1970 in UTC.
    pub started: Option<f64>,
    /// When it ended, the last time.
    pub ended: Option<f64>,
    /// Worker processes.
    pub workers: u64,
    /// Lanes.
    pub lanes: u64,
    /// Epochs to train.
    pub epochs: u64,
    /// Epochs that are trained.
    pub epochs_done: u64,
    /// Optimizer steps that are done; of a script, its reports.
    pub step: u64,
    /// Optimizer steps in an epoch.
    pub steps_per_epoch: u64,
    /// Numbers that are learned.
    pub parameters: u64,
    /// How often workers that were lost were replaced.
    pub restarts: u64,
    /// How often it was gone on with.
    pub resumes: u64,
    /// What went wrong.
    pub error: Option<String>,
    /// The hash of what was learned.
    pub weights_sha256: Option<String>,
    /// The epoch whose weights were kept.
    pub best_epoch: Option<u64>,
    /// Training samples a second.
    pub samples_per_s: Option<f64>,
    /// What each epoch is measured by, in order; what training minimises comes first.
    pub measured: Vec<String>,
    /// What the kept weights came to: `test.accuracy`, `val.loss`, `train.loss`; of a script, as it named them.
    pub metrics: BTreeMap<String, f64>,
    /// What the user calls it.
    pub tags: BTreeMap<String, String>,
    /// What the user says of it.
    pub note: String,
    /// The git commit of the job's folder.
    pub commit: Option<String>,
    /// The machine that the command ran on.
    pub host: Option<String>,
    /// Who gave the command.
    pub user: Option<String>,
    /// What it learned from.
    pub data: Vec<UsedSet>,
    /// What interrupted its curves, the newest last.
    pub marks: Vec<Mark>,
    /// The size of its folder.
    pub bytes: u64,
    /// How far its record is read, and what is needed to go on.
    pub(crate) progress: Progress,
    /// Its parameters, by the key of the job file, as far as they were asked for.
    #[serde(skip)]
    pub params: BTreeMap<String, Value>,
}

/// How far a run's record is read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Progress {
    /// Where the next reading goes on.
    pub(crate) position: Position,
    /// Seconds that earlier parts of the run took.
    pub(crate) before_s: f64,
    /// When the present part began.
    pub(crate) began: f64,
    /// When the last event happened.
    pub(crate) last: f64,
    /// Whether it is that of a script.
    pub(crate) script: bool,
    /// What its lock looked like, and when that was seen first.
    pub(crate) lock: Option<(String, f64)>,
    /// The version of each small file that was read.
    pub(crate) versions: BTreeMap<String, String>,
}

impl Run {
    /// How long it took, or has taken by the time `now`, in seconds; pauses before it was gone on with are not
    /// counted.
    pub fn duration(&self, now: f64) -> Option<f64> {
        self.started?;
        let end = match self.state {
            State::Running => now.max(self.progress.last),
            _ => self.progress.last,
        };
        Some(self.progress.before_s + (end - self.progress.began).max(0.0))
    }

    /// What the kept weights came to on the test set, else on validation data, else while training. `name` may also
    /// be whole: `val.loss`; or one that the metric had before: `train_loss`.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let name = self.metric_name(name)?;
        self.metrics.get(&name).copied()
    }

    /// What a metric is called in [`Run::metrics`], as [`Run::metric`] finds it.
    pub fn metric_name(&self, name: &str) -> Option<String> {
        let places = ["test.", "val.", "train."].map(|place| format!("{place}{name}"));
        let mut whole = std::iter::once(name.to_owned())
            .chain(places)
            .chain(current_name(name));
        whole.find(|name| self.metrics.contains_key(name))
    }

    /// Whether it has ended, in whatever way.
    pub fn has_ended(&self) -> bool {
        self.state != State::Running
    }
}
