//! What a job means, found out once.
//!
//! A job file speaks of names, paths and words. [`ResolvedJob::of`] turns it into what the other crates work
//! with: places that can be opened, sources of samples, transforms, and the settings of the learner. Everything
//! below works with that and never asks the job file again. What workers need of it can be told to them, so
//! that they resolve nothing.

mod checkpoint;
mod decision;
mod device;
mod embedding;
mod error;
mod layer_setting;
mod learning;
mod model_input;
mod network;
mod parts;
mod picture_input;
mod places;
mod schedule;
mod script;
mod sources;
mod training;
mod trees;

pub use checkpoint::{CheckpointRules, Interval};
pub use decision::{ClassWeights, DecisionRules, Threshold};
pub use device::device;
pub use embedding::{EmbedPlan, EmbeddedSet};
pub use error::ResolveError;
pub use learning::{LearningSettings, precision};
pub use lockstep_nn::Precision;
// Checkpoints of earlier versions hold what must be hidden.
pub use lockstep_job::{hide_secrets, masked_words};
pub use model_input::{InputEncoder, ModelInput};
pub use network::{LayerWords, NetworkPlan};
pub use picture_input::{EncoderInput, PictureInput};
pub use places::{access, place};
pub use schedule::RateSchedule;
pub use script::{ResolvedScript, ScriptCheckpoints, ScriptSettings, ScriptSource};
pub use sources::{SetSources, TestSource};
pub use training::{ImageChanges, TrainingSettings};
pub use trees::{ResolvedTrees, TreesDevice, TreesPlan, TreesSettings};

use lockstep_job::{Data, Job, JobCopies, NetworkJob};
use lockstep_place::{Access, Place};

/// A job as the crates that do its work understand it.
#[derive(Debug, Clone)]
pub struct ResolvedJob {
    /// How its places are reached.
    pub access: Access,
    /// Where its runs go.
    pub store: Place,
    /// What is learned from, and measured on.
    pub sets: SetSources,
    /// The pictures that become vectors first, if there are any.
    pub embedding: Option<EmbedPlan>,
    /// What the learner is told.
    pub training: TrainingSettings,
    /// With how many workers the run begins, where it need not wait for all.
    pub enough_workers: Option<usize>,
    /// Whether a cluster keeps GPUs for the workers.
    pub asks_gpus: bool,
    /// Whether copies of the state are kept in memory that outlives a worker.
    pub copies: bool,
}

impl ResolvedJob {
    /// Finds out what `job` means, and what of it is the network's own. Nothing is listed or read, but it is looked whether
    /// a path is a folder.
    ///
    /// # Errors
    /// When a place of the job makes no sense, or pictures would come out in several sizes.
    pub fn of(job: &Job, network: &NetworkJob) -> Result<Self, ResolveError> {
        Ok(Self {
            access: access(&job.storage)?,
            store: place(&job.run.store, &job.storage)?,
            sets: SetSources::of(job, network)?,
            embedding: EmbedPlan::of(job, network)?,
            training: TrainingSettings::of(data_of(job)?, network),
            enough_workers: Some(network.train.workers)
                .filter(|workers| workers.is_elastic())
                .map(|workers| workers.min),
            asks_gpus: job.resources.gpus > 0.0,
            copies: job.recover.copies != JobCopies::Off,
        })
    }
}

/// What a job learns from, where its learner cannot do without.
pub(crate) fn data_of(job: &Job) -> Result<&Data, ResolveError> {
    job.data.as_ref().ok_or(ResolveError::NoData)
}
