//! The job as the rest of the program sees it: checked, complete, plain data.
//!
//! A [`Job`] that came out of [`Job::load`] has passed every check that needs no data: all defaults
//! are filled in, `lanes` is fixed and paths are absolute. Its serde form is the job file's own
//! vocabulary, so what `lockstep job show` prints and what a run's folder keeps are the same words that the user wrote.

use crate::field::Field;
use crate::file::JobFile;
use crate::keys::{Check, SchemaLimits};
use crate::{
    Data, Embed, Every, JobDevice, JobError, JobGang, Kube, Location, NetworkJob, Notify, Recover,
    Resources, Run, ScriptJob, Storage, Track, TreesJob, Workers,
};
use lockstep_measure::OwnMetric;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::iter;
use std::path::{Path, PathBuf};

/// What is to be done: what every job has, and what its learner is to do.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "JobFile")]
pub struct Job {
    /// The name of the job; each of its runs is named after it.
    pub name: String,
    /// What is learned from. Only a script may have nothing.
    pub data: Option<Data>,
    /// Where its runs go, and which of them stay.
    pub run: Run,
    /// How its workers keep together.
    pub gang: JobGang,
    /// What happens when one of its workers is lost.
    pub recover: Recover,
    /// What each of its workers needs.
    pub resources: Resources,
    /// How its pods look on Kubernetes.
    pub kube: Kube,
    /// Who else keeps a record of its runs.
    pub track: Track,
    /// Who is told of what happens in them.
    pub notify: Notify,
    /// How its places are reached.
    pub storage: Storage,
    /// What is its learner's own.
    pub learner: LearnerJob,
}

/// What of a job is its learner's own.
#[derive(Debug, Clone, PartialEq)]
pub enum LearnerJob {
    /// A network to train.
    Network(Box<NetworkJob>),
    /// Trees to grow.
    Trees(Box<TreesJob>),
    /// A script to start as a gang.
    Script(Box<ScriptJob>),
}

impl Serialize for Job {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        JobFile::of(self).serialize(serializer)
    }
}

/// The longest name: a run adds its number to it, and file systems stop at 255 bytes.
const NAME_LIMIT: usize = 100;

impl Job {
    /// Whether `name` may be a job's name, which is also the beginning of folder names.
    pub fn is_valid_name(name: &str) -> bool {
        name.len() <= NAME_LIMIT
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    }

    /// What is the network's own, for what is done with networks alone; `path` is the job file.
    ///
    /// # Errors
    ///
    /// If the job has another learner.
    pub fn network(&self, path: &Path) -> Result<&NetworkJob, JobError> {
        match &self.learner {
            LearnerJob::Network(network) => Ok(network),
            LearnerJob::Script(_) => Err(JobError::Script { path: path.into() }),
            LearnerJob::Trees(_) => Err(JobError::Trees { path: path.into() }),
        }
    }

    /// How many workers it has.
    pub fn workers(&self) -> Workers {
        match &self.learner {
            LearnerJob::Network(network) => network.train.workers,
            LearnerJob::Script(script) => script.train.workers,
            LearnerJob::Trees(trees) => trees.train.workers,
        }
    }

    /// Lets it have so many workers. The lanes stay.
    pub fn set_workers(&mut self, workers: Workers) {
        match &mut self.learner {
            LearnerJob::Network(network) => network.train.workers = workers,
            LearnerJob::Script(script) => script.train.workers = workers,
            LearnerJob::Trees(trees) => trees.train.workers = workers,
        }
    }

    /// The parts that a batch is cut into; one for each worker where the learner has no batches.
    pub fn lanes(&self) -> usize {
        match &self.learner {
            LearnerJob::Network(network) => network.train.lanes,
            _ => self.workers().max,
        }
    }

    /// Threads of a worker, if the job says how many.
    pub fn threads(&self) -> Option<usize> {
        match &self.learner {
            LearnerJob::Network(network) => network.train.threads,
            LearnerJob::Script(_) => Some(1),
            LearnerJob::Trees(trees) => trees.train.threads,
        }
    }

