//! `lockstep worker`: a worker's process.

use crate::learners::LEARNERS;
use lockstep_engine::worker::{self, WorkerError};
use std::process::ExitCode;

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    match worker::run(LEARNERS) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        // The coordinator was told, and says it.
        Err(WorkerError::Train(_)) => Ok(ExitCode::FAILURE),
        Err(error) => Err(error.into()),
    }
}
