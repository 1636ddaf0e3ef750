//! What a run tells the world, one event at a time.
//!
//! Everything a person or a program learns about a run is one of these events, in order: the
//! terminal view, the plain lines and `--json` are three renderings of the same stream, so none of
//! them can know something that the others do not. The last event of every run is [`Event::Result`].
//!
//! Events are read with tolerance: what a later version adds is passed over, and what an earlier version, or a client
//! of MLflow, did not say has its default.

use crate::Metrics;
use crate::metrics::{number, train, unmeasured};
use lockstep_measure::Summary;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// One thing that happened in a run. Serialises as `{"event": "...", ...}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(
    clippy::large_enum_variant,
    reason = "the largest comes once a run, and events are handed on one at a time"
)]
#[non_exhaustive]
pub enum Event {
    /// Something is done before the run begins that may take a while, such as decoding data.
    Preparing {
        /// What is done, as a sentence.
        message: String,
    },
    /// Pictures are being embedded; sent a few times a second.
    Embedding(Embedding),
    /// All pictures of a set are embedded.
    Embedded(Embedded),
    /// The job was checked and its run folder exists; workers are about to start.
    Started(Started),
    /// A worker process joined the gang.
    Worker {
        /// Its rank.
        rank: usize,
        /// Its process id.
        pid: u32,
    },
    /// The workers that begin now are on several machines, or several of them on one: they share memory within a
    /// machine, and exchange over the network between machines.
    Hosts {
        /// The workers of each machine, by the `rank` with which they joined.
        hosts: Vec<Vec<usize>>,
        /// Bytes that the machine which sends most sends to others in a step.
        bytes_sent: u64,
    },
    /// Every worker has finished its first optimizer step.
    FirstStep {
        /// Seconds from the start of the command.
        seconds: f64,
    },
    /// Where training is now; sent a few times a second.
    Progress(Progress),
    /// What a worker takes of its machine; sent every few seconds.
    Usage(Usage),
    /// An epoch ended.
    Epoch(EpochResult),
    /// A script reported something.
    Reported(Reported),
    /// One line that a worker wrote to its standard output or error.
    Log(LogLine),
    /// Something that is as it should be, but that a person may not expect.
    Note {
        /// What it is, as a sentence.
        message: String,
    },
    /// Something that a person should know but that does not end the run.
    Warning {
        /// What it is, as a sentence.
        message: String,
    },
    /// A worker was lost; the gang begins again.
    Restart(Restart),
    /// The gang became larger or smaller in good order, and goes on with the next step.
    Resized {
        /// Workers that it has now.
        workers: usize,
        /// Who came or left, as a sentence.
        reason: String,
        /// Steps that were done before.
        #[serde(default)]
        step: u64,
    },
    /// A stop was asked for: the workers finish the step in progress and write the state.
    Stopping,
    /// The run ended; always the last event.
    Result(RunResult),
    /// Something that a later version wrote and this one does not know. It is only read, never sent.
    #[serde(other)]
    Unknown,
}

/// How far the embedding is, over all sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Embedding {
    /// Parts that are done, those that were there already included.
    pub parts_done: usize,
    /// Parts in all.
    pub parts: usize,
    /// Pictures that are done, those that were there already included.
    pub pictures_done: usize,
    /// Pictures in all.
    pub pictures: usize,
    /// Pictures a second over all workers, since the embedding began.
    pub pictures_per_s: f64,
}

/// A set whose pictures are embedded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Embedded {
    /// Which set: `train`, `val` or `test`.
    pub set: String,
    /// Where its vectors are.
    pub store: String,
    /// Pictures in it.
    pub pictures: usize,
    /// Pictures that could not be read.
    pub skipped: usize,
    /// Parts in all.
    pub parts: usize,
    /// Parts that were made now, not in an earlier run.
    pub parts_made: usize,
    /// Seconds that it took, together with the other sets.
    pub seconds: f64,
}

