//! `lockstep completions`: completion scripts.

use crate::args::Cli;
use clap::CommandFactory;
use std::process::ExitCode;

pub(crate) fn run(shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    // The generator panics when it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "lockstep", &mut script);
    super::print(String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
