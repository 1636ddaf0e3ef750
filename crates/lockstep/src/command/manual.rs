//! `lockstep man`: manual pages, made from the same words as `--help`.

use super::completions::visible;
use anyhow::Context;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(out: &Path) -> anyhow::Result<ExitCode> {
    fs::create_dir_all(out).with_context(|| format!("cannot make the folder {}", out.display()))?;
    let about = "Data-parallel training in one binary, the same weights to the bit on any number of workers";
    clap_mangen::generate_to(visible().about(about), out)
        .with_context(|| format!("cannot write manual pages to {}", out.display()))?;
    Ok(ExitCode::SUCCESS)
}
