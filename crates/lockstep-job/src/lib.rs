//! The job file: its types, defaults and checks, with errors that point at the line.
//!
//! A job file is TOML. [`Job::load`] parses it into a tree in which every value knows where it was
//! written, puts what the command line says over it, and reads the tree into a [`Job`]: typed, with
//! all defaults filled in, and such that what is impossible cannot be expressed. Whatever is wrong is
//! reported at its place in the file, or on the command line, with the nearest right word.
//!
//! ```
//! # fn main() -> Result<(), lockstep_job::JobError> {
//! use lockstep_job::{Job, template};
//! use std::path::Path;
//!
//! let job = Job::parse(
//!     Path::new("job.toml"),
//!     &template("digits"),
//!     &["train.epochs=3".parse()?],
//!     None,
//! )?;
//! assert!(job.workers().max <= job.lanes());
//! assert_eq!(job.network(Path::new("job.toml"))?.train.learner.epochs, 3);
//! # Ok(())
//! # }
//! ```
//!
//! A type whose name begins with `Job` is the job file's word for something that another crate has a type of its
//! own for: a [`JobOptimizer`] is what the file says, and the crate that computes makes an optimizer of it.

mod bytes;
mod checkpoint;
mod data;
mod defaults;
mod device;
mod diagnostic;
mod embed;
mod error;
mod field;
mod file;
mod gang;
mod inputs;
mod job;
mod keep;
mod keys;
mod kube;
mod load;
mod metrics;
mod model;
mod nearest;
mod network;
mod notify;
mod optimizer;
mod overrides;
pub mod pod;
mod recover;
mod resources;
mod run;
mod schedule;
mod schema;
mod script;
mod secrets;
mod section;
mod show;
mod source;
mod storage;
mod template;
mod track;
mod train;
mod tree;
mod trees;
mod xgboost_names;

pub use bytes::Bytes;
pub use checkpoint::{Every, JobCheckpoint, NotEvery};
pub use data::{
    Data, DataRef, Features, JobAugment, JobColumnType, JobColumns, JobCsv, JobEncoding, JobFilter,
    JobNormalise, JobSplit, JobTransform, Label, Location, Split, Validation,
};
pub use defaults::is_default;
pub use device::JobDevice;
pub use diagnostic::{Diagnostic, printable};
pub use embed::Embed;
pub use error::JobError;
pub use gang::{JobGang, JobTransport};
pub use inputs::LocalInput;
pub use job::{Job, LearnerJob};
pub use keep::{Keep, KeepRules};
pub use kube::{
    GangScheduling, Kube, KubeEngine, PATCHED, PullPolicy, Toleration, Volume, VolumeSource,
};
pub use metrics::{JobBest, JobMetrics};
pub use model::{JobLayer, JobModel, JobNetwork, Pair};
pub use network::NetworkJob;
pub use notify::{Comparison, Condition, Notify, Occasion, Webhook};
pub use optimizer::JobOptimizer;
pub use overrides::Override;
pub use recover::{JobCopies, Recover};
pub use resources::{Placement, Resources};
pub use run::Run;
pub use schedule::JobSchedule;
pub use schema::schema;
pub use script::{BestMode, ScriptCheckpoint, ScriptJob, ScriptKind, ScriptTraining};
pub use secrets::{hide_secrets, masked, masked_words, without_secrets};
pub use storage::Storage;
pub use template::template;
pub use track::{TensorBoard, Track};
pub use train::{
    ClassWeights, JobDecision, JobLoss, JobPrecision, JobThreshold, NetworkTraining, PositiveClass,
    ThresholdRule, Train, WeightRule, Workers, WorkersRange,
};
pub use trees::{
    GrowPolicy, TreesCheckpoint, TreesJob, TreesKind, TreesModel, TreesTraining, XgboostParameters,
};
pub use xgboost_names::{INEXACT_PARAMETERS, OBJECTIVES};