/// The run as it begins. Of a run that a client of MLflow began, little of this is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Started {
    /// The run's unique name, also the name of its folder.
    pub run: String,
    /// Where the run lies: a path or a URL.
    pub run_dir: String,
    /// Number of worker processes; of an elastic gang the most that it may have.
    pub workers: usize,
    /// The fewest worker processes that an elastic gang may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_workers: Option<usize>,
    /// On how many threads each of them computes; none where that is the learner's own matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<WorkerThreads>,
    /// What it is computed on in their place, such as a GPU by its name; none for processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Number of lanes: the unit of arithmetic that fixes the result's bits.
    pub lanes: usize,
    /// `shm`, `tcp` or `solo`.
    pub transport: String,
    /// Training samples in an epoch.
    pub train_samples: usize,
    /// Samples set aside for validation; 0 without.
    pub val_samples: usize,
    /// Samples of the test set; 0 without.
    pub test_samples: usize,
    /// Numbers that are learned.
    pub parameters: usize,
    /// Optimizer steps in an epoch.
    pub steps_per_epoch: u64,
    /// Epochs to train.
    pub epochs: u32,
    /// The command of a script; none where a network is trained.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The names of what each epoch is measured by; what training minimises comes first.
    pub metrics: Vec<String>,
    /// The effective configuration as `(key, value)` pairs in the job file's order.
    pub config: Vec<(String, String)>,
    /// The samples that are used, and how they are recognised.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<UsedSet>,
    /// The libraries of others that compute in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub libraries: Vec<UsedLibrary>,
    /// Steps that were done before this part of the run; 0 for one that begins.
    pub resumed_step: u64,
}

/// On how many threads a worker computes. Any number comes to the same bits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerThreads {
    /// How many; of a worker on another machine it is a guess, since its cores count.
    pub count: usize,
    /// Why so many, where the job does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl WorkerThreads {
    /// As many as the job asks for. If it does not say, as many as a worker has cores for, but no more than its work is
    /// worth.
    pub fn choose(asked: Option<usize>, cores: usize, worth: usize) -> Self {
        let (count, why) = match asked {
            Some(count) => (count, None),
            None if worth >= cores => (cores, Some("all cores that it may use")),
            None => (worth.max(1), Some("there is too little to do for more")),
        };
        Self {
            count,
            why: why.map(str::to_owned),
        }
    }
}

/// A library of others that a run computes with. Another version of it may come to other bits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsedLibrary {
    /// What it is called, such as `XGBoost`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of its file; empty where that is not known.
    pub sha256: String,
}

/// A set of samples that a run uses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsedSet {
    /// What for: `train`, `val` or `test`.
    pub set: String,
    /// What it is called: the name of a known set, of a file or of a folder.
    pub name: String,
    /// Where it comes from, as in the job file.
    pub source: String,
    /// Samples in it.
    pub samples: usize,
    /// SHA-256 of what is read from it: another one means other samples. Empty where it is not known.
    pub sha256: String,
}

/// What a worker takes of its machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// The worker's rank.
    pub rank: usize,
    /// Processor time, in percent of one core.
    #[serde(default = "unmeasured", deserialize_with = "number")]
    pub cpu_percent: f64,
    /// Memory that it has now.
    pub memory_bytes: u64,
    /// Samples a second over all workers, as it last reported.
    #[serde(default = "unmeasured", deserialize_with = "number")]
    pub samples_per_s: f64,
    /// The share of the time that it waited for its peers, from 0 to 1.
    #[serde(default = "unmeasured", deserialize_with = "number")]
    pub waiting: f64,
}

/// A point within an epoch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// Epoch, counted from 1.
    pub epoch: u32,
    /// Steps of this epoch that are done.
    pub step: u64,
    /// Steps of this epoch in all.
    pub steps: u64,
    /// What training measures, over this epoch so far and the reporting worker's part; in JSON these are
    /// fields of this object.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Samples a second over all workers, since the last report.
    #[serde(default = "unmeasured", deserialize_with = "number")]
    pub samples_per_s: f64,
    /// The rank that reports. Rank 0 stands for the gang; the others report on `-v` only.
    pub rank: usize,
}

