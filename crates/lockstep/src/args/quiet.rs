//! `-q` of every command: where a command does not say itself what it means, it silences all that is no result, no
//! warning and no error.

use super::Cli;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory};
use std::sync::atomic::{AtomicBool, Ordering};

/// What the argument is called, here and where commands have it themselves.
const QUIET: &str = "quiet";

/// Whether it was given to the command that runs.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// The whole command line, with `-q` in every command.
pub(crate) fn command() -> Command {
    with_quiet(Cli::command())
}

fn with_quiet(command: Command) -> Command {
    let command = command.mut_subcommands(with_quiet);
    let has_it = command.get_arguments().any(|arg| arg.get_id() == QUIET);
    if has_it || command.is_subcommand_required_set() || command.is_hide_set() {
        return command;
    }
    command.arg(
        Arg::new(QUIET)
            .short('q')
            .long(QUIET)
            .action(ArgAction::SetTrue)
            .help("Print only the result, warnings and errors"),
    )
}

/// Remembers whether the command that was given is to be quiet.
pub(super) fn remember(matches: &ArgMatches) {
    let given = matches.try_get_one::<bool>(QUIET).ok().flatten();
    if given == Some(&true) {
        IS_QUIET.store(true, Ordering::Relaxed);
    }
    if let Some((_, inner)) = matches.subcommand() {
        remember(inner);
    }
}

/// Whether only results, warnings and errors are to be printed.
pub(crate) fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_can_be_quiet() {
        fn check(command: &Command, path: &str) {
            for inner in command
                .get_subcommands()
                .filter(|inner| !inner.is_hide_set())
            {
                let path = format!("{path} {}", inner.get_name());
                let is_command = !inner.is_subcommand_required_set();
                let has_it = inner
                    .get_arguments()
                    .any(|arg| arg.get_short() == Some('q'));
                assert!(has_it == is_command, "{path}");
                check(inner, &path);
            }
        }
        let whole = command();
        whole.clone().debug_assert();
        check(&whole, "lockstep");
    }
}
