//! Why the coordinator's side of a learner cannot do something.

use std::error::Error;

/// Why the coordinator's side of a learner cannot do something, in the learner's own words.
#[derive(Debug, thiserror::Error)]
pub enum LearnerError {
    /// The job does not fit its data, or something that it needs is not there.
    #[error(transparent)]
    Job(Box<dyn Error + Send + Sync>),
    /// The state to go on from is not one of this job.
    #[error(transparent)]
    Resume(Box<dyn Error + Send + Sync>),
}

impl LearnerError {
    /// The job does not fit its data, or something that it needs is not there.
    pub fn of_job(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Job(Box::new(error))
    }

    /// The state to go on from is not one of this job.
    pub fn of_resume(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Resume(Box::new(error))
    }
}
