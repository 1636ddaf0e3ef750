//! `lockstep data`: the data sets that are known by name, XGBoost's library, and what a set holds.

mod show;

use crate::args::DataCommand;
use lockstep_base::fs::CacheDir;
use lockstep_data::known;
use lockstep_trees::xgboost;
use std::process::ExitCode;

pub(crate) fn run(command: &DataCommand) -> anyhow::Result<ExitCode> {
    match command {
        DataCommand::Get { name } if name == xgboost::FOLDER => {
            let library = xgboost::bring(&CacheDir::locate()?, &mut |message| {
                super::tell(message);
            })?;
            super::print(format!("{}\n", library.display()))?;
        }
        DataCommand::Get { name } => {
            let cache = CacheDir::locate()?;
            let folder = known::get(set_of(name), &cache, &mut |message| super::tell(message))?;
            super::print(format!("{}\n", folder.display()))?;
        }
        DataCommand::Show(args) => show::run(args)?,
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

/// The set that a name stands for: its own, or that of one of its splits.
fn set_of(name: &str) -> &str {
    let has_split = |set: &&known::KnownSet| {
        let names = |split: &str| name == format!("{}:{split}", set.name);
        set.splits.iter().any(|split| names(split.name))
    };
    let set = known::KNOWN.iter().find(has_split);
    set.map_or(name, |set| set.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_listed_can_be_asked_for() {
        assert_eq!(set_of("fashion-mnist:train"), "fashion-mnist");
        assert_eq!(set_of("fashion-mnist"), "fashion-mnist");
        assert_eq!(set_of("fashion-mnist:none"), "fashion-mnist:none");
    }
}
