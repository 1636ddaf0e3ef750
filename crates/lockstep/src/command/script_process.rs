//! `lockstep script-process`: the first moment of a script's process.

use anyhow::Context;
use std::ffi::OsString;
use std::process::ExitCode;

pub(crate) fn run(command: &[OsString]) -> anyhow::Result<ExitCode> {
    let program = command
        .first()
        .map(|word| word.to_string_lossy().into_owned());
    let program = program.unwrap_or_default();
    match lockstep_script::become_script(command) {
        Ok(never) => match never {},
        Err(error) => Err(error).with_context(|| format!("cannot start `{program}`")),
    }
}
