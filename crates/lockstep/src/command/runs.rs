//! `lockstep runs`: finding, comparing, tagging and removing runs.

mod best;
mod compare;
mod export;
mod list;
mod push;
mod reindex;
pub(super) mod rm;
pub(super) mod row;
mod show;
pub(super) mod store;
mod tag;

use crate::args::RunsCommand;
use std::process::ExitCode;

pub(crate) fn run(command: &RunsCommand) -> anyhow::Result<ExitCode> {
    match command {
        RunsCommand::List(args) => list::run(args)?,
        RunsCommand::Show(args) => show::run(args)?,
        RunsCommand::Compare(args) => compare::run(args)?,
        RunsCommand::Best(args) => best::run(args)?,
        RunsCommand::Tag(args) => tag::run(args)?,
        RunsCommand::Rm(args) => return rm::run(args),
        RunsCommand::Export(args) => export::run(args)?,
        RunsCommand::Reindex(args) => reindex::run(args)?,
        RunsCommand::Push(args) => push::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}
