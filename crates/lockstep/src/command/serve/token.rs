//! `lockstep serve token`: who may ask a server, and what.

use super::place;
use crate::args::{ServerPlaceArgs, TokenCommand};
use crate::command::print;
use lockstep_index::dates;
use lockstep_server::Tokens;
use std::process::ExitCode;

pub(super) fn run(command: &TokenCommand) -> anyhow::Result<ExitCode> {
    match command {
        TokenCommand::Add { name, role, place } => {
            let token = tokens(place)?.add(name, (*role).into())?;
            print(format!("{token}\n"))?;
        }
        TokenCommand::List { place } => {
            for token in tokens(place)?.list()? {
                let line = format!(
                    "{:<24} {:<8} {}\n",
                    token.name,
                    token.role,
                    dates::show(token.made)
                );
                print(line)?;
            }
        }
        TokenCommand::Remove { name, place } => tokens(place)?.remove(name)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn tokens(args: &ServerPlaceArgs) -> anyhow::Result<Tokens> {
    Ok(Tokens::of(&place(args)?.1))
}