/// What an epoch came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpochResult {
    /// Epoch, counted from 1.
    pub epoch: u32,
    /// Optimizer steps since the beginning of the run.
    pub step: u64,
    /// Over the epoch's training samples, while training. The first version of the format had them as fields of
    /// this object, each name behind `train_`.
    #[serde(flatten, with = "train")]
    pub train: Metrics,
    /// On the validation set, if there is one.
    pub val: Option<Metrics>,
    /// On the whole test set, if there is one.
    pub test: Option<Metrics>,
    /// Seconds this epoch took, evaluation included.
    #[serde(default)]
    pub seconds: f64,
    /// Seconds since the first step of the run.
    #[serde(default)]
    pub total_s: f64,
    /// Training samples a second in this epoch, evaluation excluded.
    #[serde(default = "unmeasured", deserialize_with = "number")]
    pub samples_per_s: f64,
    /// The learning rate of the epoch's last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lr: Option<f64>,
    /// The norm of the gradient of the epoch's last step before it was clipped; absent where none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradient_norm: Option<f64>,
    /// Whether this epoch is the best so far on validation data; always true without.
    #[serde(default = "always")]
    pub best: bool,
}

fn always() -> bool {
    true
}

/// What a script reported, or what a client of MLflow logged at one time and step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "ReportedFields")]
pub struct Reported {
    /// The number of the report in the run, counted from 1. One that comes again after a failure has its number again.
    /// Of what a client of MLflow logged it is the step, or, if the client named none, a count.
    pub report: u64,
    /// What rank 0 reported, by name. JSON has no NaN and no infinity, so MLflow's are `"NaN"`, `"Infinity"` and
    /// `"-Infinity"`.
    pub metrics: Map<String, Value>,
    /// Whether a checkpoint came with it.
    pub checkpoint: bool,
    /// Seconds since the run began.
    pub total_s: f64,
    /// The step that a client of MLflow named, where `report` is another number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<i64>,
}

/// The fields of [`Reported`] as they may have been written: the first version had MLflow's negative steps in `report`.
#[derive(Deserialize)]
struct ReportedFields {
    report: i64,
    metrics: Map<String, Value>,
    #[serde(default)]
    checkpoint: bool,
    #[serde(default)]
    total_s: f64,
    step: Option<i64>,
}

impl From<ReportedFields> for Reported {
    fn from(fields: ReportedFields) -> Self {
        let negative = (fields.report < 0).then_some(fields.report);
        Self {
            report: u64::try_from(fields.report).unwrap_or(0),
            metrics: fields.metrics,
            checkpoint: fields.checkpoint,
            total_s: fields.total_s,
            step: fields.step.or(negative),
        }
    }
}

/// A line of a worker's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The worker's rank.
    pub rank: usize,
    /// The worker's process id.
    pub pid: u32,
    /// The line without its end.
    pub line: String,
    /// How many workers wrote this same line at about the same time; `rank` is the first of them.
    pub count: usize,
}

/// The gang begins again after a worker was lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// How often it has, this time included.
    pub restart: u32,
    /// Number of worker processes from here on.
    pub workers: usize,
    /// Which worker failed, and why.
    pub reason: String,
    /// The checkpoint it goes on from; none means from a copy of the state in memory, or without steps from the
    /// beginning.
    pub from: Option<String>,
    /// Steps that were done in that state. What was told of later ones is told again.
    #[serde(default)]
    pub step: u64,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// All epochs were trained.
    Succeeded,
    /// It was asked to stop, and its state was written.
    Interrupted,
    /// It failed; `error` says why.
    #[default]
    #[serde(other)]
    Failed,
}

