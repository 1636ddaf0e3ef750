//! The coordinator's side of a learner: what must be known of a job before its workers exist.
//!
//! A [`Coordinator`] is made for one job. It finds, opens and checks all that training needs, and so becomes a
//! [`RunPlan`], from which the engine makes the run without knowing what learns.

use crate::{EarlierRun, Forecast, ForkFrom, LearnerError, ResumePoint, VectorFacts};
use lockstep_base::fs::CacheDir;
use lockstep_events::event::{UsedLibrary, WorkerThreads};
use lockstep_gang::{KeptShape, Plan};
use lockstep_resolve::{EmbedPlan, PictureInput};
use lockstep_runs::RunDir;
use serde_json::Value;
use std::path::PathBuf;

/// The learner of one job, in the process that coordinates its workers.
pub trait Coordinator {
    /// What the learner is called in assignments.
    fn kind(&self) -> &'static str;

    /// The pictures that must become vectors before [`prepare`](Self::prepare), if there are any.
    fn embedding(&self) -> Option<&EmbedPlan> {
        None
    }

    /// Whether a new run can begin with what another one learned. If not, that run is gone on with.
    ///
    /// # Errors
    /// When neither is what could be meant.
    fn forks(&self) -> Result<bool, LearnerError> {
        Ok(false)
    }

    /// Finds, opens and checks all that training needs, and says through `progress` what may take a while. `pictures` is
    /// how those of [`embedding`](Self::embedding) became vectors.
    ///
    /// # Errors
    /// When something is missing, damaged, or does not fit the job.
    fn prepare(
        self: Box<Self>,
        pictures: Option<PictureInput>,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Box<dyn RunPlan>, LearnerError>;

    /// What a run would come to. Nothing is written but to the cache. `vectors` is what is known of vectors of pictures
    /// that are not all there yet.
    ///
    /// # Errors
    /// As those of [`prepare`](Self::prepare).
    fn forecast(
        &self,
        vectors: Option<&VectorFacts>,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Forecast, LearnerError>;
}

/// A job whose run can begin.
pub trait RunPlan {
    /// What is known of it.
    fn facts(&self) -> &RunFacts;

    /// Checks that training can go on from the newest checkpoint of an earlier run, and says where that is.
    ///
    /// # Errors
    /// When that is damaged, or the job has changed what would change the result, which is named.
    fn check_resume(&self, earlier: &EarlierRun<'_>) -> Result<ResumePoint, LearnerError>;

    /// Checks what a run begins with that does not go on from a state. Returns what a person may not expect, each a
    /// sentence.
    ///
    /// # Errors
    /// When that is missing, damaged or does not fit.
    fn begin(&mut self) -> Result<Vec<String>, LearnerError> {
        Ok(Vec::new())
    }

    /// Writes what an earlier run learned into the new run `run`, to begin with that. Nothing where the learner does not
    /// fork ([`Coordinator::forks`]).
    ///
    /// # Errors
    /// When the earlier run is damaged, or nothing can be written.
    fn fork(
        &mut self,
        _earlier: &EarlierRun<'_>,
        _which: ForkFrom,
        _run: &RunDir,
        _cache: &CacheDir,
    ) -> Result<Option<Fork>, LearnerError> {
        Ok(None)
    }

    /// What each of so many workers of the run of this name is told when it begins. Only the learner reads it.
    fn part(&self, run: &str, workers: usize) -> Value;

    /// Does what is left to do with the model of a run that succeeded.
    ///
    /// # Errors
    /// When that cannot be done. The run has failed then; its model stays.
    fn finish(&self, _run: &RunDir) -> Result<(), LearnerError> {
        Ok(())
    }
}

/// What a new run begins with of an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// The file of this machine that it begins with.
    pub weights: PathBuf,
    /// What that is, in words.
    pub words: String,
}

/// What is known of a run before it begins.
#[derive(Debug, Clone, Default)]
pub struct RunFacts {
    /// Training samples in an epoch.
    pub train_samples: usize,
    /// Validation samples; 0 without.
    pub val_samples: usize,
    /// Test samples; 0 without.
    pub test_samples: usize,
    /// Parameters of the model, where it has a fixed number.
    pub parameters: usize,
    /// Steps in an epoch; 0 if only the learner knows.
    pub steps_per_epoch: u64,
    /// Epochs, rounds or the like that the job asks for; 0 if only the learner knows.
    pub epochs: u32,
    /// The command that each worker starts, if it is one.
    pub command: Vec<String>,
    /// What the model is measured by.
    pub metrics: Vec<String>,
    /// What a person may not expect, each a sentence.
    pub notes: Vec<String>,
    /// The sets that are used.
    pub sets: Vec<FoundData>,
    /// The libraries of others that compute in it.
    pub libraries: Vec<UsedLibrary>,
    /// On how many threads each worker computes; none where that is the learner's own matter.
    pub threads: Option<WorkerThreads>,
    /// What is computed on in their place, such as a GPU by its name; none for processors.
    pub device: Option<String>,
    /// The exchange of the whole gang; none where the learner has its own.
    pub plan: Option<Plan>,
    /// How long all workers may get no further, in seconds, where that is not the gang's deadline.
    pub stall_s: Option<f64>,
    /// The memory that the gang will take, where that is planned.
    pub memory: Option<PlannedMemory>,
    /// What is kept of the state in memory that outlives a worker; none if nothing is.
    pub copies: Option<KeptShape>,
}

/// The memory that a gang will take, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedMemory {
    /// In each worker.
    pub per_worker: u64,
    /// In the first worker, beside that.
    pub first_worker: u64,
    /// Shared by all workers.
    pub shared: u64,
}

impl PlannedMemory {
    /// In all of so many workers.
    pub fn of_all(&self, workers: usize) -> u64 {
        let each = self.per_worker.saturating_mul(workers as u64);
        each.saturating_add(self.first_worker)
            .saturating_add(self.shared)
    }
}

/// A set that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundData {
    /// What it is used for: `train`, `val` or `test`.
    pub set: String,
    /// What it is called.
    pub name: String,
    /// A hash of its samples; empty where that is not known.
    pub sha256: String,
}

impl FoundData {
    /// A set by what it is used for, what it is called, and its hash.
    pub fn new(set: &str, name: &str, sha256: &str) -> Self {
        Self {
            set: set.to_owned(),
            name: name.to_owned(),
            sha256: sha256.to_owned(),
        }
    }
}
