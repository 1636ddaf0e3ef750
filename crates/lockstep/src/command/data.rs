//! `lockstep data`: the data sets and encoders that are known by name, XGBoost's library, and what a set holds.

mod photos;
mod show;

use crate::args::DataCommand;
use crate::view::lines_of;
use anyhow::bail;
use lockstep_base::fs::CacheDir;
use lockstep_base::known_encoders::{EncoderRef, KNOWN_ENCODERS};
use lockstep_data::known;
use lockstep_embed::EncoderModel;
use lockstep_trees::xgboost;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) fn run(command: &DataCommand) -> anyhow::Result<ExitCode> {
    match command {
        DataCommand::Get { name } => {
            let brought = get(name, &mut |message| super::tell(message))?;
            super::print(format!("{}\n", brought.display()))?;
        }
        DataCommand::Show(args) => show::run(args)?,
        DataCommand::List => super::print(lines_of(&["name", "what", ""], &all()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Brings what is called so, unless it is here, and says where it lies.
fn get(name: &str, progress: &mut dyn FnMut(&str)) -> anyhow::Result<PathBuf> {
    if let Some(encoder) = EncoderRef::known(name) {
        return Ok(EncoderModel::open(&encoder, progress)?.path);
    }
    let cache = CacheDir::locate()?;
    if let Some(build) = xgboost::Build::ALL
        .into_iter()
        .find(|build| build.name() == name)
    {
        return Ok(xgboost::bring(&cache, build, progress)?);
    }
    let set = set_of(name);
    if known::find(set).is_err() {
        let known: Vec<String> = all()
            .into_iter()
            .map(|mut row| row.swap_remove(0))
            .collect();
        bail!(
            "nothing is known as `{name}`; known are {}",
            known.join(", ")
        );
    }
    Ok(known::get(set, &cache, progress)?)
}

/// All that is known by name: what it is called, what it is, and more of it.
fn all() -> Vec<Vec<String>> {
    let splits = known::KNOWN
        .iter()
        .flat_map(|set| (set.splits.iter()).map(|split| format!("{}:{}", set.name, split.name)));
    let row = |name: &str, what: &str, more: String| vec![name.to_owned(), what.to_owned(), more];
    let sets = splits.map(|name| row(&name, "data set", String::new()));
    let encoders = KNOWN_ENCODERS.iter().map(|known| {
        let more = format!("{}, SHA-256 {}", known.licence, known.sha256);
        row(known.name, "encoder", more)
    });
    let builds = xgboost::Build::ALL.map(|build| row(build.name(), "library", String::new()));
    sets.chain(encoders).chain(builds).collect()
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
