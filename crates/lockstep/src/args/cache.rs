//! `lockstep cache`.

use clap::{Args, Subcommand};
use lockstep_base::amount;
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List what lies in the cache folder: what it is, its size, and when it was last used
    List {
        /// JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove what lies in the cache folder; all of it is brought or decoded again when it is needed
    #[command(after_help = "\
Examples:
  lockstep cache clean --older 30d           what was not used for thirty days
  lockstep cache clean --keep 5GB            what was used longest ago, until the rest takes at most 5 GB
  lockstep cache clean --yes                 everything, without asking")]
    Clean(CleanArgs),
}

/// What is to be removed.
#[derive(Debug, Args)]
pub(crate) struct CleanArgs {
    /// What was not used for so long, such as 12h, 30d or 4w
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) older: Option<Duration>,
    /// What was used longest ago, until the rest takes at most so much, such as 5GB or 500MiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) keep: Option<u64>,
    /// Say what would be removed, and remove nothing
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

fn time(given: &str) -> Result<Duration, String> {
    amount::time(given).ok_or_else(|| "write for example 12h, 30d or 4w".to_owned())
}

fn bytes(given: &str) -> Result<u64, String> {
    amount::bytes(given).ok_or_else(|| amount::EXAMPLE.to_owned())
}
