//! `lockstep worker`: a worker's process.

use std::process::ExitCode;

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    lockstep_engine::worker::run()?;
    Ok(ExitCode::SUCCESS)
}
