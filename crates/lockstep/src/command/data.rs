//! `lockstep data`: the data sets that are known by name.

use crate::args::DataCommand;
use lockstep_data::known;
use lockstep_store::CacheDir;
use std::process::ExitCode;

pub(crate) fn run(command: &DataCommand) -> anyhow::Result<ExitCode> {
    match command {
        DataCommand::Get { name } => {
            let cache = CacheDir::locate()?;
            let folder = known::get(name, &cache, &mut |message| eprintln!("{message}"))?;
            super::print(format!("{}\n", folder.display()))?;
        }
        DataCommand::List => {
            let mut text = String::new();
            for set in known::KNOWN {
                for split in set.splits {
                    text += &format!("{}:{}\n", set.name, split.name);
                }
            }
            super::print(text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
