//! `lockstep job-process`: looks after one job of a server's queue.

use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(folder: &Path, attempt: u32, gpus: &[u32]) -> anyhow::Result<ExitCode> {
    lockstep_queue::keep(folder, attempt, gpus)?;
    Ok(ExitCode::SUCCESS)
}