/// The last word of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunResult {
    /// How it ended.
    pub status: Status,
    /// The run's unique name; absent when it failed before it began.
    pub run: Option<String>,
    /// Number of worker processes.
    pub workers: usize,
    /// Number of lanes.
    pub lanes: usize,
    /// Epochs that were trained completely.
    pub epochs: u32,
    /// Whether training ended after these, before all that the job asks for, since none was better for as long as
    /// `train.patience` lasts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopped_early: bool,
    /// Metrics of the kept weights on the whole test set; absent without a test set or on failure.
    pub metrics: Option<Metrics>,
    /// Metrics of the kept weights on validation data; absent without any, on failure and for an interrupted run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub val: Option<Metrics>,
    /// What a script reported last, by name; absent where a network was trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<Map<String, Value>>,
    /// What the kept weights are worth on the test set, in more numbers; absent where `metrics` is.
    #[serde(deserialize_with = "known_summary")]
    pub evaluation: Option<Box<Summary>>,
    /// The epoch whose weights were kept, counted from 1.
    pub best_epoch: Option<u32>,
    /// How long things took.
    pub timing: Timing,
    /// SHA-256 of what was learned; absent on failure.
    pub weights_sha256: Option<String>,
    /// The run's folder; absent when it failed before it began, which leaves nothing behind.
    pub run_dir: Option<String>,
    /// What went wrong, and which worker failed first.
    pub error: Option<String>,
    /// How often the gang began again because a worker was lost.
    pub restarts: u32,
    /// Optimizer steps that were done twice because of that.
    pub steps_repeated: u64,
    /// Seconds from each failure until its steps were done again.
    pub seconds_lost: f64,
    /// How often the gang became larger or smaller in good order, which repeats no step.
    pub resizes: u32,
    /// Seconds from each wish for that until the next step.
    pub seconds_resizing: f64,
    /// The share of the time since the first step that was not lost to failures and resizing, from 0 to 1; absent
    /// without a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput: Option<f64>,
}

impl RunResult {
    /// Works out the share of the time in which the run got on, of which the other figures are known.
    pub fn count_goodput(&mut self) {
        let stepping = self.timing.total_s - self.timing.start_to_first_step_s;
        let standing = self.seconds_lost + self.seconds_resizing;
        let has_stepped = self.timing.start_to_first_step_s > 0.0 && stepping > 0.0;
        self.goodput = has_stepped.then(|| (1.0 - standing / stepping).clamp(0.0, 1.0));
    }

    /// Of a run that ended before it had a folder, so many seconds after the command was given. Its workers and
    /// lanes are not known yet.
    pub fn without_run(status: Status, after: Duration) -> Self {
        Self {
            status,
            timing: Timing {
                total_s: after.as_secs_f64(),
                ..Timing::default()
            },
            ..Self::default()
        }
    }
}

/// A summary of a kind that this version knows; one that it does not know is none.
fn known_summary<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<Summary>>, D::Error> {
    let value = Value::deserialize(from)?;
    Ok(serde_json::from_value(value).ok())
}

/// How long a run took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timing {
    /// From the start of the command to the end of the first optimizer step on all workers.
    pub start_to_first_step_s: f64,
    /// From the first step to the last, evaluation between epochs included.
    pub train_s: f64,
    /// From the start of the command to its result.
    pub total_s: f64,
    /// Training samples a second, evaluation excluded.
    #[serde(default = "unmeasured", deserialize_with = "number")]
    pub samples_per_s: f64,
    /// Where the time of steps went, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepTimes>,
}

/// Where the time of training steps goes, in seconds of one worker, all of its steps together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct StepTimes {
    /// Making batches.
    pub data_s: f64,
    /// Forward passes.
    pub forward_s: f64,
    /// Backward passes; where a worker computes one lane alone, the optimizer is in them.
    pub backward_s: f64,
    /// Waiting for other workers.
    pub waiting_s: f64,
    /// Handing over what was computed, and taking what others did.
    pub exchange_s: f64,
    /// Adding up gradients, and the optimizer.
    pub update_s: f64,
}

impl StepTimes {
    /// What the parts are called, in their order.
    pub const NAMES: [&'static str; 6] = [
        "data", "forward", "backward", "waiting", "exchange", "update",
    ];

    /// All parts, in the order of their names.
    pub fn parts(&self) -> [f64; 6] {
        [
            self.data_s,
            self.forward_s,
            self.backward_s,
            self.waiting_s,
            self.exchange_s,
            self.update_s,
        ]
    }

