//! `lockstep node-check`: the process that looks at a node of a cluster before a run begins there.

use lockstep_engine::node_check;
use std::process::ExitCode;

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    node_check::answer()?;
    Ok(ExitCode::SUCCESS)
}
