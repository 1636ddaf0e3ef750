//! The learners of this program: the only place, beside the job file, that knows what kinds of jobs there are.

use lockstep_job::{Job, LearnerJob};
use lockstep_learner::{Coordinator, LearnerError, LearnerType, Learners};
use lockstep_onnx::OnnxError;
use lockstep_resolve::{ResolveError, ResolvedJob, ResolvedScript, ResolvedTrees, TestSource};
use lockstep_runs::RunDir;
use lockstep_script::{ScriptCoordinator, ScriptLearner};
use lockstep_train::{ModelExporter, NetworkCoordinator, NetworkLearner};
use lockstep_trees::{TreesCoordinator, TreesLearner};
use std::path::Path;

/// All of them.
pub(crate) const LEARNERS: Learners = Learners(&[&TreesLearner, &NetworkLearner, &ScriptLearner]);

/// The learner of a job.
pub(crate) fn of(job: &Job) -> &'static dyn LearnerType {
    match job.learner {
        LearnerJob::Network(_) => &NetworkLearner,
        LearnerJob::Trees(_) => &TreesLearner,
        LearnerJob::Script(_) => &ScriptLearner,
    }
}

/// The test set of a job, for a model that was trained before.
pub(crate) fn test_source(job: &Job) -> Result<TestSource, ResolveError> {
    match &job.learner {
        LearnerJob::Network(own) => TestSource::of_network(job, own),
        LearnerJob::Trees(trees) => TestSource::of_trees(job, trees),
        LearnerJob::Script(_) => Err(ResolveError::Script {
            name: job.name.clone(),
        }),
    }
}

/// The coordinator's side of the learner of a job whose file lies, or would lie, in `folder`.
pub(crate) fn coordinator(job: &Job, folder: &Path) -> Result<Box<dyn Coordinator>, LearnerError> {
    let unclear = LearnerError::of_job;
    Ok(match &job.learner {
        LearnerJob::Network(own) => {
            let resolved = ResolvedJob::of(job, own).map_err(unclear)?;
            Box::new(NetworkCoordinator::new(resolved, &OnnxExporter))
        }
        LearnerJob::Trees(own) => {
            let resolved = ResolvedTrees::of(job, own).map_err(unclear)?;
            let workers = job.workers().max;
            Box::new(TreesCoordinator::new(&job.name, workers, resolved))
        }
        LearnerJob::Script(own) => {
            let resolved = ResolvedScript::of(job, own).map_err(unclear)?;
            let workers = job.workers().max;
            Box::new(ScriptCoordinator::new(workers, folder, resolved))
        }
    })
}

/// The same as [`coordinator`] on this machine, where nobody keeps GPUs for the workers: they use those that are there.
pub(crate) fn coordinator_here(
    job: &Job,
    folder: &Path,
) -> Result<Box<dyn Coordinator>, LearnerError> {
    let mut job = job.clone();
    job.resources.gpus = 0.0;
    coordinator(&job, folder)
}

/// Writes networks as ONNX beside their weights.
struct OnnxExporter;

/// A network cannot be written as ONNX.
#[derive(Debug, thiserror::Error)]
#[error("train.onnx: {0}")]
struct ExportError(#[source] OnnxError);

impl ModelExporter for OnnxExporter {
    fn check(&self, parameters: usize) -> Result<(), LearnerError> {
        let checked = lockstep_onnx::check_size(parameters);
        checked.map_err(|error| LearnerError::of_job(ExportError(error)))
    }

    fn export(&self, run: &RunDir) -> Result<(), LearnerError> {
        let written = lockstep_onnx::export_run(run)
            .and_then(|content| run.onnx().write(&content).map_err(OnnxError::from));
        written.map_err(|error| LearnerError::of_job(ExportError(error)))
    }
}
