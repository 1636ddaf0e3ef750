//! `lockstep completions`: completion scripts.

use crate::args;
use clap::Command;
use std::process::ExitCode;

pub(crate) fn run(shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    // The generator panics when it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(), "lockstep", &mut script);
    super::print(String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// The command line without what is not for people: some generators offer hidden commands.
pub(super) fn visible() -> Command {
    let whole = args::command();
    let shown = whole.get_subcommands().filter(|sub| !sub.is_hide_set());
    Command::new("lockstep")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommands(shown.cloned())
}
