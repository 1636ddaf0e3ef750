//! `lockstep job`: looks at a job file without touching its data.

use crate::args::JobCommand;
use std::process::ExitCode;

pub(crate) fn run(command: &JobCommand) -> anyhow::Result<ExitCode> {
    let text = match command {
        JobCommand::Show(args) => args.load()?.to_toml(),
        JobCommand::Check(args) => {
            args.load()?;
            format!("{} is right\n", args.path.display())
        }
        JobCommand::Schema => serde_json::to_string_pretty(&lockstep_job::schema())? + "\n",
    };
    super::print(text)?;
    Ok(ExitCode::SUCCESS)
}
