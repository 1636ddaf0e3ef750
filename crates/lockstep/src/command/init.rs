//! `lockstep init`: a commented job file to start from.

use crate::args::InitArgs;
use crate::view::shell;
use anyhow::{Context, bail};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

/// The job's name where the file's has nothing to offer.
const NAMELESS: &str = "job";

pub(crate) fn run(args: &InitArgs) -> anyhow::Result<ExitCode> {
    let path = &args.path;
    let text = lockstep_job::template(&name_for(path));
    if args.force {
        lockstep_fs::write_atomic(path, text.as_bytes())?;
    } else {
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        match file {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                bail!("{} exists; --force replaces it", path.display());
            }
            file => file
                .and_then(|mut file| {
                    let written = file.write_all(text.as_bytes());
                    // Half a job file is worse than none.
                    written.inspect_err(|_| drop(fs::remove_file(path)))
                })
                .with_context(|| format!("cannot write {}", path.display()))?,
        }
    }
    let shown = shell(&path.display().to_string());
    super::print(format!(
        "wrote {}; try it with: lockstep run {shown}\n",
        path.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The file's name without its ending, as far as it can name a job.
fn name_for(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String = stem.chars().filter(|c| allowed(*c)).take(100).collect();
    match name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()) {
        "" => NAMELESS.to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_named_after_its_file_as_far_as_that_goes() {
        let name = |path: &str| name_for(Path::new(path));
        assert_eq!(name("a/digits.toml"), "digits");
        assert_eq!(name("my job.toml"), "myjob");
        assert_eq!(name("-x.toml"), "x");
        assert_eq!(name("ä.toml"), NAMELESS);
    }
}