    /// From the parts, in the order of their names.
    pub fn of_parts(parts: [f64; 6]) -> StepTimes {
        let [
            data_s,
            forward_s,
            backward_s,
            waiting_s,
            exchange_s,
            update_s,
        ] = parts;
        StepTimes {
            data_s,
            forward_s,
            backward_s,
            waiting_s,
            exchange_s,
            update_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch() -> EpochResult {
        EpochResult {
            epoch: 1,
            step: 1875,
            train: Metrics::from([("loss", 0.5), ("accuracy", 0.8)]),
            val: None,
            test: Some(Metrics::from([("loss", 0.4), ("accuracy", 0.8123)])),
            seconds: 1.25,
            total_s: 1.25,
            samples_per_s: 52311.0,
            lr: None,
            gradient_norm: None,
            best: true,
        }
    }

    #[test]
    fn an_epoch_has_the_metrics_of_each_set_under_its_name() {
        let event = Event::Epoch(epoch());
        let text = serde_json::to_string(&event).unwrap();
        let wanted = concat!(
            r#"{"event":"epoch","epoch":1,"step":1875,"train":{"loss":0.5,"accuracy":0.8},"#,
            r#""val":null,"test":{"loss":0.4,"accuracy":0.8123},"seconds":1.25,"total_s":1.25,"#,
            r#""samples_per_s":52311.0,"best":true}"#
        );
        assert_eq!(text, wanted);
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
        let first_version = text.replace(
            r#""train":{"loss":0.5,"accuracy":0.8}"#,
            r#""train_loss":0.5,"train_accuracy":0.8"#,
        );
        assert_eq!(
            serde_json::from_str::<Event>(&first_version).unwrap(),
            event
        );
    }

    #[test]
    fn what_is_not_known_is_told_from_what_is_and_numbers_that_json_has_not_cost_no_event() {
        let later = r#"{"event":"of a later version","of":{"it":1}}"#;
        assert_eq!(
            serde_json::from_str::<Event>(later).unwrap(),
            Event::Unknown
        );
        let diverged = r#"{"event":"epoch","epoch":1,"step":2,"train":{"loss":null,"mae":0.5},
            "val":{"loss":null},"test":null,"samples_per_s":null}"#;
        let Event::Epoch(epoch) = serde_json::from_str(diverged).unwrap() else {
            panic!("an epoch");
        };
        assert_eq!(epoch.train, Metrics::from([("mae", 0.5)]));
        assert!(epoch.best && epoch.samples_per_s.is_nan());
        let other = r#"{"event":"result","status":"of a later version","evaluation":{"new":1}}"#;
        let Event::Result(result) = serde_json::from_str(other).unwrap() else {
            panic!("a result");
        };
        assert_eq!((result.status, result.evaluation), (Status::Failed, None));
    }

    #[test]
    fn what_a_client_of_mlflow_logged_keeps_its_step() {
        let read = |text: &str| -> Reported { serde_json::from_str(text).unwrap() };
        let plain = read(r#"{"report":7,"metrics":{"loss":0.5}}"#);
        assert_eq!((plain.report, plain.step), (7, None));
        let counted = read(r#"{"report":3,"step":0,"metrics":{}}"#);
        assert_eq!((counted.report, counted.step), (3, Some(0)));
        let negative = read(r#"{"report":-5,"metrics":{}}"#);
        assert_eq!((negative.report, negative.step), (0, Some(-5)));
        let written = serde_json::to_string(&negative).unwrap();
        assert_eq!(read(&written), negative);
        // A row of epochs is none of reports.
        assert!(serde_json::from_str::<Reported>(r#"{"epoch":1,"step":2}"#).is_err());
    }

    #[test]
    fn progress_has_the_fields_it_always_had() {
        let event = Event::Progress(Progress {
            epoch: 1,
            step: 900,
            steps: 1875,
            metrics: Metrics::from([("loss", 0.7)]),
            samples_per_s: 50000.0,
            rank: 0,
        });
        let text = serde_json::to_string(&event).unwrap();
        let wanted = concat!(
            r#"{"event":"progress","epoch":1,"step":900,"steps":1875,"loss":0.7,"#,
            r#""samples_per_s":50000.0,"rank":0}"#
        );
        assert_eq!(text, wanted);
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
    }

    #[test]
    fn what_a_later_version_adds_is_passed_over() {
        let text = serde_json::to_string(&epoch()).unwrap();
        let later = text.replace(
            r#""step":"#,
            r#""words":"new","train_of":{"a":1},"of":{"b":2},"step":"#,
        );
        assert_eq!(
            serde_json::from_str::<EpochResult>(&later).unwrap(),
            epoch()
        );
    }
}