    /// Metrics of its own; none of a script, which reports what it likes.
    pub fn metrics(&self) -> &[OwnMetric] {
        match &self.learner {
            LearnerJob::Network(network) => &network.metrics.0,
            LearnerJob::Trees(trees) => &trees.metrics.0,
            LearnerJob::Script(_) => &[],
        }
    }

    /// Lets each worker have so many threads. What a script has is its own matter.
    pub fn set_threads(&mut self, threads: usize) {
        match &mut self.learner {
            LearnerJob::Network(network) => network.train.threads = Some(threads),
            LearnerJob::Script(_) => {}
            LearnerJob::Trees(trees) => trees.train.threads = Some(threads),
        }
    }

    /// What its network is computed on, if it trains one.
    pub fn device(&self) -> Option<JobDevice> {
        match &self.learner {
            LearnerJob::Network(network) => Some(network.train.device),
            _ => None,
        }
    }

    /// What its network and the encoder of its pictures are computed on, to be changed; nothing of what is neither.
    pub fn devices_mut(&mut self) -> impl Iterator<Item = &mut JobDevice> {
        let network = match &mut self.learner {
            LearnerJob::Network(network) => Some(network),
            _ => None,
        };
        network.into_iter().flat_map(|network| {
            let of_encoder = network.embed.as_mut().map(|embed| &mut embed.device);
            iter::once(&mut network.train.device).chain(of_encoder)
        })
    }

    /// How its pictures become vectors, if they do.
    pub fn embed(&self) -> Option<&Embed> {
        match &self.learner {
            LearnerJob::Network(network) => network.embed.as_ref(),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn embed_mut(&mut self) -> Option<&mut Embed> {
        match &mut self.learner {
            LearnerJob::Network(network) => network.embed.as_mut(),
            _ => None,
        }
    }

    /// Lets a network write no checkpoints while it trains: for a run whose state nobody goes on from. Of trees and
    /// scripts they are a part of what is done.
    pub fn spare_checkpoints(&mut self) {
        if let LearnerJob::Network(network) = &mut self.learner {
            network.checkpoint.every = Every::None;
        }
    }

    /// Lets a network begin with the weights of a file. Other learners begin with nothing.
    pub fn begin_with(&mut self, weights: PathBuf) {
        if let LearnerJob::Network(network) = &mut self.learner {
            network.model.weights = Some(weights);
        }
    }

    /// Epochs or rounds that the job asks for; nothing where only the learner knows when it ends.
    pub fn epochs(&self) -> Option<u32> {
        match &self.learner {
            LearnerJob::Network(network) => Some(network.train.learner.epochs),
            LearnerJob::Trees(trees) => Some(trees.model.rounds),
            LearnerJob::Script(_) => None,
        }
    }

    /// The places that the job writes to, and the keys that name them.
    pub fn stores(&self) -> impl Iterator<Item = (&'static str, &Location)> {
        let vectors = self.embed().map(|embed| ("embed.store", &embed.store));
        [("run.store", &self.run.store)].into_iter().chain(vectors)
    }
}

/// What names runs, and so begins the names of folders.
pub(crate) struct JobName;

impl SchemaLimits for JobName {
    fn describe(&self, schema: &mut Map<String, Value>) {
        let pattern = format!("^[A-Za-z0-9][A-Za-z0-9._-]{{0,{}}}$", NAME_LIMIT - 1);
        schema.insert("pattern".to_owned(), json!(pattern));
    }
}

impl Check<String> for JobName {
    fn read(&self, field: &Field<'_>) -> Option<String> {
        let name = field.text()?;
        if !Job::is_valid_name(name) {
            return field.reject(
                format!("cannot be {name:?}"),
                format!(
                    "use 1 to {NAME_LIMIT} of letters, digits, `-`, `_` and `.`; \
                     begin with a letter or digit"
                ),
            );
        }
        Some(name.to_owned())
    }
}
