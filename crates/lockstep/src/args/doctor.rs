//! The command line of `doctor`.

use super::{KubeArgs, key_value};
use clap::{Args, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep doctor                            this machine, and what it can reach
  lockstep doctor job.toml                   and the job's store, data and services
  lockstep doctor --to http://HEAD:8265      and a Ray head or `lockstep serve`
  lockstep doctor --to kube                  and Kubernetes
  lockstep doctor --store s3://bucket/runs   and a store: write, read, list, speed
  lockstep doctor --json > report.json       for a bug report; no secret is in it

Exit codes: 0 nothing is wrong, 1 something is not as it should be, 2 something does not work, or wrong usage.")]
pub(crate) struct DoctorArgs {
    /// A job file whose store, data and services are looked at too
    #[arg(value_name = "JOB", value_hint = ValueHint::FilePath)]
    pub(crate) job: Option<PathBuf>,
    /// Where jobs are to run: the address of `lockstep serve` or of a Ray head, or `kube`
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) to: Option<String>,
    #[command(flatten, next_help_heading = "With --to kube")]
    pub(crate) at: KubeArgs,
    /// A store of runs; by default the job's
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) store: Option<String>,
    /// Set a key of the job file to a TOML value; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<String>,
    /// Print what was found as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
